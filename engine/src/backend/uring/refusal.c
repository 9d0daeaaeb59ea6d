/* refusal: what a ring does not do although the kernel knows it. A restriction may be put on a ring or on its thread at any time
 * (EACCES), and what emulates a kernel may know less than it says (EINVAL). Then the op that was refused goes another way, as all
 * after it that ask for the same.
 *
 * A file without permission and a number that nothing allows are answered by the same errors. They are told apart by a second entry,
 * for the same opcode with the same flags, that is about nothing: see docs/decisions/25. */
#include "backend/uring/state.h"
#include "core/machine.h"

bool uring_doubts(rs_machine *machine, rs_op *op, int64_t result) {
    uring_op *way = uring_of(op);
    if (RS_LIKELY(!uring_may_refuse(result)) || way->asked) return false;
    RS_CHECK(op->state == RS_OP_SUBMITTED && !op->offloaded && !way->asks);
    way->asks = way->asked = true;
    way->doubted = (int32_t)result;
    uring_submit(machine, op);
    return true;
}

/* The ring is of no use any more. */
static void lose(rs_machine *machine, const char *call, int64_t answer) {
    uring_state *state = uring_state_of(machine);
    RS_CHECK(answer < 0);
    if (state->lost) return;
    state->lost = (int)answer;
    state->lost_by = call;
    machine->attention = true;
}

bool uring_is_own_answer(rs_machine *machine, rs_op *op, int64_t *result) {
    uring_op *way = uring_of(op);
    RS_CHECK(way->asks && way->asked && way->doubted < 0);
    way->asks = false;
    bool refused = *result == way->doubted;
    *result = way->doubted;
    if (!refused) return true;
    uint8_t opcode = uring_opcode_now(op);
    uring_state_of(machine)->supported[opcode] = false;
    if (opcode == URING_OP_POLL_ADD) {
        lose(machine, "IORING_OP_POLL_ADD", *result);
        way->waits_for_entry = true; /* it ends with the next poll */
    } else {
        uring_take_other_way(machine, op);
    }
    return false;
}

/* The kernel must know of the op. One that it is just at is asked again later: this waits for nothing.
 * https://man7.org/linux/man-pages/man2/io_uring_register.2.html (IORING_REGISTER_SYNC_CANCEL) */
bool uring_cancel_by_call(rs_machine *machine, const rs_op *op) {
    uring_state *state = uring_state_of(machine);
    RS_CHECK(state->is_open && (!op || state->cancel_refused));
    bool all = op == NULL;
    uring_sync_cancel what = {.address = all ? 0 : rs_op_id(op), .fd = -1, .flags = all ? URING_CANCEL_ALL | URING_CANCEL_ANY : 0};
    int answer = state->ring.system->enregister(state->ring.fd, URING_REGISTER_SYNC_CANCEL, &what, 1);
    if (RS_UNLIKELY(uring_may_refuse(answer))) lose(machine, "IORING_REGISTER_SYNC_CANCEL", answer);
    return answer >= 0;
}
