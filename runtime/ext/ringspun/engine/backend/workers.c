#include "backend/workers.h"
#include "kernel/op_table.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct rs_job {
    rs_link link;               /* in line, or among those that run */
    rs_message *answer;         /* made before, so that it cannot be wanting */
    rs_op *op;                  /* points back; stays where it is until it has its answer, or the machine is gone */
    bool runs;                  /* it is in that list, and in line no more */
    rs_request request;
    void *owned;                /* what was the op's, once the machine is gone */
    bool left;                  /* its strand waits no more */
} job;

/* Everything here is under the lock. */
struct rs_workers {
    rs_machine *machine;
    pthread_mutex_t lock;
    pthread_cond_t work;
    pthread_cond_t gone;
    rs_links line;              /* whoever is next is first */
    rs_links running;
    uint32_t idle;
    uint32_t waiting;           /* jobs in line */
    uint32_t threads;
    uint32_t busy;              /* threads that are at a job */
    uint32_t left;              /* jobs at which one is that nobody waits for */
    uint32_t limit;
    bool ending;
    bool short_of_hands;        /* for the machine's thread alone: a thread was left at its job since it last looked */
};

rs_workers *rs_workers_new(rs_machine *machine, uint32_t limit) {
    RS_CHECK(machine != NULL);
    rs_workers *workers = rs_alloc(sizeof(*workers));
    workers->machine = machine;
    workers->limit = limit ? limit : 1;
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->work, NULL);
    pthread_cond_init(&workers->gone, NULL);
    return workers;
}

static void destroy(rs_workers *workers) {
    RS_ASSERT(workers->ending && workers->threads == 0 && rs_links_empty(&workers->running));
    pthread_mutex_destroy(&workers->lock);
    pthread_cond_destroy(&workers->work);
    pthread_cond_destroy(&workers->gone);
    free(workers);
}

static job *first_of(const rs_links *list) { return RS_LINKED(list->first, job, link); }

/* --- in a thread --- */

static int64_t perform(rs_request *request) {
    int64_t (*execute)(const rs_request *) = rs_op_calls[request->kind].execute;
    RS_CHECK(execute != NULL);
    int64_t result;
    do result = execute(request);
    while (rs_request_goes_on(request, result));
    return result;
}

static void answer(rs_workers *workers, job *mine, int64_t result) {
    RS_ASSERT(mine->answer != NULL && mine->op->state == RS_OP_SUBMITTED);
    rs_message *message = mine->answer;
    mine->answer = NULL;
    mine->op->request.done = mine->request.done;
    *message = (rs_message){.kind = RS_MESSAGE_COMPLETE, .name = rs_op_id(mine->op), .value = result};
    rs_send(workers->machine, message);
}

static void free_job(job *mine) {
    free(mine->answer);
    free(mine->owned);
    free(mine);
}

static job *take_job(rs_workers *workers) {
    job *mine = first_of(&workers->line);
    if (!mine) return NULL;
    RS_CHECK(workers->waiting > 0 && workers->busy < workers->threads && !mine->runs);
    rs_links_remove(&workers->line, &mine->link);
    rs_links_append(&workers->running, &mine->link);
    mine->runs = true;
    workers->waiting--;
    workers->busy++;
    return mine;
}

static void finish_job(rs_workers *workers, job *mine, int64_t result) {
    RS_CHECK(mine->runs && workers->busy > 0 && workers->left <= workers->busy);
    rs_links_remove(&workers->running, &mine->link);
    workers->busy--;
    if (mine->left) workers->left--;
    if (workers->machine) {
        RS_ASSERT(mine->op->job == mine);
        mine->op->job = NULL;
    }
    if (!workers->ending) {
        answer(workers, mine, result);
    } else {
        if (result >= 0 && rs_op_kinds[mine->request.kind].effect == RS_EFFECT_DESCRIPTOR) close((int)result);
        if (workers->machine) workers->machine->outside--; /* whose memory stays for as long as there is some */
    }
    free_job(mine);
}

static bool too_many(const rs_workers *workers) { return workers->threads - workers->left > workers->limit; }

static void *work(void *argument) {
    rs_workers *workers = argument;
    pthread_mutex_lock(&workers->lock);
    while (!too_many(workers)) {
        while (rs_links_empty(&workers->line) && !workers->ending) {
            workers->idle++;
            pthread_cond_wait(&workers->work, &workers->lock);
            workers->idle--;
        }
        job *mine = take_job(workers);
        if (!mine) break;
        pthread_mutex_unlock(&workers->lock);
        int64_t result = perform(&mine->request);
        pthread_mutex_lock(&workers->lock);
        finish_job(workers, mine, result);
    }
    RS_CHECK(workers->threads > workers->busy);
    workers->threads--;
    /* The machine has gone without us, and nobody is left behind us. */
    bool last = workers->ending && !workers->machine && workers->threads == 0;
    pthread_cond_signal(&workers->gone);
    pthread_mutex_unlock(&workers->lock);
    if (last) destroy(workers);
    return NULL;
}

/* --- for the machine --- */

/* Signals belong to the program's threads. */
static bool start_thread(rs_workers *workers) {
    RS_CHECK(workers->threads - workers->left < workers->limit && !workers->ending);
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, NULL, work, workers);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) return false;
    pthread_detach(thread);
    workers->threads++;
    return true;
}

/* Sees that somebody will come for the jobs in line. False: there is no thread at all and none can be made. An idle thread
 * counts as idle until it has run, so two jobs in a row must not both rely on the same one. */
