/* subjects: the backends that the shared tests run over. OVER_BACKENDS(name) { ... } is a TEST for each of them, which
 * finds its backend in `subject`; OVER_KERNELS(name) for each that is real, OVER_KERNELS_NOT_EMULATED(name) not even those under an
 * emulator. Include after test.h. */
#ifndef RINGSPUN_SUBJECTS_H
#define RINGSPUN_SUBJECTS_H

#include "scene.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    const char *name;
    const rs_backend *backend;
    const rs_sim_faults *faults;
    bool offload_files;
    bool sqpoll;
    uint8_t stream_io;
} subject;

static const rs_sim_faults subject_no_faults;

static const subject subjects[] = {
    {.name = "sim", .backend = &rs_backend_sim, .faults = &subject_no_faults},
    {.name = "uring", .backend = &rs_backend_uring},
    {.name = "uring without inline files", .backend = &rs_backend_uring, .offload_files = true},
    {.name = "uring for all of streams", .backend = &rs_backend_uring, .stream_io = RS_STREAM_IO_RING},
    {.name = "uring with a polling thread", .backend = &rs_backend_uring, .sqpoll = true},
    {.name = "epoll", .backend = &rs_backend_epoll},
    {.name = "epoll with files on workers", .backend = &rs_backend_epoll, .offload_files = true},
};

#define OVER_UNLESS(title, holds, emulated)                                                                           \
    static void run_##title(const subject *subject);                                                                  \
    static void start_##title(const void *one) {                                                                      \
        scene_begin();                                                                                                \
        run_##title(one);                                                                                             \
    }                                                                                                                 \
    __attribute__((constructor)) static void register_##title(void) {                                                 \
        for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++) {                                         \
            if (!holds(&subjects[i])) continue;                                                                       \
            test_register((test_case){.name = #title, .variant = subjects[i].name, .run_over = start_##title,         \
                                      .subject = &subjects[i], .not_emulated = emulated(&subjects[i])});              \
        }                                                                                                             \
    }                                                                                                                 \
    static void run_##title(const subject *subject)

static inline bool is_any(const subject *subject) { return subject->backend != NULL; }
static inline bool is_sim(const subject *subject) { return subject->backend == &rs_backend_sim; }
static inline bool is_uring(const subject *subject) { return subject->backend == &rs_backend_uring; }
/* Nothing about streams is tried before it is an op. */
static inline bool gives_all_away(const subject *subject) {
    return is_sim(subject) || (is_uring(subject) && subject->stream_io == RS_STREAM_IO_RING);
}
static inline bool is_kernel(const subject *subject) { return !is_sim(subject); }

#define OVER(title, holds) OVER_UNLESS(title, holds, is_uring)
#define OVER_BACKENDS(title) OVER(title, is_any)
#define OVER_KERNELS(title) OVER(title, is_kernel)
#define OVER_KERNELS_NOT_EMULATED(title) OVER_UNLESS(title, is_kernel, is_any)

static inline void subject_open(driver *driver, const subject *subject) {
    rs_options options = rs_default_options();
    options.faults = subject->faults;
    options.offload_files = subject->offload_files;
    options.sqpoll = subject->sqpoll;
    options.stream_io = subject->stream_io;
    options.sqpoll_idle_ms = 1;
    int error = driver_open(driver, subject->backend, &options);
    RS_ASSERT(error == 0);
}

static inline void close_all(driver *driver, const int *descriptors, int count) {
    for (int i = 0; i < count; i++) CHECK_EQUAL(0, scene_ask(driver, request_close(descriptors[i])));
}

/* A fresh folder of the real system, whose name serves the simulated one as well. */
static inline const char *subject_folder(void) {
    static char folder[32];
    strcpy(folder, "/tmp/ringspun-XXXXXX");
    RS_ASSERT(mkdtemp(folder) != NULL);
    return folder;
}

static inline const char *subject_path(const char *folder, const char *name) {
    static char paths[4][96];
    static int calls;
    char *path = paths[calls++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

static inline const char *subject_fifo(const char *folder) {
    const char *path = subject_path(folder, "fifo");
    RS_ASSERT(mkfifo(path, 0600) == 0);
    return path;
}

static inline void subject_remove_fifo(const char *folder, const char *path) {
    unlink(path);
    rmdir(folder);
}

/* Runs until what workers still have has come back. */
static inline void subject_rest(driver *d) {
    driver_park_root(d);
    while (d->machine->outside > 0) driver_step(d);
    driver_unpark_root(d);
}

#endif
