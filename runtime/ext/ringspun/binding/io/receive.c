/* receive: Machine#read_each and #recv_each. A strand that waits for bytes holds no memory for them. Bytes that are there already
 * are read into the machine's scratch buffer, others into a buffer that the backend chooses when they arrive. */
#include "io.h"

#include <errno.h>
#include <stdlib.h>

/* The most bytes that are yielded at once. */
#define CHUNK 16384u

typedef struct {
    rsb_machine *machine;
    uint8_t kind;
    int fd;
    VALUE chunk;                /* the bytes that a wait has brought; nil: the end */
    int state;                  /* of rb_protect, if the String could not be made */
} receiver;

static VALUE bytes_of(VALUE argument) {
    const rs_op *op = (const rs_op *)argument;
    return rs_op_result(op) > 0 ? rb_str_new(rs_op_request(op)->transfer.address, (long)rs_op_result(op)) : Qnil;
}

static void take_chunk(const rs_op *op, void *argument) {
    receiver *r = argument;
    r->chunk = rb_protect(bytes_of, (VALUE)op, &r->state);
}

/* nil at the end. */
static VALUE next_chunk(receiver *r) {
    rsb_machine *machine = r->machine;
    if (!machine->scratch) machine->scratch = rsb_alloc(CHUNK);
    rs_request request = {.kind = r->kind, .fd = r->fd,
                          .transfer = {.address = machine->scratch, .len = CHUNK, .offset = -1}};
    const char *what = rs_op_kinds[r->kind].name;
    int64_t bytes = rs_try(machine->engine, &request);
    if (bytes > 0) return rb_str_new(machine->scratch, (long)bytes);
    if (bytes == 0) return Qnil;
    if (bytes != -EAGAIN) rsb_refused(machine, bytes, what, r->fd);
    request.transfer.address = NULL;
    request.options = RS_REQUEST_ANY_BUFFER;
    bytes = rsb_perform(machine, &request, &(rsb_op_wait){.take = take_chunk, .argument = r, .takes_bytes_first = true});
    if (RS_UNLIKELY(r->state)) rb_jump_tag(r->state);
    if (bytes < 0) rsb_refused(machine, bytes, what, r->fd);
    return r->chunk;
}

static VALUE each_chunk(VALUE self, VALUE io, uint8_t kind) {
    rsb_machine *machine = rsb_machine_of(self);
    receiver r = {.machine = machine, .kind = kind, .fd = rsb_op_fd(machine, io)};
    uint32_t generation = rs_descriptor_generation(rs_descriptors_of(machine->engine), r.fd);
    rsb_need_block(kind == RS_OP_RECV ? "recv_each" : "read_each");
    VALUE chunk;
    while (!NIL_P(chunk = next_chunk(&r))) {
        rb_yield(chunk);
        rsb_io_machine(self);
        rsb_check_descriptor(machine, io, r.fd, generation, rs_op_kinds[kind].name);
    }
    return Qnil;
}

/* Yields the bytes that come, until the end of the stream or until the block breaks. All bytes that are read are yielded. While
 * nothing comes, no buffer is held.
 *
 * May switch strands.
 *
 * @param io [Integer, IO] a pipe, a socket, a terminal or a file, which is read from its position on
 * @yieldparam bytes [String] a new one, binary, of at most 16384 bytes
 * @return [nil] at the end of the stream
 * @raise [UsageError, ClosedError, SystemCallError]
 * @since 0.1.0
 */
static VALUE machine_read_each(VALUE self, VALUE io) { return each_chunk(self, io, RS_OP_READ); }

/* The same for a connected stream socket.
 *
 * May switch strands.
 *
 * @param io [Integer, IO]
 * @yieldparam bytes [String] a new one, binary, of at most 16384 bytes
 * @return [nil] at the end of the stream
 * @raise [UsageError, ClosedError, SystemCallError]
 * @since 0.1.0
 */
static VALUE machine_recv_each(VALUE self, VALUE io) { return each_chunk(self, io, RS_OP_RECV); }

void rsb_init_receive(void) {
    rb_define_method(rsb_cMachine, "read_each", machine_read_each, 1);
    rb_define_method(rsb_cMachine, "recv_each", machine_recv_each, 1);
}
