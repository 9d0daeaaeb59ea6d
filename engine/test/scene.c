#include "scene.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint32_t ended;

void scene_begin(void) { ended = 0; }

static int64_t deadline_of(const caller *self) {
    return self->timeout_ns ? rs_now(self->task.driver->machine) + self->timeout_ns : RS_NEVER;
}

static void caller_step(task *task) {
    caller *self = (caller *)task;
    TASK_BEGIN(task);
    if (self->delay_ns > 0) TASK_WAIT(task, task_sleep(task, self->delay_ns));
    TASK_WAIT(task, task_request(task, &self->request, deadline_of(self)));
    self->wake = task->wake;
    self->result = task->result;
    self->order = ++ended;
    self->at_ns = rs_now(task->driver->machine);
    if (self->then_sleep_ns > 0) {
        TASK_WAIT(task, task_sleep(task, self->then_sleep_ns));
        self->then_wake = task->wake;
        self->then_at_ns = rs_now(task->driver->machine);
    }
    TASK_END(task);
}

void scene_call(driver *driver, caller *self, rs_request request, int64_t delay_ns, int64_t timeout_ns) {
    self->request = request;
    self->delay_ns = delay_ns;
    self->timeout_ns = timeout_ns;
    driver_spawn(driver, NULL, &self->task, caller_step);
}

static bool too_early(const canceller *self) {
    const rs_op *op = self->target->op;
    if (self->target->finished) return false;
    if (self->after_bytes > 0) return op && op->request.done < self->after_bytes;
    int opening = self->opening > 0 ? scene_threads_opening() : -1;
    return opening >= 0 && opening < self->opening;
}

static void canceller_step(task *task) {
    canceller *self = (canceller *)task;
    TASK_BEGIN(task);
    if (self->delay_ns > 0) TASK_WAIT(task, task_sleep(task, self->delay_ns));
    while (too_early(self)) TASK_WAIT(task, task_sleep(task, MS));
    if (!self->target->finished) {
        rs_scope_cancel(task->driver->machine, &self->target->strand->own, RS_CANCELLED_BY_CALL);
    }
    TASK_END(task);
}

void scene_cancel(driver *driver, canceller *self, task *target, int64_t delay_ns) {
    self->target = target;
    self->delay_ns = delay_ns;
    driver_spawn(driver, NULL, &self->task, canceller_step);
}

static void closer_step(task *task) {
    closer *self = (closer *)task;
    rs_request request = request_close(self->fd);
    TASK_BEGIN(task);
    if (self->delay_ns > 0) TASK_WAIT(task, task_sleep(task, self->delay_ns));
    while (rs_descriptor_closing(task->driver->machine, self->fd) > 0) {
        TASK_WAIT(task, task_wait_for_ops(task));
    }
    TASK_WAIT(task, task_request_shielded(task, &request));
    self->result = task->result;
    TASK_END(task);
}

void scene_close(driver *driver, closer *self, int fd, int64_t delay_ns) {
    self->fd = fd;
    self->delay_ns = delay_ns;
    driver_spawn(driver, NULL, &self->task, closer_step);
}

int64_t scene_ask(driver *driver, rs_request request) {
    caller self = {0};
    scene_call(driver, &self, request, 0, 0);
    rs_verdict verdict = driver_run(driver);
    RS_ASSERT(verdict == RS_RUN);
    return self.result;
}

static int expect(const char *what, uint64_t value, uint64_t expected) {
    if (value == expected) return 0;
    printf("  at the end: %s is %llu, not %llu\n", what, (unsigned long long)value, (unsigned long long)expected);
    return 1;
}

int scene_end(driver *driver) {
    rs_machine *machine = driver->machine;
    int wrong = expect("ops in flight", machine->in_flight, 0) + expect("ops used", rs_ops_in(machine)->slab.used, 0) +
                expect("timers", machine->timers.len, 0) + expect("strands", rs_strands_live(&machine->strands), 1) +
                expect("ops outside", machine->outside, 0);
    if (machine->backend == &rs_backend_sim) {
        wrong += expect("simulated descriptors", rs_sim_open_descriptors(machine), 0);
    }
    driver_close(driver);
    return wrong;
}

static int entries(const char *path) {
    DIR *folder = opendir(path);
    if (!folder) return -1;
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));) count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

int scene_open_descriptors(void) { return entries("/proc/self/fd"); }
int scene_threads(void) { return entries("/proc/self/task"); }

/* The first words of a file of that thread. */
static const char *of_thread(const char *thread, const char *name) {
    static char line[32];
    char path[300];
    snprintf(path, sizeof(path), "/proc/self/task/%s/%s", thread, name);
    FILE *file = fopen(path, "r");
    line[0] = '\0';
    if (file && !fgets(line, sizeof(line), file)) line[0] = '\0';
    if (file) fclose(file);
    return line;
}

static void print_links(void) {
    DIR *folder = opendir("/proc/self/fd");
    if (!folder) return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char target[256];
        ssize_t len = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target));
        if (len > 0) printf("  descriptor %s: %.*s\n", entry->d_name, (int)len, target);
    }
    closedir(folder);
}

void scene_print_descriptors(void) {
    print_links();
    DIR *folder = opendir("/proc/self/task");
    if (!folder) return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] != '.') printf("  thread %s: %s\n", entry->d_name, of_thread(entry->d_name, "wchan"));
    }
    closedir(folder);
}

/* A thread of the kernel's is in no system call; it can only be waiting for the other end of a FIFO. */
int scene_threads_opening(void) {
    DIR *folder = opendir("/proc/self/task");
    if (!folder) return -1;
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') continue;
        bool opening = atoi(of_thread(entry->d_name, "syscall")) == SYS_openat;
        count += opening || strcmp(of_thread(entry->d_name, "wchan"), "wait_for_partner") == 0;
    }
    closedir(folder);
    return count;
}
