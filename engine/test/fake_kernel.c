#include "fake_kernel.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUESTS_MAX 1024u
#define DELAY_MAX 6

enum { SQ_HEAD = 0, SQ_TAIL = 4, SQ_FLAGS = 8, CQ_HEAD = 64, CQ_TAIL = 68, SQ_ARRAY = 128, CQES = 4096 };

typedef struct {
    uring_sqe entry;
    bool ended;                 /* `result` is known, and posted when `due` has come */
    bool again;                 /* its completion was posted before, and is once more */
    int32_t result;
    uint32_t flags;             /* of its completion */
    uint32_t due;
    uint64_t seen;              /* lasting poll: the count at its last event */
} request;

/* Of a thousand. */
typedef struct {
    uint32_t refuse_itself, leave_entries, fail_enter, refuse_when_full, late, twice, transfer_short, fail_entry, end_poll, lose_cancel,
        miss_cancel, slow_cancel, choose_early;
} faults;

static struct {
    int fd;
    char *rings;
    uring_sqe *sqes;
    uint32_t sq_entries, cq_entries, setup_flags;
    uint32_t enters;
    bool thread_sleeps;         /* the one that watches the ring, where there is one */
    request requests[REQUESTS_MAX];
    uint32_t len;
    uring_cqe overflow[REQUESTS_MAX];
    uint32_t overflow_len;
    uring_buffer_ring_wish buffers;
    uint16_t buffers_taken;
    uint64_t state;
    int64_t now_ns;
    faults faults;
    uint64_t refused;           /* opcodes, as bits, from the enter `refused_from` on */
    uint32_t refused_from;
    int32_t refusal;
    bool refuses_lasting_polls;
    void (*on_sleep)(void);
    bool (*lives)(uint64_t name);
    char failure[120];
} kernel;

/* --- drawing --- */

uint64_t fake_kernel_draw(uint64_t below) {
    uint64_t z = (kernel.state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (z ^ (z >> 31)) % below;
}

static bool happens(uint32_t of_thousand) { return of_thousand && fake_kernel_draw(1000) < of_thousand; }

/* Half of the faults do not happen at all, so that the others are seen without them. */
static uint32_t some(uint32_t max) { return fake_kernel_draw(2) ? (uint32_t)fake_kernel_draw(max + 1) : 0; }

void fake_kernel_begin(uint64_t seed, void (*on_sleep)(void), bool (*lives)(uint64_t name)) {
    memset(&kernel, 0, sizeof(kernel));
    kernel.state = seed * 0x2545F4914F6CDD1Du + 1;
    kernel.now_ns = 1000000000;
    kernel.on_sleep = on_sleep;
    kernel.lives = lives;
}

static void choose_refused(void) {
    static const uint8_t opcodes[] = {URING_OP_READ, URING_OP_WRITE, URING_OP_RECV, URING_OP_SEND, URING_OP_ACCEPT, URING_OP_ASYNC_CANCEL};
    static const int32_t errors[] = {-EACCES, -EINVAL, -EPERM};
    for (size_t i = 0; i < sizeof(opcodes); i++) {
        if (fake_kernel_draw(4) == 0) kernel.refused |= 1ull << opcodes[i];
    }
    kernel.refused_from = kernel.enters + (uint32_t)fake_kernel_draw(40);
    kernel.refusal = errors[fake_kernel_draw(3)];
    kernel.refuses_lasting_polls = fake_kernel_draw(4) == 0;
}

void fake_kernel_misbehave(void) {
    if (fake_kernel_draw(2)) choose_refused();
    kernel.faults = (faults){.refuse_itself = some(100), .leave_entries = some(500), .fail_enter = some(300), .refuse_when_full = some(900),
                             .late = some(700), .twice = some(300), .transfer_short = some(900), .fail_entry = some(200),
                             .end_poll = some(700), .lose_cancel = some(700), .miss_cancel = some(500), .slow_cancel = some(700),
                             .choose_early = some(300)};
}

/* To look at it takes time, so that who looks until something comes does not look for ever. */
int64_t fake_kernel_now(void) { return kernel.now_ns += 200; }
const char *fake_kernel_failure(void) { return kernel.failure[0] ? kernel.failure : NULL; }

static void fail(const char *what, uint64_t detail) {
    if (!kernel.failure[0]) snprintf(kernel.failure, sizeof(kernel.failure), "%s (%llu)", what, (unsigned long long)detail);
}

/* --- set-up --- */

static int fake_setup(uint32_t entries, uring_params *params) {
    /* As older kernels answer to what they do not know. */
    if ((params->flags & URING_SETUP_SINGLE_ISSUER) && fake_kernel_draw(2)) return -EINVAL;
    if ((params->flags & URING_SETUP_COOP_TASKRUN) && fake_kernel_draw(2)) return -EINVAL;
    kernel.sq_entries = 2u << fake_kernel_draw(5);
    kernel.cq_entries = kernel.sq_entries << fake_kernel_draw(3);
    if (kernel.sq_entries > entries) kernel.sq_entries = entries;
    kernel.setup_flags = params->flags;
    kernel.fd = memfd_create("fake_kernel", MFD_CLOEXEC);
    RS_ASSERT(kernel.fd >= 0 && ftruncate(kernel.fd, (off_t)URING_MAP_SQES + 65536) == 0);
    kernel.rings = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, kernel.fd, URING_MAP_RINGS);
    kernel.sqes = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, kernel.fd, (off_t)URING_MAP_SQES);
    RS_ASSERT(kernel.rings != MAP_FAILED && (void *)kernel.sqes != MAP_FAILED);
    params->sq_entries = kernel.sq_entries;
    params->cq_entries = kernel.cq_entries;
    params->features = UINT32_MAX & ~(fake_kernel_draw(2) ? URING_FEATURE_CQE_SKIP : 0);
    params->sq = (uring_sq_offsets){.head = SQ_HEAD, .tail = SQ_TAIL, .flags = SQ_FLAGS, .array = SQ_ARRAY};
    params->cq = (uring_cq_offsets){.head = CQ_HEAD, .tail = CQ_TAIL, .cqes = CQES};
    return kernel.fd;
}

