/* uring: the backend on io_uring. The kernel does the waiting and then the op itself; one call submits what has gathered,
 * harvests what has completed, and sleeps.
 *
 * An op's completion carries its name (index and generation), so one that comes late finds nobody. The slot of an op is
 * given back at its terminal completion and not before; a cancellation only asks for that to come soon, and its own
 * completion is asked for never, or dropped.
 *
 * Descriptors are looked up by the kernel when an entry is submitted, not when it is filled. For our own that makes no
 * difference, since Machine#close waits for all ops; one that somebody else may close and open again meanwhile is
 * submitted at once.
 */
#include "retry.h"
#include "series.h"
#include "uring_entry.h"
#include "uring_ring.h"
#include "workers.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Names of completions that belong to no op: an op's generation is never 0. */
#define NAME_IGNORED ((rs_id)0)
#define NAME_WAKE ((rs_id)1)

/* In op.backend_word, above those of uring_entry. */
#define WAITS_FOR_ENTRY ((uint64_t)1 << 35)     /* the ring was full */
#define CANCEL_WAITS_FOR_ENTRY ((uint64_t)1 << 36)
#define WAITS_FOR_TURN ((uint64_t)1 << 37)      /* another op on the same side of the descriptor came before */
#define HAS_TURN ((uint64_t)1 << 38)

/* A copy of this size costs less than handing it to anybody. */
#define COPY_MAX 65536u

typedef struct {
    rs_id *names;
    uint32_t len;
    uint32_t capacity;
} name_list;

typedef struct {
    uring_ring ring;
    int wake;
    bool wake_armed;
    bool in_line;               /* some op waits for a free entry */
    uring_cqe *stash;           /* taken out of the ring and not yet told */
    uint32_t stash_len;
    uint32_t stash_capacity;
    uint32_t stash_told;
    rs_retry retry;
    name_list turns;            /* ops whose turn has come */
    rs_workers *workers;
    bool supported[URING_OP_WAITID + 1];
    bool poll_first;
} uring_state;

static uring_state *state_of(rs_machine *machine) { return machine->backend_state; }

/* --- opening and closing --- */

static int open_wake(uring_state *state) {
    state->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    state->wake_armed = false;
    return state->wake < 0 ? -errno : 0;
}

static int probe(rs_machine *machine, uring_state *state) {
    uring_probe *answer = rs_alloc(sizeof(*answer));
    memset(answer, 0, sizeof(*answer));
    int error = state->ring.system->enregister(state->ring.fd, URING_REGISTER_PROBE, answer, 256);
    for (uint32_t i = 0; error == 0 && i < answer->ops_len && i <= URING_OP_WAITID; i++) {
        state->supported[answer->ops[i].opcode] = answer->ops[i].flags & URING_PROBE_SUPPORTED;
    }
    free(answer);
    /* These came with the same Linux, 5.19, and cannot be asked after. */
    state->poll_first = machine->has_series = state->supported[URING_OP_SOCKET];
    return error;
}

/* The kernel's own are as many as ours may be, of each of its two sorts, on those kernels that let us say so (5.15). */
static void limit_workers(rs_machine *machine, uring_state *state) {
    uint32_t limits[2] = {machine->options.workers_max, machine->options.workers_max};
    state->ring.system->enregister(state->ring.fd, URING_REGISTER_IOWQ_MAX_WORKERS, limits, 2);
}

static int refuse(rs_machine *machine, uring_state *state, int error, const char *call) {
    uring_ring_close(&state->ring);
    snprintf(machine->refusal_text, sizeof(machine->refusal_text), "%s was answered %s", call, strerror(-error));
    return error;
}

static int open_ring(rs_machine *machine, uring_state *state) {
    const rs_options *options = &machine->options;
    uring_wishes wishes = {.entries = options->ring_entries, .may_move = options->threads_move, .polled = options->sqpoll,
                           .poll_idle_ms = options->sqpoll_idle_ms, .poll_cpu = options->sqpoll_cpu};
    const uring_system *system = options->uring_system ? options->uring_system : &uring_kernel;
    int error = uring_ring_open(&state->ring, system, &wishes, machine->refusal_text, sizeof(machine->refusal_text));
    if (error) return error;
    error = probe(machine, state);
    if (error) return refuse(machine, state, error, "io_uring_register");
    limit_workers(machine, state);
    error = open_wake(state);
    return error ? refuse(machine, state, error, "eventfd") : 0;
}

