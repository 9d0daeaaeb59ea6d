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
#include "backend/lost.h"
#include "backend/uring/state.h"
#include "core/machine.h"
#include "flow/accept_queues.h"
#include "kernel/op_table.h"
#include "kernel/processor.h"
#include "kernel/wake.h"
#include "ops/descriptors.h"
#include "kernel/platform.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Completions that have room at first, 4 KB. It doubles where more come at once. */
#define BACKLOG_FIRST 256

/* --- opening and closing --- */

static int open_wake(uring_state *state) {
    state->wake = rs_wake_open();
    state->wake_armed = false;
    return state->wake < 0 ? state->wake : 0;
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
    state->poll_first = rs_accept_queues_in(machine)->multishot = state->supported[URING_OP_SOCKET];
    uring_limit_workers(machine, state);
    rs_descriptors_in(machine)->unix_reports_more = uring_reports_more_of_unix();
    error = open_wake(state);
    if (error) return refuse(machine, state, error, "eventfd");
    state->is_open = true;
    state->lost = 0;
    state->cancel_refused = state->wake_once = state->left_to_sleep = false;
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

static void free_state(uring_state *state) {
    RS_CHECK(!state->is_open);
    rs_workers_free(&state->workers);
    free(state->backlog);
    free(state);
}

static bool has_memory(rs_machine *machine, uring_state *state) {
    state->backlog_capacity = BACKLOG_FIRST;
    state->backlog = rs_try_alloc_uncleared(sizeof(uring_cqe) * BACKLOG_FIRST);
    return state->backlog && rs_workers_open(machine, &state->workers);
}

static int uring_open(rs_machine *machine) {
    RS_CHECK(machine->backend_state == NULL);
    uring_state *state = rs_try_alloc(sizeof(*state));
    if (!state) return RS_NO_MEMORY;
    int error = has_memory(machine, state) ? open_ring(machine, state) : RS_NO_MEMORY;
    if (error) {
        free_state(state);
        return error;
    }
    machine->backend_state = state;
    return 0;
}

static void uring_close(rs_machine *machine) {
    uring_state *state = uring_state_of(machine);
    rs_workers_free(&state->workers); /* they wake this machine */
    close_ring(state);
    uring_pool_free(state->pool);
    rs_op_line_free(&state->line);
    rs_op_line_free(&state->next_on_side);
    rs_op_line_free(&state->missed);
    free_state(state);
    machine->backend_state = NULL;
}

/* --- what becomes of an op when a completion is for it --- */

/* The kernel has none left, or is not asked: our own. False: the same is to be asked again. */
static bool do_without_pool(rs_op *op, int64_t *result) {
    uring_of(op)->from_pool = false;
    if (RS_LIKELY(rs_op_lend(op))) return false;
    *result = RS_NO_MEMORY;
    return true;
}

/* With the answer of the kernel, or of a try of our own. False: the op goes on waiting. */
static bool proceed(rs_machine *machine, rs_op *op, int64_t result) {
    RS_CHECK(!rs_op_lasts(op));
    result = rs_op_go_on(machine, op, result);
    if (result == -EAGAIN && !rs_op_is_unwanted(op)) return false;
    uring_finish(machine, op, result == -EAGAIN ? -ECANCELED : result);
    return true;
}

static bool try_again(rs_machine *machine, rs_op *op) {
    RS_CHECK(op->state == RS_OP_SUBMITTED && !op->offloaded && !uring_of(op)->waits_for_entry);
    if (rs_op_lost_descriptor(machine, op)) {
        uring_finish(machine, op, -EBADF);
        return true;
    }
    return proceed(machine, op, rs_op_calls[op->request.kind].attempt(machine, &op->request));
}

/* A thread of the kernel's was interrupted: by our cancellation, or for reasons of its own. Some calls answer it by numbers
 * that no program should see (ERESTARTSYS and those after it). */
static bool was_interrupted(int64_t result) { return result == -EINTR || (result <= -512 && result >= -516); }

/* Done with the entry that the ring had. True: its result is for proceed; false: the same is to be asked again. */
static bool judge(rs_machine *machine, rs_op *op, int64_t *result) {
    RS_CHECK(!uring_of(op)->waits_for_entry && !uring_of(op)->waits_behind);
    uint8_t side = rs_op_kinds[op->request.kind].side;
    uring_op *way = uring_of(op);
    if (was_interrupted(*result)) {
        *result = -ECANCELED;
        return rs_op_is_unwanted(op);
    }
    if (way->for_readiness) {
        if (*result >= 0) *result = rs_op_calls[op->request.kind].attempt(machine, &op->request);
    } else if (*result == -ENOBUFS && way->from_pool) {
        uring_pool_add(uring_state_of(machine)->pool);
        return do_without_pool(op, result);
    } else if (*result == -ENOTSOCK && (way->by_recv || way->by_send)) {
        way->by_recv = way->by_send = way->poll_first = false;
        rs_descriptor_forget(rs_descriptors_in(machine), op->request.fd);
        return false;
    } else if (*result == -EAGAIN && (side == RS_SIDE_READ || side == RS_SIDE_WRITE)) {
        uring_choose_readiness(op); /* nothing that the kernel can wait for in our place */
        rs_op_goes_by_number(machine, op);
        do_without_pool(op, result);
    } else if (op->request.kind == RS_OP_WAITID && *result == 0) {
        *result = ((siginfo_t *)op->request.wait.info)->si_pid;
    }
    return true;
}

/* And not by a try of our own. */
static bool is_reported_by_socket(const rs_op *op) {
    const uring_op *way = uring_of(op);
    return (op->request.kind == RS_OP_RECV || way->by_recv) && !way->for_readiness;
}

static void note_rest(rs_machine *machine, const rs_op *op, int64_t result, uint32_t flags) {
    RS_CHECK(op->request.fd < 0 || (uint32_t)op->request.fd < rs_descriptors_in(machine)->capacity);
    if (!rs_request_takes_stream(&op->request)) return;
    rs_descriptor *descriptor = &rs_descriptors_in(machine)->table[op->request.fd];
    rs_descriptor_was_read(rs_descriptors_in(machine), op->request.fd, op->request.transfer.len, result);
    if (flags & URING_CQE_SOCK_NONEMPTY) descriptor->drained = false;
    else if (descriptor->reports_more && is_reported_by_socket(op)) descriptor->drained = result > 0;
}

static void complete_lasting(rs_machine *machine, rs_op *op, int64_t result, uint32_t flags) {
    bool by_try = uring_of(op)->for_readiness && result >= 0;
    if (RS_UNLIKELY(by_try)) result = rs_op_calls[op->request.kind].attempt(machine, &op->request);
    bool unwanted = rs_op_is_unwanted(op), goes_on = was_interrupted(result) || result == -EAGAIN || (by_try && result >= 0);
    if (!(flags & URING_CQE_MORE) && !by_try && uring_doubts(machine, op, result)) return;
    if (result >= 0) op->owner->brought(machine, op, result);
    if (by_try) unwanted = rs_op_is_unwanted(op);
    RS_CHECK(op->state == RS_OP_SUBMITTED); /* whatever its owner has done about that */
    if (flags & URING_CQE_MORE) return;
    if (goes_on && !unwanted) uring_submit(machine, op);
    else uring_finish(machine, op, goes_on ? -ECANCELED : result);
}

/* The end of a buffer shall not be where a message is cut in two: what is left of it is there already. Asked for only where there
 * are bytes, so that it is no error that is taken away here. */
static int64_t take_rest(rs_machine *machine, rs_op *op, void *bytes, int64_t result) {
    RS_CHECK(result > 0 && (uint64_t)result < op->request.transfer.len);
    int left = 0;
    if (ioctl(op->request.fd, FIONREAD, &left) != 0 || left <= 0) return result;
    rs_request rest = op->request;
    void *both = rs_try_alloc(rest.transfer.len);
    if (!both) return result; /* the rest comes with the next */
    memcpy(both, bytes, (size_t)result);
    uring_pool_give_back(uring_state_of(machine)->pool, bytes);
    op->request.transfer.address = op->request.owned = both;
    rest.transfer.address = (char *)both + result;
    rest.transfer.len -= (uint64_t)result;
    int64_t more = rs_op_calls[rest.kind].attempt(machine, &rest);
    return more > 0 ? result + more : result;
}

static int64_t take_buffer(rs_machine *machine, rs_op *op, const uring_cqe *cqe) {
    RS_ASSERT(uring_of(op)->from_pool && cqe->result <= (int32_t)URING_POOL_BUFFER);
    uring_pool *pool = uring_state_of(machine)->pool;
    void *bytes = uring_pool_take(pool, cqe);
    if (cqe->result <= 0) {
        uring_pool_give_back(pool, bytes);
        return cqe->result;
    }
    op->request.transfer.address = bytes;
    bool cut = cqe->result == URING_POOL_BUFFER && op->request.transfer.len > URING_POOL_BUFFER;
    return RS_UNLIKELY(cut) ? take_rest(machine, op, bytes, cqe->result) : cqe->result;
}

static void complete(rs_machine *machine, rs_op *op, const uring_cqe *cqe) {
    int64_t result = cqe->result;
    RS_CHECK(cqe->user_data == rs_op_id(op) && op->state == RS_OP_SUBMITTED);
    if (RS_UNLIKELY(uring_of(op)->asks) && !uring_is_own_answer(machine, op, &result)) return;
    if (RS_UNLIKELY(rs_op_lasts(op))) {
        complete_lasting(machine, op, result, cqe->flags);
        return;
    }
    bool is_short = result < (int64_t)rs_request_len(&op->request);
    if (is_short && RS_UNLIKELY(rs_op_owner_is_gone(op))) {
        uring_finish(machine, op, -EBADF);
        return;
    }
    bool only_ready = uring_of(op)->for_readiness;
    if ((only_ready || is_short) && rs_op_lost_descriptor(machine, op)) {
        int64_t lost = rs_op_is_unwanted(op) ? -ECANCELED : -EBADF;
        uring_finish(machine, op, result > 0 && !only_ready ? result : lost);
        return;
    }
    if (RS_UNLIKELY(is_short)) uring_correct_position(op, result);
    if (cqe->flags & URING_CQE_BUFFER) result = take_buffer(machine, op, cqe);
    if (RS_UNLIKELY(uring_doubts(machine, op, result))) return;
    if (judge(machine, op, &result)) {
        note_rest(machine, op, result, cqe->flags);
        if (result == -EAGAIN && rs_op_kinds[op->request.kind].side == RS_SIDE_NONE) {
            uring_finish(machine, op, result); /* the answer, and not that it must wait */
            return;
        }
        if (proceed(machine, op, result)) return;
        if (rs_retry_fits(op)) {
            rs_retry_later(machine, &uring_state_of(machine)->retry, op);
            return;
        }
    }
    uring_submit(machine, op);
}

/* --- looking --- */

static bool lost_object(rs_machine *machine, const rs_op *op) {
    return (op->request.options & RS_REQUEST_OF_OBJECT) && !machine->driver.is_open(op);
}

/* It never gets to the kernel. Where nobody has tried it, its strand was not cancelled when it asked, and what a try would have done is
 * done. */
static void end_unwanted(rs_machine *machine, rs_op *op) {
    bool tried = !(op->request.options & RS_REQUEST_UNTRIED) || op->closing || lost_object(machine, op);
    int64_t result = -EAGAIN;
    uring_of(op)->from_pool = false;
    if (RS_UNLIKELY(!tried) && rs_op_lend(op)) result = rs_op_calls[op->request.kind].attempt(machine, &op->request);
    uring_finish(machine, op, result == -EAGAIN ? -ECANCELED : result);
}

/* False: the ring is full again. */
static bool serve(rs_machine *machine, rs_op *op) {
    RS_CHECK(op->state == RS_OP_SUBMITTED && !uring_of(op)->waits_behind);
    uring_op *own = uring_of(op);
    if (own->cancel_waits_for_entry) {
        own->cancel_waits_for_entry = false;
        uring_cancel(machine, op);
    } else if (own->waits_for_entry) {
        if (rs_op_is_unwanted(op)) end_unwanted(machine, op);
        else if (lost_object(machine, op)) uring_finish(machine, op, -EBADF);
        else if (uring_fill_entry(machine, op)) own->waits_for_entry = false;
        else return false;
    }
    return true;
}

/* Right before the look that hands them to the kernel. What comes into the line meanwhile stays there. */
static void serve_line(rs_machine *machine) {
    rs_op_line *line = &uring_state_of(machine)->line;
    uint32_t len = line->len, served = 0;
    for (; served < len; served++) {
        rs_op *op = rs_op_find(rs_ops_in(machine), line->names[served]);
        if (op && !serve(machine, op)) break;
    }
    rs_op_line_drop(line, served);
}

static void serve_next_on_side(rs_machine *machine) {
    rs_op_line *next = &uring_state_of(machine)->next_on_side;
    for (uint32_t i = 0; i < next->len; i++) {
        rs_op *op = rs_op_find(rs_ops_in(machine), next->names[i]);
        if (!op || !uring_of(op)->waits_behind) continue;
        RS_CHECK(uring_of(op)->has_side);
        uring_of(op)->waits_behind = false;
        bool ask = rs_op_lasts(op) || uring_of(op)->from_pool || (op->request.options & RS_REQUEST_OF_OBJECT);
        if (ask || !try_again(machine, op)) uring_submit(machine, op);
    }
    next->len = 0;
}

static void complete_backlog(rs_machine *machine) {
    uring_state *state = uring_state_of(machine);
    RS_CHECK(state->backlog_served == 0);
    /* What comes meanwhile may move the backlog, and is completed as well. */
    while (state->backlog_served < state->backlog_len) {
        uring_cqe cqe = state->backlog[state->backlog_served++];
        RS_CHECK(cqe.user_data != NAME_IGNORED && cqe.user_data != NAME_WAKE);
        bool of_cancel = cqe.user_data & NAME_CANCEL;
        rs_op *op = rs_op_find(rs_ops_in(machine), cqe.user_data & ~NAME_CANCEL);
        if (of_cancel) uring_note_cancel(machine, op, cqe.result);
        else if (op && uring_is_in_kernel(op)) complete(machine, op, &cqe);
        else machine->metrics.wakes_dropped++;
    }
    state->backlog_len = state->backlog_served = 0;
}

static void look(rs_machine *machine) {
    uring_state *state = uring_state_of(machine);
    uring_flush(state);
    uring_fetch(state);
    complete_backlog(machine);
}

/* Where nobody can run, and what is asked for has never been there at once, the sleep that follows hands the new entries over: one
 * call instead of two. It could be over before it has begun, for nothing but a lock that was let go and taken again: so it must be
 * likely that there is something to wait for, nobody else may want that lock, and one look in LOOKS_PER_TRIAL, a prime, tries it. */
#define IN_VAIN_ENOUGH 16u
#define LOOKS_PER_TRIAL 11u

static bool leaves_to_sleep(rs_machine *machine, uring_state *state) {
    if (state->in_vain < IN_VAIN_ENOUGH || state->left_to_sleep || ++state->idle_looks % LOOKS_PER_TRIAL == 0) return false;
    if (rs_timers_earliest(&machine->timers) <= machine->polled_at_ns || !uring_ring_is_quiet(&state->ring)) return false;
    return !machine->driver.lock_is_wanted || !machine->driver.lock_is_wanted(machine);
}

/* The first look of a poll. Entries of `line` go to the kernel at once (rs_driver.is_open). */
static void first_look(rs_machine *machine) {
    uring_state *state = uring_state_of(machine);
    bool idle = machine->strands.run_len == 0 && !machine->options.whole_ticks && state->backlog_len == 0;
    bool has_line = state->line.len > 0;
    if (has_line) serve_line(machine);
    bool asks = idle && uring_ring_pending(&state->ring) > 0;
    if (asks && !has_line && leaves_to_sleep(machine, state)) {
        state->left_to_sleep = true;
        return;
    }
    uint32_t before = machine->strands.run_len;
    look(machine);
    state->left_to_sleep = false;
    if (asks && machine->strands.run_len > before) state->in_vain = 0;
    else if (asks && state->in_vain < IN_VAIN_ENOUGH) state->in_vain++;
}

/* Times are due, and the kernel may have more that came before them: it gives a few at a time, and of what has completed, some were
 * asked for anew. Those for whom there is always more do not keep us here for ever.
 * https://github.com/torvalds/linux/blob/v6.18/io_uring/io_uring.c (IO_LOCAL_TW_DEFAULT_MAX) */
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
    return uring_is_in_kernel(op) && !uring_of(op)->for_readiness && !rs_request_traits(&op->request)->takes_nothing;
}

