/* select: the hook io_select, for IO.select. If none of the IOs is ready, the strand waits for an epoll descriptor that has all
 * of them, because a strand waits for one op only. There is no op on the IOs themselves, so the machine keeps a list of waiting
 * selections for those who close one.
 */
#include "scheduler.h"
#include "binding/stream/stream.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

typedef struct rsb_selection {
    rsb_machine *machine;
    rsb_strand *strand;
    rs_link link;               /* in the machine's list, while it waits */
    bool closed;                /* one of the IOs was closed meanwhile */
    VALUE lists[3];             /* the arguments: readables, writables, exceptables; Array or nil */
    VALUE ios;                  /* the IO of each element of the three lists, in their order */
    struct pollfd *polls;       /* one for each of them */
    long count;
    int epoll;
    int64_t deadline_ns;
} selection;

static rsb_part part;

/* The waiting selections of the machine. */
static rs_links *selections_of(const rsb_machine *machine) { return rsb_part_data(machine, &part); }

/* The one in which the strand waits, or NULL. */
static selection **selection_of(const rsb_strand *strand) { return rsb_strand_part(strand, &part); }

/* --- closing --- */

static void begin_wait(selection *s) {
    s->strand = rsb_running(s->machine);
    RS_CHECK(!*selection_of(s->strand));
    rs_links_prepend(selections_of(s->machine), &s->link);
    *selection_of(s->strand) = s;
}

static void end_wait(selection *s) {
    rs_links_remove(selections_of(s->machine), &s->link);
    *selection_of(s->strand) = NULL;
}

static bool has_descriptor(const selection *s, int fd) {
    for (long at = 0; at < s->count; at++) {
        if (s->polls[at].fd == fd) return true;
    }
    return false;
}

static bool is_selected(const rsb_machine *machine, int fd) {
    RS_EACH_LINKED(selections_of(machine), selection, link, s) {
        if (!s->closed && has_descriptor(s, fd)) return true;
    }
    return false;
}

/* That descriptor will be closed: ends the waits of selections that have it. */
static void selections_closing(rsb_machine *machine, int fd) {
    RS_EACH_LINKED(selections_of(machine), selection, link, s) {
        if (s->closed || !has_descriptor(s, fd)) continue;
        s->closed = true;
        rs_descriptor_closing(machine->engine, s->epoll);
    }
}

/* In a forked child the other selections lie on stacks that do not exist any more. */
static void selections_forked(rsb_machine *machine, rsb_strand *survivor) {
    rs_links_forget(selections_of(machine));
    selection *own = *selection_of(survivor);
    if (own) rs_links_prepend(selections_of(machine), &own->link);
}

/* --- looking --- */

static const short wanted[3] = {POLLIN, POLLOUT, POLLPRI};

static void add_list(selection *s, int which) {
    VALUE list = s->lists[which];
    if (NIL_P(list)) return;
    for (long i = 0; i < RARRAY_LEN(list); i++) {
        VALUE io = rb_io_get_io(RARRAY_AREF(list, i));
        if (which == 1) io = rb_io_get_write_io(io);
        rb_ary_push(s->ios, io);
    }
}

static void describe(selection *s) {
    s->count = RARRAY_LEN(s->ios);
    s->polls = rsb_alloc(sizeof(*s->polls) * (size_t)(s->count ? s->count : 1));
    long at = 0;
    for (int which = 0; which < 3; which++) {
        long len = NIL_P(s->lists[which]) ? 0 : RARRAY_LEN(s->lists[which]);
        for (long end = at + len; at < end; at++) {
            s->polls[at] = (struct pollfd){.fd = rb_io_descriptor(RARRAY_AREF(s->ios, at)), .events = wanted[which]};
        }
    }
}

