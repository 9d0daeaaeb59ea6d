/* outlet: what is written to a stream, until the kernel has it. Owned by the machine's thread.
 *
 * Bytes that are put in are handed over when the tick ends, that is when the machine is about to ask the backend, or when
 * somebody flushes: so what several strands write in one tick, or one strand in pieces, is one call. What the kernel does not take
 * at once is the outlet's op, which no strand waits for; what is put in meanwhile comes after it. So bytes leave in the order in
 * which they were put in, whole, and a strand that is cancelled has either put its bytes in or not.
 *
 * Where bytes are changed on their way (`pass`), what the kernel does not take of them waits for a poll, and is handed over again.
 *
 * The first error is final: it is told to whoever writes or flushes from then on, and bytes that have not left are gone.
 */
#ifndef RINGSPUN_OUTLET_H
#define RINGSPUN_OUTLET_H

#include "machine.h"

typedef struct rs_outlet {
    rs_machine *machine;        /* NULL: closed, with its machine or before */
    struct rs_outlet *next, *previous; /* of all that the machine has */
    struct rs_outlet *next_dirty;
    bool dirty;                 /* waits for the end of the tick */
    uint8_t kind;               /* RS_OP_WRITE or RS_OP_SEND */
    int32_t fd;
    uint32_t generation;
    uint64_t put;               /* bytes that were ever put in */
    rs_buffer filling;
    rs_buffer sending;          /* what the op is at, from its start on */
    rs_id op;                   /* in flight; 0: none */
    /* The binding's, instead of the kernel's call, for a layer between: takes some of the bytes and says how many, or -EAGAIN and
     * the readiness to wait for, or -errno. Sees what it did not take again, and more behind it. Must not raise. NULL: none. */
    int64_t (*pass)(struct rs_outlet *outlet, const void *bytes, size_t len, uint32_t *events);
    rs_list waiters;            /* told when bytes have left, or never will */
    int64_t error;              /* -errno; 0: none. Of one that its machine has closed, -EBADF: others have closed the descriptor */
    /* The binding's, where others may close the descriptor without the machine's knowing; must not raise. NULL: they do not. */
    bool (*is_open)(const struct rs_outlet *outlet);
} rs_outlet;

void rs_outlet_open(rs_machine *machine, rs_outlet *outlet, uint8_t kind, int fd);

/* What has not left is dropped. No op is in flight. */
void rs_outlet_close(rs_outlet *outlet);

/* For who frees it, from any thread that keeps the machine from running meanwhile. An op in flight, and a strand that waits, are
 * those of a machine that will never run again. */
void rs_outlet_abandon(rs_outlet *outlet);

/* Asks the op to end. True while it has not: wait in `waiters` and ask again. */
bool rs_outlet_stop(rs_outlet *outlet);

/* Takes the bytes, or answers the error. */
int64_t rs_outlet_put(rs_outlet *outlet, const void *bytes, size_t len);

/* Hands over now what may be. */
void rs_outlet_flush(rs_outlet *outlet);

/* Bytes that the kernel does not have yet. */
static inline size_t rs_outlet_len(const rs_outlet *outlet) { return rs_buffer_len(&outlet->filling) + rs_buffer_len(&outlet->sending); }

/* Of all that were put in, those that the kernel has, or never will. */
static inline uint64_t rs_outlet_left(const rs_outlet *outlet) { return outlet->put - rs_outlet_len(outlet); }

/* The number may mean something else by now, when others have closed what it meant: nothing more may be tried on it. */
bool rs_outlet_is_gone(const rs_outlet *outlet);

/* For the machine. */
void rs_outlets_flush(rs_machine *machine);
void rs_outlet_ended(rs_machine *machine, rs_op *op, int64_t result);
void rs_outlets_forked(rs_machine *machine);
void rs_outlets_close_all(rs_machine *machine);

#endif
