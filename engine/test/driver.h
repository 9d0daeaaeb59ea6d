/* driver: runs a machine with strands that are C structs and a step function, and switches no stack.
 *
 * A step function reads like the body of a strand:
 *
 *     static void step(task *self) {
 *         TASK_BEGIN(self);
 *         TASK_WAIT(self, task_sleep(self, 5 * MS));
 *         CHECK_EQUAL(RS_WAKE_VALUE, self->wake);
 *         TASK_END(self);
 *     }
 *
 * Every task_* call that may wait answers whether it parked; TASK_WAIT then leaves the function and comes back behind
 * the call. Either way self->wake and self->result say how it ended. Locals do not live across a wait: state belongs into
 * a struct whose first member is the task.
 */
#ifndef RINGSPUN_DRIVER_H
#define RINGSPUN_DRIVER_H

#include "ringspun/engine.h"
#include "core/machine.h"
#include "rooms.h"

#define US ((int64_t)1000)
#define MS (1000 * US)
#define SECOND (1000 * MS)

typedef struct task task;
typedef void (*task_step)(task *self);

typedef struct {
    rs_machine *machine;
    rs_id root;
    uint64_t root_ticket;
    uint32_t unfinished;
    bool patient;               /* a deadlock verdict is not the end: another thread will send something */
    task *current;
    void *user;
} driver;

struct task {
    driver *driver;
    rs_strand *strand;
    rs_id id;
    task_step step;
    int line;
    /* How the last wait ended. */
    rs_wake_kind wake;
    int64_t result;
    /* The wait under way. */
    bool parked;
    uint64_t ticket;
    rs_op *op;
    void *copy_bytes_to;        /* if set: what came in a buffer of the machine's */
    struct statx *copy_answer_to;   /* if set: what a statx has answered, in memory that its op frees */
    uint32_t runs;
    bool finished;
};

#define TASK_BEGIN(self)                                                                                              \
    switch ((self)->line) {                                                                                           \
    case 0:

#define TASK_WAIT(self, call)                                                                                         \
    do {                                                                                                              \
        (self)->line = __LINE__;                                                                                      \
        if (call) return;                                                                                             \
        __attribute__((fallthrough));                                                                                 \
    case __LINE__:;                                                                                                   \
    } while (0)

#define TASK_END(self)                                                                                                \
    }                                                                                                                 \
    task_finish(self)

/* 0 or -errno. The root strand runs. After an error the machine is the caller's to free. */
int driver_open(driver *driver, const rs_backend *backend, const rs_options *options);
void driver_close(driver *driver);

/* The root parks until every task has finished, or the machine finds that none ever will. */
rs_verdict driver_run(driver *driver);

/* The clock stands where the machine looked last, so that it does not look again by itself while strands run. The
 * simulation's does anyway. One driver at a time. */
void driver_stop_clock(driver *driver);
void driver_start_clock(driver *driver);

/* One decision; for tests that look in between. The root must have been parked by driver_park_root. */
rs_verdict driver_step(driver *driver);
void driver_resume(driver *driver, rs_strand *strand);
void driver_park_root(driver *driver);
void driver_unpark_root(driver *driver);

/* Into that scope; NULL: the root's own. The memory is the caller's and stays until the task has finished. */
void driver_spawn(driver *driver, rs_scope *scope, task *task, task_step step);

void task_finish(task *self);
bool task_yield(task *self);
bool task_sleep(task *self, int64_t delay_ns);
bool task_park(task *self, rs_wait_kind wait, uint32_t flags, int64_t deadline_ns);
bool task_wait_in(task *self, rs_list *list, uint64_t tag, int64_t deadline_ns);
bool task_join(task *self, rs_id id, uint32_t flags);
bool task_wait_for_scope(task *self, rs_scope *scope, uint32_t flags);
bool task_request(task *self, const rs_request *request, int64_t deadline_ns);
bool task_request_shielded(task *self, const rs_request *request);

bool task_wait_shielded_in(task *self, rs_list *list);

/* Until some op on a descriptor that is being closed has ended; shielded. */
bool task_wait_for_ops(task *self);

/* Shorthands for the usual requests. */
rs_request request_read(int fd, void *bytes, uint64_t len);
rs_request request_write(int fd, const void *bytes, uint64_t len);
rs_request request_recv(int fd, void *bytes, uint64_t len);
rs_request request_send(int fd, const void *bytes, uint64_t len);
rs_request request_close(int fd);
rs_request request_pipe(int pair[2]);
rs_request request_socketpair(int pair[2]);
rs_request request_socket(void);
rs_request request_listen(int fd, uint32_t backlog);
rs_request request_accept(int fd);
rs_request request_poll(int fd, uint32_t events);
rs_request request_open(const char *path, uint32_t flags);
rs_request request_fsync(int fd);
/* Unix sockets; the address is the op's. */
rs_request request_bind(int fd, const char *path);
rs_request request_connect(int fd, const char *path);
rs_request request_statx(int fd);

#endif