static int uring_open(rs_machine *machine) {
    uring_state *state = rs_alloc(sizeof(*state));
    memset(state, 0, sizeof(*state));
    int error = open_ring(machine, state);
    if (error) {
        free(state);
        return error;
    }
    state->workers = rs_workers_new(machine, machine->options.workers_max);
    machine->backend_state = state;
    return 0;
}

static void uring_close(rs_machine *machine) {
    uring_state *state = state_of(machine);
    rs_workers_free(state->workers);
    uring_ring_close(&state->ring);
    close(state->wake);
    free(state->stash);
    free(state->turns.names);
    free(state);
    machine->backend_state = NULL;
}

/* --- from the ring to the stash --- */

/* Makes room in the ring, and touches no op. */
static void stash(uring_state *state) {
    uring_cqe cqe;
    while (uring_ring_take(&state->ring, &cqe)) {
        if (cqe.user_data == NAME_WAKE && !(cqe.flags & URING_CQE_MORE)) state->wake_armed = false;
        if (cqe.user_data == NAME_WAKE || cqe.user_data == NAME_IGNORED) continue;
        if (state->stash_len == state->stash_capacity) {
            state->stash_capacity = state->stash_capacity ? state->stash_capacity * 2 : 256;
            state->stash = rs_realloc(state->stash, sizeof(uring_cqe) * state->stash_capacity);
        }
        state->stash[state->stash_len++] = cqe;
    }
}

/* The kernel holds completions back for want of room, and takes nothing before they are fetched. */
static void flush(uring_state *state) {
    if (uring_ring_flush(&state->ring) != -EBUSY) return;
    stash(state);
    uring_ring_flush(&state->ring);
}

static void hand_over(uring_state *state) {
    if (uring_ring_hand_over(&state->ring) != -EBUSY) return;
    stash(state);
    uring_ring_hand_over(&state->ring);
}

static uring_sqe *next_entry(uring_state *state) {
    uring_sqe *sqe = uring_ring_next(&state->ring);
    if (RS_LIKELY(sqe != NULL)) return sqe;
    flush(state);
    return uring_ring_next(&state->ring);
}

/* --- ops --- */

static void put_name(name_list *list, rs_id name) {
    if (list->len == list->capacity) {
        list->capacity = list->capacity ? list->capacity * 2 : 64;
        list->names = rs_realloc(list->names, sizeof(rs_id) * list->capacity);
    }
    list->names[list->len++] = name;
}

static bool is_unwanted(const rs_op *op) { return op->cancel != RS_WAKE_VALUE || op->closing; }

/* Who is next gets it at once, and the kernel at the next poll: this may be a cancellation, in which no other op may
 * complete. */
static void give_up_turn(rs_machine *machine, rs_op *op) {
    uring_state *state = state_of(machine);
    uint32_t side = rs_op_table[op->request.kind].side;
    for (uint32_t link = op->next; link;) {
        rs_op *other = rs_op_at(&machine->ops, link - 1);
        link = other->next;
        if (!(other->backend_word & WAITS_FOR_TURN) || rs_op_table[other->request.kind].side != side) continue;
        other->backend_word |= HAS_TURN;
        put_name(&state->turns, rs_op_id(other));
        machine->attention = true;
        return;
    }
    rs_descriptor_get(&machine->descriptors, op->request.fd)->armed &= ~(1u << side);
}

static void finish(rs_machine *machine, rs_op *op, int64_t result) {
    /* Readiness takes nothing, so whoever ended the wait was first, however late the kernel is told. */
    if (op->request.kind == RS_OP_POLL && is_unwanted(op)) result = -ECANCELED;
    if (result >= 0) result += (int64_t)op->done;
    if (op->backend_word & HAS_TURN) give_up_turn(machine, op);
    rs_op_complete(machine, op, result);
}

static bool is_own(rs_machine *machine, int fd) {
    return fd < 0 || rs_descriptor_kind(&machine->descriptors, fd) != RS_FD_UNKNOWN;
}

