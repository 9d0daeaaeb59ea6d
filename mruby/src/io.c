/* io: reading and writing of descriptors. A request is tried at once, and becomes an op only where it would wait. */
#include "binding.h"

#include <mruby/array.h>
#include <mruby/error.h>
#include <mruby/string.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static rs_op *start(mrb_state *mrb, rsm_machine *machine, const rs_request *request) {
    rs_op *op = rs_op_start(&machine->engine, request, 0, RS_NEVER);
    if (op) return op;
    free(request->owned);
    rsm_raise_wake(mrb, machine, machine->engine.refusal);
    return NULL;
}

static mrb_value wait_for(mrb_state *mrb, rsm_machine *machine, const rs_request *request, rsm_epilogue epilogue) {
    rsm_strand *me = rsm_running(machine);
    me->op = start(mrb, machine, request);
    return rsm_park(mrb, machine, me, epilogue);
}

/* Gives the op back; its result, unless something else has ended the wait, or it has failed. */
static int64_t take_result(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    const char *name = rs_request_traits(&strand->op->request)->name;
    rs_op_end(&machine->engine, strand->op);
    rsm_raise_wake(mrb, machine, kind);
    if (result < 0) rsm_raise_errno(mrb, result, name);
    return result;
}

static mrb_value after_moving(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    return mrb_fixnum_value((mrb_int)take_result(mrb, machine, strand, kind, result));
}

/* The bytes are where the op says until it ends. At the end of the stream: nil. */
static mrb_value after_read(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    mrb_value bytes = mrb_nil_value();
    if (result > 0 && kind == RS_WAKE_VALUE) bytes = mrb_str_new(mrb, strand->op->request.owned, (mrb_int)result);
    take_result(mrb, machine, strand, kind, result);
    return bytes;
}


static mrb_value machine_read(mrb_state *mrb, mrb_value self) {
    mrb_int fd, len;
    mrb_get_args(mrb, "ii", &fd, &len);
    if (len <= 0) mrb_raise(mrb, rsm_class(mrb, "UsageError"), "read: expected a positive number of bytes");
    rsm_machine *machine = rsm_machine_of(mrb);
    rsm_check_boundary(mrb);
    mrb_value buffer = mrb_str_new(mrb, NULL, len);
    rs_request request = {.kind = RS_OP_READ, .fd = (int)fd,
                          .transfer = {.address = RSTRING_PTR(buffer), .len = (uint64_t)len, .offset = -1}};
    int64_t result = rs_try(&machine->engine, &request);
    if (result == -EAGAIN) {
        request.transfer.address = request.owned = malloc((size_t)len);
        if (!request.owned) mrb_exc_raise(mrb, mrb_obj_value(mrb->nomem_err));
        return wait_for(mrb, machine, &request, after_read);
    }
    if (result < 0) rsm_raise_errno(mrb, result, "read");
    return result == 0 ? mrb_nil_value() : mrb_str_resize(mrb, buffer, (mrb_int)result);
}

/* All of it. */
static mrb_value machine_write(mrb_state *mrb, mrb_value self) {
    mrb_int fd;
    mrb_value bytes;
    mrb_get_args(mrb, "iS", &fd, &bytes);
    rsm_machine *machine = rsm_machine_of(mrb);
    rsm_check_boundary(mrb);
    uint64_t len = (uint64_t)RSTRING_LEN(bytes);
    rs_request request = {.kind = RS_OP_WRITE, .fd = (int)fd,
                          .transfer = {.address = RSTRING_PTR(bytes), .len = len, .offset = -1}};
    int64_t result = rs_try(&machine->engine, &request);
    if (result == (int64_t)len) return mrb_fixnum_value((mrb_int)len);
    if (result < 0 && result != -EAGAIN) rsm_raise_errno(mrb, result, "write");
    rs_request_advance(&request, result > 0 ? (uint64_t)result : 0);
    request.options |= RS_REQUEST_ALL;
    request.owned = malloc(request.transfer.len);
    if (!request.owned) mrb_exc_raise(mrb, mrb_obj_value(mrb->nomem_err));
    request.transfer.address = memcpy(request.owned, request.transfer.address, request.transfer.len);
    return wait_for(mrb, machine, &request, after_moving);
}

static mrb_value machine_pipe(mrb_state *mrb, mrb_value self) {
    rsm_machine *machine = rsm_machine_of(mrb);
    int pair[2];
    rs_request request = {.kind = RS_OP_PIPE, .fd = -1, .pipe.pair = pair};
    int64_t result = rs_try(&machine->engine, &request);
    if (result < 0) rsm_raise_errno(mrb, result, "pipe");
    return mrb_assoc_new(mrb, mrb_fixnum_value(pair[0]), mrb_fixnum_value(pair[1]));
}

void rsm_init_io(mrb_state *mrb, struct RClass *module, struct RClass *machine) {
    mrb_define_method(mrb, machine, "read", machine_read, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, machine, "write", machine_write, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, machine, "pipe", machine_pipe, MRB_ARGS_NONE());
}
