#include "workers.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

typedef struct job {
    struct job *next;
    rs_id op;
    rs_request request;
} job;

struct rs_workers {
    rs_machine *machine;
    pthread_mutex_t lock;
    pthread_cond_t work;
    job *first;
    job *last;
    uint32_t idle;
    uint32_t waiting;           /* jobs in line */
    uint32_t started;
    uint32_t limit;
    bool ending;
    pthread_t *threads;
};

rs_workers *rs_workers_new(rs_machine *machine, uint32_t limit) {
    rs_workers *workers = rs_alloc(sizeof(*workers));
    workers->machine = machine;
    workers->limit = limit ? limit : 1;
    workers->threads = rs_alloc(sizeof(pthread_t) * workers->limit);
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->work, NULL);
    return workers;
}

static int64_t perform(rs_request *request) {
    int64_t (*execute)(const rs_request *) = rs_op_table[request->kind].execute;
    bool all = request->options & RS_REQUEST_ALL;
    int64_t done = (int64_t)request->done;
    do {
        int64_t moved = execute(request);
        if (moved < 0) return done > 0 ? done : moved;
        done += moved;
        if (!all || moved == 0) return done;
        request->address = (char *)request->address + moved;
        request->len -= (uint64_t)moved;
        if (request->offset >= 0) request->offset += moved;
    } while (request->len > 0);
    return done;
}

static void answer(rs_workers *workers, rs_id op, int64_t result) {
    rs_message *message = rs_alloc(sizeof(*message));
    message->kind = RS_MESSAGE_COMPLETE;
    message->name = op;
    message->value = result;
    rs_send(workers->machine, message);
}

static void *work(void *argument) {
    rs_workers *workers = argument;
    pthread_mutex_lock(&workers->lock);
    for (;;) {
        while (!workers->first && !workers->ending) {
            workers->idle++;
            pthread_cond_wait(&workers->work, &workers->lock);
            workers->idle--;
        }
        job *mine = workers->first;
        if (!mine) break;
        workers->first = mine->next;
        if (!workers->first) workers->last = NULL;
        workers->waiting--;
        pthread_mutex_unlock(&workers->lock);
        answer(workers, mine->op, perform(&mine->request));
        free(mine);
        pthread_mutex_lock(&workers->lock);
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

/* Signals belong to the program's threads. Without a thread the job waits for one that runs; with none at all it is done
 * here and now, late but right. */
static bool start_thread(rs_workers *workers) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&workers->threads[workers->started], NULL, work, workers);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) workers->started++;
    return workers->started > 0;
}

void rs_workers_submit(rs_workers *workers, rs_op *op) {
    job *mine = rs_alloc(sizeof(*mine));
    mine->op = rs_op_id(op);
    mine->request = op->request;
    op->offloaded = true;
    workers->machine->outside++;
    workers->machine->metrics.ops_offloaded++;
    pthread_mutex_lock(&workers->lock);
    /* An idle thread counts as idle until it has run, so two jobs in a row must not both rely on the same one. */
    bool hands = workers->idle > workers->waiting || workers->started == workers->limit || start_thread(workers);
    if (hands) {
        if (workers->last) workers->last->next = mine;
        else workers->first = mine;
        workers->last = mine;
        workers->waiting++;
        pthread_cond_signal(&workers->work);
    }
    pthread_mutex_unlock(&workers->lock);
    if (hands) return;
    answer(workers, mine->op, perform(&mine->request));
    free(mine);
}

bool rs_workers_withdraw(rs_workers *workers, rs_op *op) {
    bool found = false;
    job *before = NULL;
    pthread_mutex_lock(&workers->lock);
    for (job *each = workers->first; each; before = each, each = each->next) {
        if (each->op != rs_op_id(op)) continue;
        if (before) before->next = each->next;
        else workers->first = each->next;
        if (workers->last == each) workers->last = before;
        free(each);
        workers->waiting--;
        found = true;
        break;
    }
    pthread_mutex_unlock(&workers->lock);
    if (found) workers->machine->outside--;
    return found;
}

void rs_workers_free(rs_workers *workers) {
    pthread_mutex_lock(&workers->lock);
    workers->ending = true;
    pthread_cond_broadcast(&workers->work);
    pthread_mutex_unlock(&workers->lock);
    for (uint32_t i = 0; i < workers->started; i++) pthread_join(workers->threads[i], NULL);
    pthread_mutex_destroy(&workers->lock);
    pthread_cond_destroy(&workers->work);
    free(workers->threads);
    free(workers);
}

void rs_workers_forked(rs_workers *workers) {
    for (job *each = workers->first; each;) {
        job *next = each->next;
        free(each);
        each = next;
    }
    workers->first = workers->last = NULL;
    workers->idle = workers->waiting = workers->started = 0;
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->work, NULL);
}
