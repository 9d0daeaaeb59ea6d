/* uring: the backend on io_uring. The kernel does the waiting and then the op itself; one call submits what has gathered,
 * harvests what has completed, and sleeps.
 *
 * An op's completion carries its name (index and generation), so one that comes late finds nobody. The slot of an op is
 * given back at its terminal completion and not before; a cancellation only asks for that to come soon, and is answered
 * only where the kernel has missed the op: then it is asked again.
 *
 * Descriptors are looked up by the kernel when an entry is submitted, not when it is filled. For our own that makes no
 * difference, since Machine#close waits for all ops; one that somebody else may close and open again meanwhile is
 * submitted at once, or, where an object can say whether it is still open, filled right before the next submission.
 * https://github.com/torvalds/linux/blob/v6.18/io_uring/io_uring.c (io_assign_file)
 */
#include "kernel/platform.h"
#include "kernel/processor.h"
#include "kernel/wake.h"
#include "backend/lost.h"
#include "backend/uring/state.h"
#include "flow/accept_queue.h"
#include "kernel/op_table.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BACKLOG_FIRST 256

/* --- opening and closing --- */

static int open_wake(uring_state *state) {
    state->wake = rs_wake_open();
    state->wake_armed = false;
    return state->wake < 0 ? state->wake : 0;
}

/* The kernel's own for files are as many as ours may be, on those kernels that let us say so (5.15). Those for the rest are as
 * many as it wants: with each may wait somebody on a stream that others read as well, for as long as nothing comes.
 * https://man7.org/linux/man-pages/man2/io_uring_register.2.html (IORING_REGISTER_IOWQ_MAX_WORKERS) */
static void limit_workers(rs_machine *machine, uring_state *state) {
    uint32_t limits[2] = {machine->options.workers_max + state->others_most, 0};
    state->ring.system->enregister(state->ring.fd, URING_REGISTER_IOWQ_MAX_WORKERS, limits, 2);
}

/* The kernel counts an open among those for files, although that of a FIFO waits for its other end, and maybe for ever. So for each of
 * these that are under way at the same time there may be one thread more. */
static void make_way_for_others(rs_machine *machine, uring_state *state) {
    state->others++;
    if (RS_LIKELY(state->others <= state->others_most) || state->others_most == RS_OPENS_MAX) return;
    state->others_most++;
    limit_workers(machine, state);
}

static int refuse(rs_machine *machine, uring_state *state, int error, const char *call) {
    RS_CHECK(error < 0);
    uring_ring_close(&state->ring);
    snprintf(machine->refusal_text, sizeof(machine->refusal_text), "%s was answered %s", call, strerror(-error));
    return error;
}

/* No worker can wait for what comes to a stream, so another backend has to. */
static bool lacks_streams(const uring_state *state) {
    for (uint32_t kind = 0; kind < RS_OP_KINDS; kind++) {
        uint8_t opcode = uring_opcode(kind);
        bool by_worker = rs_op_calls[kind].execute != NULL && rs_op_kinds[kind].moves != RS_MOVES_MEMORY;
        if (opcode != URING_OP_NOP && !by_worker && !state->supported[opcode]) return true;
    }
    return !state->supported[URING_OP_ASYNC_CANCEL];
}

static int open_ring(rs_machine *machine, uring_state *state) {
    RS_CHECK(!state->is_open);
    const rs_options *options = &machine->options;
    uring_wishes wishes = {.entries = options->ring_entries, .may_move = options->threads_move, .polled = options->sqpoll,
                           .poll_idle_ms = options->sqpoll_idle_ms, .poll_cpu = options->sqpoll_cpu,
                           .system_calls = &machine->metrics.system_calls};
    const uring_system *system = options->uring_system ? options->uring_system : &uring_kernel;
    int error = uring_ring_open(&state->ring, system, &wishes, machine->refusal_text, sizeof(machine->refusal_text));
    if (error) return error;
    error = uring_ring_probe(&state->ring, state->supported);
    if (error) return refuse(machine, state, error, "io_uring_register");
    if (lacks_streams(state)) return refuse(machine, state, -EOPNOTSUPP, "a ring's operation for streams");
    /* These came with the same Linux, 5.19, and cannot be asked after: https://man7.org/linux/man-pages/man2/io_uring_enter.2.html
     * (IORING_OP_SOCKET, IORING_RECVSEND_POLL_FIRST) and https://man7.org/linux/man-pages/man3/io_uring_prep_accept.3.html */
    state->poll_first = machine->accept_queues->multishot = state->supported[URING_OP_SOCKET];
    limit_workers(machine, state);
    machine->descriptors->unix_reports_more = uring_reports_more_of_unix();
    error = open_wake(state);
    if (error) return refuse(machine, state, error, "eventfd");
    state->is_open = true;
    state->lost = 0;
    state->cancel_refused = state->wake_once = false;
    state->others = 0;
    state->looks = state->waits = (rs_fruitless){0};
    return 0;
}

