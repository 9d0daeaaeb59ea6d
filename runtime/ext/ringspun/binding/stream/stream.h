/* stream: a descriptor with a buffer for reading and a write queue.
 *
 * Bytes that were received and not read yet lie in `in`. An empty buffer holds no memory, also while a strand waits for bytes
 * (RS_REQUEST_ANY_BUFFER). Written bytes lie in the write queue until the tick ends. A method takes bytes out of `in` only when
 * it returns them, and nothing in between raises. So a reader that is cancelled, times out or meets a limit loses no bytes, and
 * the next call finds them.
 *
 * A stream belongs to the machine of the thread that made it. One strand at a time may read; any number may write.
 */
#ifndef RINGSPUN_STREAM_H
#define RINGSPUN_STREAM_H

#include "binding/io/io.h"

typedef struct rsb_tls rsb_tls;

typedef struct {
    rs_write_queue write_queue;           /* first: a pointer to it is one to the stream */
    VALUE self;
    VALUE machine;
    VALUE io;                   /* Integer or IO */
    VALUE shown;                /* the IO that #to_io has made; nil: none */
    rsb_tls *tls;               /* the TLS session; NULL: plain bytes */
    VALUE tls_socket;           /* whose session it is; or nil */
    rs_buffer in;
    rs_source watched;          /* for selectors: bytes that another strand has left in `in` */
    size_t searched;            /* at none of so many first bytes of `in` begins the mark `searched_for` */
    const char *searched_for;   /* compared, and not read: it may be gone */
    int64_t timeout_ns;         /* of a call without one; or RS_NEVER */
    size_t high_water;
    int encoding;               /* index, of the Strings that it returns */
    uint64_t to_skip;           /* bytes that a cancelled #skip has yet to skip */
    uint32_t fork_count;        /* as it was at the last call */
    int32_t fd;
    bool socket;
    bool error_raised;          /* the write queue's error has been raised once */
    bool reading;               /* a strand waits for bytes */
    bool flows;                 /* the last read has found more bytes than a piece of the pool holds, or as many as it had room for */
    bool gap;                   /* bytes were lost, because there was no memory for them */
    bool made_io;               /* the stream has made `io` of its descriptor, an Integer before */
    bool shaking;               /* a strand is in the TLS handshake */
    bool ended;                 /* end of the stream: no more bytes will come */
    bool closed;
    bool write_closed;
} rsb_stream;

extern VALUE rsb_cStream;

/* For selectors. */
bool rsb_is_stream(VALUE object);
rs_source *rsb_stream_source(VALUE self);
/* read.c: true: there are bytes to read, or the stream has ended. False: wait for its descriptor, `*fd`. Raises if it is closed. */
bool rsb_stream_look(VALUE self, int *fd);

/* open.c: true if #to_io of a stream of this machine has made that IO, and the stream has bytes to read, or has ended. */
bool rsb_stream_holds(const rsb_machine *machine, VALUE io);

/* The stream in any state. */
rsb_stream *rsb_stream_peek(VALUE self);

/* The stream, if it is open and of this thread's machine; else raises. */
rsb_stream *rsb_stream_get(VALUE self, rsb_machine **machine);

/* `timeout`: Qundef: the stream's own. `named`: the values of the other options, in the order of `names`. */
typedef struct {
    VALUE timeout;
    VALUE named[2];
} rsb_stream_options;
rsb_stream_options rsb_stream_options_of(VALUE options, int count, const ID *names);
int64_t rsb_stream_deadline(rsb_machine *machine, const rsb_stream *stream, VALUE timeout);
NORETURN(void rsb_stream_timed_out(const rsb_stream *stream, VALUE timeout, const char *what));
VALUE rsb_stream_time_is_up(const rsb_stream *stream, VALUE timeout, const char *what);

/* Raises an error that the other side of this stream has caused: it is gone, or sends too much, too little or nothing in time. The
 * error keeps that for Stream#peers_fault?, by which a server tells it from one of the program's own. NULL: of no stream. */
NORETURN(void rsb_stream_blame(const rsb_stream *stream, VALUE error));
/* True: by this error of a stream the kernel says that the other side is gone. */
bool rsb_stream_says_gone(int64_t result);

/* The descriptor. Raises if it was closed without the stream. */
int rsb_stream_fd(rsb_machine *machine, rsb_stream *stream);

/* True if its bytes are those of its descriptor. */
static inline bool rsb_stream_is_plain(const rsb_stream *stream) { return !stream->tls; }

/* read.c: begins a read of another kind. Raises if another strand reads; first skips what a cancelled #skip has left. */
rsb_stream *rsb_stream_begin_read(VALUE self, VALUE timeout, const char *what, rsb_machine **machine);

/* read.c: waits until there are more bytes in `in` than now. False: the stream has ended. Raises what the methods of streams
 * do. */
bool rsb_stream_more(VALUE self, int64_t deadline_ns, const char *what);
/* Removes the first `len` bytes of `in`. */
void rsb_stream_drop(rsb_machine *machine, rsb_stream *stream, size_t len);
/* The same, and returns the memory in which they lie, which the caller frees; `*start` is their offset there. The other bytes
 * stay in `in`. */
char *rsb_stream_take_block(rsb_machine *machine, rsb_stream *stream, size_t len, size_t *start, size_t *capacity);

/* write.c: rsb_stream_put for callers that must not raise. False: it is closed, has failed, or there is no memory. */
bool rsb_stream_try_put(rsb_stream *stream, const void *bytes, size_t len);

/* write.c: puts bytes into the write queue, without waiting for room. */
void rsb_stream_put(VALUE self, VALUE string, const char *what);

/* For a stream over an IO object: false if that was closed without the machine. Its number may mean another descriptor then. */
bool rsb_stream_is_open(const rs_write_queue *write_queue);

/* write.c: waits until the write queue is empty. Raises its error, unless a call has raised that before. */
void rsb_stream_drain(rsb_machine *machine, rsb_stream *stream, VALUE timeout);

/* Ends the op in flight, if there is one, and waits for that; bytes that it has not sent are dropped. */
void rsb_write_queue_end_op(rsb_machine *machine, rs_write_queue *write_queue);

/* tls.c: raises the error of the kernel (rsb_refused) or of TLS, or a ClosedError if the descriptor was closed without the stream. */
NORETURN(void rsb_stream_refused(rsb_machine *machine, rsb_stream *stream, int64_t result, const char *what, int fd));

void rsb_init_stream(void);
void rsb_init_stream_read(void);
void rsb_init_stream_write(void);
void rsb_init_stream_copy(void);
void rsb_init_stream_tls(void);
void rsb_init_stream_open(void);

#endif
