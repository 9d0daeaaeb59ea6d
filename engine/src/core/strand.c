#include "core/strand.h"

uint8_t rs_strand_state_now(const rs_strand *strand) { return strand->state; }
uint8_t rs_strand_wait(const rs_strand *strand) { return strand->wait; }
uint64_t rs_strand_ticket(const rs_strand *strand) { return strand->ticket; }
const rs_list *rs_strand_list(const rs_strand *strand) { return strand->waiter.list; }
uint64_t rs_strand_tag(const rs_strand *strand) { return strand->waiter.tag; }
int64_t rs_strand_parked_at(const rs_strand *strand) { return strand->parked_at_ns; }
uint32_t rs_strand_interrupts(const rs_strand *strand) { return strand->interrupts; }
uint32_t rs_strand_shields(const rs_strand *strand) { return strand->shield_depth; }
bool rs_strand_is_permitted(const rs_strand *strand) { return strand->permit; }
struct rs_batch *rs_strand_batch(const rs_strand *strand) { return strand->batch; }
rs_scope *rs_strand_scope(const rs_strand *strand) { return strand->scope; }
rs_scope *rs_strand_own(rs_strand *strand) { return &strand->own; }
uint32_t rs_strand_stacked(const rs_strand *strand) { return strand->stacked; }
rs_list *rs_strand_joiners(rs_strand *strand) { return &strand->joiners; }
rs_source *rs_strand_watched(rs_strand *strand) { return &strand->watched; }
uint64_t rs_strand_hand(const rs_strand *strand) { return strand->hand; }

void rs_strand_awaits_turn(rs_strand *strand) {
    RS_CHECK(strand->ticket == 0 && strand->wait == RS_WAIT_NONE);
    strand->wait = RS_WAIT_YIELD;
}

void rs_strand_began(rs_strand *strand) {
    RS_CHECK(strand->state == RS_STRAND_RUNNING && strand->ticket == 0);
    strand->wait = RS_WAIT_NONE;
}

uint64_t rs_strand_take_hand(rs_strand *strand) {
    uint64_t word = strand->hand;
    strand->hand = 0;
    return word;
}

void rs_lock_taken(rs_strand *strand) { strand->locks++; }

void rs_lock_given(rs_strand *strand) {
    RS_CHECK(strand->locks > 0);
    strand->locks--;
}

void rs_take_interrupt(rs_strand *strand) {
    RS_CHECK(strand->interrupts > 0);
    strand->interrupts--;
}

void rs_permit(rs_strand *strand) { strand->permit = true; }
