/* ringspun.h: the C API for other extensions. It is a versioned table of functions, so an extension links nothing of Ringspun,
 * and runs with any later version of it.
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
 * Call these functions with the GVL held, on a thread that has a machine or may get one, from a strand or the thread's own code.
 * Only `wake` may be called from anywhere. They raise what the Ruby methods raise. Those that may switch strands say so. Since
 * 0.1.0.
 */
#ifndef RINGSPUN_API_H
#define RINGSPUN_API_H

#include <ruby.h>
#include <stdint.h>

/* The version grows when functions are added at the end of the table. None is ever removed or changed. */
#define RINGSPUN_API_VERSION 2

/* A deadline that never comes. Deadlines are nanoseconds on the machine's clock. */
#define RINGSPUN_NEVER INT64_MAX

/* For `wait_ready`: POLLIN and POLLOUT of poll(2). */
#define RINGSPUN_READABLE 1
#define RINGSPUN_WRITABLE 4

/* One wait of one strand. It must be woken exactly once, even if the wait has ended otherwise. */
typedef struct {
    void *machine;
    uint64_t strand;
    uint64_t ticket;
} ringspun_waker;

typedef struct {
    uint32_t version;

    /* The time on the machine's clock; the deadline that many seconds from now, nil: RINGSPUN_NEVER. Raises UsageError. */
    int64_t (*now)(void);
    int64_t (*deadline)(VALUE seconds);

    /* Parks the running strand until the waker is woken. `start` is called before, with the GVL held. It passes the waker to the
     * code that will wake it, and must not raise or wait. True: `*value` is the value given to `wake`; false: the deadline came
     * first. Raises if the strand is cancelled. After that, and after false, the work that `start` has begun goes on: memory that
     * it uses must last until its `wake`. May switch strands. */
    bool (*park)(int64_t deadline, void (*start)(ringspun_waker waker, void *data), void *data, int64_t *value);

    /* Ends that wait, unless it has ended. From any thread, with or without the GVL, at any time; not from a signal handler. */
    void (*wake)(ringspun_waker waker, int64_t value);

    /* Lets other strands run. May switch strands. */
    void (*yield)(void);

    /* The first reads up to `length` bytes to `offset` of the String, which grows if necessary; 0 at the end of the stream. The
     * second writes all of the String. As Machine#read and #write; may switch strands. */
    long (*read)(int fd, VALUE string, long length, long offset);
    long (*write)(int fd, VALUE string);

    /* Waits until the descriptor is ready for one of the events; returns the ready ones. As Machine#poll; may switch strands. */
    int (*wait_ready)(int fd, int events);

    /* Runs the body. At the deadline its waits end, and this raises TimeoutError. As Machine#timeout. */
    VALUE (*with_deadline)(int64_t deadline, VALUE (*body)(VALUE argument), VALUE argument);

    /* --- since version 2 --- */

    /* The machine whose strands run on this thread. NULL: outside of a run, or the thread has another fiber scheduler. Only
     * compare the pointer. */
    void *(*machine_here)(void);

    /* Like `park`, for a wait that strands of the same machine end by `wake_here`. No wake is owed: before this raises or returns
     * false, it calls `given_up`, also if it has not called `start`, because the wait was refused. The waker must not be used
     * after that. Neither `start` nor `given_up` may raise or wait. `what` says in reports what the strand waits for; the text
     * must last. May switch strands. */
    bool (*park_or)(int64_t deadline, const char *what, void (*start)(ringspun_waker waker, void *data),
                    void (*given_up)(void *data), void *data, int64_t *value);

    /* Ends a wait of `park_or` on this machine: no lock, no message. The strand runs later. Not in `start`. Never raises. */
    void (*wake_here)(ringspun_waker waker, int64_t value);

    /* Calls `call` with the object once, at the end of the tick: before written bytes leave, and before the machine asks the
     * kernel for completions. So an extension can send what several strands want together. The object is kept alive until then.
     * The call may write (`stream_put`) and wake (`wake_here`), and may ask for another call at the end of the next tick. It must
     * not wait, raise or run Ruby code; `now` it may ask. There is no call after the machine is closed, or in a forked child. False: there is no
     * memory for it. */
    bool (*at_tick_end)(void (*call)(VALUE object), VALUE object);

    /* The bytes that a Ringspun::Stream has received and that were not read, in its own memory: valid until the next function or
     * method of that stream. Never waits or raises. */
    void (*stream_peek)(VALUE stream, const char **bytes, size_t *length);

    /* Waits until it has received more bytes. False: the stream has ended. Raises what the stream's methods do; TimeoutError at
     * the deadline. One strand at a time. May switch strands. */
    bool (*stream_more)(VALUE stream, int64_t deadline);

    /* Removes the first `length` bytes. */
    void (*stream_drop)(VALUE stream, size_t length);

    /* The same, and returns the block of memory in which they lie, at offset `*start`. The caller owns it until `block_free`.
     * Later bytes stay with the stream. If this raises NoMemoryError, no bytes are removed. */
    void *(*stream_take)(VALUE stream, size_t length, size_t *start, size_t *capacity);
    void (*block_free)(void *block);

    /* Writes the bytes without waiting: they leave at the end of the tick. False: none is written, because the stream is closed
     * or has failed, or there is no memory. Never raises. */
    bool (*stream_put)(VALUE stream, const void *bytes, size_t length);

    /* How many written bytes the kernel has not taken yet. */
    size_t (*stream_unsent)(VALUE stream);

    /* What the strand that runs waits for, in words for reports, whatever its waits are, until this is called with NULL, which it
     * must be also when one of them raises. The text must last until then. For `stream_more` and what else waits by itself. Never
     * raises. */
    void (*waits_for)(const char *what);
} ringspun_api;

/* The table of the loaded Ringspun. Raises LoadError if it does not have the functions of that version. */
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
