/* caller: which method has called a hook of the scheduler. CRuby calls the same hook from several methods and does not say from
 * which. This looks at the backtrace (rb_profile_frames, ruby/debug.h). Called on the thread of the hook. */
#ifndef RINGSPUN_CALLER_H
#define RINGSPUN_CALLER_H

#include "binding/binding.h"

/* In a hook for I/O: true if the method that called it is written in C. Overrides of the hook are passed over. */
bool rsb_called_from_c(void);
/* In io_write: true if CRuby should wait by itself before it writes to that IO once more. */
bool rsb_waits_itself(VALUE io);
/* True if that method of that class called the running hook, also through overrides that call `super`: the nearest frame with
 * that name or of that class has both. */
bool rsb_called_by(const char *class_path, const char *method);

/* True if no method called the running hook of that name, but CRuby itself at the end of a thread or of the program; also through
 * overrides. */
bool rsb_called_by_nobody(const char *method);

/* True if IO#close, close_read or close_write called the hook. */
bool rsb_called_from_io_close(void);

/* What CRuby gives to blocking_operation_wait (a hook since 3.4) for methods of its own is either one system call: of File.open,
 * File.stat and the like. */
bool rsb_called_for_system_call(void);
/* Or it is a whole IO.copy_stream. On another thread nothing could interrupt the waits of that copy, because it looks for
 * interrupts of the strand's own thread (maygvl_copy_stream_continue_p in io.c). Without the hook CRuby copies as it did before
 * 3.4, and waits by the hook io_wait. */
bool rsb_called_from_copy(void);

#endif
