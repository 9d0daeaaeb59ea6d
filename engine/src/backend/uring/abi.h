/* abi: what the kernel and a ring agree on, as io_uring_setup(2), io_uring_enter(2), io_uring_register(2) and the
 * kernel's documentation have it. Only what Ringspun uses; names are those of the man pages without their prefix. Nothing
 * here depends on the headers of the machine that compiles it.
 */
#ifndef RINGSPUN_URING_ABI_H
#define RINGSPUN_URING_ABI_H

#include <stdint.h>

/* System calls: the same numbers on all processors but Alpha.
 * https://github.com/torvalds/linux/blob/v6.18/include/uapi/asm-generic/unistd.h */
#define URING_SYS_SETUP 425
#define URING_SYS_ENTER 426
#define URING_SYS_REGISTER 427

typedef struct {
    uint8_t opcode;
    uint8_t flags;
    uint16_t priority;
    int32_t fd;
    uint64_t offset;            /* addr2; length of an address */
    uint64_t address;
    uint32_t len;
    uint32_t op_flags;
    uint64_t user_data;
    uint16_t buffer_group;
    uint16_t personality;
    uint32_t file_index;        /* options of waitid; from where a splice is */
    uint64_t reserved[2];
} uring_sqe;

typedef struct {
    uint64_t user_data;
    int32_t result;
    uint32_t flags;
} uring_cqe;

typedef struct {
    uint32_t head, tail, ring_mask, ring_entries, flags, dropped, array, reserved;
    uint64_t user_address;
} uring_sq_offsets;

typedef struct {
    uint32_t head, tail, ring_mask, ring_entries, overflow, cqes, flags, reserved;
    uint64_t user_address;
} uring_cq_offsets;

typedef struct {
    uint32_t sq_entries, cq_entries, flags, sq_thread_cpu, sq_thread_idle, features, wq_fd, reserved[3];
    uring_sq_offsets sq;
    uring_cq_offsets cq;
} uring_params;

/* URING_ENTER_EXT_ARG: what a wait may be given. */
typedef struct {
    uint64_t signal_mask;
    uint32_t signal_mask_size;
    uint32_t min_wait_us;
    uint64_t timespec;
} uring_wait_argument;

typedef struct {
    int64_t tv_sec;
    int64_t tv_nsec;
} uring_timespec;

/* Of URING_REGISTER_SYNC_CANCEL. */
typedef struct {
    uint64_t address;
    int32_t fd;
    uint32_t flags;
    uring_timespec timeout;
    uint8_t opcode, reserved1[7];
    uint64_t reserved2[3];
} uring_sync_cancel;

typedef struct {
    uint8_t opcode, reserved1;
    uint16_t flags;
    uint32_t reserved2;
} uring_probe_op;

typedef struct {
    uint8_t last_op, ops_len;
    uint16_t reserved1;
    uint32_t reserved2[3];
    uring_probe_op ops[256];
} uring_probe;

/* One of the buffers that the kernel may choose from. Of the first, the last field is the ring's tail. */
typedef struct {
    uint64_t address;
    uint32_t len;
    uint16_t id;
    uint16_t tail;
} uring_buffer;

typedef struct {
    uint64_t ring_address;
    uint32_t ring_entries;
    uint16_t group;
    uint16_t flags;
    uint64_t reserved[3];
} uring_buffer_ring_wish;

/* IORING_OP_* in their order: https://github.com/torvalds/linux/blob/v6.18/include/uapi/linux/io_uring.h */
enum {
    URING_OP_NOP = 0, URING_OP_READV = 1, URING_OP_WRITEV = 2, URING_OP_FSYNC = 3, URING_OP_POLL_ADD = 6,
    URING_OP_SENDMSG = 9, URING_OP_RECVMSG = 10, URING_OP_ACCEPT = 13, URING_OP_ASYNC_CANCEL = 14, URING_OP_CONNECT = 16,
    URING_OP_FALLOCATE = 17, URING_OP_OPENAT = 18, URING_OP_STATX = 21, URING_OP_READ = 22, URING_OP_WRITE = 23, URING_OP_SEND = 26,
    URING_OP_RECV = 27, URING_OP_SPLICE = 30, URING_OP_RENAMEAT = 35, URING_OP_UNLINKAT = 36, URING_OP_MKDIRAT = 37,
    URING_OP_SOCKET = 45, URING_OP_WAITID = 50, URING_OP_FTRUNCATE = 55, URING_OP_LAST = URING_OP_FTRUNCATE
};

