/* stream: Ringspun::Stream: a descriptor of a file, pipe or socket. It is closed with the object that nobody has any more, or with the
 * state. What keeps bytes between two reads is in mrblib.
 */
#include "io.h"

#include <mruby/string.h>
#include <errno.h>
#include <unistd.h>

/* --- its life --- */

/* What it keeps for each machine. */
typedef struct {
    rs_links streams;           /* those that have a descriptor */
    struct RClass *class;
} stream_data;

static void find_class(mrb_state *mrb, rsm_machine *machine);
static void close_all(rsm_machine *machine);
static rsm_part stream_part = {.data_size = sizeof(stream_data), .made = find_class, .closed = close_all};

static stream_data *data_of(const rsm_machine *machine) { return rsm_part_data(machine, &stream_part); }

static void find_class(mrb_state *mrb, rsm_machine *machine) { data_of(machine)->class = rsm_class(mrb, "Stream"); }

static void let_go(rsm_stream *stream) {
    rs_links_remove(&data_of(stream->machine)->streams, &stream->link);
    stream->fd = -1;
    stream->closing = false;
}

/* No op is on it. */
static void close_now(rsm_stream *stream) {
    rs_machine *engine = stream->machine->engine;
    int fd = stream->fd;
    let_go(stream);
    rs_descriptor_discard(engine, fd);
    rs_descriptor_drop(engine, fd);
    rs_descriptor_close_end(engine, fd);
}

/* Nobody has it any more, so no strand waits in a method of it; but one may wait for the same number through an IO object, and then
 * the number stays open. So does a simulated one, for a run must not depend on when garbage is collected. */
static void stream_free(mrb_state *mrb, void *data) {
    rsm_stream *stream = data;
    if (stream && stream->fd >= 0) {
        rs_machine *engine = stream->machine->engine;
        if (rs_is_simulated(engine) || rs_descriptor_has_ops(rs_descriptors_of(engine), stream->fd)) let_go(stream);
        else if (stream->closing || rs_descriptor_close_begin(engine, stream->fd)) close_now(stream);
    }
    mrb_free(mrb, stream);
}

static const struct mrb_data_type stream_type = {"Ringspun::Stream", stream_free};

rsm_stream *rsm_stream_of(mrb_state *mrb, mrb_value self) { return mrb_data_get_ptr(mrb, self, &stream_type); }

rsm_stream *rsm_open_stream(mrb_state *mrb, mrb_value self) {
    rsm_stream *stream = rsm_stream_of(mrb, self);
    if (RS_UNLIKELY(stream->fd < 0 || stream->closing)) mrb_raise(mrb, rsm_class(mrb, "ClosedError"), "the stream is closed");
    if (RS_UNLIKELY(stream->machine != rsm_machine_of(mrb))) {
        mrb_raise(mrb, rsm_class(mrb, "UsageError"), "the stream belongs to another machine, which stands still");
    }
    return stream;
}

int rsm_stream_fd(mrb_state *mrb, mrb_value self) { return rsm_open_stream(mrb, self)->fd; }

mrb_value rsm_stream_new(mrb_state *mrb, rsm_machine *machine) {
    struct RData *data = mrb_data_object_alloc(mrb, data_of(machine)->class, NULL, &stream_type);
    rsm_stream *stream = data->data = mrb_calloc(mrb, 1, sizeof(*stream));
    stream->machine = machine;
    stream->fd = -1;
    return mrb_obj_value(data);
}

void rsm_stream_take(rsm_machine *machine, mrb_value self, int fd) {
    rsm_stream *stream = DATA_PTR(self);
    RS_ASSERT(stream->fd < 0 && fd >= 0);
    stream->fd = fd;
    rs_links_append(&data_of(machine)->streams, &stream->link);
}

mrb_value rsm_answer_stream(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t fd) {
    mrb_value stream = rsm_stream_new(mrb, machine);
    rsm_stream_take(machine, stream, (int)fd);
    return stream;
}

