/* io: performs the requests of all methods that read, write and the like. A request is tried at once, and becomes an op only where it
 * would wait. What it returns is made where it has ended, by its answer.
 */
#include "binding.h"

#include <mruby/error.h>
#include <mruby/string.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* As many bytes as one request reads. */
#define READ_MAX 65536

void *rsm_owned(mrb_state *mrb, size_t size) {
    void *memory = malloc(size);
    if (!memory) mrb_exc_raise(mrb, mrb_obj_value(mrb->nomem_err));
    return memory;
}

rsm_machine *rsm_io_machine(mrb_state *mrb) {
    rsm_check_boundary(mrb);
    rsm_machine *machine = rsm_machine_of(mrb);
    rsm_strand *me = rsm_running(machine);
    if (RS_UNLIKELY(me->turn_ended)) {
        me->turn_ended = false;
        rsm_raise_wake(mrb, machine, rs_turn_refusal(&machine->engine));
    }
    return machine;
}

/* --- answers --- */

typedef struct {
    rsm_machine *machine;
    const rs_request *request;
    int64_t result;
    rsm_answer answer;
    bool closed;                /* the descriptor, while the op waited: its number may mean another by now */
} ended;

static mrb_value answer_of(mrb_state *mrb, void *argument) {
    const ended *e = argument;
    if (RS_UNLIKELY(e->closed)) rsm_fail_closed(mrb, e->request);
    if (e->result < 0) rsm_fail(mrb, e->machine, e->result, e->request);
    return e->answer(mrb, e->machine, e->request, e->result);
}

/* There was no memory for the object that would have had it. */
static void discard_made(const ended *e) {
    const rs_platform *platform = rs_platform_of(&e->machine->engine);
    switch (rs_request_traits(e->request)->makes) {
    case RS_MAKES_NOTHING: return;
    case RS_MAKES_PAIR:
        for (int i = 0; i < 2; i++) platform->discard(&e->machine->engine, ((int *)e->request->owned)[i]);
        return;
    default: platform->discard(&e->machine->engine, (int)e->result);
    }
}

/* Raises nothing, for the op has to be given back first: `failed` says that this is an error. */
static mrb_value answer_safely(mrb_state *mrb, ended e, mrb_bool *failed) {
    mrb_value value = mrb_protect_error(mrb, answer_of, &e, failed);
    if (RS_UNLIKELY(*failed) && e.result >= 0) discard_made(&e);
    if (RS_UNLIKELY(*failed) && e.result < 0) rsm_stream_blame(mrb, value, e.result);
    return value;
}

/* A cancellation that came meanwhile is for the next op: this one was done. */
static mrb_value after_turn(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    strand->turn_ended = true;
    return mrb->c->ci->stack[0];
}

/* An op has succeeded at once. When the strand's turn is over the others run, and the value waits in the place of `self`. */
static mrb_value end_inline(mrb_state *mrb, rsm_machine *machine, mrb_value value) {
    if (RS_LIKELY(!rs_turn_ends(&machine->engine))) return value;
    rsm_strand *me = rsm_running(machine);
    mrb->c->ci->stack[0] = value;
    rs_yield(&machine->engine);
    return rsm_park(mrb, machine, me, after_turn);
}

static mrb_value answer_inline(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t result,
                               rsm_answer answer) {
    mrb_bool failed;
    mrb_value value = answer_safely(mrb, (ended){machine, request, result, answer, false}, &failed);
    free(request->owned);
    if (RS_UNLIKELY(failed)) mrb_exc_raise(mrb, value);
    return end_inline(mrb, machine, value);
}

mrb_value rsm_answer_nil(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t result) {
    return mrb_nil_value();
}

static mrb_value answer_true(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t result) {
    return mrb_true_value();
}

static mrb_value answer_count(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t result) {
    return mrb_fixnum_value((mrb_int)result);
}

