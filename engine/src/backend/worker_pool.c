#include "backend/worker_pool.h"
#include "core/machine.h"
#include "kernel/op_table.h"
#include "ringspun/kernel/resolve.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef struct rs_job {
    rs_link link;               /* in line, among those that run, or among those that wait in its zone */
    rs_message *answer;         /* made before, so that it cannot be wanting */
    rs_op *op;                  /* points back; stays where it is until it has its answer, or the machine is gone */
    bool runs;                  /* it is in that list, and in line no more */
    bool waits;                 /* in its zone, and in line not yet */
    rs_zone *zone;              /* NULL: it may begin at any time */
    rs_request request;
    void *owned;                /* what was the op's, once the machine is gone */
    bool left;                  /* its strand waits no more */
} job;

/* Everything here is under the lock. */
struct rs_worker_pool {
    rs_machine *machine;
    pthread_mutex_t lock;
    pthread_cond_t work;
    pthread_cond_t gone;
    rs_links line;              /* whoever is next is first */
    rs_links running;
    uint32_t waiting;           /* jobs in line */
    uint32_t threads;
    uint32_t busy;              /* threads that are at a job */
    uint32_t left;              /* jobs at which one is that nobody waits for */
    rs_worker_rules rules;
    rs_zones zones;
    bool ending;
    bool short_of_hands;        /* for the machine's thread alone: a thread was left at its job since it last looked */
};

/* By the clock that rs_clock_ns reads: nobody sets it. */
static void set_up_lock(rs_worker_pool *pool) {
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, &steady);
    pthread_cond_init(&pool->gone, NULL);
    pthread_condattr_destroy(&steady);
}

rs_worker_pool *rs_worker_pool_new(rs_machine *machine, const rs_worker_rules *rules) {
    RS_CHECK(machine != NULL);
    rs_worker_pool *pool = rs_try_alloc(sizeof(*pool));
    if (!pool) return NULL;
    pool->machine = machine;
    pool->rules = *rules;
    if (!rules->limit) pool->rules.limit = 1;
    pool->zones.limit = pool->rules.limit;
    set_up_lock(pool);
    return pool;
}

static void destroy(rs_worker_pool *pool) {
    RS_ASSERT(pool->ending && pool->threads == 0 && rs_links_empty(&pool->running));
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->gone);
    free(pool);
}

static job *first_of(const rs_links *list) { return RS_LINKED(list->first, job, link); }

/* --- what waits for a thread --- */

static void put_in_line(rs_worker_pool *pool, job *mine) {
    RS_CHECK(!mine->runs && !mine->waits);
    rs_links_append(&pool->line, &mine->link);
    pool->waiting++;
    pthread_cond_signal(&pool->work);
}

static void put(rs_worker_pool *pool, job *mine) {
    RS_CHECK(mine->op->job == NULL);
    mine->op->job = mine;
    if (!mine->zone || rs_zone_begin(&pool->zones, mine->zone)) {
        put_in_line(pool, mine);
        return;
    }
    rs_zone_wait(&pool->zones, mine->zone, &mine->link);
    mine->waits = true;
    pool->machine->look_ups_waiting++;
}

/* Others may begin in its place. */
static void leave_zone(rs_worker_pool *pool, job *mine) {
    if (!mine->zone) return;
    rs_zone_leave(&pool->zones, mine->zone);
    if (pool->ending) return;
    for (rs_link *link; (link = rs_zones_next(&pool->zones));) {
        job *next = RS_LINKED(link, job, link);
        next->waits = false;
        pool->machine->look_ups_waiting--;
        put_in_line(pool, next);
    }
}

static void take_out_of_line(rs_worker_pool *pool, job *mine) {
    RS_CHECK(pool->waiting > 0 && mine->op->job == mine && !mine->runs && !mine->waits);
    rs_links_remove(&pool->line, &mine->link);
    mine->op->job = NULL;
    pool->waiting--;
    leave_zone(pool, mine);
}

static void take_out_of_zone(rs_worker_pool *pool, job *mine) {
    RS_CHECK(mine->op->job == mine && mine->waits);
    rs_zone_give_up(&pool->zones, mine->zone, &mine->link);
    mine->op->job = NULL;
    pool->machine->look_ups_waiting--;
}

/* --- threads --- */

static uint32_t counting(const rs_worker_pool *pool) {
    RS_CHECK(pool->threads >= pool->left);
    return pool->threads - pool->left;
}

static void *work(void *argument);

/* Signals belong to the program's threads. */
static bool start_thread(rs_worker_pool *pool) {
    RS_CHECK(counting(pool) < pool->rules.limit && !pool->ending);
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, NULL, work, pool);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) return false;
    pthread_detach(thread);
    pool->threads++;
    return true;
}