/* It may be closed already: a child may have failed to open its own. */
static void close_ring(uring_state *state) {
    if (state->is_open) uring_ring_close(&state->ring);
    if (state->wake >= 0) close(state->wake);
    state->is_open = false;
    state->wake = -1;
}

static int uring_open(rs_machine *machine) {
    RS_CHECK(machine->backend_state == NULL);
    uring_state *state = rs_alloc(sizeof(*state));
    memset(state, 0, sizeof(*state));
    int error = open_ring(machine, state);
    if (error) {
        free(state);
        return error;
    }
    state->workers = rs_workers_new(machine);
    state->backlog_capacity = BACKLOG_FIRST;
    state->backlog = rs_alloc(sizeof(uring_cqe) * BACKLOG_FIRST);
    machine->backend_state = state;
    return 0;
}

static void uring_close(rs_machine *machine) {
    uring_state *state = uring_state_of(machine);
    rs_workers_free(&state->workers);
    close_ring(state);
    uring_pool_free(state->pool);
    free(state->backlog);
    rs_op_line_free(&state->line);
    rs_op_line_free(&state->next_on_side);
    rs_op_line_free(&state->missed);
    free(state);
    machine->backend_state = NULL;
}

/* --- from the ring to the backlog --- */

/* Without memory for more the rest stays in the ring until the next poll. */
static bool backlog_has_room(uring_state *state) {
    RS_CHECK(state->backlog_served <= state->backlog_len && state->backlog_len <= state->backlog_capacity);
    if (RS_LIKELY(state->backlog_len < state->backlog_capacity)) return true;
    uring_cqe *more = rs_try_realloc(state->backlog, sizeof(uring_cqe) * 2 * state->backlog_capacity);
    if (!more) return false;
    state->backlog = more;
    state->backlog_capacity *= 2;
    return true;
}

/* One that lasts reports a wake once, and any other for as long as nobody has read it. */
static void note_wake(uring_state *state, const uring_cqe *cqe) {
    if (!(cqe->flags & URING_CQE_MORE)) state->wake_armed = false;
    if (RS_UNLIKELY(uring_may_refuse(cqe->result))) {
        if (state->wake_once) state->lost = cqe->result, state->lost_by = "IORING_OP_POLL_ADD";
        state->wake_once = true;
    }
    if (RS_UNLIKELY(state->wake_once) && cqe->result > 0) rs_wake_clear(state->wake);
}

/* Makes room in the ring, and touches no op. */
static void fetch(uring_state *state) {
    uring_cqe cqe;
    while (state->is_open && backlog_has_room(state) && uring_ring_take(&state->ring, &cqe)) {
        if (cqe.user_data == NAME_WAKE) note_wake(state, &cqe);
        if (cqe.user_data == NAME_WAKE || cqe.user_data == NAME_IGNORED) continue;
        state->backlog[state->backlog_len++] = cqe;
    }
}

static void lose_entry(uring_state *state, int answer) {
    state->lost = answer;
    state->lost_by = "io_uring_enter";
}

/* The kernel holds completions back for want of room, and takes nothing before they are fetched:
 * https://man7.org/linux/man-pages/man2/io_uring_enter.2.html (EBUSY) */
static void ask(uring_state *state, int (*call)(uring_ring *ring)) {
    for (int tries = 0; tries < 2 && !state->lost; tries++) {
        int answer = call(&state->ring);
        RS_CHECK(answer <= 0);
        if (RS_UNLIKELY(rs_is_lost_by_now(&state->looks, answer))) lose_entry(state, answer);
        if (RS_LIKELY(answer != -EBUSY)) return;
        fetch(state);
    }
}

static void flush(uring_state *state) { ask(state, uring_ring_flush); }

static void hand_over(uring_state *state) { ask(state, uring_ring_hand_over); }

static uring_sqe *next_entry(uring_state *state) {
    if (RS_UNLIKELY(state->lost)) return NULL;
    RS_CHECK(state->is_open);
    uring_sqe *sqe = uring_ring_next(&state->ring);
    if (RS_LIKELY(sqe != NULL)) return sqe;
    flush(state);
    return uring_ring_next(&state->ring);
}

/* --- ops --- */

