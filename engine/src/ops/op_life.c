#include "ops/op_life.h"
#include "core/machine.h"
#include "ops/descriptors.h"
#include "ops/platform.h"

#include <errno.h>
#include <string.h>

/* What a turn moves at most (turn.c). */
#define UNTRIED_LEN_MAX 65536u

static bool makes_descriptor(uint32_t kind) { return rs_op_kinds[kind].effect == RS_EFFECT_DESCRIPTOR; }

void rs_descriptor_made(rs_machine *machine, const rs_request *request, int64_t fd) {
    if (fd >= 0 && makes_descriptor(request->kind)) rs_platform_of(machine)->note_made(machine, request, (int)fd);
}

/* Not for one that may not wait: the hint may be old, and what is there is handed over even to a strand whose time is up. */
static bool is_hopeless(rs_machine *machine, const rs_request *request) {
    if (!rs_request_takes_stream(request) || (uint32_t)request->fd >= rs_descriptors_in(machine)->capacity) return false;
    if (request->transfer.len == 0) return false;
    RS_CHECK(!rs_descriptors_in(machine)->table[request->fd].drained || rs_descriptors_in(machine)->table[request->fd].bytes);
    return rs_descriptors_in(machine)->table[request->fd].drained && rs_refusal(machine, 0) == RS_WAKE_VALUE;
}

/* --- an error after the first bytes --- */

static bool reads_data(const rs_request *request) {
    const rs_op_traits *traits = rs_request_traits(request);
    return traits->side == RS_SIDE_READ && traits->effect == RS_EFFECT_DATA;
}

/* A recvmsg may be about something else than bytes. */
static bool asks_for_nothing(const rs_request *request) {
    if (rs_request_traits(request)->memory == RS_MEMORY_VECTOR) return request->vector.count == 0;
    return rs_request_buffer_len(request) == 0;
}

static uint64_t meaning_of(const rs_machine *machine, int fd) { return rs_platform_of(machine)->identity(machine, fd); }

/* The kernel reports an error of a socket once (SO_ERROR in socket(7)). Not if the number means something else by now. */
static bool is_reported_once(const rs_machine *machine, const rs_request *request, int64_t error) {
    bool from_kernel = error > RS_NO_MEMORY && error != -EAGAIN && error != -ECANCELED && error != -EBADF;
    if (!from_kernel || !reads_data(request) || (uint32_t)request->fd >= rs_descriptors_in(machine)->capacity) return false;
    return rs_platform_of(machine)->is_socket(machine, request->fd);
}

void rs_descriptor_owe(rs_machine *machine, const rs_request *request, uint64_t identity, int64_t error) {
    RS_CHECK(error < 0);
    if (!is_reported_once(machine, request, error)) return;
    rs_descriptor *descriptor = &rs_descriptors_in(machine)->table[request->fd];
    rs_descriptor_forgive(rs_descriptors_in(machine), descriptor);
    descriptor->owed_by = meaning_of(machine, request->fd);
    if (descriptor->owed_by == 0 || (identity && identity != descriptor->owed_by)) return; /* closed meanwhile */
    descriptor->owed_error = (int32_t)error;
    rs_descriptors_in(machine)->owing++;
    RS_CHECK(rs_descriptors_in(machine)->owing <= rs_descriptors_in(machine)->capacity);
}

/* 0: none. */
static int64_t take_owed_error(rs_machine *machine, const rs_request *request) {
    if (RS_LIKELY(rs_descriptors_in(machine)->owing == 0) || !reads_data(request) || asks_for_nothing(request)) return 0;
    if ((uint32_t)request->fd >= rs_descriptors_in(machine)->capacity) return 0;
    rs_descriptor *descriptor = &rs_descriptors_in(machine)->table[request->fd];
    RS_CHECK(descriptor->owed_error <= 0);
    int64_t error = descriptor->owed_error;
    rs_descriptor_forgive(rs_descriptors_in(machine), descriptor);
    return error && meaning_of(machine, request->fd) == descriptor->owed_by ? error : 0;
}

/* A cancelled strand that has been told so cleans up. What waits for a file alone is done there, as a plain call does it: a file is no
 * peer that may never answer, and whether it has to be waited for depends on its size and on what the kernel has cached. Before that it
 * is refused, or a cancelled strand could copy a file of any size to its end. */
