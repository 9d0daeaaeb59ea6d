/* caller: who has called a hook. CRuby calls the same one for several things, and does not say for which. This asks the frames of
 * the stack for their names; on the thread of the hook. */
#ifndef RINGSPUN_CALLER_H
#define RINGSPUN_CALLER_H

#include "binding/binding.h"

/* True when the nearest method outside of the running hook, one of those for I/O, and of its overrides is written in C. */
bool rsb_called_from_c(void);
/* Whether CRuby had better wait itself before it writes to that IO once more. */
bool rsb_waits_itself(VALUE io);
/* True when it was that method of that class that called the running hook, be it through overrides of it that call `super`: the
 * nearest that has this name, or is of this class, is both. */
bool rsb_called_by(const char *class_path, const char *method);

/* True in the waits of IO#close and its kin for those who use the IO. */
bool rsb_called_from_io_close(void);

/* What CRuby itself hands over to blocking_operation_wait, from 3.4 on, is one system call: File.open, File.stat, IO#close and
 * their kin. */
bool rsb_called_for_system_call(void);
/* Or a whole IO.copy_stream. On another thread a copy may wait where nothing can interrupt it, for it asks whether the strand's own
 * thread was interrupted; left to CRuby, as before, it waits by the hook io_wait. */
bool rsb_called_from_copy(void);

#endif
