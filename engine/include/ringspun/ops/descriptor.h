/* descriptor: what the machine knows of a descriptor number, and which ops wait on it. Owned by the machine's thread.
 *
 * The kind is known of descriptors that the machine made itself, and of one that was looked up and whose number is known to mean
 * the same still (rs_descriptor_restore). For any other number it is UNKNOWN and looked up when it matters, because the program
 * may close and reuse the number behind our back. It may do so with one of ours as well: then what we do there still does not
 * wait, with one exception. Reads and writes on a pipe are plain ones, because those that never wait (RWF_NOWAIT) cost 100 ns more,
 * so a blocking pipe that got the number of a pipe of ours makes the thread wait.
 * Ops in flight hang in a list per descriptor, so that closing one is as fast with a hundred thousand ops elsewhere as with none.
 *
 * What works on a descriptor in several steps, between which other strands run, takes the generation before the first and
 * compares before each later one: where it has changed the number was closed, and may mean somebody else's descriptor.
 */
#ifndef RINGSPUN_DESCRIPTOR_H
#define RINGSPUN_DESCRIPTOR_H

#include "ringspun/core/part.h"
#include "ringspun/ops/op.h"

typedef enum {
    RS_FD_UNKNOWN,
    RS_FD_STREAM,               /* pipe or socket of ours: O_NONBLOCK is set */
    RS_FD_FILE_LOCAL,           /* regular file where a small write does not wait for a network */
    RS_FD_FILE_REMOTE,
    RS_FD_MEMORY,               /* a device that is: no write to it waits */
    RS_FD_BLOCKING              /* terminal, device, or a stream that others keep blocking */
} rs_fd_kind;

typedef struct {
    uint8_t kind;
    bool socket;                /* STREAM: it is one */
    bool bytes;                 /* socket: without borders between messages, so that a short read shows its end */
    bool reports_more;          /* bytes: the backend hears when more are left than it has read */
    bool drained;               /* nothing was left when it was last read: the next try would be in vain */
    bool closing;               /* a strand is about to close it: no op begins any more */
    uint32_t first;             /* ops in flight, in order of arrival: index + 1 */
    uint32_t last;
    uint32_t generation;        /* counts up when the number is closed through the machine */
    uint32_t targeted;          /* ops in flight that have it as their target, and hang in another's list */
    int32_t owed_error;         /* -errno with which the next read ends; 0: none */
    uint64_t owed_by;           /* what the number meant then */
    _Alignas(8) char of_backend[24]; /* a struct of the backend's, in its own file; outlives a close */
} rs_descriptor;

typedef struct rs_descriptors {
    rs_descriptor *table;
    uint32_t capacity;
    uint32_t owing;             /* entries with an owed error */
    rs_list closers;            /* strands that wait for the last op on a descriptor they close */
    bool unix_reports_more;     /* the backend hears of bytes that are left not only in TCP sockets but in Unix ones as well */
} rs_descriptors;

extern const rs_part rs_descriptors_part;

/* A larger number is taken for a mistake: without a limit, one would make the table as large as itself. */
#define RS_DESCRIPTORS_MAX (1 << 22)

void rs_descriptors_free(rs_descriptors *descriptors);

bool rs_descriptors_grow(rs_descriptors *descriptors, int fd);

/* Sees to it that there is an entry for that number. False: there is no memory for it. */
static inline bool rs_descriptors_reserve(rs_descriptors *descriptors, int fd) {
    RS_ASSERT(fd >= 0);
    return RS_LIKELY((uint32_t)fd < descriptors->capacity) || rs_descriptors_grow(descriptors, fd);
}

/* The entry of that number, made if need be. Its address holds until the next call with a larger number. */
static inline rs_descriptor *rs_descriptor_get(rs_descriptors *descriptors, int fd) {
    bool there = rs_descriptors_reserve(descriptors, fd);
    RS_ASSERT(there); /* who has an op on it has reserved it */
    return &descriptors->table[fd];
}

