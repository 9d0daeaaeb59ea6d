/* epoll: the backend for hosts without io_uring. Readiness and a second try; what has no readiness goes to workers.
 *
 * Registrations are one-shot and asked for anew at every wait. That costs one system call a wait and buys the truth: the
 * number may have been closed and reused by code that we do not own, and then MOD answers ENOENT instead of a wake-up
 * being lost. Where an object can say whether it is still open, a wait is put in line for one poll(2) of all that are there, and
 * only what is not ready by then is registered. https://man7.org/linux/man-pages/man2/epoll_ctl.2.html
 */
#include "backend/lost.h"
#include "backend/op_line.h"
#include "backend/retry.h"
#include "backend/workers.h"
#include "core/machine.h"
#include "kernel/op_table.h"
#include "kernel/processor.h"
#include "kernel/wake.h"
#include "ops/descriptors.h"
#include "ringspun/kernel/descriptor_kinds.h"
#include "kernel/platform.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Events that one epoll_wait(2) brings. Where as many come there may be more, and another call follows. */
#define EVENTS_PER_WAIT 256
#define WAKE_UP UINT64_MAX

typedef struct {
    int epoll;
    int wake;
    int ready;                  /* events fetched by wait and not yet harvested */
    struct epoll_event events[EVENTS_PER_WAIT];
    bool only_milliseconds;     /* the host has no epoll_pwait2, or forbids it */
    bool only_pwait;            /* and no epoll_wait */
    int lost;                   /* what the call that waits has answered for good: -errno; 0: nothing */
    rs_fruitless looks, waits;
    rs_retry retry;
    rs_op_line line;            /* ops on descriptors of objects, which are looked at together first */
    rs_workers workers;
} epoll_state;

/* glibc's epoll_wait is a call of its own on some processors. */
static int wait_milliseconds(epoll_state *state, int ms) {
    RS_CHECK(ms >= -1);
    if (RS_LIKELY(!state->only_pwait)) {
        int count = epoll_wait(state->epoll, state->events, EVENTS_PER_WAIT, ms);
        if (count >= 0 || !rs_is_lost(-errno)) return count;
        state->only_pwait = true;
    }
    return epoll_pwait(state->epoll, state->events, EVENTS_PER_WAIT, ms, NULL);
}

/* There may be none: a child may have failed to open its own. */
static void close_descriptors(epoll_state *state) {
    if (state->epoll >= 0) close(state->epoll);
    if (state->wake >= 0) close(state->wake);
    state->epoll = state->wake = -1;
}

/* 0, or -errno with `refused` the call. A filter may let everything be made and forbid the wait. */
static int make_descriptors(epoll_state *state, const char **refused) {
    RS_CHECK(state->epoll < 0 && state->wake < 0);
    *refused = "epoll_create1";
    state->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (state->epoll < 0) return -errno;
    *refused = "eventfd";
    state->wake = rs_wake_open();
    if (state->wake < 0) return state->wake;
    /* Edge-triggered: every write is an event and nobody ever has to read the counter.
     * https://man7.org/linux/man-pages/man7/epoll.7.html */
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = WAKE_UP};
    *refused = "epoll_ctl";
    if (epoll_ctl(state->epoll, EPOLL_CTL_ADD, state->wake, &event) < 0) return -errno;
    *refused = "epoll_wait";
    int count = wait_milliseconds(state, 0);
    return count < 0 && rs_is_lost(-errno) ? -errno : 0;
}

static int open_descriptors(rs_machine *machine, epoll_state *state) {
    const char *refused;
    RS_CHECK(state->ready == 0 && state->line.len == 0 && state->retry.first == 0);
    state->epoll = state->wake = -1;
    state->lost = 0;
    state->looks = state->waits = (rs_fruitless){0};
    int error = make_descriptors(state, &refused);
    if (!error) return 0;
    rs_note_lost(machine, refused, error);
    close_descriptors(state);
    return error;
}

