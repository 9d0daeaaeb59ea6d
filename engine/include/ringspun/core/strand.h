/* strand: what runs and waits, as a machine keeps it. Owned by the machine's thread.
 *
 * States:  FREE -> NEW -> RUNNING -> PARKED -> READY -> RUNNING ...; RUNNING -> READY by a yield, or
 *          displaced; FREE from any of them (its index with the next generation)
 *
 * The central invariant: every park takes a fresh ticket, and of the wakes that show this ticket one is accepted. Any
 * other is dropped and counted. There is one run-queue link per strand, so a double resume cannot even be written down.
 */
#ifndef RINGSPUN_STRAND_H
#define RINGSPUN_STRAND_H

#include "ringspun/core/list.h"
#include "ringspun/core/scope.h"
#include "ringspun/core/slot.h"
#include "ringspun/core/source.h"

typedef enum { RS_STRAND_FREE, RS_STRAND_NEW, RS_STRAND_READY, RS_STRAND_RUNNING, RS_STRAND_PARKED } rs_strand_state;

typedef enum {
    RS_WAIT_NONE, RS_WAIT_YIELD, RS_WAIT_SLEEP, RS_WAIT_OP, RS_WAIT_LIST, RS_WAIT_JOIN, RS_WAIT_SCOPE, RS_WAIT_SUSPEND,
    RS_WAIT_BLOCK, RS_WAIT_WAKER, RS_WAIT_EVALUATION, RS_WAIT_CHANNEL, RS_WAIT_MUTEX, RS_WAIT_KINDS
} rs_wait_kind;

/* How a wait ended. INTERRUPT: the binding holds something to raise here. */
typedef enum { RS_WAKE_VALUE, RS_WAKE_TIMEOUT, RS_WAKE_CANCEL, RS_WAKE_INTERRUPT, RS_WAKE_NO_MEMORY } rs_wake_kind;

/* Neither a cancellation nor an interrupt ends this wait; for the few that must see their end (a scope's own exit). */
#define RS_PARK_SHIELDED 1u

/* How a strand begins. The rest is the engine's (core/strand.h there), and a driver asks for it. */
typedef struct {
    RS_SLOT;
    void *user;
} rs_strand_head;

typedef struct rs_strand rs_strand;

/* Of rs_spawn. */
static inline void *rs_strand_user(const rs_strand *strand) { return ((const rs_strand_head *)(const void *)strand)->user; }

/* All that a machine has (rs_strands_of). */
typedef struct rs_strands rs_strands;

/* An index below rs_strands_names. */
rs_strand *rs_strand_at(const rs_strands *strands, uint32_t index);

/* How many indices were ever given out: that of the next strand is this at most. */
uint32_t rs_strands_names(const rs_strands *strands);

/* How many have not ended. */
uint32_t rs_strands_live(const rs_strands *strands);

/* Those that have not ended, one after the other: the one behind `strand` (NULL: the first of all), or NULL. It may end
 * meanwhile. */
rs_strand *rs_strands_next(const rs_strands *strands, const rs_strand *strand);

#define RS_EACH_STRAND(strands, strand) for (rs_strand *strand = NULL; (strand = rs_strands_next(strands, strand));)

static inline rs_id rs_strand_id(const rs_strand *strand) {
    const rs_strand_head *head = (const void *)strand;
    return rs_id_make(head->index, head->generation);
}

/* The strand of that name, or NULL when it has ended. */
rs_strand *rs_strand_find(const rs_strands *strands, rs_id id);

/* rs_strand_state: FREE in no strand that was found by its name. */
uint8_t rs_strand_state_now(const rs_strand *strand);
static inline bool rs_strand_is(const rs_strand *strand, rs_strand_state state) { return rs_strand_state_now(strand) == state; }

/* What it waits for, or has waited for last (rs_wait_kind); the ticket of that; the list that it waits in (NULL: none), and the tag
 * with which it came into one last (rs_list_append). */
uint8_t rs_strand_wait(const rs_strand *strand);
uint64_t rs_strand_ticket(const rs_strand *strand);
const rs_list *rs_strand_list(const rs_strand *strand);
uint64_t rs_strand_tag(const rs_strand *strand);

/* When it began to wait; 0: not noted (rs_machine_note_parks). */
int64_t rs_strand_parked_at(const rs_strand *strand);

/* How many things the driver holds for it to raise (rs_interrupt), and how many shields are around what it runs. */
uint32_t rs_strand_interrupts(const rs_strand *strand);
uint32_t rs_strand_shields(const rs_strand *strand);

/* An unblock has come before its wait (rs_permit). */
bool rs_strand_is_permitted(const rs_strand *strand);

/* The runs that it is to begin; NULL: none. */
struct rs_batch *rs_strand_batch(const rs_strand *strand);

/* The innermost scope of those that govern what it runs; that which cancels just this strand; and how many of its open scopes were
 * opened on other stacks than its first. */
rs_scope *rs_strand_scope(const rs_strand *strand);
rs_scope *rs_strand_own(rs_strand *strand);
uint32_t rs_strand_stacked(const rs_strand *strand);

/* For its end: those who wait in a list, and those who watch. */
rs_list *rs_strand_joiners(rs_strand *strand);
rs_source *rs_strand_watched(rs_strand *strand);

/* A new strand waits for its first turn, and has it; that of rs_spawn_first both at once. */
void rs_strand_awaits_turn(rs_strand *strand);
void rs_strand_began(rs_strand *strand);

/* What it was handed, or offers; and the same, which is its own from now on. */
uint64_t rs_strand_hand(const rs_strand *strand);
uint64_t rs_strand_take_hand(rs_strand *strand);

/* It holds one more lock, and one less. */
void rs_lock_taken(rs_strand *strand);
void rs_lock_given(rs_strand *strand);

const char *rs_wait_name(uint32_t wait);

#endif
