#include "uring_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

/* A power of two. When all are in use, ops get memory of their own. */
#define COUNT 64u
#define MEMORY_SIZE ((size_t)COUNT * URING_POOL_BUFFER)
#define RING_SIZE (COUNT * sizeof(uring_buffer))

typedef struct {
    uint32_t used;              /* bytes that the kernel has put into it */
    uint32_t held;              /* completions whose bytes are in it, and not given back */
    bool kernels;               /* it may put more into it */
} buffer;

struct uring_pool {
    char *memory;
    uring_buffer *ring;         /* what the kernel reads; its tail lies in the first one's reserved field */
    uint16_t tail;
    buffer buffers[COUNT];
};

/* Only where all completions come from one place is their order that of the bytes in a buffer. */
static uint16_t flags_for(const uring_ring *ring) {
    return ring->setup_flags & URING_SETUP_DEFER_TASKRUN ? URING_BUFFER_RING_INCREMENTAL : 0;
}

static int enregister(uring_ring *ring, const uring_pool *pool, uint16_t flags) {
    uring_buffer_ring_wish wish = {.ring_address = (uint64_t)(uintptr_t)pool->ring, .ring_entries = COUNT,
                                   .group = URING_POOL_GROUP, .flags = flags};
    return ring->system->enregister(ring->fd, URING_REGISTER_BUFFER_RING, &wish, 1);
}

static void hand_to_kernel(uring_pool *pool, uint32_t index) {
    uring_buffer *entry = &pool->ring[pool->tail++ & (COUNT - 1)];
    entry->address = (uint64_t)(uintptr_t)(pool->memory + (size_t)index * URING_POOL_BUFFER);
    entry->len = URING_POOL_BUFFER;
    entry->id = (uint16_t)index;
    pool->buffers[index] = (buffer){.kernels = true};
    atomic_store_explicit((_Atomic uint16_t *)&pool->ring[0].tail, pool->tail, memory_order_release);
}

static void *map(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

uring_pool *uring_pool_open(uring_ring *ring) {
    uring_pool *pool = rs_alloc(sizeof(*pool));
    *pool = (uring_pool){.memory = map(MEMORY_SIZE), .ring = map(RING_SIZE)};
    int error = pool->memory && pool->ring ? enregister(ring, pool, flags_for(ring)) : -ENOMEM;
    if (error == -EINVAL) error = enregister(ring, pool, 0);
    if (error) {
        uring_pool_free(pool);
        return NULL;
    }
    for (uint32_t i = 0; i < COUNT; i++) hand_to_kernel(pool, i);
    return pool;
}

void uring_pool_free(uring_pool *pool) {
    if (!pool) return;
    if (pool->memory) munmap(pool->memory, MEMORY_SIZE);
    if (pool->ring) munmap(pool->ring, RING_SIZE);
    free(pool);
}

void *uring_pool_take(uring_pool *pool, const uring_cqe *cqe) {
    uint32_t index = cqe->flags >> URING_CQE_BUFFER_SHIFT;
    buffer *one = &pool->buffers[index];
    char *bytes = pool->memory + (size_t)index * URING_POOL_BUFFER + one->used;
    if (cqe->result > 0) one->used += (uint32_t)cqe->result;
    one->held++;
    one->kernels = cqe->flags & URING_CQE_BUFFER_MORE;
    return bytes;
}

bool uring_pool_ends(const uring_pool *pool, const void *bytes, size_t len) {
    return ((size_t)((const char *)bytes - pool->memory) + len) % URING_POOL_BUFFER == 0;
}

bool uring_pool_give_back(uring_pool *pool, const void *bytes) {
    size_t place = (size_t)((const char *)bytes - pool->memory);
    if (place >= MEMORY_SIZE) return false;
    buffer *one = &pool->buffers[place / URING_POOL_BUFFER];
    if (--one->held == 0 && !one->kernels) hand_to_kernel(pool, (uint32_t)(place / URING_POOL_BUFFER));
    return true;
}