static bool may_wait_for_file(rs_machine *machine, const rs_request *request) {
    const rs_op_traits *traits = rs_request_traits(request);
    if (RS_LIKELY(!rs_runs(machine)->scope->met) || rs_refusal(machine, 0) != RS_WAKE_CANCEL) return false;
    if (traits->of_file) return true;
    return traits->moves == RS_MOVES_MEMORY && rs_platform_of(machine)->is_file(machine, request->fd);
}

/* A backend to which all goes decides when an op happens. A strand that may not wait gets what happens now. */
static int64_t attempt(rs_machine *machine, const rs_request *request) {
    const rs_platform *platform = rs_platform_of(machine);
    if (RS_LIKELY(platform->calls != NULL)) return platform->calls[request->kind].attempt(machine, request);
    RS_CHECK(platform->at_once != NULL);
    if (machine->running == RS_NO_INDEX || rs_refusal(machine, 0) == RS_WAKE_VALUE) return -EAGAIN;
    bool waits = rs_request_traits(request)->of_file && !may_wait_for_file(machine, request);
    return waits ? -EAGAIN : platform->at_once(machine, request);
}

int64_t rs_try(rs_machine *machine, const rs_request *request) {
    RS_CHECK(request->kind < RS_OP_KINDS);
    int64_t owed = take_owed_error(machine, request);
    if (RS_UNLIKELY(owed < 0)) return owed;
    if (is_hopeless(machine, request)) return -EAGAIN;
    int64_t (*take_kept)(rs_machine *, const rs_request *) = rs_ops_in(machine)->take_kept;
    int64_t result = RS_UNLIKELY(take_kept != NULL) ? take_kept(machine, request) : -EAGAIN;
    if (RS_LIKELY(result == -EAGAIN)) result = attempt(machine, request);
    if (machine->backend->hints && rs_request_takes_stream(request)) {
        rs_descriptor_was_read(rs_descriptors_in(machine), request->fd, request->transfer.len, result);
    }
    RS_CHECK(result != -EINTR && result > -4096); /* an errno, or what was moved */
    if (result == -EAGAIN) return result;
    machine->metrics.ops_inline++;
    if (result > 0 && rs_op_kinds[request->kind].effect == RS_EFFECT_DATA) machine->turn.bytes += (uint64_t)result;
    if (RS_UNLIKELY(makes_descriptor(request->kind))) rs_descriptor_made(machine, request, result);
    return result;
}

/* A stream of bytes that is our own, unless it is known that nothing is there. Where more is moved than a turn may move, the copying is
 * what it costs. In whole ticks it is the order that counts. */
static bool may_go_untried(rs_machine *machine, const rs_request *request) {
    const rs_op_traits *traits = rs_request_traits(request);
    if (traits->memory != RS_MEMORY_BUFFER || machine->running == RS_NO_INDEX || machine->options.whole_ticks) return false;
    const rs_transfer *transfer = &request->transfer;
    if (transfer->len == 0 || transfer->len > UNTRIED_LEN_MAX || transfer->flags != 0) return false;
    if (traits->moves == RS_MOVES_MEMORY && transfer->offset >= 0) return false;
    const rs_descriptor *descriptor = rs_descriptor_find(rs_descriptors_in(machine), request->fd);
    if (!descriptor || descriptor->kind != RS_FD_STREAM || (descriptor->socket && !descriptor->bytes)) return false;
    if (descriptor->drained && traits->side == RS_SIDE_READ) return false;
    return rs_running(machine)->locks == 0 && rs_refusal(machine, 0) == RS_WAKE_VALUE;
}

int64_t rs_ask(rs_machine *machine, rs_request *request) {
    rs_untried *untried = &rs_ops_in(machine)->untried;
    uint32_t ready = machine->strands.run_len;
    if (RS_LIKELY(rs_untried_is_out(untried, ready)) || !may_go_untried(machine, request)) return rs_try(machine, request);
    if (!rs_untried_wants(untried, machine->metrics.polls, ready)) return rs_try(machine, request);
    if (!machine->backend->takes_untried(machine, request)) return rs_try(machine, request);
    rs_untried_gave(untried);
    request->options |= RS_REQUEST_UNTRIED;
    return -EAGAIN;
}