/* io_uring_enter was refused for good. What has completed is served; the others end, and leave their memory to a kernel that may
 * still be at it. Closing the ring cancels them, at a time of which nobody hears. */
static void do_without_kernel(rs_machine *machine) {
    uring_state *state = uring_state_of(machine);
    if (state->is_open) {
        uring_fetch(state);
        complete_backlog(machine);
        rs_note_lost(machine, state->lost_by, state->lost);
        uring_ring_close(&state->ring);
        state->is_open = false;
    }
    RS_CHECK(state->lost < 0 && !state->is_open);
    RS_EACH_OP(rs_ops_in(machine), op) {
        if (!is_nobodys(op)) continue;
        op->in_doubt = may_still_move(op);
        uring_finish(machine, op, rs_op_is_unwanted(op) ? -ECANCELED : RS_LOST);
    }
    state->next_on_side.len = state->line.len = state->missed.len = 0;
    state->cancel_again_ns = 0;
    if (state->retry.first == 0) machine->backend_deadline_ns = RS_NEVER;
    rs_retry_serve(machine, &state->retry, try_again);
}

static void uring_poll(rs_machine *machine) {
    uring_state *state = uring_state_of(machine);
    rs_workers_tend(&state->workers);
    if (RS_UNLIKELY(state->lost)) {
        do_without_kernel(machine);
        return;
    }
    first_look(machine);
    look_for_rest(machine);
    if (state->retry.first == 0) machine->backend_deadline_ns = RS_NEVER;
    rs_retry_serve(machine, &state->retry, try_again);
    serve_next_on_side(machine);
    uring_cancel_again(machine);
    if (RS_UNLIKELY(state->lost)) do_without_kernel(machine);
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
    if (!state->wake_armed) uring_arm_wake(state);
    uring_flush(state);
    bool came = uring_ring_has_completions(&state->ring);
    uring_fetch(state);
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
    bool unarmed = !state->wake_armed && !uring_arm_wake(state);
    if (RS_UNLIKELY(unarmed || (state->line.len > 0 && machine->in_flight > 0))) {
        uring_ask(state, uring_ring_make_room);
        rs_nap_if_fruitless(&state->looks, state->wake, delay_ns);
        return;
    }
    if (state->backlog_len == 0 && !uring_ring_has_completions(&state->ring)) {
        int answer = uring_ring_wait(&state->ring, delay_ns);
        if (RS_UNLIKELY(rs_is_lost_by_now(&state->waits, answer))) uring_lose_entry(state, answer);
        rs_nap_if_fruitless(&state->waits, state->wake, delay_ns);
    }
    uring_fetch(state);
}