/* Sees that as many come for the jobs in line as may. A thread that is at none looks there before it rests. */
static void provide_hands(rs_worker_pool *pool) {
    RS_CHECK(pool->threads >= pool->busy);
    for (uint32_t hands = pool->threads - pool->busy; hands < pool->waiting; hands++) {
        if (counting(pool) >= pool->rules.limit || !start_thread(pool)) return;
    }
}

/* --- in a thread --- */

static int64_t perform(rs_request *request) {
    int64_t (*execute)(const rs_request *) = rs_op_calls[request->kind].execute;
    RS_CHECK(execute != NULL);
    int64_t result;
    do result = execute(request);
    while (rs_request_goes_on(request, result));
    return result;
}

static void answer(rs_worker_pool *pool, job *mine, int64_t result) {
    RS_ASSERT(mine->answer != NULL && mine->op->state == RS_OP_SUBMITTED);
    rs_message *message = mine->answer;
    mine->answer = NULL;
    mine->op->request.done = mine->request.done;
    *message = (rs_message){.kind = RS_MESSAGE_COMPLETE, .name = rs_op_id(mine->op), .value = result};
    rs_send(pool->machine, message);
}

static void free_job(job *mine) {
    free(mine->answer);
    free(mine->owned);
    free(mine);
}

static job *take_job(rs_worker_pool *pool) {
    job *mine = first_of(&pool->line);
    RS_CHECK(mine && pool->waiting > 0 && pool->busy < pool->threads && !mine->runs);
    rs_links_remove(&pool->line, &mine->link);
    rs_links_append(&pool->running, &mine->link);
    mine->runs = true;
    pool->waiting--;
    pool->busy++;
    return mine;
}

static void finish_job(rs_worker_pool *pool, job *mine, int64_t result) {
    RS_CHECK(mine->runs && pool->busy > 0 && pool->left <= pool->busy);
    rs_links_remove(&pool->running, &mine->link);
    leave_zone(pool, mine);
    pool->busy--;
    if (mine->left) pool->left--;
    if (pool->machine) {
        RS_ASSERT(mine->op->job == mine);
        mine->op->job = NULL;
    }
    if (!pool->ending) {
        answer(pool, mine, result);
    } else {
        if (result >= 0 && rs_op_kinds[mine->request.kind].effect == RS_EFFECT_DESCRIPTOR) close((int)result);
        if (pool->machine) pool->machine->outside--; /* whose memory stays for as long as there is some */
    }
    free_job(mine);
}

static bool too_many(const rs_worker_pool *pool) { return counting(pool) > pool->rules.limit; }

static int wait_for_work(rs_worker_pool *pool) {
    if (pool->rules.idle_ns == RS_NEVER) return pthread_cond_wait(&pool->work, &pool->lock);
    int64_t until = rs_clock_ns() + pool->rules.idle_ns;
    struct timespec then = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
    return pthread_cond_timedwait(&pool->work, &pool->lock, &then);
}

/* False: there was none for long enough, or the pool ends. */
static bool await_work(rs_worker_pool *pool) {
    int error = 0;
    while (rs_links_empty(&pool->line) && !pool->ending && error != ETIMEDOUT) {
        error = wait_for_work(pool);
    }
    return !rs_links_empty(&pool->line);
}

static void *work(void *argument) {
    rs_worker_pool *pool = argument;
    pthread_mutex_lock(&pool->lock);
    while (!too_many(pool) && await_work(pool)) {
        job *mine = take_job(pool);
        pthread_mutex_unlock(&pool->lock);
        int64_t result = perform(&mine->request);
        pthread_mutex_lock(&pool->lock);
        finish_job(pool, mine, result);
        provide_hands(pool);
    }
    RS_CHECK(pool->threads > pool->busy);
    pool->threads--;
    /* The machine has gone without us, and nobody is left behind us. */
    bool last = pool->ending && !pool->machine && pool->threads == 0;
    pthread_cond_signal(&pool->gone);
    pthread_mutex_unlock(&pool->lock);
    if (last) destroy(pool);
    return NULL;
}

/* --- for the machine --- */

bool rs_worker_pool_has_place(rs_worker_pool *pool, const char *host) {
    RS_CHECK(pool->rules.by_zone);
    pthread_mutex_lock(&pool->lock);
    bool has = rs_zones_have_place(&pool->zones, host);
    pthread_mutex_unlock(&pool->lock);
    return has;
}

static bool enter_zone(rs_worker_pool *pool, job *mine, const rs_op *op) {
    if (!pool->rules.by_zone) return true;
    RS_CHECK(op->request.kind == RS_OP_RESOLVE);
    mine->zone = rs_zones_enter(&pool->zones, op->request.resolve.lookup->host);
    return mine->zone != NULL;
}

static job *new_job(void) {
    job *mine = rs_try_alloc(sizeof(*mine));
    if (mine) mine->answer = rs_try_alloc(sizeof(*mine->answer));
    if (mine && mine->answer) return mine;
    free(mine);
    return NULL;
}

