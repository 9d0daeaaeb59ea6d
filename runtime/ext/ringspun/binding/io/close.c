/* close: Machine#close, IO#close and IO#reopen. No new op begins on the descriptor, the ops on it end, and then it is closed, or
 * becomes another file's. */
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

typedef struct rsb_closing {
    rsb_machine *machine;
    VALUE io;
    int fds[2];
    int count;
    bool within;                /* IO#close or IO#reopen has called us: go on by super, with its arguments */
    int argc;
    const VALUE *argv;
    int keywords;
    VALUE answer;               /* of super */
    bool closed;                /* the number is free again */
    int64_t result;
} closing;

static rsb_part part;

/* What the strand is closing, and how far that has come; NULL: nothing. */
static closing **closing_of(const rsb_strand *strand) { return rsb_strand_part(strand, &part); }

/* From here on no op begins on the descriptor. A second close raises: by the time that it could go on, the number may mean
 * another descriptor. */
static void begin_closing(closing *c, int fd) {
    if (!rs_descriptor_close_begin(c->machine->engine, fd)) {
        rb_raise(rsb_eClosed, "close: another strand is closing descriptor %d already", fd);
    }
    c->fds[c->count++] = fd;
}

static void let_go(closing *c) {
    while (c->count > 0) rs_descriptor_close_end(c->machine->engine, c->fds[--c->count]);
}

static VALUE end_closing(VALUE argument) {
    closing *c = (closing *)argument;
    *closing_of(rsb_running(c->machine)) = NULL;
    let_go(c);
    return Qnil;
}

void rsb_closed(rsb_machine *machine) {
    closing *c = *closing_of(rsb_running(machine));
    if (c) end_closing((VALUE)c);
}

static const rsb_list_kind for_closing = {.what = "the last op on a descriptor to be closed"};

static void end_ops_on(rsb_machine *machine, int fd) {
    RSB_EACH_PART(closing, machine, fd);
    while (rs_descriptor_closing(machine->engine, fd) > 0) {
        rs_list *closers = rs_descriptor_closers(rs_descriptors_of(machine->engine));
        rsb_wait(machine, RS_WAIT_LIST, RS_PARK_SHIELDED, RS_NEVER, closers, &for_closing, NULL);
    }
}

VALUE rsb_flush_own_buffer(VALUE object) {
    VALUE io = rsb_writing_end(object);
    if (RB_TYPE_P(io, T_FILE) && !RTEST(rb_funcall(io, rb_intern("closed?"), 0))) rb_funcall(io, rb_intern("flush"), 0);
    return Qnil;
}

/* The number means nothing, or another descriptor, by the time that this strand goes on. */
static void forget_number(const rs_op *op, void *argument) {
    closing *c = argument;
    if (rs_op_result(op) != -ECANCELED) c->count = 0;
}

static VALUE close_number(VALUE argument) {
    closing *c = (closing *)argument;
    rs_request request = {.kind = RS_OP_CLOSE, .fd = FIX2INT(c->io)};
    begin_closing(c, request.fd);
    end_ops_on(c->machine, request.fd);
    c->result = rs_try(c->machine->engine, &request);
    if (c->result == -EAGAIN) {
        rsb_op_wait wait = {.flags = RS_PARK_SHIELDED, .take = forget_number, .argument = c};
        c->result = rsb_perform(c->machine, &request, &wait);
    }
    c->closed = true;
    return Qnil;
}

static VALUE close_object(VALUE argument) {
    closing *c = (closing *)argument;
    VALUE writing = rsb_writing_end(c->io);
    bool two = writing != c->io && !RTEST(rb_funcall(writing, rb_intern("closed?"), 0));
    /* May wait for the descriptor. IO#close raises the same error of the system again. */
    int state = 0;
    rb_protect(rsb_flush_own_buffer, writing, &state);
    bool of_system = state && rsb_is_exception(rb_errinfo()) && rb_obj_is_kind_of(rb_errinfo(), rb_eSystemCallError);
    if (of_system) rb_set_errinfo(Qnil);
    else if (state) rb_jump_tag(state);
    begin_closing(c, rsb_io_fd(c->machine, c->io));
    if (two) begin_closing(c, rsb_io_fd(c->machine, writing));
    for (int i = 0; i < c->count; i++) end_ops_on(c->machine, c->fds[i]);
    *closing_of(rsb_running(c->machine)) = c;
    if (c->within) c->answer = rb_call_super_kw(c->argc, c->argv, c->keywords);
    else rb_funcall(c->io, rb_intern("close"), 0);
    return Qnil;
}

/* With a descriptor: closes it; waits of strands for it end first, by a ClosedError. Without: closes the machine; its strands are
 * cancelled and have a second to unwind.
 *
 * May switch strands.
 *
 * @overload close(io)
 *   @param io [Integer, IO]
 *   @raise [ClosedError] when it is not open, or another strand is closing it
 * @overload close
 *   @raise [UsageError] when strands are left that do not end
 * @return [nil]
 * @since 0.1.0
 */