static mrb_value answer_bytes(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t result) {
    return result == 0 ? mrb_nil_value() : mrb_str_new(mrb, request->transfer.address, (mrb_int)result);
}

/* --- ops --- */

mrb_value rsm_after_op(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    mrb_bool failed = false;
    mrb_value value = mrb_nil_value();
    if (RS_LIKELY(kind == RS_WAKE_VALUE)) {
        const rs_op *op = strand->op;
        ended e = {machine, &op->request, result, strand->answer, .closed = op->closing && result == -EBADF};
        value = answer_safely(mrb, e, &failed);
    }
    rs_op_end(&machine->engine, strand->op);
    if (RS_UNLIKELY(failed)) mrb_exc_raise(mrb, value);
    rsm_raise_wake(mrb, machine, kind);
    return value;
}

mrb_value rsm_wait_for(mrb_state *mrb, rsm_machine *machine, const rs_request *request, const rsm_op_wait *how) {
    rs_strand *running = rs_running(&machine->engine);
    rsm_strand *me = running->user;
    me->answer = how->answer;
    me->op = rs_op_start(&machine->engine, request, how->flags, how->deadline_ns ? how->deadline_ns : RS_NEVER);
    if (RS_UNLIKELY(!me->op)) {
        free(request->owned);
        rsm_raise_wake(mrb, machine, machine->engine.refusal);
    }
    if (how->waits) *how->waits = true;
    if (how->resumable) rs_make_resumable(running, me->op->ticket);
    return rsm_park(mrb, machine, me, how->epilogue ? how->epilogue : rsm_after_op);
}

mrb_value rsm_perform(mrb_state *mrb, rsm_machine *machine, const rs_request *request, rsm_answer answer) {
    int64_t result = rs_try(&machine->engine, request);
    if (result == -EAGAIN) return rsm_wait_for(mrb, machine, request, &(rsm_op_wait){.answer = answer});
    return answer_inline(mrb, machine, request, result, answer);
}

/* --- bytes --- */

mrb_value rsm_read(mrb_state *mrb, int fd, mrb_value len, int64_t offset) {
    uint64_t most = (uint64_t)rsm_int_arg(mrb, len, 1, MRB_INT_MAX, "read: the number of bytes");
    rsm_machine *machine = rsm_io_machine(mrb);
    char here[READ_MAX];
    rs_request request = {.kind = offset < 0 ? RS_OP_READ : RS_OP_PREAD, .fd = fd,
                          .transfer = {.address = here, .len = most < READ_MAX ? most : READ_MAX, .offset = offset}};
    int64_t result = rs_try(&machine->engine, &request);
    if (result != -EAGAIN) return answer_inline(mrb, machine, &request, result, answer_bytes);
    request.transfer.address = NULL;
    request.options = RS_REQUEST_ANY_BUFFER;
    return rsm_wait_for(mrb, machine, &request, &(rsm_op_wait){.answer = answer_bytes});
}

/* What is left when so many have been written: a copy, for others may change the String meanwhile. */
static void own_rest(mrb_state *mrb, rs_request *request, int64_t written) {
    if (written > 0) rs_request_advance(request, (uint64_t)written);
    request->owned = rsm_owned(mrb, request->transfer.len);
    request->transfer.address = memcpy(request->owned, request->transfer.address, request->transfer.len);
}

mrb_value rsm_write(mrb_state *mrb, int fd, mrb_value bytes, int64_t offset, uint8_t options, const rsm_op_wait *how) {
    rsm_check_string(mrb, bytes, "write");
    rsm_machine *machine = rsm_io_machine(mrb);
    uint64_t len = (uint64_t)RSTRING_LEN(bytes);
    if (len == 0) return mrb_fixnum_value(0);
    rs_request request = {.kind = offset < 0 ? RS_OP_WRITE : RS_OP_PWRITE, .fd = fd,
                          .transfer = {.address = RSTRING_PTR(bytes), .len = len, .offset = offset}};
    int64_t result = rs_try(&machine->engine, &request);
    bool ends = result < 0 ? result != -EAGAIN : !(options & RS_REQUEST_ALL) || (uint64_t)result == len;
    if (RS_LIKELY(ends)) return answer_inline(mrb, machine, &request, result, answer_count);
    own_rest(mrb, &request, result);
    request.options = options;
    rsm_op_wait wait = *how;
    wait.answer = answer_count;
    return rsm_wait_for(mrb, machine, &request, &wait);
}

