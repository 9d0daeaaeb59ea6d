/* pool: where the memory of buffers comes from, one for each machine. */
#ifndef RINGSPUN_POOL_H
#define RINGSPUN_POOL_H

#include "core/machine.h"
#include "ringspun/flow/buffer.h"

/* Free pieces that are kept, a megabyte of them. */
#define RS_POOL_MAX 64u

struct rs_pool {
    char *pieces[RS_POOL_MAX];
    uint32_t len;
    uint32_t lent;              /* buffers that hold memory now, of either size */
};

extern const rs_part rs_pool_part;

/* Where it lies, from the machine on (engine.c). */
extern const size_t rs_pool_at;

static inline rs_pool *rs_pool_in(const rs_machine *machine) {
    return (rs_pool *)((char *)machine + rs_pool_at);
}

void rs_pool_free(rs_pool *pool);

#endif