static void submit(rs_machine *machine, rs_op *op) {
    uring_state *state = state_of(machine);
    uring_sqe *sqe = next_entry(state);
    if (RS_UNLIKELY(!sqe)) {
        op->backend_word |= WAITS_FOR_ENTRY;
        state->in_line = true;
        machine->attention = true;
        return;
    }
    op->backend_word &= ~WAITS_FOR_ENTRY;
    uring_fill(sqe, op);
    if (!is_own(machine, op->request.fd)) hand_over(state);
}

/* The kernel wakes those that wait on one descriptor in no order, or the last one first. So of our own streams it gets one op
 * for each side at a time. */
static uint32_t side_of(rs_machine *machine, const rs_op *op) {
    const rs_request *request = &op->request;
    bool stream = request->fd >= 0 && rs_descriptor_kind(&machine->descriptors, request->fd) == RS_FD_STREAM;
    uint32_t side = rs_op_table[request->kind].side;
    return stream && (side == RS_SIDE_READ || side == RS_SIDE_WRITE) ? side : RS_SIDE_NONE;
}

/* It would keep the turn, and with it all that comes. One that has just come itself ends here. */
static void end_series(rs_machine *machine, rs_descriptor *descriptor) {
    for (uint32_t link = descriptor->first; link;) {
        rs_op *op = rs_op_at(&machine->ops, link - 1);
        link = op->next;
        if (!op->series || op->cancel != RS_WAKE_VALUE) continue;
        op->series->shared = true;
        rs_series_stop(machine, op->series);
    }
}

static bool must_wait_for_turn(rs_machine *machine, rs_op *op) {
    uint32_t side = side_of(machine, op);
    if (side == RS_SIDE_NONE) return false;
    rs_descriptor *descriptor = rs_descriptor_get(&machine->descriptors, op->request.fd);
    bool taken = descriptor->armed & (1u << side);
    descriptor->armed |= 1u << side;
    op->backend_word |= taken ? WAITS_FOR_TURN : HAS_TURN;
    if (RS_UNLIKELY(taken)) end_series(machine, descriptor);
    return taken;
}

static bool is_transfer(const rs_op *op) { return op->request.kind <= RS_OP_WRITEV; }

static bool is_message(const rs_op *op) { return op->request.kind >= RS_OP_RECV && op->request.kind <= RS_OP_SENDMSG; }

/* As is what is tried inline: see try_stream. */
static bool is_for_socket(rs_machine *machine, const rs_request *request) {
    bool plain = request->kind == RS_OP_READ || request->kind == RS_OP_WRITE;
    return plain && request->len > 0 && request->offset < 0 && machine->descriptors.table[request->fd].socket;
}

static rs_fd_kind kind_now(rs_machine *machine, const rs_op *op) {
    rs_fd_kind kind = rs_descriptor_kind(&machine->descriptors, op->request.fd);
    return kind == RS_FD_UNKNOWN ? rs_descriptor_classify(op->request.fd) : kind;
}

static uint64_t bytes_of(const rs_request *request) {
    if (request->kind != RS_OP_READV && request->kind != RS_OP_WRITEV) return request->len;
    const struct iovec *parts = request->address;
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < request->len; i++) bytes += parts[i].iov_len;
    return bytes;
}

/* How the kernel is to be asked.
 *
 * A terminal, or a pipe that others keep blocking: when it is ready the kernel transfers as the plain call would, on our
 * thread, and waits there when somebody was faster or the room does not do. So it only tells of readiness.
 *
 * A file that lies in the page cache would be copied on our thread, however large. An open is tried first, with
 * O_NONBLOCK: that of a FIFO then does not wait for its other end. */
static uint64_t way_of(rs_machine *machine, const rs_op *op) {
    uint32_t op_kind = op->request.kind;
    if (op_kind == RS_OP_OPEN || op_kind == RS_OP_FSYNC || op_kind == RS_OP_STATX) return URING_FOR_WORKER;
    /* A connect has begun with our own try, and the kernel would refuse a second one; a datagram to a full receiver it tries
     * again with no bytes left. */
    if (rs_retry_fits(op)) return URING_FOR_READINESS;
    uint64_t first = state_of(machine)->poll_first ? URING_POLL_FIRST : 0;
    if (!is_transfer(op)) return is_message(op) ? first : 0;
    rs_fd_kind kind = kind_now(machine, op);
    if (kind == RS_FD_BLOCKING) return URING_FOR_READINESS;
    if (kind == RS_FD_STREAM && is_for_socket(machine, &op->request)) return URING_FOR_SOCKET | first;
    bool file = kind == RS_FD_FILE_LOCAL || kind == RS_FD_FILE_REMOTE;
    return file && (machine->options.offload_files || bytes_of(&op->request) > COPY_MAX) ? URING_FOR_WORKER : 0;
}