/* Its time is up: the first argument says what is returned then. */
static mrb_value after_poll(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    bool resumed = rs_was_resumed(&machine->engine, kind);
    if (!resumed && kind != RS_WAKE_TIMEOUT) return rsm_after_op(mrb, machine, strand, kind, result);
    rs_op_end(&machine->engine, strand->op);
    return resumed ? rsm_take_resume_value(mrb, machine, strand) : mrb->c->ci->stack[1];
}

mrb_value rsm_poll(mrb_state *mrb, int fd, uint32_t events, mrb_value within) {
    rsm_machine *machine = rsm_io_machine(mrb);
    int64_t deadline_ns = rsm_deadline(mrb, machine, within, "within");
    rs_request request = {.kind = RS_OP_POLL, .fd = fd, .poll.events = events};
    int64_t result = rs_try(&machine->engine, &request);
    if (RS_LIKELY(result >= 0)) return end_inline(mrb, machine, mrb_true_value());
    if (result != -EAGAIN) return answer_inline(mrb, machine, &request, result, answer_true);
    rsm_op_wait how = {.answer = answer_true, .epilogue = after_poll, .deadline_ns = deadline_ns, .resumable = true};
    return rsm_wait_for(mrb, machine, &request, &how);
}

/* --- descriptors of others: IO objects --- */

/* The program may have closed the number, and opened another of that number, without the machine. */
static int number_of(mrb_state *mrb, mrb_value number) {
    int fd = (int)rsm_int_arg(mrb, number, 0, RS_DESCRIPTORS_MAX - 1, "a descriptor");
    rs_machine *engine = &rsm_machine_of(mrb)->engine;
    if (rs_is_simulated(engine)) {
        mrb_raise(mrb, rsm_class(mrb, "UsageError"), "a simulated machine knows only the descriptors that it made, as a Stream");
    }
    rs_descriptor_forget(engine->descriptors, fd);
    return fd;
}

static mrb_value machine_read(mrb_state *mrb, mrb_value self) {
    const mrb_value *arguments = mrb_get_argv(mrb);
    return rsm_read(mrb, number_of(mrb, arguments[0]), arguments[1], -1);
}

/* What there is room for. */
static mrb_value machine_write(mrb_state *mrb, mrb_value self) {
    const mrb_value *arguments = mrb_get_argv(mrb);
    return rsm_write(mrb, number_of(mrb, arguments[0]), arguments[1], -1, 0, &(rsm_op_wait){0});
}

static int descriptor_of(mrb_state *mrb, mrb_value io) {
    return number_of(mrb, mrb_funcall_id(mrb, io, rsm_machine_of(mrb)->fileno_name, 0));
}

/* IO#__readable(passed, within) */
static mrb_value io_readable(mrb_state *mrb, mrb_value self) {
    return rsm_poll(mrb, descriptor_of(mrb, self), POLLIN, mrb_get_argv(mrb)[1]);
}

static mrb_value io_writable(mrb_state *mrb, mrb_value self) {
    return rsm_poll(mrb, descriptor_of(mrb, self), POLLOUT, mrb_get_argv(mrb)[1]);
}