/* It is cancelled and has no memory, so nobody who closes the descriptor waits for it. */
static void leave_poll(rs_machine *machine, rs_op *op) {
    RS_ASSERT(rs_op_is_unwanted(op));
    rs_descriptor_remove(rs_descriptors_in(machine), rs_ops_in(machine), op);
    op->request.fd = -1;
    op->identity = 0;
}

const rs_request *rs_request_of_wait(const rs_machine *machine, const rs_strand *strand) {
    RS_CHECK(strand->wait == RS_WAIT_OP);
    return &rs_op_at(rs_ops_in(machine), strand->op)->request;
}

void rs_op_end(rs_machine *machine, rs_op *op) {
    RS_CHECK(op->state == RS_OP_TERMINAL || op->state == RS_OP_SUBMITTED);
    if (op->state == RS_OP_TERMINAL) {
        bool lent = op->request.options & RS_REQUEST_ANY_BUFFER;
        if (lent && op->request.transfer.address && machine->backend->release) machine->backend->release(machine, op);
        rs_op_release(rs_ops_in(machine), op);
        return;
    }
    if (op->request.kind == RS_OP_POLL && !op->offloaded) leave_poll(machine, op);
    else RS_ASSERT(rs_op_may_be_left(op));
    rs_op_orphan(op);
}

/* One that is beyond the table, and not open, shall not make the table as long as itself. */
static int64_t refuse_numbers(rs_machine *machine, const rs_request *request) {
    int32_t fds[2] = {request->fd, rs_request_has_target(request) ? request->splice.to_fd : -1};
    for (int i = 0; i < 2; i++) {
        RS_CHECK(fds[i] < RS_DESCRIPTORS_MAX);
        if (fds[i] < 0 || (uint32_t)fds[i] < rs_descriptors_in(machine)->capacity) continue;
        if (!rs_platform_of(machine)->is_open(machine, fds[i])) return -EBADF;
        if (!rs_descriptors_reserve(rs_descriptors_in(machine), fds[i])) return RS_NO_MEMORY;
    }
    return 0;
}

static bool is_no_number(int32_t fd) { return fd < 0 || fd >= RS_DESCRIPTORS_MAX; }

/* Tries do not find out all of these: poll(2) passes over a negative number, and an fsync is not tried at all. */
static bool names_no_descriptor(const rs_request *request) {
    if (rs_request_has_target(request)) return is_no_number(request->fd) || is_no_number(request->splice.to_fd);
    bool needs_one = rs_op_kinds[request->kind].side != RS_SIDE_NONE;
    return (request->fd < 0 && needs_one) || request->fd >= RS_DESCRIPTORS_MAX;
}

static bool is_being_closed(rs_machine *machine, const rs_request *request) {
    RS_CHECK((uint32_t)request->fd < rs_descriptors_in(machine)->capacity);
    const rs_descriptor *table = rs_descriptors_in(machine)->table;
    if (rs_request_has_target(request) && table[request->splice.to_fd].closing) return true;
    return table[request->fd].closing && request->kind != RS_OP_CLOSE;
}

/* Of those that others may close without our hearing of it. */
void rs_op_goes_by_number(rs_machine *machine, rs_op *op) {
    RS_CHECK(op->state == RS_OP_SUBMITTED && op->owner != NULL);
    int fd = op->request.fd;
    if (op->owner->is_gone || op->identity || fd < 0) return;
    if (rs_descriptor_kind(rs_descriptors_in(machine), fd) == RS_FD_UNKNOWN) op->identity = meaning_of(machine, fd);
}

bool rs_op_lost_descriptor(const rs_machine *machine, const rs_op *op) {
    RS_CHECK(op->identity == 0 || op->request.fd >= 0);
    return RS_UNLIKELY(op->identity != 0) && meaning_of(machine, op->request.fd) != op->identity;
}

/* --- owners --- */

static void discard_made(rs_machine *machine, rs_op *op, int64_t result) {
    if (result >= 0 && makes_descriptor(op->request.kind)) rs_platform_of(machine)->discard(machine, (int)result);
}

