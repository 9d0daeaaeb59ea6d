/* op: one request to the kernel (or to the simulated one), and the slab that holds those in flight. Owned by the
 * machine's thread; a worker thread has a copy of the request.
 *
 * States: FREE -> FILLED -> SUBMITTED -> TERMINAL -> FREE (with the next generation). An op owns every address that the
 * kernel may touch from FILLED to TERMINAL: `keep` names what the driver must keep alive and in place, `extra` is memory
 * of the op's own. After the terminal completion the slot is free as soon as the strand has taken the result, the owner has
 * heard of it, or at once where the op has become an orphan.
 *
 * What a cancelled op may have done decides how it is cancelled (rs_op_effect): a wait that consumes nothing ends at
 * once; where data may have moved or a descriptor may have been made, its strand stays parked until the terminal
 * completion, and completion wins.
 */
#ifndef RINGSPUN_OP_H
#define RINGSPUN_OP_H

#include "core/link.h"
#include "core/slab.h"
#include "ops/op_kinds.h"

/* Go on after a short transfer until all of `len` is done. */
#define RS_REQUEST_ALL 1u
/* No address: into a buffer of the machine's, at most `len` bytes. At its end the op's address is where they are, until
 * rs_op_end. */
#define RS_REQUEST_ANY_BUFFER 2u
/* The descriptor belongs to the object in `keep`, which others may close: whether the number still means the object's is asked
 * (rs_driver.is_open) when the op is handed to the kernel, which can be later than at once. */
#define RS_REQUEST_OF_OBJECT 4u

/* What is asked. Plain data; which fields count depends on the kind (op_table.c says). */
typedef struct rs_request {
    uint8_t kind;
    uint8_t options;
    int32_t fd;
    uint32_t flags;             /* of a message, of open; poll or statx mask; shutdown how; address family; option level; id type */
    uint32_t mode;              /* permissions of what is made; socket type; option name; statx flags; how to fallocate */
    void *address;              /* data, iovec array, path, msghdr, pair of descriptors */
    uint64_t len;               /* bytes or iovec count; rename: where behind the old path the new one begins */
    int64_t offset;             /* in the file, -1: the descriptor's own; ftruncate: the size; socket protocol; process id */
    uint64_t done;              /* bytes that earlier tries have moved; the result of the op counts them */
    void *extra;                /* sockaddr, statx buffer, siginfo, rs_lookup: memory that the op frees at its end */
    uint32_t extra_len;
    int32_t to_fd;              /* of those that have a target */
} rs_request;

/* Readable, in the words of poll(2), which a request to poll and its result have. */
#define RS_POLL_IN 1

/* The type of a socket, beside the flags that socket(2) has in the same word. */
#define RS_SOCK_TYPE 0xfu

static inline const rs_op_traits *rs_request_traits(const rs_request *request) { return &rs_op_kinds[request->kind]; }

static inline bool rs_request_takes_stream(const rs_request *request) {
    return rs_request_traits(request)->takes_stream && request->flags == 0;
}

/* Moves bytes from `fd` to `to_fd`. */
static inline bool rs_request_has_target(const rs_request *request) {
    return rs_request_traits(request)->moves == RS_MOVES_BETWEEN;
}

/* Moves bytes of a socket, with flags of MSG_. */
static inline bool rs_request_is_message(const rs_request *request) {
    return rs_request_traits(request)->moves == RS_MOVES_MESSAGE;
}

struct rs_machine;
struct rs_op;
struct rs_job;

/* Who has an op: the strand that waits for it, a write queue, nobody any more. Its functions find the owner itself in the op's
 * `context`, but for a strand. */
typedef struct rs_op_owner {
    bool keeps;                 /* it gives the op back itself; else that is freed when its end has been told */
    /* The op has ended. */
    void (*ended)(struct rs_machine *machine, struct rs_op *op, int64_t result);
    /* Whether others have closed the descriptor, so that its number may mean something else. NULL: the op's `identity` says it. */
    bool (*is_gone)(const struct rs_op *op);
    /* Of an op that lasts, and else NULL: it has brought one result and goes on; and another op waits for its turn behind it. */
    void (*brought)(struct rs_machine *machine, struct rs_op *op, int64_t result);
    void (*give_way)(struct rs_machine *machine, struct rs_op *op);
} rs_op_owner;

typedef enum { RS_OP_FREE, RS_OP_FILLED, RS_OP_SUBMITTED, RS_OP_TERMINAL } rs_op_state;