static uring_descriptor *known_of(rs_descriptor *descriptor) { return (void *)descriptor->of_backend; }

/* Who is next gets it at once, and the kernel at the next poll: this may be a cancellation, in which no other op may
 * complete. */
static void give_up_side(rs_machine *machine, rs_op *op) {
    uring_state *state = uring_state_of(machine);
    uint32_t side = rs_op_kinds[op->request.kind].side;
    RS_CHECK(side == RS_SIDE_READ || side == RS_SIDE_WRITE);
    for (uint32_t link = op->next; link;) {
        rs_op *other = rs_op_at(machine->ops, link - 1);
        link = other->next;
        if (!uring_of(other)->waits_behind || rs_op_kinds[other->request.kind].side != side) continue;
        RS_CHECK(!uring_of(other)->has_side);
        uring_of(other)->has_side = true;
        rs_op_line_put(&state->next_on_side, other);
        machine->attention = true;
        return;
    }
    uring_descriptor *known = known_of(rs_descriptor_get(machine->descriptors, op->request.fd));
    RS_CHECK(known->sides & (1u << side));
    known->sides &= ~(1u << side);
}

void uring_finish(rs_machine *machine, rs_op *op, int64_t result) {
    RS_ASSERT(!op->offloaded);
    RS_CHECK(op->state == RS_OP_SUBMITTED && !rs_retry_has(op));
    /* A poll takes nothing. So a cancellation that came first wins, also when the kernel learns of it too late. */
    if (op->request.kind == RS_OP_POLL && rs_op_is_unwanted(op)) result = -ECANCELED;
    if (uring_of(op)->has_side) give_up_side(machine, op);
    if (uring_of(op)->is_of_others) uring_state_of(machine)->others--;
    rs_op_complete(machine, op, result);
}

static bool is_own(rs_machine *machine, int fd) {
    return fd < 0 || rs_descriptor_kind(machine->descriptors, fd) != RS_FD_UNKNOWN;
}

static bool fill_entry(rs_machine *machine, rs_op *op) {
    RS_CHECK(!uring_of(op)->waits_behind && !rs_retry_has(op));
    uring_sqe *sqe = next_entry(uring_state_of(machine));
    if (RS_UNLIKELY(!sqe)) return false;
    uring_fill(sqe, op);
    return true;
}

static void wait_for_entry(rs_machine *machine, rs_op *op) {
    RS_CHECK(!uring_of(op)->waits_for_entry && !uring_of(op)->waits_behind);
    uring_of(op)->waits_for_entry = true;
    rs_op_line_put(&uring_state_of(machine)->line, op);
}

void uring_submit(rs_machine *machine, rs_op *op) {
    RS_CHECK(op->state == RS_OP_SUBMITTED && !op->offloaded && !uring_of(op)->waits_behind && !rs_retry_has(op));
    if (op->request.options & RS_REQUEST_OF_OBJECT) {
        wait_for_entry(machine, op);
        return;
    }
    if (RS_UNLIKELY(!fill_entry(machine, op))) {
        wait_for_entry(machine, op);
        machine->attention = true;
        return;
    }
    bool own_target = !rs_request_has_target(&op->request) || is_own(machine, op->request.splice.to_fd);
    if (!is_own(machine, op->request.fd) || !own_target) hand_over(uring_state_of(machine));
}

/* The kernel wakes those that wait on one descriptor in no order, or the last one first. So of our own streams it gets one op
 * for each side at a time. https://github.com/torvalds/linux/blob/v6.18/kernel/sched/wait.c (add_wait_queue) */
static uint32_t side_of(rs_machine *machine, const rs_op *op) {
    const rs_request *request = &op->request;
    bool stream = request->fd >= 0 && rs_descriptor_kind(machine->descriptors, request->fd) == RS_FD_STREAM;
    uint32_t side = rs_op_kinds[request->kind].side;
    return stream && (side == RS_SIDE_READ || side == RS_SIDE_WRITE) ? side : RS_SIDE_NONE;
}

static void ask_for_side(rs_machine *machine, rs_descriptor *descriptor) {
    for (uint32_t link = descriptor->first; link;) {
        rs_op *op = rs_op_at(machine->ops, link - 1);
        link = op->next;
        RS_CHECK(op->state == RS_OP_SUBMITTED);
        if (rs_op_lasts(op) && op->cancel == RS_WAKE_VALUE) op->owner->give_way(machine, op);
    }
}

