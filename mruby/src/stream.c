/* stream: Ringspun::Stream: a descriptor of a file, pipe or socket. It is closed with the object that nobody has any more, or with the
 * state. What keeps bytes between two reads is in mrblib.
 */
#include "binding.h"

#include <mruby/array.h>
#include <mruby/string.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct {
    rs_link link;               /* in the machine's streams, while it has a descriptor */
    rsm_machine *machine;
    int fd;                     /* -1: none */
    bool closing;               /* a strand waits for the end of the ops on it */
    bool writing;               /* a strand waits until its bytes are out, */
    rs_list writers;            /* and these for that */
} rsm_stream;

/* --- its life --- */

static void let_go(rsm_stream *stream) {
    rs_links_remove(&stream->machine->streams, &stream->link);
    stream->fd = -1;
    stream->closing = false;
}

/* No op is on it. */
static void close_now(rsm_stream *stream) {
    rs_machine *engine = &stream->machine->engine;
    int fd = stream->fd;
    let_go(stream);
    rs_platform_of(engine)->discard(engine, fd);
    rs_descriptor_drop(engine, fd);
    rs_descriptor_close_end(engine, fd);
}

/* Nobody has it any more, so no strand waits in a method of it; but one may wait for the same number through an IO object, and then
 * the number stays open. So does a simulated one, for a run must not depend on when garbage is collected. */
static void stream_free(mrb_state *mrb, void *data) {
    rsm_stream *stream = data;
    if (stream && stream->fd >= 0) {
        rs_machine *engine = &stream->machine->engine;
        if (rs_is_simulated(engine) || rs_descriptor_has_ops(engine->descriptors, stream->fd)) let_go(stream);
        else if (stream->closing || rs_descriptor_close_begin(engine, stream->fd)) close_now(stream);
    }
    mrb_free(mrb, stream);
}

static const struct mrb_data_type stream_type = {"Ringspun::Stream", stream_free};

static rsm_stream *get(mrb_state *mrb, mrb_value self) { return mrb_data_get_ptr(mrb, self, &stream_type); }

static rsm_stream *get_open(mrb_state *mrb, mrb_value self) {
    rsm_stream *stream = get(mrb, self);
    if (RS_UNLIKELY(stream->fd < 0 || stream->closing)) mrb_raise(mrb, rsm_class(mrb, "ClosedError"), "the stream is closed");
    if (RS_UNLIKELY(stream->machine != rsm_machine_of(mrb))) {
        mrb_raise(mrb, rsm_class(mrb, "UsageError"), "the stream belongs to another machine, which stands still");
    }
    return stream;
}

int rsm_stream_fd(mrb_state *mrb, mrb_value self) { return get_open(mrb, self)->fd; }

mrb_value rsm_stream_new(mrb_state *mrb, rsm_machine *machine) {
    struct RData *data = mrb_data_object_alloc(mrb, machine->stream_class, NULL, &stream_type);
    rsm_stream *stream = data->data = mrb_calloc(mrb, 1, sizeof(*stream));
    stream->machine = machine;
    stream->fd = -1;
    return mrb_obj_value(data);
}

void rsm_stream_take(rsm_machine *machine, mrb_value self, int fd) {
    rsm_stream *stream = DATA_PTR(self);
    RS_ASSERT(stream->fd < 0 && fd >= 0);
    stream->fd = fd;
    rs_links_append(&machine->streams, &stream->link);
}

mrb_value rsm_answer_stream(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t fd) {
    mrb_value stream = rsm_stream_new(mrb, machine);
    rsm_stream_take(machine, stream, (int)fd);
    return stream;
}

void rsm_close_streams(rsm_machine *machine) {
    RS_EACH_LINKED(&machine->streams, rsm_stream, link, stream) {
        int fd = stream->fd;
        let_go(stream);
        if (!rs_is_simulated(&machine->engine)) close(fd);
    }
}

/* --- making --- */

