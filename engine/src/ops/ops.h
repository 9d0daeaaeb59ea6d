/* ops: the slab of a machine's ops, and how many there may be of some kinds. */
#ifndef RINGSPUN_OPS_H
#define RINGSPUN_OPS_H

#include "core/machine.h"
#include "core/slab.h"
#include "ops/untried.h"
#include "ops/op.h"

/* Ops that nobody waits for may be under way beside those of the strands and the workers: as many of files, and of opens. See
 * docs/decisions/05. */
#define RS_OPS_LEFT_MAX 64u

/* The most opens and waits for children that workers are at, beside those that nobody waits for any more. */
#define RS_OPENS_MAX 64u

/* The most names that are looked up at a time, those included that nobody waits for any more. */
#define RS_LOOK_UPS_MAX 64u

struct rs_ops {
    rs_slab slab;
    rs_links targeted;          /* in flight, and with a target */
    rs_untried untried;
    /* Of another room, which may have what a request asks for before the kernel is asked: the result, or -EAGAIN; and which drops what
     * it has for a number that is closed. NULL: it has nothing for any. */
    int64_t (*take_kept)(struct rs_machine *machine, const rs_request *request);
    void (*drop_kept)(struct rs_machine *machine, int fd);
};

extern const rs_part rs_ops_part;

/* Where it lies, from the machine on (engine.c). */
extern const size_t rs_ops_at;

static inline rs_ops *rs_ops_in(const rs_machine *machine) {
    return (rs_ops *)((char *)machine + rs_ops_at);
}

void rs_ops_init(rs_ops *ops, uint32_t limit);
/* The slab stays where an op in it is in doubt: it says what that one keeps. */
void rs_ops_free(rs_ops *ops);

/* A FILLED op with a copy of the request; NULL at the limit, and where there is no memory for more (rs_slab_reserve). */
rs_op *rs_op_take(rs_ops *ops, const rs_request *request);
void rs_op_release(rs_ops *ops, rs_op *op);

static inline rs_op *rs_op_at(const rs_ops *ops, uint32_t index) {
    RS_CHECK(index < rs_slab_len(&ops->slab));
    return RS_SLAB_AT(&ops->slab, rs_op, index);
}

#endif