static bool must_wait_behind(rs_machine *machine, rs_op *op) {
    RS_CHECK(!uring_of(op)->waits_behind && !uring_of(op)->has_side);
    uint32_t side = side_of(machine, op);
    if (side == RS_SIDE_NONE) return false;
    rs_descriptor *descriptor = rs_descriptor_get(machine->descriptors, op->request.fd);
    uint32_t *sides = &known_of(descriptor)->sides;
    bool taken = *sides & (1u << side);
    *sides |= 1u << side;
    uring_of(op)->waits_behind = taken;
    uring_of(op)->has_side = !taken;
    if (RS_UNLIKELY(taken)) ask_for_side(machine, descriptor);
    return taken;
}

static bool has_pool(uring_state *state) {
    RS_CHECK(!(state->pool && state->no_pool));
    if (!state->pool && !state->no_pool) {
        state->pool = uring_pool_open(&state->ring);
        state->no_pool = !state->pool;
    }
    return state->pool;
}

/* What does not fit into one of the pool's buffers comes in two parts. */
static bool may_come_in_parts(rs_machine *machine, const rs_op *op) {
    if (op->request.transfer.len <= URING_POOL_BUFFER) return true;
    RS_CHECK((uint32_t)op->request.fd < machine->descriptors->capacity);
    const rs_descriptor *descriptor = &machine->descriptors->table[op->request.fd];
    return descriptor->kind == RS_FD_STREAM && (descriptor->bytes || !descriptor->socket);
}

/* A stream, for anything else has its bytes at once and needs a place for them. False: there is no memory for that. */
static bool choose_buffer(rs_machine *machine, rs_op *op) {
    RS_CHECK(op->request.transfer.address == NULL);
    uring_op *way = uring_of(op);
    bool waits = !way->for_readiness && !way->by_worker;
    bool fits = waits && uring_kind_now(machine, op) == RS_FD_STREAM && may_come_in_parts(machine, op);
    if (fits && has_pool(uring_state_of(machine))) way->from_pool = true;
    else if (!rs_op_lend(op)) return false;
    return true;
}

static void uring_release(rs_machine *machine, rs_op *op) {
    RS_CHECK(op->state == RS_OP_TERMINAL && (op->request.options & RS_REQUEST_ANY_BUFFER));
    uring_state *state = uring_state_of(machine);
    if (state->pool) uring_pool_give_back(state->pool, op->request.transfer.address);
}

/* For who comes after it on its side, for an entry and one to cancel it, and for that to be missed. */
static bool reserve_lines(rs_machine *machine) {
    uring_state *state = uring_state_of(machine);
    uint32_t count = machine->in_flight;
    RS_CHECK(count > 0);
    return rs_op_line_reserve(&state->line, 2 * count) && rs_op_line_reserve(&state->next_on_side, count) &&
           rs_op_line_reserve(&state->missed, count);
}

/* Its end comes with the next poll, if not by a worker. */
static void arm_without_kernel(rs_machine *machine, rs_op *op) {
    RS_CHECK(uring_state_of(machine)->lost);
    uring_of(op)->waits_for_entry = true;
    machine->attention = true;
    if (rs_op_does_without(machine, op)) rs_workers_submit(&uring_state_of(machine)->workers, op);
}

static void uring_arm(rs_machine *machine, rs_op *op) {
    RS_CHECK(op->state == RS_OP_SUBMITTED && !op->offloaded);
    uring_state *state = uring_state_of(machine);
    if (RS_UNLIKELY(state->lost)) {
        arm_without_kernel(machine, op);
        return;
    }
    uint8_t opcode = uring_opcode(op->request.kind);
    if (RS_UNLIKELY(opcode == URING_OP_NOP || (!state->supported[opcode] && rs_op_does_without(machine, op)))) {
        RS_CHECK(rs_op_calls[op->request.kind].execute != NULL);
        rs_workers_submit(&state->workers, op);
        return;
    }
    uring_choose_way(machine, op, state->poll_first);
    if (RS_UNLIKELY(!state->supported[uring_opcode_now(op)])) uring_choose_readiness(op);
    if (uring_of(op)->for_readiness) rs_op_goes_by_number(machine, op);
    bool short_of_memory = !reserve_lines(machine);
    short_of_memory |= (op->request.options & RS_REQUEST_ANY_BUFFER) && !choose_buffer(machine, op);
    if (op->request.kind == RS_OP_WAITID && !op->request.owned) {
        op->request.wait.info = op->request.owned = rs_try_alloc(sizeof(siginfo_t));
        short_of_memory |= !op->request.owned;
    }
    if (RS_UNLIKELY(short_of_memory)) {
        rs_op_complete(machine, op, RS_NO_MEMORY);
        return;
    }
    if (uring_of(op)->by_worker) machine->metrics.ops_offloaded++;
    if (rs_request_traits(&op->request)->of_others) {
        uring_of(op)->is_of_others = true;
        make_way_for_others(machine, state);
    }
    if (RS_LIKELY(!must_wait_behind(machine, op))) uring_submit(machine, op);
}