/* The machine is closed, and with it its streams. */
static void close_all(rsm_machine *machine) {
    RS_EACH_LINKED(&data_of(machine)->streams, rsm_stream, link, stream) {
        int fd = stream->fd;
        let_go(stream);
        if (!rs_is_simulated(machine->engine)) close(fd);
    }
}

/* --- whose fault an error is --- */

static mrb_sym blamed(mrb_state *mrb) { return mrb_intern_lit(mrb, "ringspun_blamed"); }

/* By its number: an error that somebody keeps does not keep the stream open. */
static mrb_value stream_number(mrb_state *mrb, mrb_value self) { return mrb_int_value(mrb, mrb_obj_id(self)); }

void rsm_stream_blame(mrb_state *mrb, mrb_value error, int64_t result) {
    if (result != -EPIPE && result != -ECONNRESET && result != -ETIMEDOUT) return;
    mrb_value self = mrb->c->ci->stack[0];
    if (mrb_data_check_get_ptr(mrb, self, &stream_type)) mrb_iv_set(mrb, error, blamed(mrb), stream_number(mrb, self));
}

/* For an error that mrblib raises. */
static mrb_value stream_blame(mrb_state *mrb, mrb_value self) {
    mrb_value error = mrb_get_arg1(mrb);
    mrb_iv_set(mrb, error, blamed(mrb), stream_number(mrb, self));
    return error;
}

/* Whether this stream has raised that error, for what its other side has done or has not done. */
static mrb_value stream_peers_fault(mrb_state *mrb, mrb_value self) {
    return mrb_bool_value(mrb_equal(mrb, mrb_iv_get(mrb, mrb_get_arg1(mrb), blamed(mrb)), stream_number(mrb, self)));
}

/* --- closing --- */

mrb_value rsm_after_ops_on_it(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    rsm_raise_wake(mrb, machine, kind);
    return mrb_true_value();
}

/* One step of the method in mrblib. True: ops were on it, whose strands have been told; ask again. */
static mrb_value stream_close(mrb_state *mrb, mrb_value self) {
    rsm_stream *stream = rsm_stream_of(mrb, self);
    if (stream->fd < 0) return mrb_false_value();
    rs_machine *engine = stream->machine->engine;
    if (rs_descriptor_has_ops(rs_descriptors_of(engine), stream->fd)) rsm_check_boundary(mrb);
    if (!stream->closing) {
        stream->closing = rs_descriptor_close_begin(engine, stream->fd);
        RS_ASSERT(stream->closing);
    }
    if (rs_descriptor_closing(engine, stream->fd) == 0) {
        close_now(stream);
        return mrb_false_value();
    }
    return rsm_wait_in(mrb, stream->machine, rs_descriptor_closers(rs_descriptors_of(engine)), RS_WAIT_LIST, RS_PARK_SHIELDED, RS_NEVER,
                       rsm_after_ops_on_it);
}

static mrb_value stream_closed_p(mrb_state *mrb, mrb_value self) {
    const rsm_stream *stream = rsm_stream_of(mrb, self);
    return mrb_bool_value(stream->fd < 0 || stream->closing);
}

static mrb_value stream_fileno(mrb_state *mrb, mrb_value self) { return mrb_fixnum_value(rsm_stream_fd(mrb, self)); }

void rsm_init_stream(mrb_state *mrb, struct RClass *module, struct RClass *machine) {
    rsm_register_part(&stream_part);
    struct RClass *stream = mrb_define_class_under(mrb, module, "Stream", mrb->object_class);
    MRB_SET_INSTANCE_TT(stream, MRB_TT_DATA);
    mrb_undef_class_method(mrb, stream, "new");
    mrb_define_method(mrb, stream, "__blame", stream_blame, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, stream, "__peers_fault?", stream_peers_fault, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, stream, "__close", stream_close, MRB_ARGS_NONE());
    mrb_define_method(mrb, stream, "closed?", stream_closed_p, MRB_ARGS_NONE());
    mrb_define_method(mrb, stream, "fileno", stream_fileno, MRB_ARGS_NONE());
}
