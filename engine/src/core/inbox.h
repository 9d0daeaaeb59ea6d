/* inbox: messages from other threads to a machine. Any thread may push; only the machine's thread takes.
 *
 * A Treiber stack that the taker reverses, so a sender's messages arrive in the order it sent them. A message is owned by
 * the inbox from push to take, then by the taker, who frees it.
 */
#ifndef RINGSPUN_INBOX_H
#define RINGSPUN_INBOX_H

#include "ringspun/core/message.h"

#include <stdatomic.h>

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
