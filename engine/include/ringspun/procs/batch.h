/* batch: runs of concurrent procs that begin later, in the order of the run queue, and as long as none of them waits all in one
 * strand. Owned by the machine's thread.
 *
 * A start is a run that has not begun: memory of the driver's, of a size that it chooses. The engine knows nothing of it, and the
 * driver keeps alive what it names (rs_batches_each).
 *
 * As long as no other strand becomes ready, starts are added to the same batch, for which one strand stands at the end of the run
 * queue (rs_batch_open). That strand begins one after the other (rs_batch_next). When one of them waits, or keeps the strand in
 * another way, the rest is handed over to another strand of the same scope, which goes before all others but those whom the run has
 * sent on (rs_batch_hand_over). So a run that does not wait needs no strand of its own and no switch.
 */
#ifndef RINGSPUN_BATCH_H
#define RINGSPUN_BATCH_H

#include "ringspun/core/machine.h"

typedef struct rs_batch {
    rs_link link;               /* in the machine's list */
    rs_id strand;               /* in which its runs begin */
    uint32_t at, len;           /* those from `at` on have not begun */
    uint32_t capacity;
    uint32_t start_size;
    bool closed;                /* no start is added any more */
    char *starts;
} rs_batch;

/* The batch to which a start in that scope may be added now: its strand comes last, so the run would come right after it anyway.
 * NULL: it needs a strand. */
rs_batch *rs_batch_open(const rs_machine *machine, const rs_scope *scope);

/* Memory for a batch, with room for one start of that size, so that rs_batch_spawn fails only at the limit of strands. False: there
 * is none. */
bool rs_batch_reserve(rs_machine *machine, uint32_t start_size);

/* A strand at the end of the run queue, which has an empty batch: it gets its first start before anything else happens. NULL at the
 * limit, or without memory for a strand. */
rs_strand *rs_batch_spawn(rs_machine *machine, rs_scope *scope, void *user);

/* That it has for starts. */
static inline size_t rs_batch_bytes(const rs_batch *batch) { return (size_t)batch->start_size * batch->capacity; }

/* For rs_batch_add and rs_batch_next. */
bool rs_batch_grow(rs_batch *batch);
void rs_batch_end(rs_machine *machine, rs_strand *strand);

/* Room for one more start, which the driver fills in at once; NULL: no memory, and nothing has changed. */
static inline void *rs_batch_add(rs_batch *batch) {
    RS_CHECK(batch->at == 0 && !batch->closed);
    if (RS_UNLIKELY(batch->len == batch->capacity) && !rs_batch_grow(batch)) return NULL;
    return batch->starts + (size_t)batch->start_size * batch->len++;
}

static inline void rs_batch_close(rs_batch *batch) { batch->closed = true; }

/* The start that the strand begins next, in memory that is good until the next one is added; NULL: it has no more, and no batch from
 * now on. */
static inline void *rs_batch_next(rs_machine *machine, rs_strand *strand) {
    rs_batch *batch = rs_strand_batch(strand);
    if (!batch) return NULL;
    RS_CHECK(batch->strand == rs_strand_id(strand));
    if (RS_LIKELY(batch->at < batch->len)) return batch->starts + (size_t)batch->start_size * batch->at++;
    rs_batch_end(machine, strand);
    return NULL;
}

/* The strand has a batch, and does not go on with it at once. Another one does, with that `user`, as it has come: as the next of all.
 * NULL: there is none. It was not needed, for there was nothing left, and the batch has ended; or there are no more strands (or no
 * `user`), and this one goes on with it later. */
rs_strand *rs_batch_hand_over(rs_machine *machine, rs_strand *strand, void *user);
/* The same between two runs, where the first one's turn was long: strands that are woken go before the rest. */
rs_strand *rs_batch_hand_over_in_place(rs_machine *machine, rs_strand *strand, void *user);

/* Between two runs: the turn has been long, and there is a rest to hand over in place. */
static inline bool rs_batch_turn_is_over(rs_machine *machine, const rs_strand *strand) {
    const rs_batch *batch = rs_strand_batch(strand);
    return batch && batch->at < batch->len && rs_turn_is_long(machine);
}

/* All starts that have not begun, for a collector; of a machine that is not open, none. */
void rs_batches_each(const rs_machine *machine, void (*visit)(const void *start));

#endif
