/* op_kinds: the kinds of ops, and what is the same for all ops of a kind on every platform. Constant; any thread may read it.
 *
 * What a platform does for a kind is in kernel/op_table.h, and what io_uring does in backend/uring/entry.c. Nobody asks where a kind
 * stands among the others: a property of several kinds is a column here.
 */
#ifndef RINGSPUN_OP_KINDS_H
#define RINGSPUN_OP_KINDS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    RS_OP_READ, RS_OP_WRITE, RS_OP_PREAD, RS_OP_PWRITE, RS_OP_READV, RS_OP_WRITEV, RS_OP_RECV, RS_OP_SEND,
    RS_OP_RECVMSG, RS_OP_SENDMSG, RS_OP_ACCEPT, RS_OP_CONNECT, RS_OP_POLL, RS_OP_OPEN, RS_OP_CLOSE, RS_OP_FSYNC,
    RS_OP_STATX, RS_OP_WAITID, RS_OP_SOCKET, RS_OP_BIND, RS_OP_LISTEN, RS_OP_SHUTDOWN, RS_OP_SETSOCKOPT,
    RS_OP_GETSOCKOPT, RS_OP_PIPE, RS_OP_SOCKETPAIR, RS_OP_RESOLVE, RS_OP_SPLICE, RS_OP_TEE, RS_OP_COPY_RANGE, RS_OP_UNLINK,
    RS_OP_RENAME, RS_OP_MKDIR, RS_OP_FTRUNCATE, RS_OP_FALLOCATE, RS_OP_KINDS
} rs_op_kind;

/* Which readiness the op waits for. MASK: what the request names. */
typedef enum { RS_SIDE_NONE, RS_SIDE_READ, RS_SIDE_WRITE, RS_SIDE_MASK } rs_op_side;

/* What it may have done when it is cancelled. */
typedef enum { RS_EFFECT_NOTHING, RS_EFFECT_DATA, RS_EFFECT_DESCRIPTOR } rs_op_effect;

/* What it moves bytes between. */
typedef enum {
    RS_MOVES_NOTHING,
    RS_MOVES_MEMORY,            /* memory and a descriptor of any class */
    RS_MOVES_MESSAGE,           /* memory and a socket, with the flags of send(2) and recv(2) */
    RS_MOVES_BETWEEN            /* two descriptors: `fd`, and the target */
} rs_op_moves;

/* How the memory is given. */
typedef enum { RS_MEMORY_NONE, RS_MEMORY_BUFFER, RS_MEMORY_VECTOR, RS_MEMORY_HEADER } rs_op_memory;

/* Which descriptor its result is, or which two it has filled in. */
typedef enum { RS_MAKES_NOTHING, RS_MAKES_FILE, RS_MAKES_SOCKET, RS_MAKES_ACCEPTED, RS_MAKES_PAIR } rs_op_makes;

typedef struct {
    const char *name;
    uint8_t side;
    uint8_t effect;
    uint8_t moves;
    uint8_t memory;
    uint8_t makes;
    bool takes_nothing;         /* readiness alone: a cancellation that came first wins over its result */
    bool of_file;               /* waits for a file alone, and so for nobody */
    bool of_others;             /* waits for somebody else, maybe for ever, and is not woken by readiness */
    bool takes_stream;          /* bytes out of a stream, in their order, unless flags say otherwise */
    bool never_waits;           /* the first try is the answer; only the simulation gets it */
} rs_op_traits;

extern const rs_op_traits rs_op_kinds[RS_OP_KINDS];

#endif
