/* stream: bytes to and from a descriptor, with a buffer on either side.
 *
 * What has come and is not taken yet lies in `in`; an empty buffer holds no memory, and while a strand waits for bytes there is
 * none either (RS_REQUEST_ANY_BUFFER). What is written lies in the write queue until the tick ends. Bytes are taken out of `in`
 * only by the call that returns them, and nothing that raises comes between: so a reader that is cancelled, times out or meets a
 * limit has lost nothing, and the next call finds what this one left.
 *
 * It belongs to the machine of the thread that made it. One strand at a time reads; any number may write.
 */
#ifndef RINGSPUN_STREAM_H
#define RINGSPUN_STREAM_H

#include "binding/io/io.h"
#include "engine/flow/write_queue.h"

typedef struct rsb_tls rsb_tls;

typedef struct {
    rs_write_queue write_queue;           /* first, for the machine finds the stream by it */
    VALUE self;
    VALUE machine;
    VALUE io;                   /* Integer or IO */
    VALUE shown;                /* the IO that #to_io answers; nil: nobody has asked for it */
    rsb_tls *tls;               /* what its bytes go through; NULL: nothing */
    rs_buffer in;
    rs_source watched;          /* by selectors, for bytes in `in` that another strand has left there */
    size_t searched;            /* of `in`, from its start: there is no end of a line */
    int64_t timeout_ns;         /* of a call that names none; RS_NEVER */
    size_t high_water;
    int encoding;               /* index, of the Strings that it returns */
    uint64_t to_skip;           /* bytes of the next that come, which a cancelled #skip has left */
    uint32_t fork_count;        /* as it was when the machine last looked */
    int32_t fd;
    bool socket;
    char searched_for;          /* the end that `searched` is about */
    bool told;                  /* somebody has been, of the write queue's error */
    bool reading;               /* a strand waits for bytes */
    bool gap;                   /* bytes have come for which there was no memory */
    bool made_io;               /* `io` only stands for the number that the stream was over before */
    bool shaking;               /* a strand is at the TLS handshake */
    bool ended;                 /* the other side has ended */
    bool closed;
    bool write_closed;
} rsb_stream;

extern VALUE rsb_cStream;

/* For selectors. */
bool rsb_is_stream(VALUE object);
rs_source *rsb_stream_source(VALUE self);
/* True: it can be read from, has ended, or is closed. False: when its descriptor is ready, which is `*fd`. */
bool rsb_stream_look(VALUE self, int *fd);

/* Whether an IO is what #to_io of a stream of this machine's has answered, and that holds bytes, or the end. */
bool rsb_stream_holds(const rsb_machine *machine, VALUE io);

/* Whatever state it is in. */
rsb_stream *rsb_stream_peek(VALUE self);

/* Open, of this thread's machine, and ready for a wait. */
rsb_stream *rsb_stream_get(VALUE self, rsb_machine **machine);

/* `timeout:` of a call, or the stream's own. `named`: the values of options beside it, by their names. */
typedef struct {
    VALUE timeout;
    VALUE named[2];
} rsb_stream_options;
rsb_stream_options rsb_stream_options_of(VALUE options, int count, const ID *names);
int64_t rsb_stream_deadline(rsb_machine *machine, const rsb_stream *stream, VALUE timeout);
NORETURN(void rsb_stream_timed_out(const rsb_stream *stream, VALUE timeout, const char *what));

/* The descriptor, as it is now. */
int rsb_stream_fd(rsb_machine *machine, rsb_stream *stream);

/* Its bytes are those of its descriptor. */
static inline bool rsb_stream_is_plain(const rsb_stream *stream) { return !stream->tls; }

/* read.c: for who takes bytes in a way of his own. Nobody else reads now, and what a cancelled #skip has left has gone
 * by. */
rsb_stream *rsb_stream_begin_read(VALUE self, VALUE timeout, const char *what, rsb_machine **machine);

/* read.c: waits until there are more bytes in `in` than now. False: the other side has ended, and there will be no more. Raises as
 * the methods do. */
bool rsb_stream_more(VALUE self, int64_t deadline_ns, const char *what);
/* The first of the bytes in `in` are taken. */
void rsb_stream_drop(rsb_machine *machine, rsb_stream *stream, size_t len);
/* The same, and with them the memory that they lie in, which the caller frees; `*start` is where in it. The others stay. */
char *rsb_stream_take_block(rsb_machine *machine, rsb_stream *stream, size_t len, size_t *start, size_t *capacity);

/* write.c: the same as rsb_stream_put for who must not raise. False: it is closed, has failed, or there is no memory. */
bool rsb_stream_try_put(rsb_stream *stream, const void *bytes, size_t len);

/* write.c: to be written, without waiting for room. */
void rsb_stream_put(VALUE self, VALUE string, const char *what);

/* Of one over an IO: closed by its own close, which the machine hears nothing of, it leaves the number to whoever comes next. */
bool rsb_stream_is_open(const rs_write_queue *write_queue);

/* write.c: until everything has left; raises when it will not, and nobody was told. */
void rsb_stream_drain(rsb_machine *machine, rsb_stream *stream, VALUE timeout);

/* Waits until none is in flight; what it has not sent is gone. */
void rsb_write_queue_end_op(rsb_machine *machine, rs_write_queue *write_queue);

/* What the kernel said, in the words of rsb_refused, unless the number has come to mean something else. */
NORETURN(void rsb_stream_refused(rsb_machine *machine, rsb_stream *stream, int64_t result, const char *what, int fd));

void rsb_init_stream(void);
void rsb_init_stream_read(void);
void rsb_init_stream_write(void);
void rsb_init_stream_copy(void);

#endif
