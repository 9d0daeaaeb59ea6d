/* message: what another thread sends to a machine. Owned by the sender until it is sent (rs_send), and by the machine from then on. */
#ifndef RINGSPUN_MESSAGE_H
#define RINGSPUN_MESSAGE_H

#include "ringspun/core/base.h"

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

/* For what must not be lost for lack of memory. */
rs_message *rs_message_new(rs_message_kind kind, uint64_t name, uintptr_t payload);
void rs_message_free(rs_message *message);

#endif