static bool provide_hands(rs_workers *workers) {
    RS_CHECK(workers->waiting > 0 && workers->threads >= workers->left);
    if (workers->idle >= workers->waiting || workers->threads - workers->left >= workers->limit) return true;
    return start_thread(workers) || workers->threads > workers->left;
}

static void put_in_line(rs_workers *workers, job *mine) {
    RS_CHECK(!mine->runs && mine->op->job == NULL);
    rs_links_append(&workers->line, &mine->link);
    mine->op->job = mine;
    workers->waiting++;
}

static void take_out_of_line(rs_workers *workers, job *mine) {
    RS_CHECK(workers->waiting > 0 && mine->op->job == mine && !mine->runs);
    rs_links_remove(&workers->line, &mine->link);
    mine->op->job = NULL;
    workers->waiting--;
}

static job *new_job(void) {
    job *mine = rs_try_alloc(sizeof(*mine));
    if (mine) mine->answer = rs_try_alloc(sizeof(*mine->answer));
    if (mine && mine->answer) return mine;
    free(mine);
    return NULL;
}

void rs_workers_submit(rs_workers *workers, rs_op *op) {
    job *mine = rs_op_lend(op) ? new_job() : NULL;
    if (RS_UNLIKELY(!mine)) {
        rs_op_complete(workers->machine, op, RS_NO_MEMORY);
        return;
    }
    RS_CHECK(op->state == RS_OP_SUBMITTED && op->job == NULL && !op->offloaded);
    mine->op = op;
    mine->request = op->request;
    op->offloaded = true;
    workers->machine->outside++;
    workers->machine->metrics.ops_offloaded++;
    pthread_mutex_lock(&workers->lock);
    put_in_line(workers, mine);
    bool alone = !provide_hands(workers) && first_of(&workers->line) == mine;
    if (alone) take_out_of_line(workers, mine);
    else pthread_cond_signal(&workers->work);
    pthread_mutex_unlock(&workers->lock);
    if (!alone) return;
    /* Done here and now: late but right. */
    answer(workers, mine, perform(&mine->request));
    free_job(mine);
}

static bool withdraw(rs_workers *workers, rs_op *op) {
    pthread_mutex_lock(&workers->lock);
    job *mine = op->job;
    bool in_line = mine && !mine->runs;
    if (in_line) take_out_of_line(workers, mine);
    pthread_mutex_unlock(&workers->lock);
    if (!in_line) return false;
    free_job(mine);
    RS_CHECK(workers->machine->outside > 0);
    workers->machine->outside--;
    return true;
}

static void leave(rs_workers *workers, rs_op *op) {
    RS_CHECK(rs_op_may_be_left(op) && op->cancel != RS_WAKE_VALUE);
    pthread_mutex_lock(&workers->lock);
    job *mine = op->job;
    RS_CHECK(!mine || mine->runs);
    if (mine && !mine->left && workers->left < RS_WORKERS_LEFT_MAX) {
        mine->left = true;
        workers->left++;
        workers->short_of_hands = true;
    }
    pthread_mutex_unlock(&workers->lock);
}

void rs_workers_cancel(rs_workers *workers, rs_op *op) {
    RS_CHECK(op->state == RS_OP_SUBMITTED && op->offloaded);
    rs_machine *machine = workers->machine;
    if (withdraw(workers, op)) rs_op_complete(machine, op, -ECANCELED);
    else if (rs_op_leave(machine, op)) leave(workers, op);
}

void rs_workers_tend(rs_workers *workers) {
    RS_CHECK(!workers->ending);
    if (RS_LIKELY(!workers->short_of_hands)) return;
    workers->short_of_hands = false;
    pthread_mutex_lock(&workers->lock);
    for (uint32_t wanted = workers->idle; wanted < workers->waiting; wanted++) {
        if (workers->threads - workers->left >= workers->limit || !start_thread(workers)) break;
    }
    pthread_mutex_unlock(&workers->lock);
}

void rs_workers_free(rs_workers *workers) {
    pthread_mutex_lock(&workers->lock);
    workers->ending = true;
    pthread_cond_broadcast(&workers->work);
    while (workers->threads > workers->busy) pthread_cond_wait(&workers->gone, &workers->lock);
    RS_EACH_LINKED(&workers->running, job, link, each) {
        RS_ASSERT(each->op->state == RS_OP_SUBMITTED && rs_op_may_be_left(each->op));
        each->owned = each->op->request.owned;
        each->op->request.owned = NULL;
    }
    RS_CHECK(rs_links_empty(&workers->line) && workers->waiting == 0);
    workers->machine = NULL;
    bool last = workers->threads == 0;
    pthread_mutex_unlock(&workers->lock);
    if (last) destroy(workers);
}

void rs_workers_leave(rs_workers *workers) {
    RS_CHECK(!workers->ending);
    pthread_mutex_lock(&workers->lock);
    workers->ending = true;
    while (workers->line.first) {
        job *mine = first_of(&workers->line);
        take_out_of_line(workers, mine);
        free_job(mine);
        RS_CHECK(workers->machine->outside > 0);
        workers->machine->outside--;
    }
    pthread_cond_broadcast(&workers->work);
    pthread_mutex_unlock(&workers->lock);
}

void rs_workers_forked(rs_workers *workers) {
    RS_EACH_LINKED(&workers->line, job, link, each) free_job(each);
    workers->line = workers->running = (rs_links){0};
    workers->idle = workers->waiting = workers->threads = workers->busy = workers->left = 0;
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->work, NULL);
    pthread_cond_init(&workers->gone, NULL);
}