static mrb_value answer_pair(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t result) {
    const int *pair = request->owned;
    mrb_value first = rsm_stream_new(mrb, machine), second = rsm_stream_new(mrb, machine), both = mrb_assoc_new(mrb, first, second);
    rsm_stream_take(machine, first, pair[0]);
    rsm_stream_take(machine, second, pair[1]);
    return both;
}

static mrb_value machine_pipe(mrb_state *mrb, mrb_value self) {
    rsm_machine *machine = rsm_io_machine(mrb);
    int *pair = rsm_owned(mrb, 2 * sizeof(int));
    rs_request request = {.kind = RS_OP_PIPE, .fd = -1, .owned = pair, .pipe.pair = pair};
    return rsm_perform(mrb, machine, &request, answer_pair);
}

static mrb_value machine_socketpair(mrb_state *mrb, mrb_value self) {
    rsm_machine *machine = rsm_io_machine(mrb);
    int *pair = rsm_owned(mrb, 2 * sizeof(int));
    rs_request request = {.kind = RS_OP_SOCKETPAIR, .fd = -1, .owned = pair,
                          .socket = {.family = AF_UNIX, .type = SOCK_STREAM, .pair = pair}};
    return rsm_perform(mrb, machine, &request, answer_pair);
}

static const struct {
    const char *name;
    uint32_t flags;
} modes[] = {{"r", O_RDONLY}, {"r+", O_RDWR}, {"w", O_WRONLY | O_CREAT | O_TRUNC}, {"w+", O_RDWR | O_CREAT | O_TRUNC},
             {"a", O_WRONLY | O_CREAT | O_APPEND}, {"a+", O_RDWR | O_CREAT | O_APPEND}, {"wx", O_WRONLY | O_CREAT | O_EXCL}};

static uint32_t open_flags(mrb_state *mrb, mrb_value mode) {
    rsm_check_string(mrb, mode, "open: the mode");
    size_t len = (size_t)RSTRING_LEN(mode);
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (len == strlen(modes[i].name) && memcmp(RSTRING_PTR(mode), modes[i].name, len) == 0) return modes[i].flags;
    }
    mrb_raisef(mrb, rsm_class(mrb, "UsageError"), "open: unknown mode %v; use r, r+, w, w+, a, a+ or wx", mrb_inspect(mrb, mode));
    return 0;
}

static char *path_copy(mrb_state *mrb, mrb_value path) {
    size_t len = (size_t)RSTRING_LEN(path);
    char *copy = rsm_owned(mrb, len + 1);
    memcpy(copy, RSTRING_PTR(path), len);
    copy[len] = 0;
    return copy;
}

static void check_path(mrb_state *mrb, mrb_value path, const char *what) {
    rsm_check_string(mrb, path, what);
    if (memchr(RSTRING_PTR(path), 0, (size_t)RSTRING_LEN(path))) {
        mrb_raisef(mrb, rsm_class(mrb, "UsageError"), "%s: expected no NUL in it, got %v", what, mrb_inspect(mrb, path));
    }
}

static mrb_value machine_open(mrb_state *mrb, mrb_value self) {
    const mrb_value *arguments = mrb_get_argv(mrb);
    check_path(mrb, arguments[0], "open: the path");
    rs_open_request open = {.flags = open_flags(mrb, arguments[1]),
                            .mode = (uint32_t)rsm_int_arg(mrb, arguments[2], 0, 07777, "open: the permissions")};
    rsm_machine *machine = rsm_io_machine(mrb);
    char *path = path_copy(mrb, arguments[0]);
    open.path = path;
    return rsm_perform(mrb, machine, &(rs_request){.kind = RS_OP_OPEN, .fd = -1, .owned = path, .open = open}, rsm_answer_stream);
}

/* Removes the name of a file. */
static mrb_value machine_unlink(mrb_state *mrb, mrb_value self) {
    mrb_value name = mrb_get_arg1(mrb);
    check_path(mrb, name, "unlink: the path");
    rsm_machine *machine = rsm_io_machine(mrb);
    char *path = path_copy(mrb, name);
    return rsm_perform(mrb, machine, &(rs_request){.kind = RS_OP_UNLINK, .fd = -1, .owned = path, .path.path = path}, rsm_answer_nil);
}