static void uring_arm(rs_machine *machine, rs_op *op) {
    uring_state *state = state_of(machine);
    if (RS_UNLIKELY(!state->supported[uring_opcode(op->request.kind)])) {
        RS_ASSERT(rs_op_table[op->request.kind].execute != NULL);
        rs_workers_submit(state->workers, op);
        return;
    }
    if (RS_UNLIKELY(must_wait_for_turn(machine, op))) return;
    op->backend_word |= way_of(machine, op);
    if (op->backend_word & URING_FOR_WORKER) machine->metrics.ops_offloaded++;
    if (op->request.kind == RS_OP_WAITID && !op->request.extra) {
        op->request.extra = memset(rs_alloc(sizeof(siginfo_t)), 0, sizeof(siginfo_t));
    }
    submit(machine, op);
}

static void uring_cancel(rs_machine *machine, rs_op *op) {
    uring_state *state = state_of(machine);
    if (op->offloaded) {
        rs_workers_cancel(state->workers, op);
        return;
    }
    if (op->backend_word & WAITS_FOR_TURN || rs_retry_has(op)) {
        rs_retry_forget(machine, &state->retry, op);
        finish(machine, op, -ECANCELED);
        return;
    }
    machine->attention = true;
    if (op->backend_word & WAITS_FOR_ENTRY) return;
    uring_sqe *sqe = next_entry(state);
    if (RS_UNLIKELY(!sqe)) {
        op->backend_word |= CANCEL_WAITS_FOR_ENTRY;
        state->in_line = true;
        return;
    }
    sqe->opcode = URING_OP_ASYNC_CANCEL;
    sqe->fd = -1;
    sqe->address = rs_op_id(op);
    sqe->user_data = NAME_IGNORED;
    if (state->ring.features & URING_FEATURE_CQE_SKIP) sqe->flags = URING_SQE_CQE_SKIP_SUCCESS;
}

/* The ring was full: an op that nobody wants any more never gets there. */
static void serve_line(rs_machine *machine) {
    state_of(machine)->in_line = false;
    for (uint32_t index = 0; index < machine->ops.chunk_count * RS_OP_CHUNK; index++) {
        rs_op *op = rs_op_at(&machine->ops, index);
        if (op->state != RS_OP_SUBMITTED) continue;
        if (op->backend_word & CANCEL_WAITS_FOR_ENTRY) {
            op->backend_word &= ~CANCEL_WAITS_FOR_ENTRY;
            uring_cancel(machine, op);
        } else if (op->backend_word & WAITS_FOR_ENTRY) {
            if (is_unwanted(op)) finish(machine, op, -ECANCELED);
            else submit(machine, op);
        }
    }
}

/* --- completions --- */

/* With the answer of the kernel, or of a try of our own. False: the op goes on waiting. */
static bool proceed(rs_machine *machine, rs_op *op, int64_t result) {
    uint64_t until = op->done + RS_OP_TURN_BYTES;
    while (result > 0 && (op->request.options & RS_REQUEST_ALL) && (uint64_t)result < op->request.len) {
        rs_op_advance(op, (uint64_t)result);
        if (is_unwanted(op)) result = -ECANCELED;
        else result = op->done < until ? rs_op_table[op->request.kind].attempt(machine, &op->request) : -EAGAIN;
    }
    if (result == -EAGAIN && !is_unwanted(op)) return false;
    finish(machine, op, result == -EAGAIN ? -ECANCELED : result);
    return true;
}

static bool try_again(rs_machine *machine, rs_op *op) {
    return proceed(machine, op, rs_op_table[op->request.kind].attempt(machine, &op->request));
}

/* A thread of the kernel's was interrupted: by our cancellation, or for reasons of its own. Some calls tell it in numbers
 * that no program should see (ERESTARTSYS and those after it). */
static bool was_interrupted(int64_t result) { return result == -EINTR || (result <= -512 && result >= -516); }

