/* submit: an op on its way into the ring: behind others on its side of a stream, in line for a free entry, or past the ring, to a
 * worker. */
#include "backend/lost.h"
#include "backend/uring/state.h"
#include "core/machine.h"
#include "kernel/op_table.h"
#include "ops/descriptors.h"

#include <errno.h>
#include <signal.h>

/* --- threads of the kernel --- */

/* The kernel's own for files are as many as ours may be, on those kernels that let us say so (5.15). Those for the rest are as
 * many as it wants: with each may wait somebody on a stream that others read as well, for as long as nothing comes.
 * https://man7.org/linux/man-pages/man2/io_uring_register.2.html (IORING_REGISTER_IOWQ_MAX_WORKERS) */
void uring_limit_workers(rs_machine *machine, uring_state *state) {
    uint32_t limits[2] = {machine->options.workers_max + state->others_most, 0};
    state->ring.system->enregister(state->ring.fd, URING_REGISTER_IOWQ_MAX_WORKERS, limits, 2);
}

/* The kernel counts an open among those for files, although that of a FIFO waits for its other end, and maybe for ever. So for each of
 * these that are under way at the same time there may be one thread more.
 * https://github.com/torvalds/linux/blob/v6.18/io_uring/io_uring.c (io_prep_async_work, unbound_nonreg_file) */
static void make_way_for_others(rs_machine *machine, uring_state *state) {
    state->others++;
    if (RS_LIKELY(state->others <= state->others_most) || state->others_most == RS_OPENS_MAX) return;
    state->others_most++;
    uring_limit_workers(machine, state);
}

/* --- entries and sides --- */

static uring_descriptor *known_of(rs_descriptor *descriptor) { return (void *)descriptor->of_backend; }

/* The next strand gets it at once, and the kernel at the next poll: this may be a cancellation, in which no other op may
 * complete. */
static void give_up_side(rs_machine *machine, rs_op *op) {
    uring_state *state = uring_state_of(machine);
    uint32_t side = rs_op_kinds[op->request.kind].side;
    RS_CHECK(side == RS_SIDE_READ || side == RS_SIDE_WRITE);
    for (uint32_t link = op->next; link;) {
        rs_op *other = rs_op_at(rs_ops_in(machine), link - 1);
        link = other->next;
        if (!uring_of(other)->waits_behind || rs_op_kinds[other->request.kind].side != side) continue;
        RS_CHECK(!uring_of(other)->has_side);
        uring_of(other)->has_side = true;
        rs_op_line_put(&state->next_on_side, other);
        machine->attention = true;
        return;
    }
    uring_descriptor *known = known_of(rs_descriptor_get(rs_descriptors_in(machine), op->request.fd));
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
    return fd < 0 || rs_descriptor_kind(rs_descriptors_in(machine), fd) != RS_FD_UNKNOWN;
}

bool uring_fill_entry(rs_machine *machine, rs_op *op) {
    RS_CHECK(!uring_of(op)->waits_behind && !rs_retry_has(op));
    uring_sqe *sqe = uring_next_entry(uring_state_of(machine));
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
    if (RS_UNLIKELY(!uring_fill_entry(machine, op))) {
        wait_for_entry(machine, op);
        machine->attention = true;
        return;
    }
    bool own_target = !rs_request_has_target(&op->request) || is_own(machine, op->request.splice.to_fd);
    if (!is_own(machine, op->request.fd) || !own_target) uring_hand_over(uring_state_of(machine));
}

/* The kernel wakes those that wait on one descriptor in no order, or the last one first. So of our own streams it gets one op
 * for each side at a time. https://github.com/torvalds/linux/blob/v6.18/kernel/sched/wait.c (add_wait_queue) */
static uint32_t side_of(rs_machine *machine, const rs_op *op) {
    const rs_request *request = &op->request;
    bool stream = request->fd >= 0 && rs_descriptor_kind(rs_descriptors_in(machine), request->fd) == RS_FD_STREAM;
    uint32_t side = rs_op_kinds[request->kind].side;
    return stream && (side == RS_SIDE_READ || side == RS_SIDE_WRITE) ? side : RS_SIDE_NONE;
}

static void ask_for_side(rs_machine *machine, rs_descriptor *descriptor) {
    for (uint32_t link = descriptor->first; link;) {
        rs_op *op = rs_op_at(rs_ops_in(machine), link - 1);
        link = op->next;
        RS_CHECK(op->state == RS_OP_SUBMITTED);
        if (rs_op_lasts(op) && op->cancel == RS_WAKE_VALUE) op->owner->give_way(machine, op);
    }
}

static bool must_wait_behind(rs_machine *machine, rs_op *op) {
    RS_CHECK(!uring_of(op)->waits_behind && !uring_of(op)->has_side);
    uint32_t side = side_of(machine, op);
    if (side == RS_SIDE_NONE) return false;
    rs_descriptor *descriptor = rs_descriptor_get(rs_descriptors_in(machine), op->request.fd);
    uint32_t *sides = &known_of(descriptor)->sides;
    bool taken = *sides & (1u << side);
    *sides |= 1u << side;
    uring_of(op)->waits_behind = taken;
    uring_of(op)->has_side = !taken;
    if (RS_UNLIKELY(taken)) ask_for_side(machine, descriptor);
    return taken;
}

/* --- arming --- */

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
    RS_CHECK((uint32_t)op->request.fd < rs_descriptors_in(machine)->capacity);
    const rs_descriptor *descriptor = &rs_descriptors_in(machine)->table[op->request.fd];
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

void uring_release(rs_machine *machine, rs_op *op) {
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

/* Not where the ring has refused such things: what it is not asked for it does not refuse again. */
bool uring_takes_untried(const rs_machine *machine, const rs_request *request) {
    const uring_state *state = machine->backend_state;
    return !state->lost && state->supported[uring_opcode_untried(machine, request)];
}

void uring_arm(rs_machine *machine, rs_op *op) {
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