static int register_buffers(const uring_buffer_ring_wish *wish) {
    /* Buffers that are filled by and by: with one chosen early nobody knows where in them the bytes are. */
    if (wish->flags) fail("flags of a ring of buffers", wish->flags);
    if (fake_kernel_draw(4) == 0) return -EINVAL;
    kernel.buffers = *wish;
    return 0;
}

static int32_t cancel_by_call(const uring_sync_cancel *what);

static int fake_register(int fd, uint32_t opcode, void *argument, uint32_t count) {
    if (fd == kernel.fd && opcode == URING_REGISTER_SYNC_CANCEL) return cancel_by_call(argument);
    if (fd == kernel.fd && opcode == URING_REGISTER_BUFFER_RING) return register_buffers(argument);
    if (fd != kernel.fd || opcode != URING_REGISTER_PROBE) return -EINVAL;
    uring_probe *probe = argument;
    probe->ops_len = 64;
    for (uint32_t i = 0; i < 64 && i < count; i++) {
        probe->ops[i] = (uring_probe_op){.opcode = (uint8_t)i, .flags = URING_PROBE_SUPPORTED};
    }
    return 0;
}

void fake_kernel_end(void) {
    munmap(kernel.rings, 65536);
    munmap(kernel.sqes, 65536);
}

/* --- completions --- */

static uint32_t *field(uint32_t offset) { return (uint32_t *)(kernel.rings + offset); }
static uint32_t completions(void) { return *field(CQ_TAIL) - *field(CQ_HEAD); }

static void put(uring_cqe cqe) {
    uring_cqe *cqes = (uring_cqe *)(kernel.rings + CQES);
    cqes[*field(CQ_TAIL) & (kernel.cq_entries - 1)] = cqe;
    ++*field(CQ_TAIL);
}

static void post(uint64_t user_data, int32_t result, uint32_t flags) {
    uring_cqe cqe = {.user_data = user_data, .result = result, .flags = flags};
    if (kernel.overflow_len == 0 && completions() < kernel.cq_entries) {
        put(cqe);
    } else {
        RS_ASSERT(kernel.overflow_len < REQUESTS_MAX);
        kernel.overflow[kernel.overflow_len++] = cqe;
    }
}

static void fetch_held_back(void) {
    uint32_t taken = 0;
    while (taken < kernel.overflow_len && completions() < kernel.cq_entries) put(kernel.overflow[taken++]);
    kernel.overflow_len -= taken;
    memmove(kernel.overflow, kernel.overflow + taken, sizeof(uring_cqe) * kernel.overflow_len);
}

/* --- entries --- */

static bool is_lasting_poll(const request *one) {
    return one->entry.opcode == URING_OP_POLL_ADD && (one->entry.len & URING_POLL_MULTISHOT);
}

static bool accepts_many(const request *one) {
    return one->entry.opcode == URING_OP_ACCEPT && (one->entry.priority & URING_ACCEPT_MULTISHOT);
}

