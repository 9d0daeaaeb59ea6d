/* messages: what other threads send to a machine. */
#include "core/run.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Whoever sends a message has often done already what it tells, and the receiver waits for nothing else. So there are some for a
 * thread that gets no memory: of the C library a thread has none where the system refuses mmap. */
enum { SPARE = 256 };

static rs_message spare[SPARE];
static _Atomic bool lent[SPARE];

static rs_message *lend(void) {
    for (uint32_t i = 0; i < SPARE; i++) {
        if (!atomic_exchange(&lent[i], true)) return &spare[i];
    }
    return NULL;
}

rs_message *rs_message_new(rs_message_kind kind, uint64_t name, uintptr_t payload) {
    rs_message *message = rs_try_alloc(sizeof(*message));
    if (!message) message = lend();
    RS_ASSERT(message != NULL);
    *message = (rs_message){.kind = kind, .name = name, .payload = payload};
    return message;
}

void rs_message_free(rs_message *message) {
    bool is_spare = message >= spare && message < spare + SPARE;
    if (is_spare) atomic_store(&lent[message - spare], false);
    else free(message);
}

static void take_message(rs_machine *machine, const rs_message *message) {
    RS_CHECK(message->kind < RS_MESSAGE_KINDS);
    machine->metrics.messages++;
    const rs_part *part = machine->on_message[message->kind];
    if (part) {
        part->on_message(machine, message);
    } else if (message->kind == RS_MESSAGE_WAKE) {
        RS_CHECK(machine->wakers > 0);
        machine->wakers--;
        rs_wake(machine, message->name, message->payload, RS_WAKE_VALUE, message->value);
    } else if (message->kind == RS_MESSAGE_NUDGE) {
        rs_wake(machine, message->name, message->payload, RS_WAKE_VALUE, message->value);
    } else if (message->kind == RS_MESSAGE_UNBLOCK) {
        rs_unblock_late(machine, message->name, message->payload);
    } else if (machine->driver.on_message) {
        machine->driver.on_message(machine, message);
    }
}

void rs_take_messages(rs_machine *machine) {
    if (RS_LIKELY(rs_inbox_empty(&machine->inbox))) return;
    RS_CHECK(machine->taken == NULL);
    machine->taken = rs_inbox_take(&machine->inbox);
    while (machine->taken) {
        rs_message *message = machine->taken;
        take_message(machine, message);
        machine->taken = message->next;
        rs_message_free(message);
    }
}

void rs_send(rs_machine *machine, rs_message *message) {
    rs_inbox_push(&machine->inbox, message);
    if (atomic_load(&machine->sleeping)) rs_wake_up(machine);
}

void rs_wake_up(rs_machine *machine) { machine->backend->wake(machine); }