/* Done with the entry that the ring had. True: its result is for proceed; false: the same is to be asked again. */
static bool judge(rs_machine *machine, rs_op *op, int64_t *result) {
    const rs_op_info *info = &rs_op_table[op->request.kind];
    if (was_interrupted(*result)) {
        *result = -ECANCELED;
        return is_unwanted(op);
    }
    if (op->backend_word & URING_FOR_READINESS) {
        if (*result >= 0) *result = info->attempt(machine, &op->request);
    } else if (*result == -ENOTSOCK && (op->backend_word & URING_FOR_SOCKET)) {
        op->backend_word &= ~(URING_FOR_SOCKET | URING_POLL_FIRST);
        rs_descriptor_forget(&machine->descriptors, op->request.fd);
        return false;
    } else if (*result == -EAGAIN && (info->side == RS_SIDE_READ || info->side == RS_SIDE_WRITE)) {
        op->backend_word |= URING_FOR_READINESS; /* nothing that the kernel can wait for in our place */
    } else if (op->request.kind == RS_OP_WAITID && *result == 0) {
        *result = ((siginfo_t *)op->request.extra)->si_pid;
    }
    return true;
}

static void note_rest(rs_machine *machine, const rs_op *op, int64_t result, uint32_t flags) {
    if (!rs_request_reads(&op->request)) return;
    rs_descriptor_was_read(&machine->descriptors, op->request.fd, op->request.len, result);
    if (flags & URING_CQE_SOCK_NONEMPTY) machine->descriptors.table[op->request.fd].drained = false;
}

static void tell_series(rs_machine *machine, rs_op *op, int64_t result, uint32_t flags) {
    bool unwanted = is_unwanted(op), goes_on = was_interrupted(result) || result == -EAGAIN;
    if (result >= 0) rs_series_put(machine, op->series, result);
    if (flags & URING_CQE_MORE) return;
    if (goes_on && !unwanted) submit(machine, op);
    else finish(machine, op, goes_on ? -ECANCELED : result);
}

static void tell(rs_machine *machine, rs_op *op, int64_t result, uint32_t flags) {
    if (RS_UNLIKELY(op->series != NULL)) {
        tell_series(machine, op, result, flags);
        return;
    }
    if (judge(machine, op, &result)) {
        note_rest(machine, op, result, flags);
        if (result == -EAGAIN && rs_op_table[op->request.kind].side == RS_SIDE_NONE) {
            finish(machine, op, result); /* the answer, and not that it must wait */
            return;
        }
        if (proceed(machine, op, result)) return;
        if (rs_retry_fits(op)) {
            rs_retry_later(machine, &state_of(machine)->retry, op);
            return;
        }
    }
    submit(machine, op);
}

static void serve_turns(rs_machine *machine) {
    name_list *turns = &state_of(machine)->turns;
    for (uint32_t i = 0; i < turns->len; i++) {
        rs_op *op = rs_op_find(&machine->ops, turns->names[i]);
        if (!op || !(op->backend_word & WAITS_FOR_TURN)) continue;
        op->backend_word &= ~WAITS_FOR_TURN;
        if (op->series || !try_again(machine, op)) submit(machine, op);
    }
    turns->len = 0;
}

static bool is_in_kernel(const rs_op *op) {
    uint64_t elsewhere = WAITS_FOR_ENTRY | WAITS_FOR_TURN | RS_RETRY_WAITS;
    return op->state == RS_OP_SUBMITTED && !op->offloaded && !(op->backend_word & elsewhere);
}

static void tell_stashed(rs_machine *machine) {
    uring_state *state = state_of(machine);
    /* What comes meanwhile may make the stash move, and is told as well. */
    while (state->stash_told < state->stash_len) {
        uring_cqe cqe = state->stash[state->stash_told++];
        rs_op *op = rs_op_find(&machine->ops, cqe.user_data);
        if (op && is_in_kernel(op)) tell(machine, op, cqe.result, cqe.flags);
        else machine->metrics.wakes_dropped++;
    }
    state->stash_len = state->stash_told = 0;
}