void uring_take_other_way(rs_machine *machine, rs_op *op) {
    if (rs_op_is_unwanted(op)) {
        uring_finish(machine, op, -ECANCELED);
    } else if (rs_op_does_without(machine, op)) {
        if (uring_of(op)->has_side) give_up_side(machine, op);
        if (uring_of(op)->is_of_others) uring_state_of(machine)->others--;
        *uring_of(op) = (uring_op){0};
        rs_workers_submit(&uring_state_of(machine)->workers, op);
    } else {
        uring_choose_readiness(op);
        rs_op_goes_by_number(machine, op);
        if (RS_LIKELY(rs_op_lend(op))) uring_submit(machine, op);
        else uring_finish(machine, op, RS_NO_MEMORY);
    }
}

/* The kernel was just moving the op from one place to another, or its thread took no notice. Mostly the op has ended, and its
 * completion is on its way. https://man7.org/linux/man-pages/man3/io_uring_prep_cancel.3.html (-ENOENT, -EALREADY) */
#define CANCEL_AGAIN_NS 1000000

static void wake_to_cancel(rs_machine *machine) {
    int64_t next_ns = uring_state_of(machine)->cancel_again_ns;
    if (next_ns != 0 && next_ns < machine->backend_deadline_ns) machine->backend_deadline_ns = next_ns;
}

/* It is asked again a little later. */
static void miss(rs_machine *machine, rs_op *op) {
    uring_state *state = uring_state_of(machine);
    RS_CHECK(rs_op_is_unwanted(op) && !uring_of(op)->cancel_waits_for_entry);
    if (!uring_of(op)->cancel_missed) rs_op_line_put(&state->missed, op);
    uring_of(op)->cancel_missed = true;
    if (state->cancel_again_ns == 0) state->cancel_again_ns = rs_now(machine) + CANCEL_AGAIN_NS;
    wake_to_cancel(machine);
}

static void uring_cancel(rs_machine *machine, rs_op *op) {
    uring_state *state = uring_state_of(machine);
    RS_CHECK(op->state == RS_OP_SUBMITTED && rs_op_is_unwanted(op));
    RS_CHECK(!uring_of(op)->cancel_waits_for_entry);
    if (op->offloaded) {
        rs_workers_cancel(&state->workers, op);
        return;
    }
    if (uring_of(op)->waits_behind || rs_retry_has(op)) {
        rs_retry_forget(machine, &state->retry, op);
        uring_finish(machine, op, -ECANCELED);
        return;
    }
    machine->attention = true;
    if (uring_of(op)->waits_for_entry || state->lost) return;
    if (RS_UNLIKELY(state->cancel_refused)) {
        hand_over(state);
        if (!state->lost && !uring_cancel_by_call(machine, op)) miss(machine, op);
        return;
    }
    uring_sqe *sqe = next_entry(state);
    if (RS_UNLIKELY(!sqe)) {
        uring_of(op)->cancel_waits_for_entry = true;
        rs_op_line_put(&state->line, op);
        return;
    }
    sqe->opcode = URING_OP_ASYNC_CANCEL;
    sqe->fd = -1;
    sqe->address = rs_op_id(op);
    sqe->user_data = rs_op_id(op) | NAME_CANCEL;
    if (state->ring.features & URING_FEATURE_CQE_SKIP) sqe->flags = URING_SQE_CQE_SKIP_SUCCESS;
}

static bool lost_object(rs_machine *machine, const rs_op *op) {
    return (op->request.options & RS_REQUEST_OF_OBJECT) && !machine->driver.is_open(op);
}

/* False: the ring is full again. An op that nobody wants any more never gets there. */
static bool serve(rs_machine *machine, rs_op *op) {
    RS_CHECK(op->state == RS_OP_SUBMITTED && !uring_of(op)->waits_behind);
    uring_op *own = uring_of(op);
    if (own->cancel_waits_for_entry) {
        own->cancel_waits_for_entry = false;
        uring_cancel(machine, op);
    } else if (own->waits_for_entry) {
        bool unwanted = rs_op_is_unwanted(op);
        if (unwanted || lost_object(machine, op)) uring_finish(machine, op, unwanted ? -ECANCELED : -EBADF);
        else if (fill_entry(machine, op)) own->waits_for_entry = false;
        else return false;
    }
    return true;
}

