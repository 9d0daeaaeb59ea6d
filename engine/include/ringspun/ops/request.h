/* request: what an op asks for. Plain data, owned by whoever fills it in, until an op has taken a copy. */
#ifndef RINGSPUN_REQUEST_H
#define RINGSPUN_REQUEST_H

#include "ringspun/core/base.h"
#include "ringspun/ops/op_kinds.h"

struct iovec;
struct msghdr;
struct statx;
struct rs_lookup;

/* Of a buffer or a vector: go on after a short transfer until all of it is done. */
#define RS_REQUEST_ALL 1u
/* No address: into a buffer of the machine's, at most `len` bytes. At its end transfer.address is where they are, until
 * rs_op_end. */
#define RS_REQUEST_ANY_BUFFER 2u
/* The descriptor belongs to the object in `keep`, which others may close: whether the number still means the object's is asked
 * (rs_driver.is_open) when the op is handed to the kernel, which can be later than at once. */
#define RS_REQUEST_OF_OBJECT 4u

/* Nobody has tried it (rs_ask). */
#define RS_REQUEST_UNTRIED 8u

/* The kernel may use these until the op ends, so they point into what the op keeps or owns.
 *
 * Of read, write, pread, pwrite, recv, send. */
typedef struct {
    void *address;
    uint64_t len;
    int64_t offset;             /* in the file; -1: the descriptor's own position. Sockets have none */
    uint32_t flags;             /* recv, send: MSG_ of those calls */
} rs_transfer;

/* Of readv, writev. Moved bytes are cut off from `parts` themselves. */
typedef struct {
    struct iovec *parts;
    uint64_t count;
    int64_t offset;             /* as above */
} rs_vector;

/* Of recvmsg, sendmsg. */
typedef struct {
    struct msghdr *header;
    uint32_t flags;
} rs_message_transfer;

/* Of splice, tee, copy_file_range: from `fd`. */
typedef struct {
    uint64_t len;
    int32_t to_fd;
} rs_splice_transfer;

/* Of connect, bind. */
typedef struct {
    const void *bytes;
    uint32_t len;
} rs_socket_address;

/* Of open. */
typedef struct {
    const char *path;
    uint32_t flags;
    uint32_t mode;              /* permissions of a file that is made */
} rs_open_request;

/* Of statx. */
typedef struct {
    const char *path;           /* NULL: what `fd` is */
    struct statx *answer;
    uint32_t mask;
    uint32_t flags;
} rs_statx_request;

/* Of waitid. */
typedef struct {
    void *info;                 /* siginfo_t, for io_uring alone */
    int32_t id_type;
    int32_t id;
} rs_wait_request;

/* Of socket, socketpair. */
typedef struct {
    int32_t family;
    int32_t type;               /* with the flags of socket(2) */
    int32_t protocol;
    int *pair;                  /* socketpair: filled in */
} rs_socket_request;

/* Of setsockopt, getsockopt. */
typedef struct {
    void *value;
    uint32_t len;
    int32_t level;
    int32_t name;
} rs_option_request;

/* Of unlink, rename, mkdir. */
typedef struct {
    const char *path;
    const char *to;             /* rename */
    uint32_t mode;              /* mkdir: permissions */
} rs_path_request;

/* Of fallocate. */
typedef struct {
    int64_t offset;
    uint64_t len;
    int32_t mode;
} rs_room_request;

/* What is asked. Plain data, in which the kind says which member of the union counts; some kinds have none. */
typedef struct rs_request {
    uint8_t kind;
    uint8_t options;
    int32_t fd;                 /* -1: it is about none */
    void *owned;                /* memory that the op frees at its end; NULL: none */
    uint64_t done;              /* bytes that earlier tries have moved: they count in the op's result */
    union {
        rs_transfer transfer;
        rs_vector vector;
        rs_message_transfer message;
        rs_splice_transfer splice;
        rs_socket_address address;
        rs_open_request open;
        rs_statx_request statx;
        rs_wait_request wait;
        rs_socket_request socket;
        rs_option_request option;
        rs_path_request path;
        rs_room_request room;
        struct { uint32_t events; } poll;
        struct { bool data_only; } fsync;
        struct { int *pair; } pipe;
        struct { uint32_t backlog; } listen;
        struct { uint32_t how; } shutdown;
        struct { int64_t size; } truncate;
        struct { struct rs_lookup *lookup; } resolve;
    };
} rs_request;

