/* bytes: reading and writing, of descriptors and of streams. */
#include "io.h"

#include <mruby/string.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

/* As many bytes as one request reads. */
#define READ_MAX 65536

static mrb_value answer_count(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t result) {
    return mrb_fixnum_value((mrb_int)result);
}

static mrb_value answer_bytes(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t result) {
    return result == 0 ? mrb_nil_value() : mrb_str_new(mrb, request->transfer.address, (mrb_int)result);
}

mrb_value rsm_read(mrb_state *mrb, int fd, mrb_value len, int64_t offset) {
    uint64_t most = (uint64_t)rsm_int_arg(mrb, len, 1, MRB_INT_MAX, "read: the number of bytes");
    rsm_machine *machine = rsm_machine_for_op(mrb);
    char here[READ_MAX];
    rs_request request = {.kind = offset < 0 ? RS_OP_READ : RS_OP_PREAD, .fd = fd,
                          .transfer = {.address = here, .len = most < READ_MAX ? most : READ_MAX, .offset = offset}};
    int64_t result = rs_try(machine->engine, &request);
    if (result != -EAGAIN) return rsm_answer_inline(mrb, machine, &request, result, answer_bytes);
    request.transfer.address = NULL;
    request.options = RS_REQUEST_ANY_BUFFER;
    return rsm_wait_for(mrb, machine, &request, &(rsm_op_wait){.answer = answer_bytes});
}

/* What is left when that many bytes have been written: a copy, for others may change the String meanwhile. */
static void own_rest(mrb_state *mrb, rs_request *request, int64_t written) {
    if (written > 0) rs_request_advance(request, (uint64_t)written);
    request->owned = rsm_owned(mrb, request->transfer.len);
    request->transfer.address = memcpy(request->owned, request->transfer.address, request->transfer.len);
}

mrb_value rsm_write(mrb_state *mrb, int fd, mrb_value bytes, int64_t offset, uint8_t options, const rsm_op_wait *how) {
    rsm_check_string(mrb, bytes, "write");
    rsm_machine *machine = rsm_machine_for_op(mrb);
    uint64_t len = (uint64_t)RSTRING_LEN(bytes);
    if (len == 0) return mrb_fixnum_value(0);
    rs_request request = {.kind = offset < 0 ? RS_OP_WRITE : RS_OP_PWRITE, .fd = fd,
                          .transfer = {.address = RSTRING_PTR(bytes), .len = len, .offset = offset}};
    int64_t result = rs_try(machine->engine, &request);
    bool ends = result < 0 ? result != -EAGAIN : !(options & RS_REQUEST_ALL) || (uint64_t)result == len;
    if (RS_LIKELY(ends)) return rsm_answer_inline(mrb, machine, &request, result, answer_count);
    own_rest(mrb, &request, result);
    request.options = options;
    rsm_op_wait wait = *how;
    wait.answer = answer_count;
    return rsm_wait_for(mrb, machine, &request, &wait);
}

/* --- of streams --- */

static mrb_value stream_read(mrb_state *mrb, mrb_value self) { return rsm_read(mrb, rsm_stream_fd(mrb, self), mrb_get_arg1(mrb), -1); }

static int64_t offset_of(mrb_state *mrb, mrb_value offset) {
    return rsm_int_arg(mrb, offset, 0, INT64_MAX, "the offset");
}

static mrb_value stream_pread(mrb_state *mrb, mrb_value self) {
    const mrb_value *arguments = mrb_get_argv(mrb);
    return rsm_read(mrb, rsm_stream_fd(mrb, self), arguments[0], offset_of(mrb, arguments[1]));
}

static mrb_value after_write(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    rsm_stream *stream = rsm_stream_of(mrb, mrb->c->ci->stack[0]);
    stream->writing = false;
    rs_list_wake_all(machine->engine, &stream->writers, 0);
    return rsm_after_op(mrb, machine, strand, kind, result);
}

static mrb_value after_others(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    rsm_raise_wake(mrb, machine, kind);
    return mrb_nil_value();
}

/* All of the String. nil: another strand was at it, whose bytes are not to be broken up; ask again. */
static mrb_value stream_write(mrb_state *mrb, mrb_value self) {
    rsm_stream *stream = rsm_open_stream(mrb, self);
    rsm_op_wait how = {.epilogue = after_write, .waits = &stream->writing};
    if (RS_LIKELY(!stream->writing)) return rsm_write(mrb, stream->fd, mrb_get_arg1(mrb), -1, RS_REQUEST_ALL, &how);
    return rsm_wait_in(mrb, rsm_machine_for_op(mrb), &stream->writers, RS_WAIT_LIST, 0, RS_NEVER, after_others);
}

static mrb_value stream_pwrite(mrb_state *mrb, mrb_value self) {
    const mrb_value *arguments = mrb_get_argv(mrb);
    return rsm_write(mrb, rsm_stream_fd(mrb, self), arguments[0], offset_of(mrb, arguments[1]), RS_REQUEST_ALL, &(rsm_op_wait){0});
}

/* Shielded: a worker may be at it, for which the number must stay this file's. */
static mrb_value stream_fsync(mrb_state *mrb, mrb_value self) {
    rs_request request = {.kind = RS_OP_FSYNC, .fd = rsm_stream_fd(mrb, self)};
    rsm_machine *machine = rsm_machine_for_op(mrb);
    rsm_raise_wake(mrb, machine, rs_refusal(machine->engine, 0));
    return rsm_wait_for(mrb, machine, &request, &(rsm_op_wait){.answer = rsm_answer_nil, .flags = RS_PARK_SHIELDED});
}

/* --- signals --- */

static void do_nothing(int signal) { (void)signal; }

/* A write to a pipe or socket that nobody reads is an error, and no signal that ends the process. A handler, for a program that is executed does not inherit it. */
static void survive_broken_pipes(mrb_state *mrb, rsm_machine *machine) {
    struct sigaction before, ours = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
    if (sigaction(SIGPIPE, NULL, &before) == 0 && before.sa_handler == SIG_DFL) sigaction(SIGPIPE, &ours, NULL);
}

static rsm_part bytes_part = {.opened = survive_broken_pipes};

void rsm_init_bytes(mrb_state *mrb, struct RClass *module, struct RClass *machine) {
    rsm_register_part(&bytes_part);
    struct RClass *stream = mrb_class_get_under(mrb, module, "Stream");
    mrb_define_method(mrb, stream, "__read", stream_read, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, stream, "__pread", stream_pread, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, stream, "__write", stream_write, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, stream, "__pwrite", stream_pwrite, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, stream, "fsync", stream_fsync, MRB_ARGS_NONE());
}
