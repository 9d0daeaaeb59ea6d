#include "backend/uring/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Few, so that they stay in the processor's cache. */
#define COUNT_FIRST 8u
/* A power of two. */
#define COUNT_MAX 1024u
#define MEMORY_SIZE ((size_t)COUNT_MAX * URING_POOL_BUFFER)
#define RING_SIZE (COUNT_MAX * sizeof(uring_buffer))

struct uring_pool {
    char *memory;               /* what was never used takes none */
    uring_buffer *ring;         /* what the kernel reads; its tail lies in the first one's reserved field */
    uint16_t tail;
    uint32_t count;
    bool taken[COUNT_MAX];      /* by us, from the kernel */
};

static int enregister(uring_ring *ring, const uring_pool *pool) {
    uring_buffer_ring_wish wish = {.ring_address = (uint64_t)(uintptr_t)pool->ring, .ring_entries = COUNT_MAX,
                                   .group = URING_POOL_GROUP};
    return ring->system->enregister(ring->fd, URING_REGISTER_BUFFER_RING, &wish, 1);
}

static void hand_to_kernel(uring_pool *pool, uint32_t index) {
    RS_ASSERT(index < pool->count);
    uring_buffer *entry = &pool->ring[pool->tail++ & (COUNT_MAX - 1)];
    entry->address = (uint64_t)(uintptr_t)(pool->memory + (size_t)index * URING_POOL_BUFFER);
    entry->len = URING_POOL_BUFFER;
    entry->id = (uint16_t)index;
    pool->taken[index] = false;
    atomic_store_explicit((_Atomic uint16_t *)&pool->ring[0].tail, pool->tail, memory_order_release);
}

static void *map(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

uring_pool *uring_pool_open(uring_ring *ring) {
    uring_pool *pool = rs_try_alloc(sizeof(*pool));
    if (!pool) return NULL;
    *pool = (uring_pool){.memory = map(MEMORY_SIZE), .ring = map(RING_SIZE)};
    if (!pool->memory || !pool->ring || enregister(ring, pool) != 0) {
        uring_pool_free(pool);
        return NULL;
    }
    while (pool->count < COUNT_FIRST) uring_pool_add(pool);
    return pool;
}

void uring_pool_free(uring_pool *pool) {
    if (!pool) return;
    if (pool->memory) munmap(pool->memory, MEMORY_SIZE);
    if (pool->ring) munmap(pool->ring, RING_SIZE);
    free(pool);
}

void uring_pool_add(uring_pool *pool) {
    RS_CHECK(pool->count <= COUNT_MAX);
    if (pool->count < COUNT_MAX) hand_to_kernel(pool, pool->count++);
}

void *uring_pool_take(uring_pool *pool, const uring_cqe *cqe) {
    RS_CHECK(cqe->flags & URING_CQE_BUFFER);
    uint32_t index = cqe->flags >> URING_CQE_BUFFER_SHIFT;
    RS_ASSERT(index < pool->count && !pool->taken[index]);
    pool->taken[index] = true;
    return pool->memory + (size_t)index * URING_POOL_BUFFER;
}

bool uring_pool_give_back(uring_pool *pool, const void *bytes) {
    size_t place = (size_t)((const char *)bytes - pool->memory);
    if (place >= MEMORY_SIZE) return false;
    uint32_t index = (uint32_t)(place / URING_POOL_BUFFER);
    RS_ASSERT(pool->taken[index] && place % URING_POOL_BUFFER == 0);
    hand_to_kernel(pool, index);
    return true;
}
