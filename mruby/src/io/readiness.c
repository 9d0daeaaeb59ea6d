/* readiness: waiting until a descriptor or a stream can be read or written. */
#include "io.h"

#include <errno.h>
#include <poll.h>

/* What it keeps for each machine. */
typedef struct {
    struct RProc *readable_with_options, *writable_with_options; /* methods of mrblib */
    mrb_sym ahead_name;
} readiness_data;

static void find_names(mrb_state *mrb, rsm_machine *machine);
static void find_methods(mrb_state *mrb, rsm_machine *machine);
static rsm_part readiness_part = {.data_size = sizeof(readiness_data), .made = find_names, .opened = find_methods};

static readiness_data *data_of(const rsm_machine *machine) { return rsm_part_data(machine, &readiness_part); }

static void find_names(mrb_state *mrb, rsm_machine *machine) { data_of(machine)->ahead_name = mrb_intern_lit(mrb, "@ahead"); }

static void find_methods(mrb_state *mrb, rsm_machine *machine) {
    readiness_data *data = data_of(machine);
    data->readable_with_options = rsm_method_of(mrb, "Stream", "__await_readable");
    data->writable_with_options = rsm_method_of(mrb, "Stream", "__await_writable");
}

mrb_value rsm_await_with_options(mrb_state *mrb, mrb_value self, uint32_t events) {
    const readiness_data *data = data_of(rsm_machine_of(mrb));
    return mrb_exec_irep(mrb, self, events == POLLIN ? data->readable_with_options : data->writable_with_options);
}

static mrb_value answer_true(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t result) {
    return mrb_true_value();
}

/* Its time is up: the first argument says what is returned then. */
static mrb_value after_poll(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    bool resumed = rs_was_resumed(machine->engine, kind);
    if (!resumed && kind != RS_WAKE_TIMEOUT) return rsm_after_op(mrb, machine, strand, kind, result);
    rs_op_end(machine->engine, RSM_MEMO(rsm_op_memo, strand)->op);
    return resumed ? rsm_take_resume_value(mrb, machine, strand) : mrb->c->ci->stack[1];
}

mrb_value rsm_poll(mrb_state *mrb, int fd, uint32_t events, mrb_value within) {
    rsm_machine *machine = rsm_machine_for_op(mrb);
    int64_t deadline_ns = rsm_deadline(mrb, machine, within, "within");
    rs_request request = {.kind = RS_OP_POLL, .fd = fd, .poll.events = events};
    int64_t result = rs_try(machine->engine, &request);
    if (RS_LIKELY(result >= 0)) return rsm_after_inline(mrb, machine, mrb_true_value());
    if (result != -EAGAIN) return rsm_answer_inline(mrb, machine, &request, result, answer_true);
    rsm_op_wait how = {.answer = answer_true, .epilogue = after_poll, .deadline_ns = deadline_ns, .resumable = true};
    return rsm_wait_for(mrb, machine, &request, &how);
}

/* --- of streams --- */

/* Something that was read ahead is there. */
static mrb_value readable(mrb_state *mrb, mrb_value self, mrb_value within) {
    if (mrb_test(mrb_iv_get(mrb, self, data_of(rsm_machine_of(mrb))->ahead_name))) return mrb_true_value();
    return rsm_poll(mrb, rsm_stream_fd(mrb, self), POLLIN, within);
}

/* Stream#__readable(passed, within) */
static mrb_value stream_readable(mrb_state *mrb, mrb_value self) { return readable(mrb, self, mrb_get_argv(mrb)[1]); }

static mrb_value stream_writable(mrb_state *mrb, mrb_value self) {
    return rsm_poll(mrb, rsm_stream_fd(mrb, self), POLLOUT, mrb_get_argv(mrb)[1]);
}

static mrb_value stream_await_readable(mrb_state *mrb, mrb_value self) {
    if (!rsm_is_plain(mrb)) return rsm_await_with_options(mrb, self, POLLIN);
    return readable(mrb, self, mrb_nil_value());
}

static mrb_value stream_await_writable(mrb_state *mrb, mrb_value self) {
    if (!rsm_is_plain(mrb)) return rsm_await_with_options(mrb, self, POLLOUT);
    return rsm_poll(mrb, rsm_stream_fd(mrb, self), POLLOUT, mrb_nil_value());
}

void rsm_init_readiness(mrb_state *mrb, struct RClass *module, struct RClass *machine) {
    rsm_register_part(&readiness_part);
    struct RClass *stream = mrb_class_get_under(mrb, module, "Stream");
    mrb_define_method(mrb, stream, "__readable", stream_readable, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, stream, "__writable", stream_writable, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, stream, "await_readable", stream_await_readable, MRB_ARGS_ANY());
    mrb_define_method(mrb, stream, "await_writable", stream_await_writable, MRB_ARGS_ANY());
}
