/* has: what this Ruby has and others have not, and what follows from it. Nothing else in the binding may tell one Ruby from
 * another, and nothing at all asks for a version number: extconf.rb asks the headers (HAVE_...), and what is left they say here.
 * What is to be looked at for a new Ruby stands in docs/07-internals.md, "A new Ruby". */
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

/* Of CRuby's, but in none of its headers. */
int ruby_thread_has_gvl_p(void);
static inline bool rsb_has_gvl(void) { return ruby_thread_has_gvl_p() != 0; }

/* What CRuby keeps in errinfo while a Fiber#kill unwinds; any other number there is a Thread#kill. */
#define RSB_FIBER_KILLED INT2FIX(2)

/* The order in which CRuby gives io_read and its kin the last two arguments is all that this number is asked for: no header and
 * no method tells it. From 4 on it is (offset, length), and `length` is the most (ruby/ruby#18483). */
static inline bool rsb_hooks_take_offset_first(void) { return RUBY_FIBER_SCHEDULER_VERSION >= 4; }

/* What CRuby says about IO::Buffer once in a process, where it says so for the buffers of the hooks too (4.0), is said to nobody:
 * no program has asked for those. Only by the call with which CRuby makes them, so that elsewhere a program's own first buffer
 * is warned about as always. */
void rsb_make_first_buffer(void);

#endif