static void uring_poll(rs_machine *machine) {
    uring_state *state = state_of(machine);
    rs_workers_tend(state->workers);
    if (RS_UNLIKELY(state->in_line)) serve_line(machine);
    flush(state);
    stash(state);
    tell_stashed(machine);
    rs_retry_serve(machine, &state->retry, try_again);
    serve_turns(machine);
    machine->metrics.system_calls = state->ring.system_calls;
}

static bool arm_wake(uring_state *state) {
    uring_sqe *sqe = next_entry(state);
    if (!sqe) return false;
    sqe->opcode = URING_OP_POLL_ADD;
    sqe->fd = state->wake;
    sqe->op_flags = POLLIN;
    sqe->len = URING_POLL_MULTISHOT;
    sqe->user_data = NAME_WAKE;
    state->wake_armed = true;
    return true;
}

static void uring_wait(rs_machine *machine, int64_t deadline_ns) {
    uring_state *state = state_of(machine);
    int64_t delay_ns = RS_NEVER;
    if (deadline_ns != RS_NEVER) {
        delay_ns = deadline_ns - rs_now(machine);
        if (delay_ns <= 0) return;
    }
    /* Without the one nobody could wake us, and who waits for an entry may be who would. */
    bool unarmed = !state->wake_armed && !arm_wake(state);
    if (RS_UNLIKELY(unarmed || (state->in_line && machine->ops.in_flight > 0))) {
        uring_ring_make_room(&state->ring);
        return;
    }
    /* No op, so nobody will poll for what came late. */
    if (machine->ops.in_flight == 0) state->stash_len = state->stash_told = 0;
    if (state->stash_len == 0 && !uring_ring_has_completions(&state->ring)) uring_ring_wait(&state->ring, delay_ns);
    stash(state);
}

static void uring_wake(rs_machine *machine) {
    uint64_t one = 1;
    while (write(state_of(machine)->wake, &one, sizeof(one)) < 0 && errno == EINTR) {}
}

/* Every op in the kernel has a completion, so it is enough to wait for those. */
static uint32_t left_in_kernel(rs_machine *machine) {
    uring_state *state = state_of(machine);
    uint32_t count = 0;
    for (; state->stash_told < state->stash_len; state->stash_told++) {
        uring_cqe cqe = state->stash[state->stash_told];
        rs_op *op = rs_op_find(&machine->ops, cqe.user_data);
        if (!op) continue;
        bool made = rs_op_table[op->request.kind].effect == RS_EFFECT_DESCRIPTOR && !(op->backend_word & URING_FOR_READINESS);
        if (made && cqe.result >= 0) close(cqe.result); /* nobody takes it */
        if (!(cqe.flags & URING_CQE_MORE)) op->backend_word = WAITS_FOR_ENTRY;
    }
    for (uint32_t index = 0; index < machine->ops.chunk_count * RS_OP_CHUNK; index++) {
        count += is_in_kernel(rs_op_at(&machine->ops, index));
    }
    return count;
}

#define LEAVE_NS 5000000000

static void uring_leave(rs_machine *machine) {
    uring_state *state = state_of(machine);
    int64_t until_ns = rs_now(machine) + LEAVE_NS;
    stash(state);
    for (uint32_t left; (left = left_in_kernel(machine)) > 0 && rs_now(machine) < until_ns;) {
        uring_sqe *sqe = next_entry(state);
        if (sqe) {
            sqe->opcode = URING_OP_ASYNC_CANCEL;
            sqe->fd = -1;
            sqe->op_flags = URING_CANCEL_ALL | URING_CANCEL_ANY;
        }
        uring_ring_wait(&state->ring, LEAVE_NS / 1000);
        stash(state);
    }
}

/* The child's memory of the ring is the parent's ring: unmapped before anything is written to it. */
static int uring_forked(rs_machine *machine) {
    uring_state *state = state_of(machine);
    uring_ring_close(&state->ring);
    close(state->wake);
    state->stash_len = state->stash_told = 0;
    state->in_line = false;
    state->retry = (rs_retry){0};
    state->turns.len = 0;
    rs_workers_forked(state->workers);
    return open_ring(machine, state);
}

const rs_backend rs_backend_uring = {
    .name = "uring", .inline_first = true, .hints = true, .open = uring_open, .close = uring_close, .arm = uring_arm,
    .cancel = uring_cancel, .poll = uring_poll, .wait = uring_wait, .wake = uring_wake, .leave = uring_leave, .forked = uring_forked,
};
