/* inbox: messages from other threads to a machine. Any thread may push; only the machine's thread takes.
 *
 * A Treiber stack that the taker reverses, so a sender's messages arrive in the order it sent them. A message is owned by
 * the inbox from push to take, then by the taker, who frees it.
 */
#ifndef RINGSPUN_INBOX_H
#define RINGSPUN_INBOX_H

#include "ringspun/core/base.h"

#include <stdatomic.h>

typedef enum {
    RS_MESSAGE_COMPLETE,  /* name: op id, value: its result */
    RS_MESSAGE_WAKE,      /* name: strand id, payload: ticket, value: the result of its wait */
    RS_MESSAGE_UNBLOCK,   /* name: strand id, payload: ticket */
    RS_MESSAGE_NUDGE,     /* as WAKE, of somebody whom the machine has not counted on */
    RS_MESSAGE_READY,     /* payload: an observer of a channel, for its watch */
    RS_MESSAGE_USER,      /* for the binding: name and payload are its own */
    RS_MESSAGE_KINDS
} rs_message_kind;

typedef struct rs_message {
    struct rs_message *next;
    rs_message_kind kind;
    uint64_t name;
    int64_t value;
    uintptr_t payload;
} rs_message;

typedef struct {
    _Atomic(rs_message *) head;
} rs_inbox;

void rs_inbox_push(rs_inbox *inbox, rs_message *message);

/* Everything that has arrived, oldest first; NULL when empty. */
rs_message *rs_inbox_take(rs_inbox *inbox);

static inline bool rs_inbox_empty(rs_inbox *inbox) {
    return atomic_load_explicit(&inbox->head, memory_order_seq_cst) == NULL;
}

#endif
