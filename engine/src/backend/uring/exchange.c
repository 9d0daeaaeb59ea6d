/* exchange: what goes into the ring and comes out of it: a free entry, and completions, which wait in the backlog until a poll. Touches
 * no op. */
#include "kernel/wake.h"
#include "backend/uring/state.h"

#include <errno.h>
#include <poll.h>

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
void uring_fetch(uring_state *state) {
    uring_cqe cqe;
    while (state->is_open && backlog_has_room(state) && uring_ring_take(&state->ring, &cqe)) {
        if (cqe.user_data == NAME_WAKE) note_wake(state, &cqe);
        if (cqe.user_data == NAME_WAKE || cqe.user_data == NAME_IGNORED) continue;
        state->backlog[state->backlog_len++] = cqe;
    }
}

void uring_lose_entry(uring_state *state, int answer) {
    state->lost = answer;
    state->lost_by = "io_uring_enter";
}

/* The kernel holds completions back for want of room, and takes nothing before they are fetched:
 * https://man7.org/linux/man-pages/man2/io_uring_enter.2.html (EBUSY) */
void uring_ask(uring_state *state, int (*call)(uring_ring *ring)) {
    for (int tries = 0; tries < 2 && !state->lost; tries++) {
        int answer = call(&state->ring);
        RS_CHECK(answer <= 0);
        if (RS_UNLIKELY(rs_is_lost_by_now(&state->looks, answer))) uring_lose_entry(state, answer);
        if (RS_LIKELY(answer != -EBUSY)) return;
        uring_fetch(state);
    }
}

void uring_flush(uring_state *state) { uring_ask(state, uring_ring_flush); }

void uring_hand_over(uring_state *state) { uring_ask(state, uring_ring_hand_over); }

uring_sqe *uring_next_entry(uring_state *state) {
    if (RS_UNLIKELY(state->lost)) return NULL;
    RS_CHECK(state->is_open);
    uring_sqe *sqe = uring_ring_next(&state->ring);
    if (RS_LIKELY(sqe != NULL)) return sqe;
    uring_flush(state);
    return uring_ring_next(&state->ring);
}

bool uring_arm_wake(uring_state *state) {
    RS_CHECK(!state->wake_armed && state->wake >= 0);
    uring_sqe *sqe = uring_next_entry(state);
    if (!sqe) return false;
    sqe->opcode = URING_OP_POLL_ADD;
    sqe->fd = state->wake;
    sqe->op_flags = POLLIN;
    sqe->len = state->wake_once ? 0 : URING_POLL_MULTISHOT;
    sqe->user_data = NAME_WAKE;
    state->wake_armed = true;
    return true;
}