/* --- bytes --- */

static mrb_value stream_read(mrb_state *mrb, mrb_value self) { return rsm_read(mrb, rsm_stream_fd(mrb, self), mrb_get_arg1(mrb), -1); }

static int64_t offset_of(mrb_state *mrb, mrb_value offset) {
    return rsm_int_arg(mrb, offset, 0, INT64_MAX, "the offset");
}

static mrb_value stream_pread(mrb_state *mrb, mrb_value self) {
    const mrb_value *arguments = mrb_get_argv(mrb);
    return rsm_read(mrb, rsm_stream_fd(mrb, self), arguments[0], offset_of(mrb, arguments[1]));
}

static mrb_value after_write(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    rsm_stream *stream = get(mrb, mrb->c->ci->stack[0]);
    stream->writing = false;
    rs_list_wake_all(&machine->engine, &stream->writers, 0);
    return rsm_after_op(mrb, machine, strand, kind, result);
}

static mrb_value after_others(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    rsm_raise_wake(mrb, machine, kind);
    return mrb_nil_value();
}

static mrb_value wait_in_list(mrb_state *mrb, rsm_machine *machine, rs_list *list, uint32_t flags, rsm_epilogue epilogue) {
    rs_machine *engine = &machine->engine;
    rs_strand *running = rs_running(engine);
    if (rs_park_begin(engine, RS_WAIT_LIST, flags, RS_NEVER) == 0) rsm_raise_wake(mrb, machine, engine->refusal);
    rs_list_append(engine, list, running, 0);
    return rsm_park(mrb, machine, running->user, epilogue);
}

/* All of the String. nil: another strand was at it, whose bytes are not to be broken up; ask again. */
static mrb_value stream_write(mrb_state *mrb, mrb_value self) {
    rsm_stream *stream = get_open(mrb, self);
    rsm_op_wait how = {.epilogue = after_write, .waits = &stream->writing};
    if (RS_LIKELY(!stream->writing)) return rsm_write(mrb, stream->fd, mrb_get_arg1(mrb), -1, RS_REQUEST_ALL, &how);
    return wait_in_list(mrb, rsm_io_machine(mrb), &stream->writers, 0, after_others);
}

static mrb_value stream_pwrite(mrb_state *mrb, mrb_value self) {
    const mrb_value *arguments = mrb_get_argv(mrb);
    return rsm_write(mrb, rsm_stream_fd(mrb, self), arguments[0], offset_of(mrb, arguments[1]), RS_REQUEST_ALL, &(rsm_op_wait){0});
}

/* Shielded: a worker may be at it, for which the number must stay this file's. */
static mrb_value stream_fsync(mrb_state *mrb, mrb_value self) {
    rs_request request = {.kind = RS_OP_FSYNC, .fd = rsm_stream_fd(mrb, self)};
    rsm_machine *machine = rsm_io_machine(mrb);
    rsm_raise_wake(mrb, machine, rs_refusal(&machine->engine, 0));
    return rsm_wait_for(mrb, machine, &request, &(rsm_op_wait){.answer = rsm_answer_nil, .flags = RS_PARK_SHIELDED});
}

/* Something that was read ahead is there. */
static mrb_value readable(mrb_state *mrb, mrb_value self, mrb_value within) {
    if (mrb_test(mrb_iv_get(mrb, self, rsm_machine_of(mrb)->ahead_name))) return mrb_true_value();
    return rsm_poll(mrb, rsm_stream_fd(mrb, self), POLLIN, within);
}

/* Stream#__readable(passed, within) */
static mrb_value stream_readable(mrb_state *mrb, mrb_value self) { return readable(mrb, self, mrb_get_argv(mrb)[1]); }

