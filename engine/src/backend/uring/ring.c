#include "backend/uring/ring.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

/* A ring of fewer takes no less memory: the kernel takes it by the page, and 64 entries fill one. */
#define ENTRIES_MIN 8
/* Completions come in bursts: an overflow is handled, but costs. */
#define COMPLETIONS_PER_ENTRY 8

/* Without one of these a wait could not have a deadline, or a completion could be lost. All are there since Linux 5.11:
 * https://man7.org/linux/man-pages/man2/io_uring_setup.2.html */
#define FEATURES_NEEDED                                                                                               \
    (URING_FEATURE_SINGLE_MMAP | URING_FEATURE_NODROP | URING_FEATURE_SUBMIT_STABLE |                                  \
     URING_FEATURE_RW_CURRENT_POSITION | URING_FEATURE_FAST_POLL | URING_FEATURE_POLL_32BITS | URING_FEATURE_EXT_ARG)

static int answer(long result) { return result < 0 ? -errno : (int)result; }

static int kernel_setup(uint32_t entries, uring_params *params) {
    return answer(syscall(URING_SYS_SETUP, entries, params));
}

static int kernel_enter(int fd, uint32_t submit, uint32_t wait_for, uint32_t flags, const void *argument, size_t size) {
    return answer(syscall(URING_SYS_ENTER, fd, submit, wait_for, flags, argument, size));
}

static int kernel_register(int fd, uint32_t opcode, void *argument, uint32_t count) {
    return answer(syscall(URING_SYS_REGISTER, fd, opcode, argument, count));
}

const uring_system uring_kernel = {kernel_setup, kernel_enter, kernel_register};

/* --- opening --- */

/* Best first. Each kernel takes the first that it knows: 6.1, 5.19, 5.18, 5.11.
 * https://man7.org/linux/man-pages/man2/io_uring_setup.2.html */
static const uint32_t ladder[] = {
    URING_SETUP_SUBMIT_ALL | URING_SETUP_SINGLE_ISSUER | URING_SETUP_DEFER_TASKRUN | URING_SETUP_TASKRUN_FLAG,
    URING_SETUP_SUBMIT_ALL | URING_SETUP_COOP_TASKRUN | URING_SETUP_TASKRUN_FLAG,
    URING_SETUP_SUBMIT_ALL,
    0,
};

static int set_up(uring_ring *ring, uint32_t entries, uint32_t flags, const uring_wishes *wishes, uring_params *params) {
    RS_CHECK(entries > 0);
    flags |= URING_SETUP_CLAMP | URING_SETUP_CQSIZE;
    *params = (uring_params){.cq_entries = entries * COMPLETIONS_PER_ENTRY};
    if (wishes->polled) {
        flags |= URING_SETUP_SQPOLL | (wishes->poll_cpu >= 0 ? URING_SETUP_SQ_AFF : 0);
        params->sq_thread_idle = wishes->poll_idle_ms;
        params->sq_thread_cpu = wishes->poll_cpu >= 0 ? (uint32_t)wishes->poll_cpu : 0;
    }
    params->flags = ring->setup_flags = flags;
    return ring->system->setup(entries, params);
}

/* A ring that changing threads use cannot put its work off for the one who asks, and where a thread of the kernel's does the
 * work there is nothing to put off. */
static bool fits(uint32_t flags, const uring_wishes *wishes) {
    if (wishes->polled) return !(flags & (URING_SETUP_SINGLE_ISSUER | URING_SETUP_COOP_TASKRUN));
    return !(wishes->may_move && (flags & (URING_SETUP_SINGLE_ISSUER | URING_SETUP_DEFER_TASKRUN)));
}

static int climb_down(uring_ring *ring, const uring_wishes *wishes, uring_params *params) {
    uint32_t entries = wishes->entries;
    int fd = -EINVAL;
    for (size_t i = 0; i < sizeof(ladder) / sizeof(ladder[0]);) {
        fd = fits(ladder[i], wishes) ? set_up(ring, entries, ladder[i], wishes, params) : -EINVAL;
        if (fd == -ENOMEM && entries > ENTRIES_MIN) entries /= 2;
        else if (fd == -EINVAL) i++;
        else break;
    }
    return fd;
}

static bool is_power_of_two(uint32_t number) { return number > 0 && (number & (number - 1)) == 0; }

