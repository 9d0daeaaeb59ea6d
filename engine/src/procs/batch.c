#include "ringspun/procs/batch.h"
#include "core/machine.h"
#include "procs/batches.h"

#include <stdlib.h>

/* Starts that have room at first. It doubles. */
#define CAPACITY_FIRST 16u

/* A batch of more is freed at its end, and not kept as the spare one. */
#define SPARE_CAPACITY_MAX 4096u

rs_batch *rs_batch_open(const rs_machine *machine, const rs_scope *scope) {
    rs_batch *batch = RS_LINKED(rs_batches_in(machine)->all.first, rs_batch, link);
    if (!batch || batch->closed || batch->at > 0) return NULL;
    const rs_strand *last = rs_run_last(&machine->strands);
    if (!last || rs_strand_id(last) != batch->strand || last->state != RS_STRAND_NEW) return NULL;
    return last->own.parent == scope ? batch : NULL;
}

bool rs_batch_reserve(rs_machine *machine, uint32_t start_size) {
    rs_batches *batches = rs_batches_in(machine);
    RS_CHECK(start_size > 0);
    if (RS_UNLIKELY(!batches->spare)) batches->spare = rs_try_alloc(sizeof(rs_batch));
    rs_batch *batch = batches->spare;
    if (!batch) return false;
    RS_CHECK(batch->len == 0 && (batch->capacity == 0 || batch->start_size == start_size));
    if (RS_LIKELY(batch->capacity > 0)) return true;
    batch->starts = rs_try_alloc((size_t)start_size * CAPACITY_FIRST);
    if (!batch->starts) return false;
    batch->start_size = start_size;
    batch->capacity = CAPACITY_FIRST;
    return true;
}

static void give(rs_strand *strand, rs_batch *batch) {
    RS_CHECK(!strand->batch);
    strand->batch = batch;
    batch->strand = rs_strand_id(strand);
    rs_strand_awaits_turn(strand);
}

rs_strand *rs_batch_spawn(rs_machine *machine, rs_scope *scope, void *user) {
    rs_batches *batches = rs_batches_in(machine);
    rs_batch *batch = batches->spare;
    RS_ASSERT(batch && batch->len == 0 && batch->capacity > 0); /* reserved */
    rs_strand *strand = rs_spawn(machine, scope, user);
    if (!strand) return NULL;
    batches->spare = NULL;
    rs_links_prepend(&batches->all, &batch->link);
    give(strand, batch);
    return strand;
}

bool rs_batch_grow(rs_batch *batch) {
    RS_CHECK(batch->len == batch->capacity);
    if (batch->capacity > UINT32_MAX / 2) return false;
    char *starts = rs_try_realloc(batch->starts, 2 * rs_batch_bytes(batch));
    if (!starts) return false;
    batch->starts = starts;
    batch->capacity *= 2;
    return true;
}

static void free_batch(rs_batch *batch) {
    free(batch->starts);
    free(batch);
}

void rs_batch_end(rs_machine *machine, rs_strand *strand) {
    rs_batches *batches = rs_batches_in(machine);
    rs_batch *batch = strand->batch;
    RS_CHECK(batch->at == batch->len);
    strand->batch = NULL;
    rs_links_remove(&batches->all, &batch->link);
    if (batches->spare || batch->capacity > SPARE_CAPACITY_MAX) {
        free_batch(batch);
        return;
    }
    batch->strand = RS_NO_ID;
    batch->at = batch->len = 0;
    batch->closed = false;
    batches->spare = batch;
}

typedef rs_strand *spawn_function(rs_machine *machine, rs_scope *scope, void *user);

static rs_strand *hand_over(rs_machine *machine, rs_strand *strand, void *user, spawn_function *spawn) {
    rs_batch *batch = strand->batch;
    RS_CHECK(batch != NULL);
    RS_CHECK(batch->strand == rs_strand_id(strand));
    if (batch->at == batch->len) {
        rs_batch_end(machine, strand); /* and not only when the last run has ended its wait */
        return NULL;
    }
    rs_strand *other = user ? spawn(machine, strand->own.parent, user) : NULL;
    if (!other) return NULL;
    strand->batch = NULL;
    give(other, batch);
    return other;
}

rs_strand *rs_batch_hand_over(rs_machine *machine, rs_strand *strand, void *user) {
    return hand_over(machine, strand, user, rs_spawn_behind_front);
}

rs_strand *rs_batch_hand_over_in_place(rs_machine *machine, rs_strand *strand, void *user) {
    return hand_over(machine, strand, user, rs_spawn_in_place);
}

void rs_batches_each(const rs_machine *machine, void (*visit)(const void *start)) {
    RS_EACH_LINKED(&rs_batches_in(machine)->all, rs_batch, link, batch) {
        for (uint32_t i = batch->at; i < batch->len; i++) visit(batch->starts + (size_t)batch->start_size * i);
    }
}

static void close(rs_machine *machine) {
    rs_batches *batches = rs_batches_in(machine);
    RS_EACH_LINKED(&batches->all, rs_batch, link, batch) {
        rs_links_remove(&batches->all, &batch->link);
        free_batch(batch);
    }
    if (batches->spare) free_batch(batches->spare);
    batches->spare = NULL;
}

/* The strands that would begin these runs are the parent's. */
static void forked(rs_machine *machine, const rs_strand *survivor) {
    RS_CHECK(survivor == rs_runs(machine));
    rs_runs(machine)->batch = NULL;
    close(machine);
}

const rs_part rs_batches_part = {.forked = forked, .close = close};