/* True if the IO has bytes in its own buffer: it is readable then, whether its descriptor is or not. */
static bool has_bytes(const selection *s, long at) {
    if (s->polls[at].events != POLLIN) return false;
    if (rsb_stream_holds(s->machine, RARRAY_AREF(s->ios, at))) return true;
    rb_io_t *file;
    GetOpenFile(RARRAY_AREF(s->ios, at), file);
    return rb_io_read_pending(file);
}

/* Polls all once; returns how many are ready. */
static long look(selection *s) {
    long ready = 0;
    if (poll(s->polls, (nfds_t)s->count, 0) < 0 && errno != EINTR) rb_sys_fail("select(2)");
    for (long at = 0; at < s->count; at++) {
        /* The IO may have been closed without the machine, and its number may mean another descriptor by now. */
        if (s->epoll >= 0 && s->polls[at].revents && !rsb_is_open_as(RARRAY_AREF(s->ios, at), s->polls[at].fd)) rsb_fail_closed();
        if (s->polls[at].revents & POLLNVAL) rb_syserr_fail(EBADF, "select(2)");
        /* An end or an error is readiness for readers and writers, but no exceptional condition: epoll would report it forever
         * (epoll_ctl(2)). */
        if (s->polls[at].revents & (POLLHUP | POLLERR)) {
            if (s->polls[at].events != POLLPRI) s->polls[at].revents |= s->polls[at].events;
            else if (s->epoll >= 0) epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->polls[at].fd, NULL);
        }
        s->polls[at].revents &= s->polls[at].events;
        if (has_bytes(s, at)) s->polls[at].revents = POLLIN;
        if (s->polls[at].revents) ready++;
    }
    return ready;
}

static VALUE answer(const selection *s) {
    VALUE result = rb_ary_new_capa(3);
    long at = 0;
    for (int which = 0; which < 3; which++) {
        VALUE list = s->lists[which], ready = rb_ary_new();
        long len = NIL_P(list) ? 0 : RARRAY_LEN(list);
        for (long i = 0; i < len; i++, at++) {
            if (s->polls[at].revents) rb_ary_push(ready, RARRAY_AREF(list, i));
        }
        rb_ary_push(result, ready);
    }
    return result;
}

/* A descriptor may be in several lists: epoll has one entry for it, with the events of all. epoll refuses regular files (EPERM in
 * epoll_ctl(2)): those are always ready, and never have exceptional conditions. */
static void add_to_epoll(selection *s, long at) {
    int fd = s->polls[at].fd;
    struct epoll_event event = {.events = (uint32_t)s->polls[at].events};
    if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) == 0) return;
    if (errno == EPERM && event.events == POLLPRI) return; /* for other events a file would be ready already: a sandbox refuses */
    if (errno != EEXIST) rb_sys_fail("select(2)");
    for (long other = 0; other < at; other++) {
        if (s->polls[other].fd == fd) event.events |= (uint32_t)s->polls[other].events;
    }
    if (epoll_ctl(s->epoll, EPOLL_CTL_MOD, fd, &event) != 0) rb_sys_fail("select(2)");
}

static VALUE wait_for_any(VALUE argument) {
    selection *s = (selection *)argument;
    begin_wait(s);
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (s->epoll < 0) rb_sys_fail("epoll_create1(2)");
    for (long at = 0; at < s->count; at++) {
        if (rs_descriptor_is_closing(rs_descriptors_of(s->machine->engine), s->polls[at].fd)) rsb_fail_closed();
        add_to_epoll(s, at);
    }
    for (;;) {
        rs_request request = {.kind = RS_OP_POLL, .fd = s->epoll, .poll.events = POLLIN};
        int64_t result = rsb_perform(s->machine, &request, &(rsb_op_wait){.answers_close = true, .deadline_ns = s->deadline_ns});
        if (s->closed) rsb_fail_closed();
        if (result == RSB_TIME_IS_UP) return Qnil;
        if (result < 0) rb_syserr_fail((int)-result, "select(2)");
        if (look(s) > 0) return answer(s);
    }
}