/* The number may mean another descriptor before the strand that has closed it goes on. */
static void end_close(rs_machine *machine, const rs_op *op, int64_t result) {
    bool announced = rs_descriptor_is_closing(rs_descriptors_in(machine), op->request.fd);
    if (announced && result != -ECANCELED) rs_descriptor_close_end(machine, op->request.fd);
}

static void strand_op_ended(rs_machine *machine, rs_op *op, int64_t result) {
    if (RS_UNLIKELY(op->request.kind == RS_OP_CLOSE)) end_close(machine, op, result);
    /* Bytes have moved, so the op succeeds with them. The next read reports an error that came after the first byte. */
    if (result < 0 && op->request.done > 0) {
        if (!op->closing) rs_descriptor_owe(machine, &op->request, op->identity, result);
        result = (int64_t)op->request.done;
    }
    RS_CHECK(op->ticket != 0 && op->strand != RS_NO_ID);
    rs_wake_kind kind = RS_WAKE_VALUE;
    if (result == -ECANCELED) {
        if (op->cancel != RS_WAKE_VALUE) kind = (rs_wake_kind)op->cancel;
        else if (op->closing) result = -EBADF;
    }
    op->result = result;
    if (rs_wake(machine, op->strand, op->ticket, kind, result)) rs_descriptor_made(machine, &op->request, result);
    else discard_made(machine, op, result); /* its strand has been sent on, and takes no result */
}

static const rs_op_owner strand_owner = {.ended = strand_op_ended, .keeps = true};

static const rs_op_owner orphan_owner = {.ended = discard_made};

void rs_op_orphan(rs_op *op) {
    RS_CHECK(op->state == RS_OP_SUBMITTED);
    op->owner = &orphan_owner;
    op->context = NULL;
}

bool rs_op_is_orphan(const rs_op *op) { return op->owner == &orphan_owner; }

rs_op *rs_op_start(rs_machine *machine, const rs_request *request, uint32_t park_flags, int64_t deadline_ns) {
    rs_strand *strand = rs_runs(machine);
    if (RS_UNLIKELY(!rs_slab_reserve(&rs_ops_in(machine)->slab))) {
        machine->refusal = RS_WAKE_NO_MEMORY;
        return NULL;
    }
    if (RS_UNLIKELY(may_wait_for_file(machine, request))) park_flags |= RS_PARK_SHIELDED;
    uint64_t ticket = rs_park_begin(machine, RS_WAIT_OP, park_flags, deadline_ns);
    if (ticket == 0) return NULL;
    rs_op *op = rs_op_take(rs_ops_in(machine), request);
    RS_CHECK(op != NULL); /* it was reserved */
    RS_CHECK(strand->state == RS_STRAND_PARKED && strand->ticket == ticket);
    op->owner = &strand_owner;
    op->strand = rs_strand_id(strand);
    op->ticket = ticket;
    strand->op = op->index;
    rs_op_launch(machine, op);
    return op;
}

static void add_to_target(rs_machine *machine, rs_op *op) {
    RS_CHECK(rs_request_has_target(&op->request));
    rs_descriptor_get(rs_descriptors_in(machine), op->request.splice.to_fd)->targeted++;
    rs_links_append(&rs_ops_in(machine)->targeted, &op->link);
}

static void remove_from_target(rs_machine *machine, rs_op *op) {
    RS_CHECK((uint32_t)op->request.splice.to_fd < rs_descriptors_in(machine)->capacity);
    RS_CHECK(rs_descriptors_in(machine)->table[op->request.splice.to_fd].targeted > 0);
    rs_descriptors_in(machine)->table[op->request.splice.to_fd].targeted--;
    rs_links_remove(&rs_ops_in(machine)->targeted, &op->link);
}

