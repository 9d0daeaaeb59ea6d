#include "backend/workers.h"
#include "core/machine.h"
#include "ops/descriptors.h"
#include "ringspun/kernel/resolve.h"

/* Many of these come together, and then none for long. */
#define IDLE_NS 1000000000

bool rs_workers_open(rs_machine *machine, rs_workers *workers) {
    rs_worker_rules files = {.limit = machine->options.workers_max, .replaces_left = true, .idle_ns = RS_NEVER};
    rs_worker_rules opens = {.limit = RS_OPENS_MAX, .replaces_left = true, .idle_ns = IDLE_NS};
    rs_worker_rules names = {.limit = RS_LOOK_UPS_MAX, .by_zone = true, .idle_ns = IDLE_NS};
    *workers = (rs_workers){.files = rs_worker_pool_new(machine, &files), .opens = rs_worker_pool_new(machine, &opens),
                            .names = rs_worker_pool_new(machine, &names)};
    if (RS_LIKELY(workers->files && workers->opens && workers->names)) return true;
    rs_workers_free(workers);
    return false;
}

static rs_worker_pool *pool_of(const rs_workers *workers, const rs_op *op) {
    if (op->request.kind == RS_OP_RESOLVE) return op->request.resolve.lookup->is_known ? workers->opens : workers->names;
    return rs_request_traits(&op->request)->of_others ? workers->opens : workers->files;
}

void rs_workers_free(rs_workers *workers) {
    rs_worker_pool *pools[] = {workers->files, workers->opens, workers->names};
    for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++) {
        if (pools[i]) rs_worker_pool_free(pools[i]);
    }
    *workers = (rs_workers){0};
}

void rs_workers_leave(rs_workers *workers) {
    rs_worker_pool_leave(workers->files);
    rs_worker_pool_leave(workers->opens);
    rs_worker_pool_leave(workers->names);
}

void rs_workers_forked(rs_workers *workers) {
    rs_worker_pool_forked(workers->files);
    rs_worker_pool_forked(workers->opens);
    rs_worker_pool_forked(workers->names);
}

/* A name that no server is asked for does not wait behind those of servers that do not answer. */
static void look_for_known(rs_workers *workers, rs_lookup *lookup) {
    lookup->is_known = !rs_worker_pool_has_place(workers->names, lookup->host) && rs_host_is_known(lookup->host);
}

void rs_workers_submit(rs_workers *workers, rs_op *op) {
    if (op->request.kind == RS_OP_RESOLVE) look_for_known(workers, op->request.resolve.lookup);
    rs_worker_pool_submit(pool_of(workers, op), op);
}

void rs_workers_cancel(rs_workers *workers, rs_op *op) { rs_worker_pool_cancel(pool_of(workers, op), op); }

void rs_workers_tend(rs_workers *workers) {
    rs_worker_pool_tend(workers->files);
    rs_worker_pool_tend(workers->opens);
    rs_worker_pool_tend(workers->names);
}
