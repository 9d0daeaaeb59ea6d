/* write queue: what is written to a stream, until the kernel has it. Owned by the machine's thread.
 *
 * Bytes that are put in are handed over when the tick ends, that is when the machine is about to ask the backend, or when
 * somebody flushes: so what several strands write in one tick, or one strand in pieces, is one call. What the kernel does not
 * take at once is the write queue's op, which no strand waits for; what is put in meanwhile comes after it. So bytes leave in the
 * order in which they were put in, whole, and a strand that is cancelled has either put its bytes in or not.
 *
 * Where bytes are changed on their way (`pass`), what the kernel does not take of them waits for a poll, and is handed over
 * again.
 *
 * The first error is final: whoever writes or flushes gets it from then on, and bytes that have not left are gone.
 */
#ifndef RINGSPUN_WRITE_QUEUE_H
#define RINGSPUN_WRITE_QUEUE_H

#include "ringspun/core/gathered.h"
#include "ringspun/flow/buffer.h"

typedef struct rs_write_queue {
    rs_machine *machine;        /* NULL: closed, with its machine or before */
    rs_link link;               /* in the list of the machine's */
    rs_gathered gathered;       /* for the end of the tick */
    uint8_t kind;               /* RS_OP_WRITE or RS_OP_SEND */
    int32_t fd;
    uint32_t generation;
    uint64_t put;               /* bytes that were ever put in */
    rs_buffer filling;
    rs_buffer sending;          /* what the op is at, from its start on */
    rs_id op;                   /* in flight; 0: none */
    /* The binding's, instead of the kernel's call, for a layer between: takes some of the bytes and says how many, or -EAGAIN and
     * the readiness to wait for, or -errno. Sees what it did not take again, and more behind it. Must not raise. NULL: none. */
    int64_t (*pass)(struct rs_write_queue *queue, const void *bytes, size_t len, uint32_t *events);
    rs_list waiters;            /* woken when bytes have left, or never will */
    int64_t error;              /* -errno; 0: none. Of one that its machine has closed, -EBADF: others have closed the descriptor */
    /* The binding's, where others may close the descriptor without the machine's knowing; must not raise. NULL: they do not. */
    bool (*is_open)(const struct rs_write_queue *queue);
} rs_write_queue;

void rs_write_queue_open(rs_machine *machine, rs_write_queue *queue, uint8_t kind, int fd);

/* Where others may close the descriptor without the machine's knowing, `is_open` is asked before each call. */
static inline void rs_write_queue_ask(rs_write_queue *queue, bool (*is_open)(const rs_write_queue *queue)) {
    queue->is_open = is_open;
}

/* From now on all bytes go through the layer `pass`. */
static inline void rs_write_queue_through(rs_write_queue *queue,
                                          int64_t (*pass)(rs_write_queue *queue, const void *bytes, size_t len, uint32_t *events)) {
    RS_CHECK(!queue->op && rs_buffer_len(&queue->filling) == 0 && rs_buffer_len(&queue->sending) == 0);
    queue->pass = pass;
}

/* What has not left is dropped. No op is in flight. */
void rs_write_queue_close(rs_write_queue *queue);

/* For who frees it, from any thread that keeps the machine from running meanwhile. An op in flight, and a strand that waits, are
 * those of a machine that will never run again. */
void rs_write_queue_abandon(rs_write_queue *queue);

/* Asks the op to end. True while it has not: wait in `waiters` and ask again. */
bool rs_write_queue_stop(rs_write_queue *queue);

/* Whether so many bytes more can be put in: false when there is no memory for them. */
bool rs_write_queue_reserve(rs_write_queue *queue, size_t len);

/* Takes the bytes, or answers the error; RS_NO_MEMORY is no lasting one. */
int64_t rs_write_queue_put(rs_write_queue *queue, const void *bytes, size_t len);

/* Hands over now what may be. */
void rs_write_queue_flush(rs_write_queue *queue);

/* Bytes that the kernel does not have yet. */
static inline size_t rs_write_queue_len(const rs_write_queue *queue) {
    return rs_buffer_len(&queue->filling) + rs_buffer_len(&queue->sending);
}

/* Of all that were put in, those that the kernel has, or never will. */
static inline uint64_t rs_write_queue_left(const rs_write_queue *queue) {
    RS_CHECK(rs_write_queue_len(queue) <= queue->put);
    return queue->put - rs_write_queue_len(queue);
}

/* How many the kernel has not taken, also of those that an op is sending. */
size_t rs_write_queue_untaken(const rs_write_queue *queue);

/* All that the machine has, one after the other: the one behind `queue` (NULL: the first), or NULL. */
rs_write_queue *rs_write_queues_next(const rs_machine *machine, const rs_write_queue *queue);

#endif