void rs_op_launch(rs_machine *machine, rs_op *op) {
    RS_CHECK(op->owner != NULL && op->cancel == RS_WAKE_VALUE && !op->closing);
    const rs_request *request = &op->request;
    rs_op_become(op, RS_OP_SUBMITTED);
    machine->in_flight++;
    machine->metrics.ops_started++;
    rs_trace_if(machine, RS_TRACE_OP, rs_op_id(op), request->kind);
    int64_t refused = RS_UNLIKELY(names_no_descriptor(request)) ? -EBADF : refuse_numbers(machine, request);
    if (RS_UNLIKELY(refused < 0)) {
        op->request.fd = -1;
        rs_op_complete(machine, op, refused);
        return;
    }
    if (request->fd >= 0) {
        rs_descriptor_add(rs_descriptors_in(machine), rs_ops_in(machine), op);
        if (rs_request_has_target(request)) add_to_target(machine, op);
        if (RS_UNLIKELY(is_being_closed(machine, request))) {
            op->closing = true;
            rs_op_complete(machine, op, -EBADF);
            return;
        }
        int64_t owed = take_owed_error(machine, request);
        if (RS_UNLIKELY(owed < 0)) {
            rs_op_complete(machine, op, owed);
            return;
        }
    }
    if (RS_UNLIKELY(request->options & RS_REQUEST_ALL)) rs_op_goes_by_number(machine, op);
    machine->backend->arm(machine, op);
}

/* Somebody who takes as fast as we give could keep us here for ever, so an op goes on for as long as a strand may: about 100 us. */
#define BYTES_AT_ONCE 262144u
#define TRIES_AT_ONCE 64

int64_t rs_op_go_on(rs_machine *machine, rs_op *op, int64_t result) {
    RS_CHECK(op->state == RS_OP_SUBMITTED && !op->offloaded);
    rs_request *request = &op->request;
    uint64_t until = request->done + BYTES_AT_ONCE;
    for (int tries = 1; rs_request_goes_on(request, result); tries++) {
        if (rs_op_is_unwanted(op)) return -ECANCELED;
        if (tries == TRIES_AT_ONCE || request->done >= until) return -EAGAIN;
        result = rs_platform_of(machine)->calls[request->kind].attempt(machine, request);
    }
    return result;
}

void rs_op_complete(rs_machine *machine, rs_op *op, int64_t result) {
    RS_ASSERT(op->state == RS_OP_SUBMITTED);
    RS_CHECK(op->request.done == 0 || (op->request.options & RS_REQUEST_ALL));
    if (result >= 0) result += (int64_t)op->request.done;
    rs_trace_if(machine, RS_TRACE_COMPLETE, rs_op_id(op), result);
    if (op->request.fd >= 0) {
        rs_descriptor_remove(rs_descriptors_in(machine), rs_ops_in(machine), op);
        if (rs_request_has_target(&op->request)) remove_from_target(machine, op);
    }
    RS_CHECK(machine->in_flight > 0);
    RS_CHECK(op->job == NULL); /* no worker is at it */
    machine->in_flight--;
    rs_op_become(op, RS_OP_TERMINAL);
    RS_CHECK(op->next == 0 && op->previous == 0);
    if (op->closing) rs_list_wake_all(machine, &rs_descriptors_in(machine)->closers, 0);
    const rs_op_owner *owner = op->owner;
    owner->ended(machine, op, result);
    if (!owner->keeps) rs_op_release(rs_ops_in(machine), op);
}

/* A number beyond the table has been in no op. It gets an entry only if it is open: it may be any number. */
static rs_descriptor *entry_to_close(rs_machine *machine, int fd) {
    RS_CHECK(fd >= 0);
    bool known = (uint32_t)fd < rs_descriptors_in(machine)->capacity;
    if (!known && !rs_platform_of(machine)->is_open(machine, fd)) return NULL;
    return rs_descriptors_reserve(rs_descriptors_in(machine), fd) ? &rs_descriptors_in(machine)->table[fd] : NULL;
}

bool rs_descriptor_close_begin(rs_machine *machine, int fd) {
    rs_descriptor *descriptor = entry_to_close(machine, fd);
    if (!descriptor) return true;
    if (descriptor->closing) return false;
    rs_descriptor_forgive(rs_descriptors_in(machine), descriptor);
    descriptor->closing = true;
    descriptor->generation++;
    return true;
}

void rs_descriptor_drop(rs_machine *machine, int fd) {
    if ((uint32_t)fd >= rs_descriptors_in(machine)->capacity) return;
    rs_descriptor *descriptor = &rs_descriptors_in(machine)->table[fd];
    RS_ASSERT(descriptor->first == 0 && descriptor->targeted == 0);
    if (RS_UNLIKELY(rs_ops_in(machine)->drop_kept != NULL)) rs_ops_in(machine)->drop_kept(machine, fd);
    rs_descriptor_forgive(rs_descriptors_in(machine), descriptor);
    rs_descriptor closed = {.closing = descriptor->closing, .generation = descriptor->generation};
    memcpy(closed.of_backend, descriptor->of_backend, sizeof(closed.of_backend));
    *descriptor = closed;
}