static void uring_wake(rs_machine *machine) { rs_wake_ring(uring_state_of(machine)->wake); }

/* Nobody takes what they have made. */
static void drop_backlog(rs_machine *machine) {
    uring_state *state = uring_state_of(machine);
    for (; state->backlog_served < state->backlog_len; state->backlog_served++) {
        uring_cqe cqe = state->backlog[state->backlog_served];
        if ((cqe.user_data & NAME_CANCEL) && uring_may_refuse(cqe.result)) state->cancel_refused = true;
        rs_op *op = rs_op_find(rs_ops_in(machine), cqe.user_data);
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
    RS_EACH_OP(rs_ops_in(machine), op) count += uring_is_in_kernel(op);
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
        uring_sqe *sqe = uring_next_entry(state);
        uint32_t every = URING_CANCEL_ALL | URING_CANCEL_ANY;
        if (sqe) *sqe = (uring_sqe){.opcode = URING_OP_ASYNC_CANCEL, .fd = -1, .op_flags = every, .user_data = NAME_CANCEL};
    }
    int answer = uring_ring_wait(&state->ring, LEAVE_STEP_NS);
    if (RS_UNLIKELY(rs_is_lost_by_now(&state->waits, answer))) uring_lose_entry(state, answer);
    rs_nap_if_fruitless(&state->waits, state->wake, LEAVE_STEP_NS);
}

/* What is still in the kernel ends some time after the ring is closed:
 * https://github.com/torvalds/linux/blob/v6.18/io_uring/io_uring.c (io_ring_exit_work) */
static void leave_in_doubt(rs_machine *machine) {
    RS_EACH_OP(rs_ops_in(machine), op) {
        if (may_still_move(op)) op->in_doubt = true;
    }
}

static void uring_leave(rs_machine *machine) {
    uring_state *state = uring_state_of(machine);
    int64_t until_ns = rs_now(machine) + LEAVE_NS;
    uring_fetch(state);
    /* Nothing can be asked of a ring that is lost. */
    while (left_in_kernel(machine) > 0 && !state->lost && rs_now(machine) < until_ns) {
        cancel_all(machine);
        uring_fetch(state);
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
    .takes_untried = uring_takes_untried, .open = uring_open, .close = uring_close, .arm = uring_arm,
    .cancel = uring_cancel, .poll = uring_poll, .peek = uring_peek, .wait = uring_wait, .wake = uring_wake,
    .release = uring_release, .leave = uring_leave, .forked = uring_forked,
};