static int epoll_open(rs_machine *machine) {
    RS_CHECK(machine->backend_state == NULL);
    epoll_state *state = rs_try_alloc(sizeof(*state));
    if (!state) return RS_NO_MEMORY;
    int error = rs_workers_open(machine, &state->workers) ? open_descriptors(machine, state) : RS_NO_MEMORY;
    if (error) {
        rs_workers_free(&state->workers);
        free(state);
        return error;
    }
    machine->backend_state = state;
    return 0;
}

static void epoll_close(rs_machine *machine) {
    epoll_state *state = machine->backend_state;
    rs_workers_free(&state->workers);
    close_descriptors(state);
    rs_op_line_free(&state->line);
    free(state);
    machine->backend_state = NULL;
}

static uint32_t events_of(const rs_op *op) {
    RS_CHECK(op->state == RS_OP_SUBMITTED);
    if (rs_retry_has(op)) return 0;
    /* The errors that this takes, and not the data of those behind it. */
    if (op->request.kind == RS_OP_RECVMSG && op->request.message.flags & MSG_ERRQUEUE) return EPOLLERR;
    switch (rs_op_kinds[op->request.kind].side) {
    case RS_SIDE_READ: return EPOLLIN;
    case RS_SIDE_WRITE: return EPOLLOUT;
    /* epoll reports these two whether asked for or not, and for ever unless somebody takes them: see epoll_ctl(2), above. */
    case RS_SIDE_MASK: return op->request.poll.events | EPOLLERR | EPOLLHUP;
    default: return 0;
    }
}

/* What this backend has of a descriptor. */
typedef struct {
    uint64_t identity;          /* what the number means while it is registered; 0: not looked up */
    uint32_t events;            /* that were asked for and have not come */
    uint32_t registration;      /* the how-manieth of that number: one differs from those before */
    uint32_t generation;        /* the number's, when it was registered */
    bool registered;
} epoll_descriptor;

_Static_assert(sizeof(epoll_descriptor) <= sizeof(((rs_descriptor *)0)->of_backend), "a descriptor has room for it");
_Static_assert(sizeof(rs_retry_place) <= sizeof(((rs_op *)0)->of_backend), "an op has room for it");

/* A number that was closed through the machine is registered no more. */
static epoll_descriptor *known_of(rs_descriptor *descriptor) {
    epoll_descriptor *known = (void *)descriptor->of_backend;
    RS_CHECK(known->registered || (known->identity == 0 && known->events == 0));
    if (RS_UNLIKELY(known->generation != descriptor->generation)) {
        *known = (epoll_descriptor){.registration = known->registration, .generation = descriptor->generation};
    }
    return known;
}

static epoll_descriptor *known_at(rs_machine *machine, int fd) { return known_of(rs_descriptor_get(rs_descriptors_in(machine), fd)); }

/* A file that had the number before may still be open elsewhere. Then its registration goes on reporting, by another name. */
static int control(rs_machine *machine, int verb, int fd, uint32_t events) {
    epoll_state *state = machine->backend_state;
    epoll_descriptor *known = known_at(machine, fd);
    RS_CHECK(fd >= 0 && fd != state->wake && fd != state->epoll);
    if (verb == EPOLL_CTL_ADD) known->registration++;
    uint64_t name = (uint64_t)known->registration << 32 | (uint32_t)fd;
    struct epoll_event event = {.events = events | EPOLLONESHOT, .data.u64 = name};
    machine->metrics.system_calls++;
    return epoll_ctl(state->epoll, verb, fd, &event);
}

static int ask(rs_machine *machine, int fd, uint32_t events) {
    RS_CHECK(events != 0);
    epoll_descriptor *known = known_at(machine, fd);
    int verb = known->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    int result = control(machine, verb, fd, events);
    if (result < 0 && (errno == ENOENT || errno == EEXIST)) {
        verb = errno == ENOENT ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
        result = control(machine, verb, fd, events);
    }
    if (result < 0) return -errno;
    if (verb == EPOLL_CTL_ADD) known->identity = 0;
    known->registered = true;
    known->events = events;
    return 0;
}

