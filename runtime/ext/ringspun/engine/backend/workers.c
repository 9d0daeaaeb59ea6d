#include "backend/workers.h"

/* Many look-ups come together, and then none for long. */
#define NAMES_IDLE_NS 1000000000

rs_workers rs_workers_new(rs_machine *machine) {
    rs_worker_rules files = {.limit = machine->options.workers_max, .replaces_left = true, .idle_ns = RS_NEVER};
    rs_worker_rules names = {.limit = RS_LOOK_UPS_MAX, .by_zone = true, .idle_ns = NAMES_IDLE_NS};
    return (rs_workers){rs_worker_pool_new(machine, &files), rs_worker_pool_new(machine, &names)};
}

static rs_worker_pool *pool_of(const rs_workers *workers, const rs_op *op) {
    return op->request.kind == RS_OP_RESOLVE ? workers->names : workers->files;
}

void rs_workers_free(rs_workers *workers) {
    rs_worker_pool_free(workers->files);
    rs_worker_pool_free(workers->names);
}

void rs_workers_leave(rs_workers *workers) {
    rs_worker_pool_leave(workers->files);
    rs_worker_pool_leave(workers->names);
}

void rs_workers_forked(rs_workers *workers) {
    rs_worker_pool_forked(workers->files);
    rs_worker_pool_forked(workers->names);
}

void rs_workers_submit(rs_workers *workers, rs_op *op) { rs_worker_pool_submit(pool_of(workers, op), op); }

void rs_workers_cancel(rs_workers *workers, rs_op *op) { rs_worker_pool_cancel(pool_of(workers, op), op); }

void rs_workers_tend(rs_workers *workers) {
    rs_worker_pool_tend(workers->files);
    rs_worker_pool_tend(workers->names);
}
