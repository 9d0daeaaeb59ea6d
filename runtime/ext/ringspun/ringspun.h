/* ringspun.h: the C API for other extensions. A versioned table of functions, so that an extension needs nothing of Ringspun's
 * when it is linked, and runs with any later version of it.
 *
 *     # extconf.rb
 *     require "mkmf"
 *     require "ringspun"
 *     $INCFLAGS << " -I#{Ringspun.include_dir}"
 *     create_makefile("my_extension")
 *
 *     // my_extension.c
 *     #include <ringspun.h>
 *     const ringspun_api *ringspun = ringspun_get_api(2);
 *
 * Call these functions with the GVL held, on a thread that has a machine or may get one, from a strand or the thread's own
 * code; `wake` alone may be called from anywhere. What raises, raises as the Ruby methods do; what may switch strands says so.
 * Since 0.1.0.
 */
#ifndef RINGSPUN_API_H
#define RINGSPUN_API_H

#include <ruby.h>
#include <stdint.h>

/* Grows with every function that is added at the end of the table. None is ever removed or changed. */
#define RINGSPUN_API_VERSION 2

/* A deadline that never comes. Deadlines are nanoseconds on the machine's clock. */
#define RINGSPUN_NEVER INT64_MAX

/* For `wait_ready`: as poll(2) has them. */
#define RINGSPUN_READABLE 1
#define RINGSPUN_WRITABLE 4

/* One wait of one strand. It is good for one wake, and must be woken exactly once, even when the wait has ended otherwise. */
typedef struct {
    void *machine;
    uint64_t strand;
    uint64_t ticket;
} ringspun_waker;

typedef struct {
    uint32_t version;

    /* The machine's clock, and a deadline so many seconds from now; nil: RINGSPUN_NEVER. Raises UsageError. */
    int64_t (*now)(void);
    int64_t (*deadline)(VALUE seconds);

    /* Parks the running strand until the waker is woken. `start` is called before it parks, with the GVL held: it hands the waker
     * to whoever will wake it, and must not raise or wait. True: `*value` is what wake was given; false: the deadline came first.
     * Raises when the strand is cancelled, and then, as after false, what `start` has set going is not over: memory that it
     * uses must last until its wake. May switch strands. */
    bool (*park)(int64_t deadline, void (*start)(ringspun_waker waker, void *data), void *data, int64_t *value);

    /* Ends that wait, if it is not over. From any thread, with or without the GVL, at any time; not from a signal handler. */
    void (*wake)(ringspun_waker waker, int64_t value);

    /* Lets other strands run. May switch strands. */
    void (*yield)(void);

    /* Reads up to `length` bytes to `offset` of the String, which grows as need be; 0 at the end of the stream. Writes all of the
     * String. As Machine#read and #write; may switch strands. */
    long (*read)(int fd, VALUE string, long length, long offset);
    long (*write)(int fd, VALUE string);

    /* Waits until the descriptor is ready for one of the events, and answers which. As Machine#poll; may switch strands. */
    int (*wait_ready)(int fd, int events);

    /* Runs the body; waits inside it end at the deadline, and TimeoutError is raised from here. As Machine#timeout. */
    VALUE (*with_deadline)(int64_t deadline, VALUE (*body)(VALUE argument), VALUE argument);

    /* --- since version 2 --- */

    /* The machine whose strands run here, or NULL: outside of a run, or where another fiber scheduler has the thread. Only to be
     * compared. */
    void *(*machine_here)(void);

    /* As `park`, for a wait that strands of the same machine end (`wake_here`). Nobody owes a wake: whenever this raises or answers
     * false, `given_up` is called before, also when it could not even begin to wait (and has not called `start`). From then on the
     * waker must not be used. Neither `start` nor `given_up` may raise or wait. `what` the strand waits for, as its inspector has it; the text
     * must last. May switch strands. */
    bool (*park_or)(int64_t deadline, const char *what, void (*start)(ringspun_waker waker, void *data),
                    void (*given_up)(void *data), void *data, int64_t *value);

    /* Ends a wait of `park_or` on this machine: no lock, no message. The strand runs later. Not in `start`. Never raises. */
    void (*wake_here)(ringspun_waker waker, int64_t value);

    /* Has `call` called with the object once, when the machine is about to ask the kernel for more, and before what was written is
     * handed over to it: whoever gathers what several strands want does it there. The object is kept alive until then. The call may
     * write (`stream_put`) and wake (`wake_here`); it must not wait or raise, nor run Ruby code; it may ask for another call, at the
     * end of the next tick. There is none once the machine is closed, or in a forked child. False: there is no memory for it. */
    bool (*at_tick_end)(void (*call)(VALUE object), VALUE object);

    /* What a Ringspun::Stream has received and nobody has taken, where it lies: good until the next function or method of that
     * stream. Never waits or raises. */
    void (*stream_peek)(VALUE stream, const char **bytes, size_t *length);

    /* Waits until it has received more than that. False: the other side has ended, and nothing more will come. Raises as the
     * stream's methods do; TimeoutError at the deadline. One strand at a time. May switch strands. */
    bool (*stream_more)(VALUE stream, int64_t deadline);

    /* The first `length` bytes of it are taken. */
    void (*stream_drop)(VALUE stream, size_t length);

    /* The same, and the block of memory in which they lie is the caller's, until `block_free`; they begin at `*start` of it. What
     * has come behind them stays with the stream. Raises NoMemoryError, and then nothing is taken. */
    void *(*stream_take)(VALUE stream, size_t length, size_t *start, size_t *capacity);
    void (*block_free)(void *block);

    /* Writes the bytes, of which nothing waits: they leave when the tick ends. False: the stream is closed or has failed, or there
     * is no memory, and none of them is written. Never raises. */
    bool (*stream_put)(VALUE stream, const void *bytes, size_t length);

    /* How many bytes were written that the kernel has not taken yet. */
    size_t (*stream_unsent)(VALUE stream);
} ringspun_api;

/* The table of the Ringspun that is loaded, which has at least the functions of that version, or an exception. */
static inline const ringspun_api *ringspun_get_api(uint32_t version) {
    VALUE table = rb_const_get(rb_path2class("Ringspun"), rb_intern("C_API"));
    const ringspun_api *api = (const ringspun_api *)(uintptr_t)NUM2ULL(table);
    if (api->version < version) {
        rb_raise(rb_eLoadError, "this extension needs version %u of Ringspun's C API, and has %u; update ringspun", version,
                 api->version);
    }
    return api;
}

#endif