static VALUE end_waiting(VALUE argument) {
    selection *s = (selection *)argument;
    end_wait(s);
    if (s->epoll >= 0) close(s->epoll);
    return Qnil;
}

/* In a simulation, where all IO objects are real. */
static VALUE wait_outside(selection *s) {
    if (s->deadline_ns != RS_NEVER) rsb_fail_outside_time("io_select");
    do rsb_wait_outside(s->machine, &(rsb_outside_wait){.polls = s->polls, .count = s->count});
    while (look(s) == 0);
    return answer(s);
}

static VALUE select_from(VALUE argument) {
    selection *s = (selection *)argument;
    rsb_before_look(s->machine); /* first: other strands may close the IOs */
    for (int which = 0; which < 3; which++) add_list(s, which);
    describe(s);
    if (look(s) > 0) return answer(s);
    if (s->deadline_ns <= rs_now(s->machine->engine)) return Qnil;
    if (s->count > 0 && RS_UNLIKELY(rs_is_simulated(s->machine->engine))) return wait_outside(s);
    if (s->count > 0) return rb_ensure(wait_for_any, argument, end_waiting, argument);
    rsb_sleep_until(s->machine, s->deadline_ns);
    return Qnil;
}

static VALUE free_selection(VALUE argument) {
    free(((selection *)argument)->polls);
    return Qnil;
}

static VALUE list_of(VALUE list) {
    if (NIL_P(list)) return Qnil;
    Check_Type(list, T_ARRAY);
    return rb_ary_dup(list);
}

static VALUE select_outside(RB_BLOCK_CALL_FUNC_ARGLIST(fiber, lists)) {
    return rb_funcallv(rb_cIO, rb_intern("select"), 4, RARRAY_CONST_PTR(lists));
}

/* Called by IO.select: waits until one of the IOs is ready.
 *
 * May switch strands.
 *
 * @param readables [Array<IO>, nil]
 * @param writables [Array<IO>, nil]
 * @param exceptables [Array<IO>, nil]
 * @param timeout [Numeric, nil] seconds; nil or Float::INFINITY: no limit
 * @return [Array(Array<IO>, Array<IO>, Array<IO>), nil] the IOs that are ready; nil when the time is up
 * @raise [UnsupportedError] in a simulation, when none is ready and there is a limit
 * @since 0.1.0
 */
static VALUE scheduler_io_select(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 1, 4);
    rsb_machine *machine = rsb_hook_machine(self);
    VALUE timeout = argc > 3 ? argv[3] : Qnil;
    /* IO.select takes infinity since 4.0 (Feature #20610), but calls the hook before it looks at the timeout. */
    if (RB_FLOAT_TYPE_P(timeout) && isinf(RFLOAT_VALUE(timeout)) && RFLOAT_VALUE(timeout) > 0) timeout = Qnil;
    VALUE lists[4] = {argv[0], argc > 1 ? argv[1] : Qnil, argc > 2 ? argv[2] : Qnil, timeout};
    if (!machine) return rsb_blocking(select_outside, rb_ary_new_from_values(4, lists));
    selection s = {.machine = machine, .epoll = -1, .deadline_ns = rsb_interval_end(machine, timeout), .ios = rb_ary_new()};
    for (int which = 0; which < 3; which++) s.lists[which] = list_of(lists[which]);
    VALUE result = rb_ensure(select_from, (VALUE)&s, free_selection, (VALUE)&s);
    rsb_leave_hook(machine);
    RB_GC_GUARD(s.ios);
    return result;
}

static rsb_part part = {.data_size = sizeof(rs_links), .strand_size = sizeof(selection *),
                        .forked = selections_forked, .waits_for = is_selected, .closing = selections_closing};

void rsb_init_scheduler_select(void) {
    rsb_register_part(&part);
    rb_define_method(rsb_cScheduler, "io_select", scheduler_io_select, -1);
}