/* IO#await_readable. With options it goes on in mrblib, in the same frame. */
static mrb_value io_await_readable(mrb_state *mrb, mrb_value self) {
    if (!rsm_is_plain(mrb)) return mrb_exec_irep(mrb, self, rsm_machine_of(mrb)->readable_with_options);
    return rsm_poll(mrb, descriptor_of(mrb, self), POLLIN, mrb_nil_value());
}

static mrb_value io_await_writable(mrb_state *mrb, mrb_value self) {
    if (!rsm_is_plain(mrb)) return mrb_exec_irep(mrb, self, rsm_machine_of(mrb)->writable_with_options);
    return rsm_poll(mrb, descriptor_of(mrb, self), POLLOUT, mrb_nil_value());
}

static void init_objects(mrb_state *mrb, struct RClass *module) {
    struct RClass *io = mrb_class_get(mrb, "IO"), *methods = mrb_define_module_under(mrb, module, "IOMethods");
    mrb_define_method(mrb, methods, "__readable", io_readable, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, methods, "__writable", io_writable, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, methods, "await_readable", io_await_readable, MRB_ARGS_ANY());
    mrb_define_method(mrb, methods, "await_writable", io_await_writable, MRB_ARGS_ANY());
    mrb_include_module(mrb, io, methods);
    mrb_prepend_module(mrb, io, mrb_define_module_under(mrb, module, "IOClosing"));
}

static mrb_value after_op_on_it(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    rsm_raise_wake(mrb, machine, kind);
    return mrb_true_value();
}

/* One step of IO#close. True: ops were on its descriptor, whose strands have been told; ask again, if no other strand has closed it
 * meanwhile. */
static mrb_value module_closing(mrb_state *mrb, mrb_value self) {
    int fd = (int)mrb_integer(mrb_get_arg1(mrb));
    rsm_machine *machine = rsm_machine_of_system(mrb);
    if (!machine || !rs_descriptor_has_ops(machine->engine.descriptors, fd)) return mrb_false_value();
    if (machine != rsm_machine_of(mrb)) {
        mrb_raise(mrb, rsm_class(mrb, "UsageError"), "close: strands wait for it of the machine outside, which stands still");
    }
    rsm_check_boundary(mrb);
    rs_machine *engine = &machine->engine;
    rs_descriptor_close_begin(engine, fd); /* or another strand has done it */
    if (rs_descriptor_closing(engine, fd) == 0) return mrb_false_value();
    return rsm_wait_in(mrb, machine, &engine->descriptors->closers, RS_WAIT_LIST, RS_PARK_SHIELDED, RS_NEVER, after_op_on_it);
}

/* The number is free. */
static mrb_value module_closed(mrb_state *mrb, mrb_value self) {
    int fd = (int)mrb_integer(mrb_get_arg1(mrb));
    rsm_machine *machine = rsm_machine_of_system(mrb);
    if (!machine || !rs_descriptor_is_closing(machine->engine.descriptors, fd)) return mrb_nil_value();
    rs_descriptor_drop(&machine->engine, fd);
    rs_descriptor_close_end(&machine->engine, fd);
    return mrb_nil_value();
}

/* --- signals --- */

static void do_nothing(int signal) { (void)signal; }

/* A handler, for a program that is executed does not inherit it. */
void rsm_survive_broken_pipes(void) {
    struct sigaction before, ours = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
    if (sigaction(SIGPIPE, NULL, &before) == 0 && before.sa_handler == SIG_DFL) sigaction(SIGPIPE, &ours, NULL);
}

void rsm_init_io(mrb_state *mrb, struct RClass *module, struct RClass *machine) {
    mrb_define_method(mrb, machine, "__read", machine_read, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, machine, "__write", machine_write, MRB_ARGS_REQ(2));
    mrb_define_module_function(mrb, module, "__closing", module_closing, MRB_ARGS_REQ(1));
    mrb_define_module_function(mrb, module, "__closed", module_closed, MRB_ARGS_REQ(1));
    if (mrb_class_defined(mrb, "IO")) init_objects(mrb, module);
}