typedef struct rs_op {
    RS_SLOT;
    rs_request request;
    uint8_t state;
    uint8_t cancel;             /* rs_wake_kind that asked for it to end; RS_WAKE_VALUE: nobody */
    bool closing;               /* its descriptor is being closed: a cancellation ends it with -EBADF */
    bool offloaded;             /* a worker has it, or will */
    bool in_doubt;              /* the kernel may still use what it owns: `extra` and the slot are never given back */
    uint64_t identity;          /* what the number meant at first, for one that goes on by number; 0: it cannot change unseen */
    int64_t result;
    rs_id strand;
    uint64_t ticket;
    uintptr_t keep;             /* the driver's object behind `address` */
    uint32_t next;              /* of those on the same descriptor: index + 1 */
    uint32_t previous;
    uint64_t backend_word;
    const rs_op_owner *owner;
    void *context;              /* the owner's */
    rs_link link;               /* in rs_ops.targeted, where it has a target; else the owner's */
    struct rs_job *job;         /* the workers', read and set under their lock; NULL: none of them has it */
} rs_op;

/* It brings one result after the other. */
static inline bool rs_op_lasts(const rs_op *op) { return op->owner->brought != NULL; }

static inline bool rs_op_owner_is_gone(const rs_op *op) { return op->owner->is_gone && op->owner->is_gone(op); }

/* Ops that nobody waits for may be under way beside those of the strands and the workers. */
#define RS_OPS_LEFT_MAX 64u

typedef struct rs_ops {
    rs_slab slab;
    rs_links targeted;          /* in flight, and with a target */
    /* Of another room, which may have what a request asks for before the kernel is asked: the result, or -EAGAIN. NULL: it has
     * nothing for any. */
    int64_t (*take_kept)(struct rs_machine *machine, const rs_request *request);
} rs_ops;

void rs_ops_init(rs_ops *ops, uint32_t limit);
void rs_ops_free(rs_ops *ops);

/* A FILLED op with a copy of the request; NULL at the limit, and where there is no memory for more (rs_slab_reserve). */
rs_op *rs_op_take(rs_ops *ops, const rs_request *request);
void rs_op_release(rs_ops *ops, rs_op *op);

static inline rs_op *rs_op_at(const rs_ops *ops, uint32_t index) {
    return RS_SLAB_AT(&ops->slab, rs_op, index);
}

/* Those that are not free, one after the other: the one behind `op` (NULL: the first of all), or NULL. It may end meanwhile. */
rs_op *rs_ops_next(const rs_ops *ops, const rs_op *op);

#define RS_EACH_OP(ops, op) for (rs_op *op = NULL; (op = rs_ops_next(ops, op));)

/* An op of RS_REQUEST_ALL moves so much in one go, then others have their turn. */
#define RS_OP_TURN_BYTES 262144u

/* So many bytes have been moved: the request is for the rest now. */
static inline void rs_request_advance(rs_request *request, uint64_t bytes) {
    RS_ASSERT(bytes <= request->len);
    request->done += bytes;
    request->address = (char *)request->address + bytes;
    request->len -= bytes;
    if (request->offset >= 0) request->offset += (int64_t)bytes;
}

/* After a try. True: it was short, and RS_REQUEST_ALL wants the rest, for which the request is now. */
static inline bool rs_request_goes_on(rs_request *request, int64_t result) {
    if (result <= 0 || !(request->options & RS_REQUEST_ALL) || (uint64_t)result >= request->len) return false;
    rs_request_advance(request, (uint64_t)result);
    return true;
}

/* The result of its last try, with what earlier ones have moved. */
static inline int64_t rs_request_total(const rs_request *request, int64_t result) {
    return result < 0 ? result : result + (int64_t)request->done;
}

/* Memory for what comes, where there is no buffer for it: freed with the op. False: there is none, and the op ends with
 * RS_NO_MEMORY. */
static inline bool rs_op_lend(rs_op *op) {
    if (!(op->request.options & RS_REQUEST_ANY_BUFFER) || op->request.address) return true;
    op->request.address = op->request.extra = rs_try_alloc(op->request.len);
    return op->request.address != NULL;
}

/* An object to be kept alive and in its place until the op ends. */
static inline void rs_op_keep(rs_op *op, uintptr_t object) { op->keep = object; }

static inline rs_id rs_op_id(const rs_op *op) { return rs_id_make(op->index, op->generation); }

/* The op of that name if it is in flight, else NULL. */
rs_op *rs_op_find(const rs_ops *ops, rs_id id);

#endif