static mrb_value stream_writable(mrb_state *mrb, mrb_value self) {
    return rsm_poll(mrb, rsm_stream_fd(mrb, self), POLLOUT, mrb_get_argv(mrb)[1]);
}

/* Stream#await_readable. With options it goes on in mrblib, in the same frame. */
static mrb_value stream_await_readable(mrb_state *mrb, mrb_value self) {
    if (!rsm_is_plain(mrb)) return mrb_exec_irep(mrb, self, rsm_machine_of(mrb)->readable_with_options);
    return readable(mrb, self, mrb_nil_value());
}

static mrb_value stream_await_writable(mrb_state *mrb, mrb_value self) {
    if (!rsm_is_plain(mrb)) return mrb_exec_irep(mrb, self, rsm_machine_of(mrb)->writable_with_options);
    return rsm_poll(mrb, rsm_stream_fd(mrb, self), POLLOUT, mrb_nil_value());
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

static mrb_value after_op_on_it(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    rsm_raise_wake(mrb, machine, kind);
    return mrb_true_value();
}

/* One step of the method in mrblib. True: ops were on it, whose strands have been told; ask again. */
static mrb_value stream_close(mrb_state *mrb, mrb_value self) {
    rsm_stream *stream = get(mrb, self);
    if (stream->fd < 0) return mrb_false_value();
    rs_machine *engine = &stream->machine->engine;
    if (rs_descriptor_has_ops(engine->descriptors, stream->fd)) rsm_check_boundary(mrb);
    if (!stream->closing) {
        stream->closing = rs_descriptor_close_begin(engine, stream->fd);
        RS_ASSERT(stream->closing);
    }
    if (rs_descriptor_closing(engine, stream->fd) == 0) {
        close_now(stream);
        return mrb_false_value();
    }
    return wait_in_list(mrb, stream->machine, &engine->descriptors->closers, RS_PARK_SHIELDED, after_op_on_it);
}

static mrb_value stream_closed_p(mrb_state *mrb, mrb_value self) {
    const rsm_stream *stream = get(mrb, self);
    return mrb_bool_value(stream->fd < 0 || stream->closing);
}

static mrb_value stream_fileno(mrb_state *mrb, mrb_value self) { return mrb_fixnum_value(rsm_stream_fd(mrb, self)); }

void rsm_init_stream(mrb_state *mrb, struct RClass *module, struct RClass *machine) {
    struct RClass *stream = mrb_define_class_under(mrb, module, "Stream", mrb->object_class);
    MRB_SET_INSTANCE_TT(stream, MRB_TT_DATA);
    mrb_undef_class_method(mrb, stream, "new");
    mrb_define_method(mrb, machine, "pipe", machine_pipe, MRB_ARGS_NONE());
    mrb_define_method(mrb, machine, "socketpair", machine_socketpair, MRB_ARGS_NONE());
    mrb_define_method(mrb, machine, "unlink", machine_unlink, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, machine, "__open", machine_open, MRB_ARGS_REQ(3));
    mrb_define_method(mrb, stream, "__read", stream_read, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, stream, "__pread", stream_pread, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, stream, "__write", stream_write, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, stream, "__pwrite", stream_pwrite, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, stream, "fsync", stream_fsync, MRB_ARGS_NONE());
    mrb_define_method(mrb, stream, "__readable", stream_readable, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, stream, "__writable", stream_writable, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, stream, "await_readable", stream_await_readable, MRB_ARGS_ANY());
    mrb_define_method(mrb, stream, "await_writable", stream_await_writable, MRB_ARGS_ANY());
    mrb_define_method(mrb, stream, "__blame", stream_blame, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, stream, "__peers_fault?", stream_peers_fault, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, stream, "__close", stream_close, MRB_ARGS_NONE());
    mrb_define_method(mrb, stream, "closed?", stream_closed_p, MRB_ARGS_NONE());
    mrb_define_method(mrb, stream, "fileno", stream_fileno, MRB_ARGS_NONE());
}