/* Offsets for mmap(2). */
#define URING_MAP_RINGS 0ull
#define URING_MAP_SQES 0x10000000ull

/* uring_params.flags: https://man7.org/linux/man-pages/man2/io_uring_setup.2.html */
#define URING_SETUP_SQPOLL (1u << 1)
#define URING_SETUP_SQ_AFF (1u << 2)
#define URING_SETUP_CQSIZE (1u << 3)
#define URING_SETUP_CLAMP (1u << 4)
#define URING_SETUP_SUBMIT_ALL (1u << 7)
#define URING_SETUP_COOP_TASKRUN (1u << 8)
#define URING_SETUP_TASKRUN_FLAG (1u << 9)
#define URING_SETUP_SINGLE_ISSUER (1u << 12)
#define URING_SETUP_DEFER_TASKRUN (1u << 13)

/* uring_params.features, from the same page. */
#define URING_FEATURE_SINGLE_MMAP (1u << 0)
#define URING_FEATURE_NODROP (1u << 1)
#define URING_FEATURE_SUBMIT_STABLE (1u << 2)
#define URING_FEATURE_RW_CURRENT_POSITION (1u << 3)
#define URING_FEATURE_FAST_POLL (1u << 5)
#define URING_FEATURE_POLL_32BITS (1u << 6)
#define URING_FEATURE_SQPOLL_NONFIXED (1u << 7)
#define URING_FEATURE_EXT_ARG (1u << 8)
#define URING_FEATURE_CQE_SKIP (1u << 11)

/* Flags of an entry: https://man7.org/linux/man-pages/man2/io_uring_enter.2.html */
#define URING_SQE_ASYNC (1u << 4)
#define URING_SQE_BUFFER_SELECT (1u << 5)
#define URING_SQE_CQE_SKIP_SUCCESS (1u << 6)

/* What the kernel tells in the flags of the submission ring: https://github.com/torvalds/linux/blob/v6.18/include/uapi/linux/io_uring.h */
#define URING_SQ_NEED_WAKEUP (1u << 0)
#define URING_SQ_CQ_OVERFLOW (1u << 1)
#define URING_SQ_TASKRUN (1u << 2)

/* Flags of io_uring_enter(2). */
#define URING_ENTER_GETEVENTS (1u << 0)
#define URING_ENTER_SQ_WAKEUP (1u << 1)
#define URING_ENTER_SQ_WAIT (1u << 2)
#define URING_ENTER_EXT_ARG (1u << 3)

/* Flags of a completion; its upper half is the number of a buffer: io_uring_enter(2), and the header above. */
#define URING_CQE_BUFFER (1u << 0)
#define URING_CQE_MORE (1u << 1)
#define URING_CQE_SOCK_NONEMPTY (1u << 2)
#define URING_CQE_BUFFER_SHIFT 16

/* In the priority of an entry to receive, send or accept: io_uring_enter(2). */
#define URING_RECVSEND_POLL_FIRST (1u << 0)
#define URING_ACCEPT_MULTISHOT (1u << 0)

/* In the length of a poll, and the flags of a cancellation and of an fsync: io_uring_enter(2). */
#define URING_POLL_MULTISHOT (1u << 0)
#define URING_CANCEL_ALL (1u << 0)
#define URING_CANCEL_ANY (1u << 2)
#define URING_FSYNC_DATASYNC (1u << 0)

/* What io_uring_register(2) is asked for, and a flag of a probe's answer. */
#define URING_REGISTER_PROBE 8
#define URING_REGISTER_IOWQ_MAX_WORKERS 19
#define URING_REGISTER_BUFFER_RING 22
#define URING_REGISTER_SYNC_CANCEL 24
#define URING_PROBE_SUPPORTED (1u << 0)

_Static_assert(sizeof(uring_sqe) == 64, "the kernel's submission entry has 64 bytes");
_Static_assert(sizeof(uring_cqe) == 16, "the kernel's completion entry has 16 bytes");
_Static_assert(sizeof(uring_buffer) == 16, "the kernel's buffer entry has 16 bytes");
_Static_assert(sizeof(uring_sync_cancel) == 64, "what the kernel takes for a cancellation has 64 bytes");
_Static_assert(sizeof(uring_params) == 120, "the kernel's parameters have 120 bytes");

#endif