_Static_assert(sizeof(rs_request) <= 64, "a request fits into one line of the cache");

/* Readable, in the words of poll(2), which a request to poll and its result have. */
#define RS_POLL_IN 1

/* The type of a socket, beside the flags that socket(2) has in the same word. */
#define RS_SOCK_TYPE 0xfu

static inline const rs_op_traits *rs_request_traits(const rs_request *request) {
    RS_CHECK(request->kind < RS_OP_KINDS);
    return &rs_op_kinds[request->kind];
}

static inline bool rs_request_takes_stream(const rs_request *request) {
    const rs_op_traits *traits = rs_request_traits(request);
    RS_CHECK(!traits->takes_stream || traits->memory == RS_MEMORY_BUFFER);
    return traits->takes_stream && request->transfer.flags == 0;
}

/* Moves bytes from `fd` to `splice.to_fd`. */
static inline bool rs_request_has_target(const rs_request *request) {
    return rs_request_traits(request)->moves == RS_MOVES_BETWEEN;
}

static inline bool rs_request_is_message(const rs_request *request) {
    return rs_request_traits(request)->moves == RS_MOVES_MESSAGE;
}

/* MSG_ of one that moves bytes of a socket; 0 of any other. */
static inline uint32_t rs_request_message_flags(const rs_request *request) {
    if (!rs_request_is_message(request)) return 0;
    RS_CHECK(rs_request_traits(request)->memory == RS_MEMORY_HEADER || rs_request_traits(request)->memory == RS_MEMORY_BUFFER);
    return rs_request_traits(request)->memory == RS_MEMORY_HEADER ? request->message.flags : request->transfer.flags;
}

/* Bytes of the buffer that it reads into or writes from; 0: it has no such buffer. */
static inline uint64_t rs_request_buffer_len(const rs_request *request) {
    return rs_request_traits(request)->memory == RS_MEMORY_BUFFER ? request->transfer.len : 0;
}

/* Bytes in the parts of one that has a vector, and what is left of them when so many have been moved. */
uint64_t rs_vector_len(const rs_vector *vector);
void rs_vector_advance(rs_vector *vector, uint64_t bytes);

/* Bytes that it reads into a buffer or a vector, or writes from there. */
static inline uint64_t rs_request_len(const rs_request *request) {
    bool vector = rs_request_traits(request)->memory == RS_MEMORY_VECTOR;
    return RS_UNLIKELY(vector) ? rs_vector_len(&request->vector) : rs_request_buffer_len(request);
}

/* So many bytes have been moved: the request is for the rest now. */
static inline void rs_request_advance(rs_request *request, uint64_t bytes) {
    RS_ASSERT(bytes <= rs_request_len(request));
    request->done += bytes;
    if (RS_UNLIKELY(rs_request_traits(request)->memory == RS_MEMORY_VECTOR)) {
        rs_vector_advance(&request->vector, bytes);
        return;
    }
    rs_transfer *transfer = &request->transfer;
    transfer->address = (char *)transfer->address + bytes;
    transfer->len -= bytes;
    if (transfer->offset >= 0) transfer->offset += (int64_t)bytes;
}

/* The step of RS_REQUEST_ALL, after every try and whoever made it: our thread (rs_op_go_on), a worker, or the simulated kernel. True:
 * it was short, and the request is now for the rest. False: that was the last try. An error ends it as well, also after a part: what
 * becomes of that is decided once, for all of them, where the op completes (rs_op_complete). */
static inline bool rs_request_goes_on(rs_request *request, int64_t result) {
    if (result <= 0 || !(request->options & RS_REQUEST_ALL)) return false;
    RS_CHECK(rs_request_traits(request)->memory == RS_MEMORY_BUFFER || rs_request_traits(request)->memory == RS_MEMORY_VECTOR);
    if ((uint64_t)result >= rs_request_len(request)) return false;
    rs_request_advance(request, (uint64_t)result);
    return true;
}

#endif