static inline rs_fd_kind rs_descriptor_kind(const rs_descriptors *descriptors, int fd) {
    return (uint32_t)fd < descriptors->capacity ? (rs_fd_kind)descriptors->table[fd].kind : RS_FD_UNKNOWN;
}

/* The entry of that number, for whoever only looks at it; NULL: nothing is known of the number. */
static inline const rs_descriptor *rs_descriptor_find(const rs_descriptors *descriptors, int fd) {
    return (uint32_t)fd < descriptors->capacity ? &descriptors->table[fd] : NULL;
}

static inline bool rs_descriptor_is_closing(const rs_descriptors *descriptors, int fd) {
    const rs_descriptor *descriptor = rs_descriptor_find(descriptors, fd);
    return descriptor && descriptor->closing;
}

static inline bool rs_descriptor_has_ops(const rs_descriptors *descriptors, int fd) {
    const rs_descriptor *descriptor = rs_descriptor_find(descriptors, fd);
    return descriptor && (descriptor->first || descriptor->targeted);
}

static inline uint32_t rs_descriptor_generation(const rs_descriptors *descriptors, int fd) {
    return (uint32_t)fd < descriptors->capacity ? descriptors->table[fd].generation : 0;
}

/* One that the machine has just made, or has just looked up. Without memory for an entry it is looked up every time. */
static inline void rs_descriptor_note(rs_descriptors *descriptors, int fd, rs_fd_kind kind, bool socket) {
    RS_CHECK(!socket || kind == RS_FD_STREAM);
    if (!rs_descriptors_reserve(descriptors, fd)) return;
    rs_descriptor *descriptor = rs_descriptor_get(descriptors, fd);
    descriptor->kind = (uint8_t)kind;
    descriptor->socket = socket;
    descriptor->bytes = descriptor->reports_more = descriptor->drained = false;
}

/* An accepted socket is of its listener's sort. */
static inline void rs_descriptor_copy_sort(rs_descriptors *descriptors, int fd, int listener) {
    if ((uint32_t)listener >= descriptors->capacity || (uint32_t)fd >= descriptors->capacity) return;
    RS_CHECK(descriptors->table[fd].kind == RS_FD_STREAM && descriptors->table[fd].socket);
    descriptors->table[fd].bytes = descriptors->table[listener].bytes;
    descriptors->table[fd].reports_more = descriptors->table[listener].reports_more;
}

/* For a number that may have come to mean something else. */
static inline void rs_descriptor_forget(rs_descriptors *descriptors, int fd) {
    if ((uint32_t)fd < descriptors->capacity) descriptors->table[fd].kind = RS_FD_UNKNOWN;
}

/* A read or recv of those many bytes got so many: what is known of those behind them. */
static inline void rs_descriptor_was_read(rs_descriptors *descriptors, int fd, uint64_t asked, int64_t got) {
    RS_CHECK(got < 0 || (uint64_t)got <= asked);
    if ((uint32_t)fd >= descriptors->capacity) return;
    rs_descriptor *descriptor = &descriptors->table[fd];
    descriptor->drained = descriptor->bytes && got > 0 && (uint64_t)got < asked;
}

void rs_descriptor_add(rs_descriptors *descriptors, rs_ops *ops, rs_op *op);
void rs_descriptor_remove(rs_descriptors *descriptors, rs_ops *ops, rs_op *op);

/* The next read does not end with the owed error any more. */
static inline void rs_descriptor_forgive(rs_descriptors *descriptors, rs_descriptor *descriptor) {
    RS_CHECK(!descriptor->owed_error || descriptors->owing > 0);
    RS_CHECK(descriptor->owed_error <= 0);
    if (descriptor->owed_error) descriptors->owing--;
    descriptor->owed_error = 0;
}

/* What was noted before of the number, and of what it means again. */
void rs_descriptor_restore(rs_descriptors *descriptors, int fd, rs_fd_kind kind, bool socket, bool bytes, bool reports_more);

/* The next try is made, whatever the last one has left. */
static inline void rs_descriptor_may_have(rs_descriptors *descriptors, int fd) {
    if ((uint32_t)fd < descriptors->capacity) descriptors->table[fd].drained = false;
}

#endif