/* While epoll finds the number registered it means what it meant then, so it is looked up once for all ops. */
static void note_identity(rs_machine *machine, rs_op *op) {
    RS_CHECK(known_at(machine, op->request.fd)->registered);
    int fd = op->request.fd;
    uint8_t side = rs_op_kinds[op->request.kind].side;
    if ((side != RS_SIDE_READ && side != RS_SIDE_WRITE) || op->owner->is_gone) return;
    rs_descriptor *descriptor = &rs_descriptors_in(machine)->table[fd];
    if (descriptor->kind != RS_FD_UNKNOWN) return;
    epoll_descriptor *known = known_of(descriptor);
    if (!known->identity) known->identity = rs_descriptor_identity(fd);
    op->identity = known->identity;
}

static uint32_t wanted(rs_machine *machine, int fd) {
    uint32_t events = 0;
    for (uint32_t link = rs_descriptor_get(rs_descriptors_in(machine), fd)->first; link;) {
        rs_op *op = rs_op_at(rs_ops_in(machine), link - 1);
        RS_CHECK(op->request.fd == fd);
        if (!op->offloaded) events |= events_of(op);
        link = op->next;
    }
    return events;
}

static bool needs_worker(rs_machine *machine, rs_op *op) {
    RS_CHECK(!op->offloaded && op->job == NULL);
    if (!rs_op_calls[op->request.kind].execute) return false;
    if (rs_op_kinds[op->request.kind].side == RS_SIDE_NONE) return true;
    int fd = op->request.fd;
    rs_fd_kind kind = rs_descriptor_kind(rs_descriptors_in(machine), fd);
    if (rs_fd_is_file(kind)) {
        /* Closed and reused behind our back? Looking costs nothing beside a worker, which could only answer EAGAIN. */
        kind = rs_descriptor_classify(fd);
        rs_descriptor_note(rs_descriptors_in(machine), fd, kind, false);
        return rs_fd_is_file(kind);
    }
    return false;
}

static bool may_wait(int fd) {
    struct stat st;
    return fstat(fd, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode);
}

static void enregister(rs_machine *machine, rs_op *op) {
    RS_CHECK(op->request.fd >= 0 && !op->offloaded);
    epoll_state *state = machine->backend_state;
    /* What was asked for before is asked for again, not counted again: many may wait here. At worst one event comes for
     * somebody who has gone. */
    uint32_t before = known_at(machine, op->request.fd)->events;
    int error = ask(machine, op->request.fd, before | events_of(op));
    if (error == 0) {
        note_identity(machine, op);
        return;
    }
    /* Or a sandbox says so. */
    if (error == -EPERM && may_wait(op->request.fd)) {
        rs_op_complete(machine, op, error);
        return;
    }
    /* EPERM: a regular file that we did not open, or a device like one. It is always ready:
     * https://man7.org/linux/man-pages/man2/poll.2.html */
    uint32_t always = op->request.kind == RS_OP_POLL ? op->request.poll.events & (POLLIN | POLLOUT) : 0;
    if (error == -EPERM && rs_op_calls[op->request.kind].execute) {
        rs_workers_submit(&state->workers, op);
    } else if (error == -EPERM && always) {
        rs_op_complete(machine, op, always);
    } else rs_op_complete(machine, op, error == -EPERM ? -EINVAL : error);
}

static void epoll_arm(rs_machine *machine, rs_op *op) {
    RS_CHECK(op->state == RS_OP_SUBMITTED && !op->offloaded);
    epoll_state *state = machine->backend_state;
    if (RS_UNLIKELY(state->lost) ? rs_op_does_without(machine, op) : needs_worker(machine, op)) {
        rs_workers_submit(&state->workers, op);
    } else if (RS_UNLIKELY(state->lost)) {
        machine->attention = true; /* its end comes with the next poll */
    } else if (op->request.options & RS_REQUEST_OF_OBJECT) {
        if (rs_op_line_reserve(&state->line, 1)) rs_op_line_put(&state->line, op);
        else rs_op_complete(machine, op, RS_NO_MEMORY);
    } else {
        enregister(machine, op);
    }
}

static void epoll_cancel(rs_machine *machine, rs_op *op) {
    RS_CHECK(op->state == RS_OP_SUBMITTED && rs_op_is_unwanted(op));
    epoll_state *state = machine->backend_state;
    if (!op->offloaded) {
        rs_retry_forget(machine, &state->retry, op);
        rs_op_complete(machine, op, -ECANCELED);
    } else {
        rs_workers_cancel(&state->workers, op);
    }
}