/* Of the one thing for which it waits when nobody has an op. */
static bool is_for_wakes(const request *one) { return is_lasting_poll(one) || one->entry.user_data == 1; }

static bool lasts(const request *one) { return is_lasting_poll(one) || accepts_many(one); }

uint32_t fake_kernel_pending(void) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < kernel.len; i++) count += !is_for_wakes(&kernel.requests[i]) && !kernel.requests[i].again;
    return count;
}

static bool is_transfer(const uring_sqe *entry) {
    return entry->opcode == URING_OP_READ || entry->opcode == URING_OP_WRITE || entry->opcode == URING_OP_SEND ||
           entry->opcode == URING_OP_RECV;
}

static int64_t call(const uring_sqe *entry) {
    void *address = (void *)(uintptr_t)entry->address;
    struct pollfd descriptor = {.fd = entry->fd, .events = (short)entry->op_flags};
    size_t len = entry->len;
    if (is_transfer(entry) && len > 1 && happens(kernel.faults.transfer_short)) len = 1 + fake_kernel_draw(len);
    if (len > entry->len) len = entry->len;
    switch (entry->opcode) {
    case URING_OP_READ: return read(entry->fd, address, len);
    case URING_OP_WRITE: return write(entry->fd, address, len);
    case URING_OP_RECV: return recv(entry->fd, address, len, MSG_DONTWAIT);
    case URING_OP_SEND: return send(entry->fd, address, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    case URING_OP_ACCEPT: return accept4(entry->fd, NULL, NULL, (int)entry->op_flags);
    case URING_OP_POLL_ADD:
        if (poll(&descriptor, 1, 0) != 0) return descriptor.revents;
        errno = EAGAIN;
        return -1;
    default:
        fail("an unknown opcode", entry->opcode);
        return 0;
    }
}

static bool chooses_buffer(const uring_sqe *entry) { return entry->flags & URING_SQE_BUFFER_SELECT; }

static uring_buffer *next_buffer(void) {
    uring_buffer *ring = (uring_buffer *)(uintptr_t)kernel.buffers.ring_address;
    if (kernel.buffers_taken == ring[0].tail) return NULL;
    return &ring[kernel.buffers_taken & (kernel.buffers.ring_entries - 1)];
}

static uring_sqe with_buffer(const request *one, const uring_buffer *buffer) {
    uring_sqe entry = one->entry;
    entry.address = buffer->address;
    entry.flags &= (uint8_t)~URING_SQE_BUFFER_SELECT;
    if (buffer->len < entry.len) entry.len = buffer->len;
    return entry;
}

static void use_up(request *one, const uring_buffer *buffer) {
    one->flags = URING_CQE_BUFFER | (uint32_t)buffer->id << URING_CQE_BUFFER_SHIFT;
    kernel.buffers_taken++;
}

static int64_t receive(request *one) {
    uring_buffer *buffer = next_buffer();
    errno = ENOBUFS;
    if (!buffer) return -1;
    uring_sqe entry = with_buffer(one, buffer);
    int64_t result = call(&entry);
    if (result > 0 || (result == 0 && fake_kernel_draw(2))) use_up(one, buffer);
    return result;
}

/* As for a thread of the kernel's, which cannot give it back: whatever comes of the op, it has used the buffer. */
static void choose_early(request *one) {
    uring_buffer *buffer = next_buffer();
    if (!buffer) return;
    one->entry = with_buffer(one, buffer);
    use_up(one, buffer);
}

static uint32_t some_time(void) { return kernel.enters + (uint32_t)fake_kernel_draw(DELAY_MAX); }

static void end(request *one, int32_t result) {
    one->ended = true;
    one->result = result;
    one->due = happens(kernel.faults.late) ? some_time() : kernel.enters;
}

static void try_to_end(request *one) {
    if (one->ended || lasts(one)) return;
    int64_t result = chooses_buffer(&one->entry) ? receive(one) : call(&one->entry);
    if (result < 0 && errno == EAGAIN) return;
    if (result < 0 && errno == EBADF) fail("an op on a closed descriptor", one->entry.opcode);
    end(one, result < 0 ? -errno : (int32_t)result);
}

static request *add(const uring_sqe *entry) {
    RS_ASSERT(kernel.len < REQUESTS_MAX);
    kernel.requests[kernel.len] = (request){.entry = *entry};
    return &kernel.requests[kernel.len++];
}

static int32_t cancel_one(request *one) {
    if (happens(kernel.faults.miss_cancel)) return -ENOENT; /* it is on its way from one list to another */
    if (!chooses_buffer(&one->entry) && happens(kernel.faults.lose_cancel)) try_to_end(one);
    if (one->ended) return -ENOENT;
    if (happens(kernel.faults.slow_cancel)) {
        /* A thread of the kernel's is at it. */
        *one = (request){.entry = one->entry, .flags = one->flags, .ended = true, .result = -EINTR, .due = some_time()};
        return -EALREADY;
    }
    end(one, -ECANCELED);
    return 0;
}

static int32_t cancel_named(uint64_t name, uint32_t flags) {
    int32_t result = -ENOENT;
    for (uint32_t i = 0; i < kernel.len; i++) {
        request *one = &kernel.requests[i];
        if (one->again || (!(flags & URING_CANCEL_ANY) && one->entry.user_data != name)) continue;
        result = cancel_one(one);
    }
    return result;
}

/* It does not wait for a thread that is at it. */
static int32_t cancel_by_call(const uring_sync_cancel *what) {
    if (what->timeout.tv_sec || what->timeout.tv_nsec) fail("a cancellation that waits", (uint64_t)what->timeout.tv_sec);
    int32_t result = cancel_named(what->address, what->flags);
    return result == -EALREADY ? -ETIME : result;
}

static void cancel(const uring_sqe *entry) {
    int32_t result = cancel_named(entry->address, entry->op_flags);
    if (result != 0 || !(entry->flags & URING_SQE_CQE_SKIP_SUCCESS)) post(entry->user_data, result, 0);
}

static bool is_refused(const uring_sqe *entry) {
    request one = {.entry = *entry};
    if (is_lasting_poll(&one) && kernel.refuses_lasting_polls) return true;
    return kernel.enters >= kernel.refused_from && (kernel.refused & 1ull << entry->opcode);
}

static void take(const uring_sqe *entry) {
    static const int32_t errors[] = {-EAGAIN, -EINTR, -ENOBUFS};
    if (entry->opcode == URING_OP_NOP) {
        post(entry->user_data, 0, 0);
    } else if (is_refused(entry)) {
        post(entry->user_data, kernel.refusal, 0);
    } else if (entry->opcode != URING_OP_ASYNC_CANCEL && entry->fd < 0) {
        post(entry->user_data, -EBADF, 0);
    } else if (entry->opcode == URING_OP_ASYNC_CANCEL) {
        cancel(entry);
    } else {
        request *one = add(entry);
        if (is_transfer(entry) && happens(kernel.faults.refuse_itself)) end(one, -EACCES);
        else if (!is_lasting_poll(one) && happens(kernel.faults.fail_entry)) end(one, errors[fake_kernel_draw(is_transfer(entry) ? 3 : 2)]);
        else if (chooses_buffer(entry) && happens(kernel.faults.choose_early)) choose_early(one);
        else if (!chooses_buffer(entry) && !happens(kernel.faults.late)) try_to_end(one);
    }
}

static uint32_t take_entries(uint32_t submit) {
    uint32_t *array = field(SQ_ARRAY), taken = 0;
    uint32_t shown = *field(SQ_TAIL) - *field(SQ_HEAD);
    if (submit > shown) submit = shown;
    if (submit > 0 && happens(kernel.faults.leave_entries)) submit = (uint32_t)fake_kernel_draw(submit + 1);
    for (; taken < submit; taken++) {
        take(&kernel.sqes[array[*field(SQ_HEAD) & (kernel.sq_entries - 1)]]);
        ++*field(SQ_HEAD);
    }
    return taken;
}

/* --- time passes --- */

static uint64_t count_of(int eventfd) {
    uint64_t count;
    if (read(eventfd, &count, sizeof(count)) != sizeof(count)) return 0;
    RS_ASSERT(write(eventfd, &count, sizeof(count)) == sizeof(count));
    return count;
}

/* False: it lasts no longer. */
static bool serve_poll(request *one) {
    uint64_t count = count_of(one->entry.fd);
    bool event = count != one->seen, last = happens(kernel.faults.end_poll);
    one->seen = count;
    if (!event) return true;
    post(one->entry.user_data, POLLIN, last ? 0 : URING_CQE_MORE);
    return !last;
}

static bool serve_accepts(request *one) {
    for (;;) {
        int fd = accept4(one->entry.fd, NULL, NULL, (int)one->entry.op_flags);
        if (fd < 0 && errno == EAGAIN) return true;
        bool last = fd < 0 || happens(kernel.faults.end_poll);
        post(one->entry.user_data, fd < 0 ? -errno : fd, last ? 0 : URING_CQE_MORE);
        if (last) return false;
    }
}

/* Posts its completion when that is due. False: the kernel has done with it. */
static bool complete(request *one) {
    if (!one->ended || one->due > kernel.enters) return true;
    /* An op that goes on is asked for anew under its name. */
    if (one->again && kernel.lives(one->entry.user_data)) return false;
    bool more = one->entry.opcode == URING_OP_RECV && fake_kernel_draw(2);
    post(one->entry.user_data, one->result, one->flags | (more ? URING_CQE_SOCK_NONEMPTY : 0));
    if (one->again || one->flags || !happens(kernel.faults.twice)) return false;
    one->again = true;
    one->due = kernel.enters + 1 + (uint32_t)fake_kernel_draw(DELAY_MAX);
    return true;
}

static void progress(bool all) {
    for (uint32_t i = 0; i < kernel.len;) {
        request *one = &kernel.requests[i];
        bool stays = true;
        if (lasts(one) && !one->ended) {
            stays = accepts_many(one) ? serve_accepts(one) : serve_poll(one);
        } else {
            if (all || !happens(kernel.faults.late)) try_to_end(one);
            if (all && !one->again) one->due = kernel.enters;
            stays = complete(one);
        }
        if (stays) i++;
        else memmove(one, one + 1, sizeof(*one) * (--kernel.len - i));
    }
    fetch_held_back();
}

static int sleep_until_completion(const uring_wait_argument *argument) {
    progress(false);
    if (completions() == 0) progress(true);
    if (completions() == 0) {
        kernel.on_sleep();
        progress(true);
    }
    if (completions() > 0) return 0;
    const uring_timespec *delay = (const uring_timespec *)(uintptr_t)argument->timespec;
    if (!delay) {
        printf("  it sleeps for ever, with %u ops in the kernel\n", fake_kernel_pending());
        abort();
    }
    kernel.now_ns += delay->tv_sec * 1000000000 + delay->tv_nsec;
    return -ETIME;
}

static bool is_polled(void) { return kernel.setup_flags & URING_SETUP_SQPOLL; }

/* It sleeps only when it has seen that there is nothing, and wakes only when it is asked to. */
static void let_thread_run(uint32_t flags, bool until_done) {
    if (flags & URING_ENTER_SQ_WAKEUP) kernel.thread_sleeps = false;
    if (kernel.thread_sleeps) return;
    do take_entries(UINT32_MAX);
    while (until_done && *field(SQ_TAIL) != *field(SQ_HEAD));
    kernel.thread_sleeps = *field(SQ_TAIL) == *field(SQ_HEAD) && fake_kernel_draw(2);
}

static int enter(uint32_t submit, uint32_t wait_for, uint32_t flags, const void *argument) {
    static const int errors[] = {-EAGAIN, -EINTR};
    if (happens(kernel.faults.fail_enter)) return errors[fake_kernel_draw(wait_for ? 2 : 1)];
    if (flags & URING_ENTER_GETEVENTS) fetch_held_back();
    if (is_polled()) {
        let_thread_run(flags, wait_for || (flags & URING_ENTER_SQ_WAIT));
        submit = 0;
    }
    if (submit > 0 && kernel.overflow_len > 0 && happens(kernel.faults.refuse_when_full)) return -EBUSY;
    uint32_t taken = take_entries(submit);
    if (!(flags & URING_ENTER_GETEVENTS)) return (int)taken;
    if (taken < submit || wait_for == 0) {
        progress(false);
        return (int)taken;
    }
    int result = sleep_until_completion(argument);
    return taken > 0 ? (int)taken : result;
}

static int fake_enter(int fd, uint32_t submit, uint32_t wait_for, uint32_t flags, const void *argument, size_t size) {
    if (fd != kernel.fd || (argument && size != sizeof(uring_wait_argument))) return -EINVAL;
    kernel.enters++;
    kernel.now_ns += (int64_t)fake_kernel_draw(3000);
    int result = enter(submit, wait_for, flags, argument);
    bool more = kernel.len > 0 && fake_kernel_draw(2);
    *field(SQ_FLAGS) = (kernel.overflow_len ? URING_SQ_CQ_OVERFLOW : 0) | (more ? URING_SQ_TASKRUN : 0) |
                       (kernel.thread_sleeps ? URING_SQ_NEED_WAKEUP : 0);
    return result;
}

const uring_system fake_kernel_system = {fake_setup, fake_enter, fake_register};