static VALUE machine_close(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 0, 1);
    if (argc == 0) return rb_funcall(self, rb_intern("shut_down"), 0);
    rsb_close(rsb_machine_of(self), argv[0]);
    return Qnil;
}

static void end_and_close(closing *c) {
    int fd = rsb_io_fd(c->machine, c->io);
    rb_ensure(RB_FIXNUM_P(c->io) ? close_number : close_object, (VALUE)c, end_closing, (VALUE)c);
    if (c->result < 0) rsb_fail(c->result, "close", fd);
}

void rsb_close(rsb_machine *machine, VALUE io) {
    closing c = {.machine = machine, .io = io};
    end_and_close(&c);
}

static bool closes(const closing *c, int fd) {
    for (int i = 0; c && i < c->count; i++) {
        if (c->fds[i] == fd) return true;
    }
    return false;
}

bool rsb_close_for_ruby(rsb_machine *machine, int fd) {
    if (closes(*closing_of(rsb_running(machine)), fd)) return false;
    if (rs_descriptor_is_closing(rs_descriptors_of(machine->engine), fd)) return true;
    if (fcntl(fd, F_GETFD) < 0) return false;
    closing c = {.machine = machine, .io = INT2FIX(fd)};
    int state = 0;
    rb_protect(close_number, (VALUE)&c, &state);
    let_go(&c);
    if (state && !c.closed) close(fd);
    if (state) rb_jump_tag(state);
    if (c.result < 0) rsb_fail(c.result, "close", fd);
    return true;
}

static bool is_waited_for(const rsb_machine *machine, int fd) {
    for (const rsb_part *part = rsb_parts; part; part = part->next) {
        if (part->waits_for && part->waits_for(machine, fd)) return true;
    }
    return false;
}

/* Whether a strand waits for the IO. A descriptor that another strand is closing does not count: that strand ends the waits. */
static bool is_awaited(rsb_machine *machine, VALUE io) {
    if (RTEST(rb_funcall(io, rb_intern("closed?"), 0))) return false;
    VALUE ends[2] = {io, rb_io_get_write_io(io)};
    for (int i = 0; i < 2; i++) {
        if (i > 0 && (ends[i] == io || RTEST(rb_funcall(ends[i], rb_intern("closed?"), 0)))) continue;
        int fd = rb_io_descriptor(ends[i]);
        if (rs_descriptor_is_closing(rs_descriptors_of(machine->engine), fd)) continue;
        if (rs_descriptor_has_ops(rs_descriptors_of(machine->engine), fd) || is_waited_for(machine, fd)) return true;
    }
    return false;
}

/* @return whether strands of this thread wait for the IO, which hear of it before super does its part */
static bool has_waiters(rsb_machine *machine, VALUE io) {
    if (machine) rsb_notice_fork(machine);
    if (RS_LIKELY(!machine || rs_ops_in_flight(machine->engine) == 0)) return false;
    return !rsb_between_strands(machine) && !rs_is_simulated(machine->engine) && is_awaited(machine, io);
}

static VALUE end_waits_and_go_on(rsb_machine *machine, VALUE io, int argc, const VALUE *argv) {
    int keywords = rb_keyword_given_p() ? RB_PASS_KEYWORDS : RB_NO_KEYWORDS;
    if (!has_waiters(machine, io)) return rb_call_super_kw(argc, argv, keywords);
    closing c = {.machine = machine, .io = io, .within = true, .argc = argc, .argv = argv, .keywords = keywords, .answer = Qnil};
    end_and_close(&c);
    return c.answer;
}

/* Closes the IO like the stock method. Before that, waits of this thread's strands for it end by an IOError.
 *
 * May switch strands.
 *
 * @return [nil]
 * @since 0.1.0
 */
static VALUE io_close(VALUE self) { return end_waits_and_go_on(rsb_existing(), self, 0, NULL); }

/* Reopens the IO like the stock method. Before that, waits of this thread's strands for it end by an IOError, as those of threads do.
 *
 * May switch strands.
 *
 * @overload reopen(other)
 *   @param other [IO]
 * @overload reopen(path, mode = nil, **options)
 *   @param path [String]
 * @return [IO] itself
 * @since 0.1.0
 */
static VALUE io_reopen(int argc, VALUE *argv, VALUE self) { return end_waits_and_go_on(rsb_existing(), self, argc, argv); }

static rsb_part part = {.strand_size = sizeof(closing *)};

void rsb_init_close(void) {
    rsb_register_part(&part);
    rb_define_method(rsb_cMachine, "close", machine_close, -1);
    VALUE streams = rb_define_module_under(rsb_mRingspun, "IOMethods");
    rb_define_method(streams, "close", io_close, 0);
    rb_define_method(streams, "reopen", io_reopen, -1);
}