/* Right before the look that hands them to the kernel. What comes into the line meanwhile stays there. */
static void serve_line(rs_machine *machine) {
    rs_op_line *line = &uring_state_of(machine)->line;
    uint32_t len = line->len, served = 0;
    for (; served < len; served++) {
        rs_op *op = rs_op_find(machine->ops, line->names[served]);
        if (op && !serve(machine, op)) break;
    }
    rs_op_line_drop(line, served);
}

static void serve_next_on_side(rs_machine *machine) {
    rs_op_line *next = &uring_state_of(machine)->next_on_side;
    for (uint32_t i = 0; i < next->len; i++) {
        rs_op *op = rs_op_find(machine->ops, next->names[i]);
        if (!op || !uring_of(op)->waits_behind) continue;
        RS_CHECK(uring_of(op)->has_side);
        uring_of(op)->waits_behind = false;
        bool ask = rs_op_lasts(op) || uring_of(op)->from_pool || (op->request.options & RS_REQUEST_OF_OBJECT);
        if (ask || !uring_try_again(machine, op)) uring_submit(machine, op);
    }
    next->len = 0;
}

static bool is_in_kernel(const rs_op *op) {
    const uring_op *own = uring_of(op);
    RS_CHECK(own->waits_for_entry + own->waits_behind + own->retry.waits <= 1);
    bool elsewhere = own->waits_for_entry || own->waits_behind || own->retry.waits;
    return op->state == RS_OP_SUBMITTED && !op->offloaded && !elsewhere;
}

static void note_cancel(rs_machine *machine, rs_op *op, int32_t result) {
    bool refused = uring_may_refuse(result);
    if (RS_UNLIKELY(refused)) uring_state_of(machine)->cancel_refused = true;
    if (result >= 0 || !op || !is_in_kernel(op)) return;
    if (refused) uring_cancel(machine, op);
    else miss(machine, op);
}

static void cancel_again(rs_machine *machine) {
    uring_state *state = uring_state_of(machine);
    if (RS_LIKELY(state->cancel_again_ns == 0)) return;
    if (rs_now(machine) >= state->cancel_again_ns) {
        state->cancel_again_ns = 0;
        /* What is missed once more takes the place of one that was read before. */
        uint32_t len = state->missed.len;
        state->missed.len = 0;
        for (uint32_t i = 0; i < len; i++) {
            RS_CHECK(state->missed.len <= i);
            rs_op *op = rs_op_find(machine->ops, state->missed.names[i]);
            if (!op) continue;
            RS_CHECK(uring_of(op)->cancel_missed);
            uring_of(op)->cancel_missed = false;
            if (is_in_kernel(op)) uring_cancel(machine, op);
        }
    }
    wake_to_cancel(machine);
}

static void complete_backlog(rs_machine *machine) {
    uring_state *state = uring_state_of(machine);
    RS_CHECK(state->backlog_served == 0);
    /* What comes meanwhile may move the backlog, and is completed as well. */
    while (state->backlog_served < state->backlog_len) {
        uring_cqe cqe = state->backlog[state->backlog_served++];
        RS_CHECK(cqe.user_data != NAME_IGNORED && cqe.user_data != NAME_WAKE);
        bool of_cancel = cqe.user_data & NAME_CANCEL;
        rs_op *op = rs_op_find(machine->ops, cqe.user_data & ~NAME_CANCEL);
        if (of_cancel) note_cancel(machine, op, cqe.result);
        else if (op && is_in_kernel(op)) uring_complete(machine, op, &cqe);
        else machine->metrics.wakes_dropped++;
    }
    state->backlog_len = state->backlog_served = 0;
}

static void look(rs_machine *machine) {
    uring_state *state = uring_state_of(machine);
    flush(state);
    fetch(state);
    complete_backlog(machine);
}

/* Times are due, and the kernel may have more that came before them: it gives a few at a time, and of what has completed, some were
 * asked for anew. Those for whom there is always more do not keep us here for ever. */
static void look_for_rest(rs_machine *machine) {
    uring_state *state = uring_state_of(machine);
    uint32_t looks = machine->in_flight / 8 + 8;
    for (; looks > 0 && rs_timers_earliest(&machine->timers) <= machine->polled_at_ns; looks--) {
        serve_next_on_side(machine);
        if (!uring_ring_has_more(&state->ring)) return;
        look(machine);
    }
}

static bool is_nobodys(const rs_op *op) { return op->state == RS_OP_SUBMITTED && !op->offloaded && !rs_retry_has(op); }