void rs_descriptor_close_end(rs_machine *machine, int fd) {
    if ((uint32_t)fd >= rs_descriptors_in(machine)->capacity) return;
    RS_CHECK(rs_descriptors_in(machine)->table[fd].first == 0 && rs_descriptors_in(machine)->table[fd].targeted == 0);
    RS_CHECK(rs_descriptors_in(machine)->table[fd].closing);
    /* Once more, for what has looked at it since. */
    rs_descriptors_in(machine)->table[fd].closing = false;
    rs_descriptors_in(machine)->table[fd].generation++;
}

void rs_op_cancel(rs_machine *machine, rs_op *op, rs_wake_kind kind) {
    RS_CHECK(op->state == RS_OP_SUBMITTED && kind != RS_WAKE_VALUE);
    if (op->cancel != RS_WAKE_VALUE || (op->closing && !rs_op_may_be_left(op))) return;
    op->cancel = (uint8_t)kind;
    machine->backend->cancel(machine, op);
}

bool rs_op_leave(rs_machine *machine, rs_op *op) {
    RS_CHECK(op->state == RS_OP_SUBMITTED);
    if (!rs_op_may_be_left(op) || op->cancel == RS_WAKE_VALUE) return false;
    RS_CHECK(op->owner == &strand_owner);
    rs_wake(machine, op->strand, op->ticket, (rs_wake_kind)op->cancel, 0);
    return true;
}

/* Its descriptor is being closed: the strand gets -EBADF, unless it was cancelled before. */
static void end_op(rs_machine *machine, rs_op *op) {
    RS_CHECK(op->state == RS_OP_SUBMITTED);
    bool asked = rs_op_is_unwanted(op);
    op->closing = true;
    if (!asked) machine->backend->cancel(machine, op);
}

/* Those with a target are few and end soon, so they are looked for among themselves. */
static void end_ops_to(rs_machine *machine, int fd) {
    RS_EACH_LINKED(&rs_ops_in(machine)->targeted, rs_op, link, op) {
        RS_CHECK(rs_request_has_target(&op->request));
        if (op->request.splice.to_fd == fd) end_op(machine, op);
    }
}

uint32_t rs_descriptor_closing(rs_machine *machine, int fd) {
    if ((uint32_t)fd >= rs_descriptors_in(machine)->capacity) return 0;
    uint32_t link = rs_descriptors_in(machine)->table[fd].first;
    while (link) {
        rs_op *op = rs_op_at(rs_ops_in(machine), link - 1);
        link = op->next;
        RS_CHECK(op->request.fd == fd);
        end_op(machine, op);
    }
    if (RS_UNLIKELY(rs_descriptors_in(machine)->table[fd].targeted > 0)) end_ops_to(machine, fd);
    uint32_t remaining = rs_descriptors_in(machine)->table[fd].targeted;
    for (link = rs_descriptors_in(machine)->table[fd].first; link; link = rs_op_at(rs_ops_in(machine), link - 1)->next) remaining++;
    return remaining;
}

/* --- the part --- */

static rs_untried untried_of(const rs_machine *machine) {
    bool never = machine->options.stream_io == RS_STREAM_IO_INLINE || !machine->backend->takes_untried;
    if (never) return (rs_untried){.least = RS_UNTRIED_NEVER};
    bool always = machine->options.stream_io == RS_STREAM_IO_RING;
    return always ? rs_untried_always() : rs_untried_begin(rs_platform_of(machine)->call_ns);
}

/* A strand waits for one op at most, and only ops that a worker is at outlive their strand's wait. */
static void open_ops(rs_machine *machine) {
    uint32_t by_workers = machine->options.workers_max + RS_OPENS_MAX + 2 * RS_OPS_LEFT_MAX + RS_LOOK_UPS_MAX;
    rs_ops_init(rs_ops_in(machine), machine->options.strands_max + by_workers);
    rs_ops_in(machine)->untried = untried_of(machine);
}

static void close_ops(rs_machine *machine) { rs_ops_free(rs_ops_in(machine)); }