/* Whether all counters lie in rings of that size, where they can be read in one piece. */
static bool hold_counters(const uring_params *params, size_t size) {
    uint32_t offsets[] = {params->sq.head, params->sq.tail, params->sq.flags, params->cq.head, params->cq.tail};
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        if (offsets[i] % sizeof(uint32_t) != 0 || offsets[i] + sizeof(uint32_t) > size) return false;
    }
    return params->sq.array % sizeof(uint32_t) == 0 && params->cq.cqes % sizeof(uint64_t) == 0;
}

/* What no kernel answers io_uring_setup, and what gives itself out for one may. */
#define NONSENSE (-EPROTO)

static int map(uring_ring *ring, const uring_params *params) {
    RS_CHECK(ring->fd >= 0);
    /* Places in the rings are found by masks. */
    if (!is_power_of_two(params->sq_entries) || !is_power_of_two(params->cq_entries)) return NONSENSE;
    size_t sq = params->sq.array + params->sq_entries * sizeof(uint32_t);
    size_t cq = params->cq.cqes + params->cq_entries * sizeof(uring_cqe);
    ring->rings_size = sq > cq ? sq : cq;
    if (!hold_counters(params, ring->rings_size)) return NONSENSE;
    ring->sqes_size = params->sq_entries * sizeof(uring_sqe);
    int protection = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
    ring->rings = mmap(NULL, ring->rings_size, protection, flags, ring->fd, URING_MAP_RINGS);
    if (ring->rings == MAP_FAILED) return -errno;
    ring->sqes = mmap(NULL, ring->sqes_size, protection, flags, ring->fd, URING_MAP_SQES);
    if (ring->sqes != MAP_FAILED) return 0;
    int error = -errno;
    munmap(ring->rings, ring->rings_size);
    return error;
}

static void find_fields(uring_ring *ring, const uring_params *params) {
    RS_CHECK(is_power_of_two(params->sq_entries) && is_power_of_two(params->cq_entries));
    char *base = ring->rings;
    ring->sq_head = (_Atomic uint32_t *)(base + params->sq.head);
    ring->sq_tail = (_Atomic uint32_t *)(base + params->sq.tail);
    ring->sq_flags = (_Atomic uint32_t *)(base + params->sq.flags);
    ring->sq_entries = params->sq_entries;
    ring->sq_mask = params->sq_entries - 1;
    ring->sq_filled = atomic_load(ring->sq_tail);
    ring->cq_head = (_Atomic uint32_t *)(base + params->cq.head);
    ring->cq_tail = (_Atomic uint32_t *)(base + params->cq.tail);
    ring->cq_mask = params->cq_entries - 1;
    ring->cqes = (const uring_cqe *)(base + params->cq.cqes);
    /* Entries are used in order, so each place of the indirection names itself for good. */
    uint32_t *array = (uint32_t *)(base + params->sq.array);
    for (uint32_t i = 0; i < params->sq_entries; i++) array[i] = i;
}

/* More are no signals. */
#define INTERRUPTIONS_MAX 1000

bool uring_may_refuse(int64_t result) {
    if (RS_LIKELY(result >= 0)) return false;
    switch (-result) {
    case EACCES: case EPERM: case EINVAL: case ENOSYS: case EOPNOTSUPP: return true;
    default: return false;
    }
}

/* A filter may let the ring be made and forbid its use, or the use of what nothing else can do: to wait for readiness, here of no
 * descriptor, and to cancel, here what is not there. */
static int try_it(uring_ring *ring) {
    static const uint8_t needed[] = {URING_OP_NOP, URING_OP_POLL_ADD, URING_OP_ASYNC_CANCEL};
    uint32_t asked = 0, answered = 0, interruptions = 0;
    while (answered < sizeof(needed)) {
        for (uring_sqe *sqe; asked < sizeof(needed) && (sqe = uring_ring_next(ring)); asked++) {
            sqe->opcode = needed[asked];
            sqe->fd = -1;
        }
        if (asked == 0) return NONSENSE; /* of a ring that is full before its first entry */
        int error = uring_ring_wait(ring, RS_NEVER);
        if (error == -EINTR && ++interruptions < INTERRUPTIONS_MAX) continue;
        if (error) return error;
        for (uring_cqe cqe; uring_ring_take(ring, &cqe); answered++) {
            if (uring_may_refuse(cqe.result)) return cqe.result;
        }
    }
    return 0;
}

