#include "pending.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A thread that goes on computing takes a signal at the next tick of its processor's, and its handler is over within microseconds. */
#define TAKEN_AFTER_NS 20000000

/* Of one thread: https://man7.org/linux/man-pages/man5/proc_pid_status.5.html */
typedef struct {
    char state;
    uint64_t pending, pending_for_all, blocked, caught;
} thread_status;

static bool read_status(int32_t thread, thread_status *status) {
    char path[64], line[256];
    snprintf(path, sizeof(path), "/proc/self/task/%" PRId32 "/status", thread);
    FILE *file = fopen(path, "re");
    if (!file) return false; /* it has ended */
    *status = (thread_status){0};
    while (fgets(line, sizeof(line), file)) {
        sscanf(line, "State: %c", &status->state);
        sscanf(line, "SigPnd: %" SCNx64, &status->pending);
        sscanf(line, "ShdPnd: %" SCNx64, &status->pending_for_all);
        sscanf(line, "SigBlk: %" SCNx64, &status->blocked);
        sscanf(line, "SigCgt: %" SCNx64, &status->caught);
    }
    fclose(file);
    return status->state != 0;
}

/* The clock of what a thread has used of a processor, by the kernel's name for it:
 * https://github.com/torvalds/linux/blob/v6.18/include/linux/posix-timers_types.h (CPUCLOCK_PERTHREAD_MASK, CPUCLOCK_SCHED) */
static int64_t used_ns(int32_t thread) {
    struct timespec used;
    clockid_t clock = (clockid_t)((~(uint32_t)thread << 3) | 6);
    if (clock_gettime(clock, &used) != 0) return INT64_MAX;
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

static bool has_gone_on(rsb_pending *look, int32_t thread) {
    for (int i = 0; i < RSB_RUNNING_MAX; i++) {
        if (look->running[i].thread == 0) {
            look->running[i].thread = thread;
            look->running[i].used_ns = used_ns(thread);
            return false;
        }
        if (look->running[i].thread == thread) return used_ns(thread) - look->running[i].used_ns >= TAKEN_AFTER_NS;
    }
    return true;
}

static bool may_be_at_one(rsb_pending *look, int32_t thread, const thread_status *status) {
    bool takes_none = (status->caught & ~status->blocked) == 0;
    bool is_at_rest = status->state == 'S' || status->state == 'Z' || status->state == 'X';
    return !takes_none && !is_at_rest && !has_gone_on(look, thread);
}

void rsb_pending_begin(rsb_pending *look) { *look = (rsb_pending){0}; }

bool rsb_signal_is_pending(rsb_pending *look) {
    DIR *threads = opendir("/proc/self/task");
    if (!threads) return false;
    int32_t here = (int32_t)syscall(SYS_gettid);
    uint64_t pending_for_all = 0, taken_by_some = 0;
    bool found = false;
    for (struct dirent *entry; (entry = readdir(threads));) {
        thread_status status;
        int32_t thread = (int32_t)atoi(entry->d_name);
        if (thread <= 0 || !read_status(thread, &status)) continue;
        uint64_t taken = status.caught & ~status.blocked;
        taken_by_some |= taken;
        pending_for_all |= status.pending_for_all;
        found |= (status.pending & taken) || (thread != here && may_be_at_one(look, thread, &status));
    }
    closedir(threads);
    return found || (pending_for_all & taken_by_some);
}
