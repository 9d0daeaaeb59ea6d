#include "core/inbox.h"

void rs_inbox_push(rs_inbox *inbox, rs_message *message) {
    RS_ASSERT(message->kind < RS_MESSAGE_KINDS);
    rs_message *head = atomic_load_explicit(&inbox->head, memory_order_relaxed);
    do {
        RS_CHECK(head != message);
        message->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&inbox->head, &head, message, memory_order_seq_cst,
                                                    memory_order_relaxed));
}

rs_message *rs_inbox_take(rs_inbox *inbox) {
    rs_message *newest = atomic_exchange_explicit(&inbox->head, NULL, memory_order_acquire);
    rs_message *oldest = NULL;
    while (newest) {
        rs_message *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}