int uring_ring_probe(uring_ring *ring, bool supported[URING_OP_LAST + 1]) {
    uring_probe answer = {0}; /* written to in this call alone */
    int error = ring->system->enregister(ring->fd, URING_REGISTER_PROBE, &answer, 256);
    for (uint32_t i = 0; error == 0 && i < answer.ops_len && i <= URING_OP_LAST; i++) {
        if (answer.ops[i].opcode > URING_OP_LAST) continue;
        supported[answer.ops[i].opcode] = answer.ops[i].flags & URING_PROBE_SUPPORTED;
    }
    return error;
}

bool uring_reports_more_of_unix(void) {
    struct utsname kernel;
    unsigned major = 0, minor = 0;
    if (uname(&kernel) < 0 || sscanf(kernel.release, "%u.%u", &major, &minor) != 2) return false;
    return major > 6 || (major == 6 && minor >= 17);
}

static int refuse(int error, const char *call, char *why, size_t why_size) {
    RS_CHECK(error < 0);
    const char *hint = "";
    if (error == NONSENSE) hint = ": with a ring that cannot be used";
    if (error == -ENOSYS) hint = ": this kernel has none, or a filter says so";
    if (error == -EPERM || error == -EACCES) hint = ": a seccomp filter or kernel.io_uring_disabled forbids it";
    if (error == -ENOMEM) hint = ": no memory for a ring; the limit may be RLIMIT_MEMLOCK";
    if (error == -EMFILE || error == -ENFILE) hint = ": no descriptor is left for the ring";
    if (error == -EINVAL) hint = ": the kernel does not know what was asked for, or has no such processor";
    snprintf(why, why_size, "%s was answered %s%s", call, strerror(-error), hint);
    return error;
}

int uring_ring_open(uring_ring *ring, const uring_system *system, const uring_wishes *wishes, char *why, size_t why_size) {
    RS_CHECK(wishes->entries > 0 && wishes->system_calls != NULL);
    *ring = (uring_ring){.system = system, .system_calls = wishes->system_calls};
    uring_params params;
    ring->fd = climb_down(ring, wishes, &params);
    if (ring->fd < 0) return refuse(ring->fd, "io_uring_setup", why, why_size);
    ring->features = params.features;
    uint32_t needed = FEATURES_NEEDED | (wishes->polled ? URING_FEATURE_SQPOLL_NONFIXED : 0);
    if ((params.features & needed) != needed) {
        close(ring->fd);
        snprintf(why, why_size, "this kernel's io_uring is too old; Linux 5.11 is the first that will do");
        return -ENOSYS;
    }
    int error = map(ring, &params);
    if (error) {
        close(ring->fd);
        return refuse(error, error == NONSENSE ? "io_uring_setup" : "mmap of the ring", why, why_size);
    }
    find_fields(ring, &params);
    error = try_it(ring);
    if (!error) return 0;
    uring_ring_close(ring);
    return refuse(error, error == NONSENSE ? "io_uring_setup" : "io_uring_enter", why, why_size);
}

void uring_ring_close(uring_ring *ring) {
    RS_CHECK(ring->fd >= 0);
    munmap(ring->sqes, ring->sqes_size);
    munmap(ring->rings, ring->rings_size);
    close(ring->fd);
}

/* --- use --- */

uring_sqe *uring_ring_next(uring_ring *ring) {
    RS_CHECK(uring_ring_pending(ring) <= ring->sq_entries);
    if (!uring_ring_has_room(ring)) return NULL;
    uring_sqe *sqe = &ring->sqes[ring->sq_filled & ring->sq_mask];
    ring->sq_filled++;
    memset(sqe, 0, sizeof(*sqe));
    return sqe;
}

static bool is_polled(const uring_ring *ring) { return ring->setup_flags & URING_SETUP_SQPOLL; }

/* How many entries the kernel has to take. */
static uint32_t show(uring_ring *ring) {
    atomic_store_explicit(ring->sq_tail, ring->sq_filled, memory_order_release);
    RS_CHECK(uring_ring_pending(ring) <= ring->sq_entries);
    return uring_ring_pending(ring);
}

/* That the kernel's thread may sleep is seen only behind what was shown to it:
 * https://github.com/torvalds/linux/blob/v6.18/io_uring/io_uring.c (at its top) */