/* One more try for an op whose descriptor is ready. False: it goes on waiting, if only until it is served again. */
static bool advance(rs_machine *machine, rs_op *op) {
    RS_CHECK(op->state == RS_OP_SUBMITTED && !op->offloaded);
    if (RS_UNLIKELY(rs_op_owner_is_gone(op)) || rs_op_lost_descriptor(machine, op)) {
        rs_op_complete(machine, op, -EBADF);
        return true;
    }
    if (RS_UNLIKELY(!rs_op_lend(op))) {
        rs_op_complete(machine, op, RS_NO_MEMORY);
        return true;
    }
    int64_t result = rs_op_go_on(machine, op, rs_op_calls[op->request.kind].attempt(machine, &op->request));
    if (result == -EAGAIN) return false;
    rs_op_complete(machine, op, result);
    return true;
}

/* The event is the answer where the file behind the number is certain, because its object is open. */
static bool complete_as_reported(rs_machine *machine, rs_op *op, uint32_t reported) {
    uint32_t ready = reported & events_of(op);
    if (!ready || op->request.kind != RS_OP_POLL || !(op->request.options & RS_REQUEST_OF_OBJECT)) return false;
    rs_op_complete(machine, op, machine->driver.is_open(op) ? (int64_t)ready : -EBADF);
    return true;
}

static void serve(rs_machine *machine, const struct epoll_event *event) {
    epoll_state *state = machine->backend_state;
    int fd = (int)(uint32_t)event->data.u64;
    RS_ASSERT((uint32_t)fd < rs_descriptors_in(machine)->capacity); /* it was registered for an op */
    rs_descriptor *descriptor = rs_descriptor_get(rs_descriptors_in(machine), fd);
    epoll_descriptor *known = known_of(descriptor);
    known->events = 0;
    uint32_t events = event->events, blocked = 0, reported = events;
    uint32_t certain = known->registration == (uint32_t)(event->data.u64 >> 32) ? reported : 0;
    if (events & (EPOLLERR | EPOLLHUP)) events |= EPOLLIN | EPOLLOUT;
    for (uint32_t link = descriptor->first; link && (events & ~blocked);) {
        rs_op *op = rs_op_at(rs_ops_in(machine), link - 1);
        link = op->next;
        uint32_t interest = events_of(op);
        RS_CHECK(op->request.fd == fd);
        if (op->offloaded || !(interest & events & ~blocked)) continue;
        if (complete_as_reported(machine, op, certain)) continue;
        certain = 0; /* not for those behind one that takes what was reported */
        if (advance(machine, op)) continue;
        if (rs_op_kinds[op->request.kind].side == RS_SIDE_MASK) continue;
        /* epoll reports an error or a hang-up for ever (epoll_ctl(2), EPOLLERR) if this op does not end with it. */
        if (rs_retry_fits(op) || !(interest & reported)) rs_retry_later(machine, &state->retry, op);
        else blocked |= interest;
    }
    uint32_t rest = wanted(machine, fd);
    if (!rest) return;
    int error = ask(machine, fd, rest);
    if (error == 0) return;
    for (uint32_t link = rs_descriptor_get(rs_descriptors_in(machine), fd)->first; link;) {
        rs_op *op = rs_op_at(rs_ops_in(machine), link - 1);
        link = op->next;
        if (op->offloaded) continue;
        rs_retry_forget(machine, &state->retry, op);
        rs_op_complete(machine, op, error);
    }
}

/* Others that wait on the same descriptor came before, and may have been registered. */
static bool is_alone(rs_machine *machine, const rs_op *op) {
    return rs_descriptor_get(rs_descriptors_in(machine), op->request.fd)->first == op->index + 1 && op->next == 0;
}

/* Descriptors that one poll(2) asks for. They lie on the stack, a kilobyte with their ops. */
#define POLLED_AT_ONCE 64