/* By this thread: late but right. */
static void do_here(rs_worker_pool *pool, job *mine) {
    answer(pool, mine, perform(&mine->request));
    free_job(mine);
}

void rs_worker_pool_submit(rs_worker_pool *pool, rs_op *op) {
    RS_CHECK(op->state == RS_OP_SUBMITTED && op->job == NULL && !op->offloaded);
    job *mine = rs_op_lend(op) ? new_job() : NULL;
    pthread_mutex_lock(&pool->lock);
    bool short_of_memory = !mine || !enter_zone(pool, mine, op);
    bool alone = false;
    if (RS_LIKELY(!short_of_memory)) {
        mine->op = op;
        mine->request = op->request;
        op->offloaded = true;
        pool->machine->outside++;
        pool->machine->metrics.ops_offloaded++;
        put(pool, mine);
        provide_hands(pool);
        alone = counting(pool) == 0 && first_of(&pool->line) == mine;
        if (RS_UNLIKELY(alone)) take_out_of_line(pool, mine);
    }
    pthread_mutex_unlock(&pool->lock);
    if (RS_UNLIKELY(alone)) do_here(pool, mine);
    if (RS_LIKELY(!short_of_memory)) return;
    if (mine) free_job(mine);
    rs_op_complete(pool->machine, op, RS_NO_MEMORY);
}

/* Somebody has to come for those that begin in its place, but not at once: the same cancellation may take them out of line. */
static void take_out(rs_worker_pool *pool, job *mine) {
    if (mine->waits) take_out_of_zone(pool, mine);
    else take_out_of_line(pool, mine);
    pool->short_of_hands = true;
    RS_CHECK(pool->machine->outside > 0);
    pool->machine->outside--;
}

static bool withdraw(rs_worker_pool *pool, rs_op *op) {
    pthread_mutex_lock(&pool->lock);
    job *mine = op->job;
    bool waits = mine && !mine->runs;
    if (waits) take_out(pool, mine);
    pthread_mutex_unlock(&pool->lock);
    if (waits) free_job(mine);
    return waits;
}

static void leave(rs_worker_pool *pool, rs_op *op) {
    RS_CHECK(rs_op_may_be_left(op) && op->cancel != RS_WAKE_VALUE);
    pthread_mutex_lock(&pool->lock);
    job *mine = op->job;
    RS_CHECK(!mine || mine->runs);
    if (mine && !mine->left && pool->rules.replaces_left && pool->left < RS_WORKERS_LEFT_MAX) {
        mine->left = true;
        pool->left++;
        pool->short_of_hands = true;
    }
    pthread_mutex_unlock(&pool->lock);
}

void rs_worker_pool_cancel(rs_worker_pool *pool, rs_op *op) {
    RS_CHECK(op->state == RS_OP_SUBMITTED && op->offloaded);
    rs_machine *machine = pool->machine;
    if (withdraw(pool, op)) rs_op_complete(machine, op, -ECANCELED);
    else if (rs_op_leave(machine, op)) leave(pool, op);
}

void rs_worker_pool_tend(rs_worker_pool *pool) {
    RS_CHECK(!pool->ending);
    if (RS_LIKELY(!pool->short_of_hands)) return;
    pool->short_of_hands = false;
    pthread_mutex_lock(&pool->lock);
    provide_hands(pool);
    pthread_mutex_unlock(&pool->lock);
}

static job *next_to_begin(const rs_worker_pool *pool) {
    job *in_line = first_of(&pool->line);
    return in_line ? in_line : RS_LINKED(rs_zones_waiting(&pool->zones), job, link);
}

void rs_worker_pool_free(rs_worker_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    pthread_cond_broadcast(&pool->work);
    while (pool->threads > pool->busy) pthread_cond_wait(&pool->gone, &pool->lock);
    RS_EACH_LINKED(&pool->running, job, link, each) {
        RS_ASSERT(each->op->state == RS_OP_SUBMITTED && rs_op_may_be_left(each->op));
        each->owned = each->op->request.owned;
        each->op->request.owned = NULL;
    }
    RS_CHECK(!next_to_begin(pool) && pool->waiting == 0);
    pool->machine = NULL;
    bool last = pool->threads == 0;
    pthread_mutex_unlock(&pool->lock);
    if (last) destroy(pool);
}

void rs_worker_pool_leave(rs_worker_pool *pool) {
    RS_CHECK(!pool->ending);
    pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    for (job *mine; (mine = next_to_begin(pool));) {
        take_out(pool, mine);
        free_job(mine);
    }
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
}

void rs_worker_pool_forked(rs_worker_pool *pool) {
    RS_EACH_LINKED(&pool->line, job, link, each) free_job(each);
    pool->line = pool->running = (rs_links){0};
    /* A thread of the parent may have been at these. */
    pool->zones = (rs_zones){.limit = pool->rules.limit};
    pool->waiting = pool->threads = pool->busy = pool->left = 0;
    set_up_lock(pool);
}