static uint32_t sq_flags(const uring_ring *ring) {
    if (is_polled(ring)) atomic_thread_fence(memory_order_seq_cst);
    return atomic_load_explicit(ring->sq_flags, memory_order_relaxed);
}

static uint32_t wake_up(const uring_ring *ring) { return sq_flags(ring) & URING_SQ_NEED_WAKEUP ? URING_ENTER_SQ_WAKEUP : 0; }

/* Completions that the kernel holds back until it is entered:
 * https://man7.org/linux/man-pages/man2/io_uring_setup.2.html (IORING_SETUP_TASKRUN_FLAG) */
static bool holds_back(const uring_ring *ring, uint32_t flags) {
    bool says_so = ring->setup_flags & (URING_SETUP_TASKRUN_FLAG | URING_SETUP_SQPOLL);
    return !says_so || (flags & (URING_SQ_CQ_OVERFLOW | URING_SQ_TASKRUN));
}

static int enter(uring_ring *ring, uint32_t submit, uint32_t wait_for, uint32_t flags, const void *argument, size_t size) {
    RS_CHECK(submit <= ring->sq_entries);
    RS_CHECK(ring->fd >= 0);
    ++*ring->system_calls;
    int result = ring->system->enter(ring->fd, submit, wait_for, flags, argument, size);
    return result < 0 ? result : 0;
}

int uring_ring_flush(uring_ring *ring) {
    uint32_t submit = show(ring), flags = sq_flags(ring), what = holds_back(ring, flags) ? URING_ENTER_GETEVENTS : 0;
    if (is_polled(ring)) {
        if (submit > 0 && (flags & URING_SQ_NEED_WAKEUP)) what |= URING_ENTER_SQ_WAKEUP;
        if (!what) return 0;
    } else if (submit > 0) {
        what |= URING_ENTER_GETEVENTS;
    }
    return what ? enter(ring, submit, 0, what, NULL, 0) : 0;
}

bool uring_ring_has_more(const uring_ring *ring) {
    if (uring_ring_pending(ring) > 0 || uring_ring_has_completions(ring)) return true;
    return sq_flags(ring) & (URING_SQ_CQ_OVERFLOW | URING_SQ_TASKRUN);
}

bool uring_ring_is_quiet(const uring_ring *ring) {
    return !is_polled(ring) && !uring_ring_has_completions(ring) && !holds_back(ring, sq_flags(ring));
}

/* It takes them within a microsecond if it has a processor. */
#define YIELDS_PER_ENTER 64
/* Answers that mean later. */
#define LATER_MAX 1000

int uring_ring_hand_over(uring_ring *ring) {
    int error = uring_ring_flush(ring);
    if (!is_polled(ring)) return error;
    uint32_t fruitless = 0;
    for (uint32_t yields = 1; uring_ring_pending(ring) > 0; yields++) {
        sched_yield();
        if (yields % YIELDS_PER_ENTER != 0) continue;
        error = enter(ring, 0, 0, URING_ENTER_GETEVENTS | wake_up(ring), NULL, 0);
        if (error && error != -EINTR && error != -EAGAIN && error != -EBUSY) return error; /* its thread is gone */
        fruitless = error ? fruitless + 1 : 0;
        if (fruitless > LATER_MAX) return error;
    }
    return 0;
}

int uring_ring_make_room(uring_ring *ring) {
    if (!is_polled(ring)) return uring_ring_flush(ring);
    return enter(ring, show(ring), 0, URING_ENTER_GETEVENTS | URING_ENTER_SQ_WAIT | wake_up(ring), NULL, 0);
}

int uring_ring_wait(uring_ring *ring, int64_t delay_ns) {
    RS_CHECK(delay_ns > 0);
    uint32_t submit = show(ring), flags = URING_ENTER_GETEVENTS | URING_ENTER_EXT_ARG;
    if (is_polled(ring)) flags |= wake_up(ring);
    uring_timespec delay = {.tv_sec = delay_ns / 1000000000, .tv_nsec = delay_ns % 1000000000};
    uring_wait_argument argument = {.timespec = delay_ns == RS_NEVER ? 0 : (uint64_t)(uintptr_t)&delay};
    int error = enter(ring, submit, 1, flags, &argument, sizeof(argument));
    return error == -ETIME ? 0 : error;
}
