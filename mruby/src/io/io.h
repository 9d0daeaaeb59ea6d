/* io: descriptors: requests to the system, streams, sockets, and IO objects of the program. No other room uses this one.
 *
 * A Stream owns its descriptor until it is closed, and the machine knows all streams that have one (stream.c). The descriptor of an IO
 * object is the program's own. An op owns the memory that its request names in `owned`, and it frees that when it ends (request.c).
 */
#ifndef RINGSPUN_MRUBY_IO_H
#define RINGSPUN_MRUBY_IO_H

#include "../core/core.h"

#include <sys/socket.h>

/* What a request that has succeeded with that result returns. May raise. */
typedef mrb_value (*rsm_answer)(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t result);

/* --- address.c --- */

typedef struct {
    struct sockaddr_storage bytes;
    socklen_t len;
} rsm_address;

/* A host in digits with a port, or a path with nil. */
rsm_address rsm_address_of(mrb_state *mrb, mrb_value host, mrb_value port);

/* False: it is a name. */
bool rsm_parse_digits(const char *host, int port, rsm_address *to);

/* The characters of a name or an address. */
const char *rsm_host_of(mrb_state *mrb, mrb_value host);

/* The host and the port of one of TCP; the path and nil of one of Unix, which may have none. */
mrb_value rsm_address_parts(mrb_state *mrb, const void *address, size_t len);

/* "127.0.0.1:80", "[::1]:80", or the path. */
mrb_value rsm_address_text(mrb_state *mrb, const void *address, size_t len);

/* --- failure.c --- */

/* What the system has answered to that request. */
mrb_noreturn void rsm_fail(mrb_state *mrb, rsm_machine *machine, int64_t result, const rs_request *request);

/* The descriptor of that request was closed. */
mrb_noreturn void rsm_fail_closed(mrb_state *mrb, const rs_request *request);

/* --- stream.c --- */

typedef struct {
    rs_link link;               /* in the machine's streams, while it has a descriptor */
    rsm_machine *machine;
    int fd;                     /* -1: none */
    bool closing;               /* a strand waits for the end of the ops on it */
    bool writing;               /* a strand waits until its bytes are out, */
    rs_list writers;            /* and these for that */
} rsm_stream;

/* That of a Stream; and of an open one. */
rsm_stream *rsm_stream_of(mrb_state *mrb, mrb_value self);
rsm_stream *rsm_open_stream(mrb_state *mrb, mrb_value self);

/* The descriptor of an open stream. */
int rsm_stream_fd(mrb_state *mrb, mrb_value self);

/* A stream without a descriptor yet, and what gives it one. */
mrb_value rsm_stream_new(mrb_state *mrb, rsm_machine *machine);
void rsm_stream_take(rsm_machine *machine, mrb_value stream, int fd);
/* Both, as an answer. */
mrb_value rsm_answer_stream(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t fd);

/* An op has failed with that result and error in a method of ours, which may be a stream's. The error keeps that this stream's other
 * side is gone, for Stream#__peers_fault?, if the result says so. */
void rsm_stream_blame(mrb_state *mrb, mrb_value error, int64_t result);

/* The epilogue of a wait until no op is left on a descriptor that is being closed. */
mrb_value rsm_after_ops_on_it(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result);

/* --- request.c --- */

/* The memo of a strand that waits for an op. */
typedef struct {
    rs_op *op;
    rsm_answer answer;          /* of that */
} rsm_op_memo;

_Static_assert(sizeof(rsm_op_memo) <= RSM_MEMO_SIZE, "it fits into a strand");

typedef struct {
    rsm_answer answer;
    rsm_epilogue epilogue;      /* NULL: rsm_after_op */
    uint32_t flags;             /* RS_PARK_ */
    int64_t deadline_ns;        /* 0: none */
    bool resumable;             /* Evaluation#resume! may end it, and the epilogue asks */
    bool *waits;                /* becomes true with the wait, and is the epilogue's to end; NULL: nobody asks */
} rsm_op_wait;

/* The request is tried at once, and becomes an op where it would wait. Takes over what it owns. */
mrb_value rsm_perform(mrb_state *mrb, rsm_machine *machine, const rs_request *request, rsm_answer answer);

/* The same without the try: the last act of a method. */
mrb_value rsm_wait_for(mrb_state *mrb, rsm_machine *machine, const rs_request *request, const rsm_op_wait *how);
mrb_value rsm_after_op(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result);

/* The same after a try that has ended it. */
mrb_value rsm_answer_inline(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t result, rsm_answer answer);

mrb_value rsm_answer_nil(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t result);

/* Memory that a request owns. */
void *rsm_owned(mrb_state *mrb, size_t size);

/* --- bytes.c --- */

/* What is there, at most `len` bytes, or nil at the end; at that place of a file, or -1: where the descriptor is. */
mrb_value rsm_read(mrb_state *mrb, int fd, mrb_value len, int64_t offset);

/* How many bytes were written: all with RS_REQUEST_ALL, unless an error came after the first. */
mrb_value rsm_write(mrb_state *mrb, int fd, mrb_value bytes, int64_t offset, uint8_t options, const rsm_op_wait *how);

/* --- readiness.c --- */

/* Waits until it is ready for one of the events of poll(2), or for `within` seconds (nil: without a limit); true, the argument of
 * Evaluation#resume!, or, when its time is up, the method's first argument. */
mrb_value rsm_poll(mrb_state *mrb, int fd, uint32_t events, mrb_value within);

/* await_readable or await_writable, which was given options, goes on in mrblib, in the same frame. */
mrb_value rsm_await_with_options(mrb_state *mrb, mrb_value self, uint32_t events);

void rsm_init_stream(mrb_state *mrb, struct RClass *module, struct RClass *machine);
void rsm_init_open(mrb_state *mrb, struct RClass *module, struct RClass *machine);
void rsm_init_bytes(mrb_state *mrb, struct RClass *module, struct RClass *machine);
void rsm_init_readiness(mrb_state *mrb, struct RClass *module, struct RClass *machine);
void rsm_init_socket(mrb_state *mrb, struct RClass *module, struct RClass *machine);
void rsm_init_objects(mrb_state *mrb, struct RClass *module, struct RClass *machine);

#endif