/* One by itself costs a call less if it is registered without a look. */
static void serve_polled(rs_machine *machine, rs_op **ops, struct pollfd *descriptors, uint32_t count) {
    RS_CHECK(count > 0 && count <= POLLED_AT_ONCE);
    if (count == 1) {
        enregister(machine, ops[0]);
        return;
    }
    machine->metrics.system_calls++;
    int ready = poll(descriptors, count, 0);
    for (uint32_t i = 0; i < count; i++) {
        RS_CHECK(ops[i]->state == RS_OP_SUBMITTED && ops[i]->request.fd == descriptors[i].fd);
        bool came = ready > 0 && descriptors[i].revents;
        if (!came || !is_alone(machine, ops[i]) || !advance(machine, ops[i])) enregister(machine, ops[i]);
    }
}

/* What comes into the line meanwhile stays there. */
static void serve_line(rs_machine *machine) {
    rs_op_line *line = &((epoll_state *)machine->backend_state)->line;
    rs_op *ops[POLLED_AT_ONCE];
    struct pollfd descriptors[POLLED_AT_ONCE];
    uint32_t len = line->len, count = 0;
    for (uint32_t i = 0; i < len; i++) {
        rs_op *op = rs_op_find(rs_ops_in(machine), line->names[i]);
        if (op && !machine->driver.is_open(op)) rs_op_complete(machine, op, -EBADF);
        else if (op) {
            RS_CHECK(!op->offloaded && (op->request.options & RS_REQUEST_OF_OBJECT));
            ops[count] = op;
            descriptors[count++] = (struct pollfd){.fd = op->request.fd, .events = (short)events_of(op)};
        }
        if (count < POLLED_AT_ONCE && i + 1 < len) continue;
        if (count > 0) serve_polled(machine, ops, descriptors, count);
        count = 0;
    }
    rs_op_line_drop(line, len);
}

/* Another of the calls that wait may be left. */
static void note_lost(epoll_state *state, rs_fruitless *fruitless, int error) {
    RS_CHECK(error < 0);
    bool *next = !state->only_milliseconds ? &state->only_milliseconds : !state->only_pwait ? &state->only_pwait : NULL;
    if (!next) state->lost = error;
    else *next = true;
    fruitless->count = 0;
}

static void note_answer(epoll_state *state, rs_fruitless *fruitless, int count) {
    RS_CHECK(count <= EVENTS_PER_WAIT);
    int error = count < 0 ? -errno : 0;
    if (RS_UNLIKELY(rs_is_lost_by_now(fruitless, error))) note_lost(state, fruitless, error);
    state->ready = count > 0 ? count : 0;
}

static int fetch(rs_machine *machine) {
    epoll_state *state = machine->backend_state;
    if (RS_UNLIKELY(state->lost)) return 0;
    RS_CHECK(state->ready == 0 || machine->in_flight == 0); /* else events would be lost */
    machine->metrics.system_calls++;
    note_answer(state, &state->looks, wait_milliseconds(state, 0));
    return state->ready;
}

static void serve_fetched(rs_machine *machine) {
    epoll_state *state = machine->backend_state;
    int count = state->ready;
    RS_CHECK(count >= 0 && count <= EVENTS_PER_WAIT);
    state->ready = 0;
    for (int i = 0; i < count; i++) {
        if (state->events[i].data.u64 != WAKE_UP) serve(machine, &state->events[i]);
    }
}

/* Times are due: what a sleep has fetched may be old, and one call does not bring everything. Those who take as fast as others
 * give do not keep us here for ever. */
static void look_for_rest(rs_machine *machine) {
    uint32_t looks = machine->in_flight / EVENTS_PER_WAIT + 2;
    for (bool more = true; more && looks > 0; looks--) {
        more = fetch(machine) == EVENTS_PER_WAIT;
        serve_fetched(machine);
    }
}

/* No call reports readiness any more. The kernel has no op of ours, so all that wait for it can end. */
static void do_without_kernel(rs_machine *machine) {
    epoll_state *state = machine->backend_state;
    RS_CHECK(state->ready == 0);
    rs_note_lost(machine, "epoll_wait", state->lost);
    RS_EACH_OP(rs_ops_in(machine), op) {
        if (op->state == RS_OP_SUBMITTED && !op->offloaded && !rs_retry_has(op)) rs_op_complete(machine, op, RS_LOST);
    }
    rs_op_line_drop(&state->line, state->line.len);
    rs_retry_serve(machine, &state->retry, advance);
}

