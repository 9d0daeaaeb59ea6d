#include "core/machine.h"

void rs_list_append(rs_machine *machine, rs_list *list, rs_strand *strand, uint64_t tag) {
    RS_ASSERT(strand->waiter.list == NULL);
    RS_CHECK(strand->state == RS_STRAND_PARKED);
    RS_CHECK((list->head == 0) == (list->len == 0) && (list->tail == 0) == (list->len == 0));
    uint32_t link = strand->index + 1;
    strand->waiter = (rs_waiter){.list = list, .next = 0, .previous = list->tail, .tag = tag};
    if (list->tail) rs_strands_slot(&machine->strands, list->tail - 1)->waiter.next = link;
    else list->head = link;
    list->tail = link;
    list->len++;
}

void rs_list_remove(rs_machine *machine, rs_strand *strand) {
    rs_waiter *waiter = &strand->waiter;
    rs_list *list = waiter->list;
    if (!list) return;
    RS_CHECK(list->len > 0);
    RS_CHECK(waiter->previous ? rs_strands_slot(&machine->strands, waiter->previous - 1)->waiter.next == strand->index + 1
                              : list->head == strand->index + 1);
    if (waiter->previous) rs_strands_slot(&machine->strands, waiter->previous - 1)->waiter.next = waiter->next;
    else list->head = waiter->next;
    if (waiter->next) rs_strands_slot(&machine->strands, waiter->next - 1)->waiter.previous = waiter->previous;
    else list->tail = waiter->previous;
    list->len--;
    *waiter = (rs_waiter){.tag = waiter->tag};
}

rs_strand *rs_list_first(const rs_machine *machine, const rs_list *list) {
    RS_CHECK((list->head == 0) == (list->len == 0));
    return list->head ? rs_strands_slot(&machine->strands, list->head - 1) : NULL;
}