/* The kernel may write to what the op owns, or read it, as long as nobody has said that it does not. */
static bool may_still_move(const rs_op *op) {
    return is_in_kernel(op) && !uring_of(op)->for_readiness && !rs_request_traits(&op->request)->takes_nothing;
}

/* io_uring_enter was refused for good. What has completed is served; the others end, and leave their memory to a kernel that may
 * still be at it. Closing the ring cancels them, at a time of which nobody hears. */
static void do_without_kernel(rs_machine *machine) {
    uring_state *state = uring_state_of(machine);
    if (state->is_open) {
        fetch(state);
        complete_backlog(machine);
        rs_note_lost(machine, state->lost_by, state->lost);
        uring_ring_close(&state->ring);
        state->is_open = false;
    }
    RS_CHECK(state->lost < 0 && !state->is_open);
    RS_EACH_OP(machine->ops, op) {
        if (!is_nobodys(op)) continue;
        op->in_doubt = may_still_move(op);
        uring_finish(machine, op, rs_op_is_unwanted(op) ? -ECANCELED : RS_LOST);
    }
    state->next_on_side.len = state->line.len = state->missed.len = 0;
    state->cancel_again_ns = 0;
    if (state->retry.first == 0) machine->backend_deadline_ns = RS_NEVER;
    rs_retry_serve(machine, &state->retry, uring_try_again);
}

static void uring_poll(rs_machine *machine) {
    uring_state *state = uring_state_of(machine);
    rs_workers_tend(&state->workers);
    if (RS_UNLIKELY(state->lost)) {
        do_without_kernel(machine);
        return;
    }
    if (state->line.len > 0) serve_line(machine);
    look(machine);
    look_for_rest(machine);
    if (state->retry.first == 0) machine->backend_deadline_ns = RS_NEVER;
    rs_retry_serve(machine, &state->retry, uring_try_again);
    serve_next_on_side(machine);
    cancel_again(machine);
    if (RS_UNLIKELY(state->lost)) do_without_kernel(machine);
}

static bool arm_wake(uring_state *state) {
    RS_CHECK(!state->wake_armed && state->wake >= 0);
    uring_sqe *sqe = next_entry(state);
    if (!sqe) return false;
    sqe->opcode = URING_OP_POLL_ADD;
    sqe->fd = state->wake;
    sqe->op_flags = POLLIN;
    sqe->len = state->wake_once ? 0 : URING_POLL_MULTISHOT;
    sqe->user_data = NAME_WAKE;
    state->wake_armed = true;
    return true;
}

/* No op, so nobody will poll for what came late. */
static void forget_late(rs_machine *machine, uring_state *state) {
    if (machine->in_flight > 0) return;
    RS_CHECK(state->retry.first == 0);
    state->backlog_len = state->backlog_served = 0;
    state->line.len = state->missed.len = 0;
    state->cancel_again_ns = 0;
    machine->backend_deadline_ns = RS_NEVER;
}

static bool uring_peek(rs_machine *machine) {
    uring_state *state = uring_state_of(machine);
    if (RS_UNLIKELY(state->lost)) return state->is_open;
    RS_CHECK(state->backlog_served == 0 && state->is_open);
    forget_late(machine, state);
    if (!state->wake_armed) arm_wake(state);
    flush(state);
    bool came = uring_ring_has_completions(&state->ring);
    fetch(state);
    return came || state->backlog_len > 0 || (state->line.len > 0 && uring_ring_has_room(&state->ring));
}

static void uring_wait(rs_machine *machine, int64_t deadline_ns) {
    uring_state *state = uring_state_of(machine);
    RS_CHECK(state->backlog_served == 0);
    forget_late(machine, state);
    int64_t delay_ns = RS_NEVER;
    if (deadline_ns != RS_NEVER) {
        delay_ns = deadline_ns - rs_now(machine);
        if (delay_ns <= 0) return;
    }
    if (RS_UNLIKELY(state->lost)) {
        if (!state->is_open) rs_sleep_without(state->wake, delay_ns);
        return;
    }
    /* Without the one nobody could wake us, and who waits for an entry may be who would. */
    bool unarmed = !state->wake_armed && !arm_wake(state);
    if (RS_UNLIKELY(unarmed || (state->line.len > 0 && machine->in_flight > 0))) {
        ask(state, uring_ring_make_room);
        rs_nap_if_fruitless(&state->looks, state->wake, delay_ns);
        return;
    }
    if (state->backlog_len == 0 && !uring_ring_has_completions(&state->ring)) {
        int answer = uring_ring_wait(&state->ring, delay_ns);
        if (RS_UNLIKELY(rs_is_lost_by_now(&state->waits, answer))) lose_entry(state, answer);
        rs_nap_if_fruitless(&state->waits, state->wake, delay_ns);
    }
    fetch(state);
}

