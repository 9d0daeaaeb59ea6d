/* complete: what becomes of an op when a completion of the kernel is for it. */
#include "backend/uring/state.h"
#include "kernel/op_table.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

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

bool uring_try_again(rs_machine *machine, rs_op *op) {
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
    } else if (*result == -ENOTSOCK && way->by_recv) {
        way->by_recv = way->poll_first = false;
        rs_descriptor_forget(machine->descriptors, op->request.fd);
        return false;
    } else if (*result == -EAGAIN && (side == RS_SIDE_READ || side == RS_SIDE_WRITE)) {
        way->for_readiness = true; /* nothing that the kernel can wait for in our place */
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
    RS_CHECK(op->request.fd < 0 || (uint32_t)op->request.fd < machine->descriptors->capacity);
    if (!rs_request_takes_stream(&op->request)) return;
    rs_descriptor *descriptor = &machine->descriptors->table[op->request.fd];
    rs_descriptor_was_read(machine->descriptors, op->request.fd, op->request.transfer.len, result);
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

void uring_complete(rs_machine *machine, rs_op *op, const uring_cqe *cqe) {
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