static void epoll_poll(rs_machine *machine) {
    epoll_state *state = machine->backend_state;
    rs_workers_tend(&state->workers);
    if (RS_UNLIKELY(state->lost)) {
        do_without_kernel(machine);
        return;
    }
    if (state->line.len > 0) serve_line(machine);
    bool by_wait = state->ready > 0;
    if (!by_wait) fetch(machine);
    bool more = by_wait || state->ready == EVENTS_PER_WAIT;
    rs_retry_serve(machine, &state->retry, advance);
    serve_fetched(machine);
    if (RS_UNLIKELY(more) && rs_timers_earliest(&machine->timers) <= machine->polled_at_ns) look_for_rest(machine);
    if (RS_UNLIKELY(state->lost)) do_without_kernel(machine);
}

static bool epoll_peek(rs_machine *machine) {
    const epoll_state *state = machine->backend_state;
    return fetch(machine) > 0 || (state->line.len > 0 && machine->in_flight > 0);
}

static int wait_until(epoll_state *state, int64_t delay_ns) {
    RS_CHECK(delay_ns > 0);
    struct timespec delay = {.tv_sec = delay_ns / 1000000000, .tv_nsec = delay_ns % 1000000000};
    struct timespec *limit = delay_ns == RS_NEVER ? NULL : &delay;
#ifdef SYS_epoll_pwait2
    if (RS_LIKELY(!state->only_milliseconds)) {
        int count = (int)syscall(SYS_epoll_pwait2, state->epoll, state->events, EVENTS_PER_WAIT, limit, NULL, 0);
        /* Of a sandbox that does not know it, for one. */
        if (count >= 0 || !rs_is_lost(-errno)) return count;
        state->only_milliseconds = true;
    }
#endif
    int64_t ms = delay_ns == RS_NEVER ? -1 : (delay_ns + 999999) / 1000000;
    return wait_milliseconds(state, ms > INT32_MAX ? INT32_MAX : (int)ms);
}

static void epoll_wait_verb(rs_machine *machine, int64_t deadline_ns) {
    epoll_state *state = machine->backend_state;
    if (RS_UNLIKELY(state->line.len > 0)) {
        if (machine->in_flight > 0) return;
        state->line.len = 0; /* names of ops that have ended, for which nobody polls */
    }
    int64_t delay_ns = RS_NEVER;
    if (deadline_ns != RS_NEVER) {
        delay_ns = deadline_ns - rs_clock_ns();
        if (delay_ns <= 0) return;
    }
    if (RS_UNLIKELY(state->lost)) {
        rs_sleep_without(state->wake, delay_ns);
        return;
    }
    RS_CHECK(state->ready == 0 || machine->in_flight == 0);
    machine->metrics.system_calls++;
    note_answer(state, &state->waits, wait_until(state, delay_ns));
    rs_nap_if_fruitless(&state->waits, state->wake, delay_ns);
}

static void epoll_wake(rs_machine *machine) {
    const epoll_state *state = machine->backend_state;
    rs_wake_ring(state->wake);
}

static void epoll_leave(rs_machine *machine) {
    epoll_state *state = machine->backend_state;
    rs_workers_leave(&state->workers);
    close_descriptors(state);
}

static int epoll_forked(rs_machine *machine) {
    epoll_state *state = machine->backend_state;
    RS_CHECK(machine->in_flight == 0);
    close_descriptors(state);
    state->ready = 0;
    state->line.len = 0;
    state->retry = (rs_retry){0};
    rs_workers_forked(&state->workers);
    return open_descriptors(machine, state);
}

const rs_backend rs_backend_epoll = {
    .name = "epoll", .platform = &rs_platform_linux, .coarse_clock = rs_coarse_clock_ns, .give_way = rs_give_processor_away,
    .open = epoll_open, .close = epoll_close, .arm = epoll_arm,
    .cancel = epoll_cancel, .poll = epoll_poll, .peek = epoll_peek, .wait = epoll_wait_verb, .wake = epoll_wake,
    .leave = epoll_leave, .forked = epoll_forked,
};
