/* descriptors: the entries behind the numbers, one table for each machine. */
#ifndef RINGSPUN_DESCRIPTORS_H
#define RINGSPUN_DESCRIPTORS_H

#include "core/machine.h"
#include "ops/ops.h"
#include "ringspun/ops/descriptor.h"

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

struct rs_descriptors {
    rs_descriptor *table;
    uint32_t capacity;
    uint32_t owing;             /* entries with an owed error */
    rs_list closers;            /* strands that wait for the last op on a descriptor they close */
    bool unix_reports_more;     /* the backend hears of bytes that are left not only in TCP sockets but in Unix ones as well */
};

extern const rs_part rs_descriptors_part;

/* Where it lies, from the machine on (engine.c). */
extern const size_t rs_descriptors_at;

static inline rs_descriptors *rs_descriptors_in(const rs_machine *machine) {
    return (rs_descriptors *)((char *)machine + rs_descriptors_at);
}

void rs_descriptors_free(rs_descriptors *descriptors);

bool rs_descriptors_grow(rs_descriptors *descriptors, int fd);

/* The entry of that number, made if need be. Its address holds until the next call with a larger number. */
static inline rs_descriptor *rs_descriptor_get(rs_descriptors *descriptors, int fd) {
    RS_CHECK(fd >= 0);
    bool there = RS_LIKELY((uint32_t)fd < descriptors->capacity) || rs_descriptors_grow(descriptors, fd);
    RS_ASSERT(there); /* who has an op on it has reserved it */
    return &descriptors->table[fd];
}

/* The entry of that number, for whoever only looks at it; NULL: nothing is known of the number. */
static inline const rs_descriptor *rs_descriptor_find(const rs_descriptors *descriptors, int fd) {
    return (uint32_t)fd < descriptors->capacity ? &descriptors->table[fd] : NULL;
}

/* An accepted socket is of its listener's sort. */
static inline void rs_descriptor_copy_sort(rs_descriptors *descriptors, int fd, int listener) {
    if ((uint32_t)listener >= descriptors->capacity || (uint32_t)fd >= descriptors->capacity) return;
    RS_CHECK(descriptors->table[fd].kind == RS_FD_STREAM && descriptors->table[fd].socket);
    descriptors->table[fd].bytes = descriptors->table[listener].bytes;
    descriptors->table[fd].reports_more = descriptors->table[listener].reports_more;
}

/* A read or recv asked for `asked` bytes and got `got`, which may say that no more are there. */
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

#endif