static void on_complete(rs_machine *machine, const rs_message *message) {
    RS_CHECK(machine->outside > 0);
    machine->outside--;
    rs_op *op = rs_op_find(rs_ops_in(machine), message->name);
    RS_CHECK(op != NULL && op->offloaded);
    rs_op_complete(machine, op, message->value);
}

/* The descriptor that it is has come along, and nobody here takes it. */
static void forget_answer(rs_machine *machine, const rs_message *message) {
    RS_CHECK(message->kind == RS_MESSAGE_COMPLETE);
    rs_op *op = rs_op_find(rs_ops_in(machine), message->name);
    if (op) discard_made(machine, op, message->value);
}

static bool op_takes_nothing(const rs_machine *machine, const rs_strand *strand) {
    RS_CHECK(strand->wait == RS_WAIT_OP && strand->op != RS_NO_INDEX);
    return rs_request_traits(&rs_op_at(rs_ops_in(machine), strand->op)->request)->takes_nothing;
}

static void interrupt_op(rs_machine *machine, rs_strand *strand, rs_wake_kind kind) {
    RS_CHECK(strand->state == RS_STRAND_PARKED && strand->wait == RS_WAIT_OP);
    RS_ASSERT(strand->op != RS_NO_INDEX);
    rs_op *op = rs_op_at(rs_ops_in(machine), strand->op);
    RS_ASSERT(op->owner == &strand_owner && op->strand == rs_strand_id(strand));
    /* A strand that is to unwind at once gets the interrupt in the place of a timeout that has cancelled the op
     * (rs_interrupt_first). */
    bool first = machine->wakes_first && kind == RS_WAKE_INTERRUPT && op->cancel == RS_WAKE_TIMEOUT;
    if (first && op_takes_nothing(machine, strand)) op->cancel = RS_WAKE_INTERRUPT;
    rs_op_cancel(machine, op, kind);
    /* A poll takes nothing. In whole ticks its strand goes on in its turn, and not in the tick in which the kernel answers. */
    bool at_once = machine->options.whole_ticks && op->request.kind == RS_OP_POLL && op->cancel == kind;
    if (RS_UNLIKELY(at_once) && strand->state == RS_STRAND_PARKED) rs_wake(machine, op->strand, op->ticket, kind, 0);
}

/* That of the survivor, if it forked from a signal handler that ran on top of its wait, it gives back itself. */
static void forget_ops(rs_machine *machine, const rs_strand *survivor) {
    RS_EACH_OP(rs_ops_in(machine), op) {
        op->state = RS_OP_TERMINAL;
        bool own = survivor->wait == RS_WAIT_OP && survivor->op == op->index;
        RS_CHECK(!own || op->strand == rs_strand_id(survivor));
        if (own) continue;
        rs_op_release(rs_ops_in(machine), op);
    }
    rs_ops_in(machine)->targeted = (rs_links){0};
}

uint32_t rs_ops_end_orphans(rs_machine *machine) {
    uint32_t left = 0;
    RS_EACH_OP(rs_ops_in(machine), op) {
        if (op->state != RS_OP_SUBMITTED || !rs_op_is_orphan(op) || !rs_request_traits(&op->request)->takes_nothing) continue;
        rs_op_cancel(machine, op, RS_WAKE_CANCEL);
        left += op->state == RS_OP_SUBMITTED;
    }
    return left;
}

bool rs_ops_are_over(const rs_machine *machine) {
    RS_EACH_OP(rs_ops_in(machine), op) {
        if (op->state == RS_OP_SUBMITTED && !(rs_op_is_orphan(op) && rs_op_may_be_left(op))) return false;
    }
    return true;
}

bool rs_ops_use_memory(const rs_machine *machine) {
    RS_EACH_OP(rs_ops_in(machine), op) {
        if (op->in_doubt || (atomic_load(&op->job) && !rs_op_may_be_left(op))) return true;
    }
    return false;
}

const rs_part rs_ops_part = {
    .open = open_ops, .message = RS_MESSAGE_COMPLETE, .on_message = on_complete, .forget_message = forget_answer,
    .wait = RS_WAIT_OP, .interrupt = interrupt_op,
    .takes_nothing = op_takes_nothing, .forked = forget_ops, .close = close_ops,
};
