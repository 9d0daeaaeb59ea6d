/* pending: whether a signal has been sent to the process and has not had its effect yet. Owned by the machine's thread.
 *
 * The kernel has a signal until one of the process's threads takes it: it is pending. That thread then runs CRuby's handler, which
 * asks for the interrupt of the main thread, or has CRuby's timer thread do so. So when nothing is pending, and every thread that
 * could have taken a signal sleeps in a system call, nothing is under way, however slow the computer is.
 * https://man7.org/linux/man-pages/man7/signal.7.html */
#ifndef RINGSPUN_BINDING_CORE_PENDING_H
#define RINGSPUN_BINDING_CORE_PENDING_H

#include "binding/binding.h"

/* Whether a signal is under way. A new look forgets what the one before has seen. Calls nothing of Ruby's. */
void rsb_pending_begin(rsb_pending *look);
bool rsb_signal_is_pending(rsb_pending *look);

#endif