static void uring_wake(rs_machine *machine) { rs_wake_ring(uring_state_of(machine)->wake); }

/* Nobody takes what they have made. */
static void drop_backlog(rs_machine *machine) {
    uring_state *state = uring_state_of(machine);
    for (; state->backlog_served < state->backlog_len; state->backlog_served++) {
        uring_cqe cqe = state->backlog[state->backlog_served];
        if ((cqe.user_data & NAME_CANCEL) && uring_may_refuse(cqe.result)) state->cancel_refused = true;
        rs_op *op = rs_op_find(machine->ops, cqe.user_data);
        if (!op) continue;
        bool made = rs_op_kinds[op->request.kind].effect == RS_EFFECT_DESCRIPTOR && !uring_of(op)->for_readiness;
        if (made && cqe.result >= 0) close(cqe.result);
        if (!(cqe.flags & URING_CQE_MORE)) *uring_of(op) = (uring_op){.waits_for_entry = true};
    }
}

/* Every op in the kernel has a completion, so it is enough to wait for those. */
static uint32_t left_in_kernel(rs_machine *machine) {
    uint32_t count = 0;
    drop_backlog(machine);
    RS_EACH_OP(machine->ops, op) count += is_in_kernel(op);
    return count;
}

/* A thread that ends keeps all others waiting meanwhile, and what does not end by a cancellation takes as long as it takes. */
#define LEAVE_NS 500000000
#define LEAVE_STEP_NS 5000000

static void cancel_all(rs_machine *machine) {
    uring_state *state = uring_state_of(machine);
    RS_CHECK(state->is_open);
    if (RS_UNLIKELY(state->cancel_refused)) {
        uring_cancel_by_call(machine, NULL);
    } else {
        uring_sqe *sqe = next_entry(state);
        uint32_t every = URING_CANCEL_ALL | URING_CANCEL_ANY;
        if (sqe) *sqe = (uring_sqe){.opcode = URING_OP_ASYNC_CANCEL, .fd = -1, .op_flags = every, .user_data = NAME_CANCEL};
    }
    int answer = uring_ring_wait(&state->ring, LEAVE_STEP_NS);
    if (RS_UNLIKELY(rs_is_lost_by_now(&state->waits, answer))) lose_entry(state, answer);
    rs_nap_if_fruitless(&state->waits, state->wake, LEAVE_STEP_NS);
}

/* What is still in the kernel ends some time after the ring is closed:
 * https://github.com/torvalds/linux/blob/v6.18/io_uring/io_uring.c (io_ring_exit_work) */
static void leave_in_doubt(rs_machine *machine) {
    RS_EACH_OP(machine->ops, op) {
        if (may_still_move(op)) op->in_doubt = true;
    }
}

static void uring_leave(rs_machine *machine) {
    uring_state *state = uring_state_of(machine);
    int64_t until_ns = rs_now(machine) + LEAVE_NS;
    fetch(state);
    /* Nothing can be asked of a ring that is lost. */
    while (left_in_kernel(machine) > 0 && !state->lost && rs_now(machine) < until_ns) {
        cancel_all(machine);
        fetch(state);
    }
    leave_in_doubt(machine);
    rs_workers_leave(&state->workers);
    close_ring(state);
}

/* The child's memory of the ring is the parent's ring: unmapped before anything is written to it. */
static int uring_forked(rs_machine *machine) {
    uring_state *state = uring_state_of(machine);
    RS_CHECK(machine->in_flight == 0);
    close_ring(state);
    drop_backlog(machine);
    state->backlog_len = state->backlog_served = 0;
    state->line.len = 0;
    state->retry = (rs_retry){0};
    state->next_on_side.len = state->missed.len = 0;
    state->pool = NULL; /* somebody may still be about to take what lies there */
    state->no_pool = false;
    state->cancel_again_ns = 0;
    rs_workers_forked(&state->workers);
    return open_ring(machine, state);
}

const rs_backend rs_backend_uring = {
    .name = "uring", .platform = &rs_platform_linux, .coarse_clock = rs_coarse_clock_ns,
    .give_way = rs_give_processor_away, .hints = true,
    .open = uring_open, .close = uring_close, .arm = uring_arm,
    .cancel = uring_cancel, .poll = uring_poll, .peek = uring_peek, .wait = uring_wait, .wake = uring_wake,
    .release = uring_release, .leave = uring_leave, .forked = uring_forked,
};
