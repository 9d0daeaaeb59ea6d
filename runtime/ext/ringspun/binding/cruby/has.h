/* has: what this Ruby has and others have not. No other file of the binding asks that, and none asks for the version of Ruby:
 * extconf.rb looks for functions (HAVE_...), and the rest is found out here. For a new Ruby read "A new Ruby" in
 * docs/07-internals.md. */
#ifndef RINGSPUN_CRUBY_HAS_H
#define RINGSPUN_CRUBY_HAS_H

#include <ruby.h>
#include <ruby/fiber/scheduler.h>
#include <ruby/thread.h>
#include <stdbool.h>

/* Keeps the calling Ruby thread on its native thread from now on. False: this Ruby cannot be asked to. */
static inline bool rsb_lock_native_thread(void) {
#ifdef HAVE_RB_THREAD_LOCK_NATIVE_THREAD
    rb_thread_lock_native_thread();
    return true;
#else
    return false;
#endif
}

/* Exported by CRuby (thread.c), but declared in none of its headers. */
int ruby_thread_has_gvl_p(void);
static inline bool rsb_has_gvl(void) { return ruby_thread_has_gvl_p() != 0; }

/* errinfo while a Fiber#kill unwinds: RUBY_FATAL_FIBER_KILLED of CRuby's internal/thread.h. Any other Integer: Thread#kill. */
#define RSB_FIBER_KILLED INT2FIX(2)

/* The last two arguments of the hooks io_read, io_write, io_pread and io_pwrite: (length, offset) before version 4 of the hooks,
 * (offset, length) from then on, where `length` is a maximum (ruby/ruby#18483). Nothing but the version says so. */
static inline bool rsb_hooks_take_offset_first(void) { return RUBY_FIBER_SCHEDULER_VERSION >= 4; }

/* False on a Ruby that notes it otherwise. */
static inline bool rsb_has_finalizer(VALUE object) { return RB_FL_TEST(object, RUBY_FL_FINALIZE) != 0; }

/* CRuby warns once a process that IO::Buffer is experimental (io_buffer_experimental in io_buffer.c), in 4.0 also when it
 * makes a buffer for a hook. A program that uses none itself should not see that warning. So the first buffer is made here, with
 * warnings off, by rb_io_buffer_new as in the hooks: a Ruby that does not warn there still warns about the program's own first
 * buffer. */
void rsb_make_first_buffer(void);

#endif
