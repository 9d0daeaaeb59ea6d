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
 *     const ringspun_api *ringspun = ringspun_get_api(1);
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
#define RINGSPUN_API_VERSION 1

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
