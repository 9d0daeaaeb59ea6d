/* program: a random program for the simulated machine, drawn from a seed, and what must hold while it runs.
 *
 * Every strand is a worker with a role. No program can get stuck by itself: a strand waits only for strands spawned after
 * it, or for one that is sure to go on (the holder of a lock only sleeps; whoever feeds or empties something says when it
 * ends). So a strand that never ends is the engine's doing.
 *
 * Three nets catch what goes wrong: each role knows what may answer its waits; every wait that ends or is refused is
 * compared with a second opinion about scopes, interrupts and deadlines (program_check.c); and before each sleep the whole
 * machine is looked over for somebody who should not be waiting.
 */
#ifndef RINGSPUN_PROGRAM_H
#define RINGSPUN_PROGRAM_H

#include "driver.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define WORKERS_MAX 60
#define SCOPES_MAX 4
#define MUTEXES 2
#define QUEUES 2
#define QUEUE_CAPACITY 3

typedef struct program program;
typedef struct worker worker;

typedef enum {
    ROLE_WANDERER, ROLE_PRODUCER, ROLE_CONSUMER, ROLE_SERVER, ROLE_CLIENT, ROLE_FILER, ROLE_VICTIM, ROLE_CLOSER,
    ROLE_PUSHER, ROLE_POPPER, ROLE_CHOOSER, ROLE_LOCKER, ROLE_STOCK_LOCKER, ROLES
} role;

/* Bytes on their way from a producer to a consumer. Byte n of a stream has a known value. */
typedef struct {
    int fds[2];                 /* to read, to write */
    bool socket;
    uint64_t produced;
    uint64_t consumed;
    bool writer_ending;
    bool reader_ending;
} stream;

/* As a fiber scheduler's: unlocking frees the lock, unblocks the first waiter and forgets it; the waiter then tries. */
typedef struct {
    worker *owner;
    worker *waiting[WORKERS_MAX];
    uint32_t waiting_len;
    uint32_t unblocked;         /* on their way to try */
} stock_mutex;

typedef struct {
    rs_queue items;             /* choosers watch it */
    uint32_t pushers_left;
    uint32_t poppers_left;
    int64_t pushed;             /* sums, so that lost and doubled items show */
    int64_t popped;
    uint64_t pushed_count;
    uint64_t popped_count;
} item_queue;

struct worker {
    task task;
    program *program;
    role role;
    uint32_t number;            /* order of spawning */
    uint64_t random;
    rs_scope scopes[SCOPES_MAX];
    uint32_t depth;
    rs_scope cleaning;
    bool shield_cleaning;
    int64_t deadline_ns;        /* of the wait under way */
    int64_t overdue_since_ns;   /* should not be waiting any more, since */
    uint64_t old_ticket;
    uint32_t left;              /* rounds to go */
    worker *other;
    stream *stream;
    stream own_stream;
    uint8_t *buffer;
    uint64_t buffer_len;
    uint64_t moved;
    int fd;
    int connection;
    char path[32];
    rs_mutex *mutex;
    bool has_lock;
    item_queue *queue;
    rs_branches branches;       /* of a chooser, over all queues */
    int64_t item;
    uint64_t popped;
    rs_queue_answer queue_answer;
    struct iovec parts[2];
    struct msghdr message;
    struct statx answer;
    bool unblocked;             /* of a stock locker: its unblock has been sent */
    bool ending;
    uint32_t closing;           /* of a wanderer: scopes to close before it goes on */
    bool gentle;                /* ... waiting for those inside, not cancelling them */
    bool cancel_seen;           /* ... and no scope has answered yet */
    bool leaving;
};

struct program {
    driver driver;
    uint64_t seed;
    uint64_t random;
    bool verbose;
    rs_sim_faults faults;
    worker *workers;
    uint32_t worker_count;
    rs_scope arena;
    rs_mutex mutexes[MUTEXES];
    uint32_t inside[MUTEXES];
    stock_mutex stock;
    item_queue queues[QUEUES];
    uint64_t parks;
    worker *displaced;          /* it must be the next to run */
    bool untidy;                /* scopes close in any order: who was cancelled stays so, and the chain does not say why */
    int64_t start_ns;
    bool failed;
    char failure[256];
};

typedef struct {
    bool failed;
    char failure[256];
    uint64_t hash;
    uint64_t events;
    uint64_t parks;
    int64_t lasted_ns;
} program_report;

/* Runs the program of that seed to its end, or to the first thing that must not be. */
program_report program_run(uint64_t seed, bool verbose);

/* --- for the roles --- */

void program_fail(worker *self, const char *what, int64_t detail);
void program_say(worker *self, const char *what, int64_t detail);
#define EXPECT(self, x, detail) ((x) ? (void)0 : program_fail((self), "not so: " #x, (detail)))

/* A number below `bound`, and a chance in hundred. */
uint64_t draw(worker *self, uint64_t bound);
bool chance(worker *self, uint64_t percent);
int64_t draw_deadline(worker *self, uint64_t percent, int64_t max_ns);
worker *draw_worker(worker *self);

/* NULL when there are enough. */
worker *program_spawn(program *program, rs_scope *scope, role role);

/* A wait and its checks. WAIT ends with self->task.wake and .result. */
#define WAIT(self, call) TASK_WAIT(&(self)->task, program_waits((self), (call), false))
#define WAIT_SHIELDED(self, call) TASK_WAIT(&(self)->task, program_waits((self), (call), true))
#define WAIT_CLEAN(self, call) TASK_WAIT(&(self)->task, program_waits((self), (call), !(self)->shield_cleaning))
bool program_waits(worker *self, bool parked, bool shielded);

/* After WAIT: true when the role may go on, false when the strand has to leave (cancelled, or interrupted). */
bool program_goes_on(worker *self);
void program_ended(worker *self);

/* A deadline for the next wait, remembered for its checks. */
int64_t wait_until(worker *self, int64_t deadline_ns);

/* Memory that an op may write to; given back, it must stay as it is. */
uint8_t *buffer_take(worker *self, uint64_t len);
void buffer_give(worker *self);
uint8_t stream_byte(uint64_t at);

/* A scope around a role's whole work, now and then; and its end. */
void enclose(worker *self);
void unclose(worker *self);

/* Cleaning up goes on although the strand is cancelled, by one of the two ways to have it so. */
void clean_begin(worker *self);
void clean_end(worker *self);
bool clean_request(worker *self, rs_request request);
void clean_closed(worker *self);

bool answers(const rs_scope *scope);
void check_at_rest(program *program);
void check_end(program *program);

/* One of the queue's items has come out. */
void took_out(worker *self, item_queue *queue, uint64_t item);

extern const task_step program_steps[ROLES];
void wanderer_step(task *task);
void producer_step(task *task);
void consumer_step(task *task);
void server_step(task *task);
void client_step(task *task);
void filer_step(task *task);
void victim_step(task *task);
void closer_step(task *task);
void pusher_step(task *task);
void popper_step(task *task);
void chooser_step(task *task);
void locker_step(task *task);
void stock_locker_step(task *task);

#endif
