#include "backend/sim/world.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

void sim_world_free(sim_world *world) {
    for (uint32_t slot = 0; slot < world->table_len; slot++) {
        if (world->table[slot]) sim_world_close(world, SIM_DESCRIPTOR_FIRST + (int)slot);
    }
    RS_CHECK(world->open == 0 && !world->changed_first);
    sim_files_free(world);
    free(world->table);
    *world = (sim_world){0};
}

static int64_t new_pipe(sim_world *world, const rs_request *request) {
    RS_CHECK(request->pipe.pair != NULL);
    if (world->open + 2 > SIM_DESCRIPTORS_MAX) return -EMFILE;
    if (!sim_world_reserve(world, 2)) return -ENOMEM;
    sim_object *reader = sim_world_new_object(SIM_PIPE_READER, NULL);
    sim_object *writer = reader ? sim_world_new_object(SIM_PIPE_WRITER, NULL) : NULL;
    if (!writer) {
        if (reader) sim_object_release(world, reader);
        return -ENOMEM;
    }
    reader->peer = writer;
    writer->peer = reader;
    int *pair = request->pipe.pair;
    pair[0] = (int)sim_world_install(world, reader);
    pair[1] = (int)sim_world_install(world, writer);
    return 0;
}

/* --- bytes on their way --- */

static uint32_t stream_room(const sim_stream *stream) {
    RS_CHECK(stream->len <= SIM_STREAM_CAPACITY);
    return SIM_STREAM_CAPACITY - stream->len;
}

/* Makes room for `len` bytes in all. False: there is no memory. */
static bool stream_reserve(sim_stream *stream, uint32_t len) {
    RS_ASSERT(len <= SIM_STREAM_CAPACITY);
    if (len <= stream->capacity) return true;
    uint32_t capacity = stream->capacity ? stream->capacity : 256;
    while (capacity < len) capacity *= 2;
    uint8_t *bytes = rs_try_alloc_uncleared(capacity);
    if (!bytes) return false;
    uint32_t first = stream->capacity - stream->start;
    if (first > stream->len) first = stream->len;
    if (stream->len > 0) {
        memcpy(bytes, stream->bytes + stream->start, first);
        memcpy(bytes + first, stream->bytes, stream->len - first);
    }
    free(stream->bytes);
    stream->bytes = bytes;
    stream->start = 0;
    stream->capacity = capacity;
    return true;
}

static void stream_put(sim_stream *stream, const uint8_t *bytes, uint32_t len) {
    RS_ASSERT(len <= stream_room(stream) && !stream->ended);
    if (len == 0) return;
    RS_ASSERT(stream->start < stream->capacity && stream->len + len <= stream->capacity);
    uint32_t end = (stream->start + stream->len) % stream->capacity;
    uint32_t first = stream->capacity - end < len ? stream->capacity - end : len;
    memcpy(stream->bytes + end, bytes, first);
    memcpy(stream->bytes, bytes + first, len - first);
    stream->len += len;
}

/* Copies from `skip` bytes behind the front; takes nothing out. */
static void stream_look(const sim_stream *stream, uint32_t skip, uint8_t *bytes, uint32_t len) {
    RS_ASSERT(skip + len <= stream->len);
    if (len == 0) return;
    RS_CHECK(stream->start < stream->capacity && stream->len <= stream->capacity);
    uint32_t start = (stream->start + skip) % stream->capacity;
    uint32_t first = stream->capacity - start < len ? stream->capacity - start : len;
    memcpy(bytes, stream->bytes + start, first);
    memcpy(bytes + first, stream->bytes, len - first);
}

static void stream_drop(sim_stream *stream, uint32_t len) {
    RS_ASSERT(len <= stream->len);
    stream->len -= len;
    stream->start = stream->len > 0 ? (stream->start + len) % stream->capacity : 0;
}

/* --- transfers --- */

typedef struct {
    const struct iovec *parts;
    uint64_t count;
    uint64_t bytes;
} transfer;

const struct iovec *sim_parts_of(const rs_request *request, struct iovec *single, uint64_t *count) {
    switch (rs_request_traits(request)->memory) {
    case RS_MEMORY_VECTOR:
        *count = request->vector.count;
        return request->vector.parts;
    case RS_MEMORY_HEADER:
        RS_CHECK(request->message.header != NULL);
        *count = request->message.header->msg_iovlen;
        return request->message.header->msg_iov;
    case RS_MEMORY_BUFFER:
        *count = 1;
        *single = (struct iovec){.iov_base = request->transfer.address, .iov_len = request->transfer.len};
        return single;
    default:
        *count = 0;
        return single;
    }
}

uint64_t sim_len_of(const rs_request *request) {
    if (rs_request_has_target(request)) return request->splice.len;
    struct iovec single;
    uint64_t count, len = 0;
    const struct iovec *parts = sim_parts_of(request, &single, &count);
    for (uint64_t i = 0; i < count; i++) len += parts[i].iov_len;
    return len;
}

static transfer transfer_of(const rs_request *request, struct iovec *single, uint64_t limit) {
    transfer t = {0};
    t.parts = sim_parts_of(request, single, &t.count);
    for (uint64_t i = 0; i < t.count; i++) t.bytes += t.parts[i].iov_len;
    if (t.bytes > limit) t.bytes = limit;
    return t;
}

static int64_t read_stream(sim_world *world, sim_object *object, const transfer *t, bool peek) {
    RS_CHECK(object->kind == SIM_PIPE_READER || object->kind == SIM_SOCKET);
    sim_stream *in = &object->in;
    if (t->bytes == 0) return 0;
    if (in->len == 0 || object->read_shut) {
        if (object->error) {
            int32_t error = object->error;
            object->error = 0;
            return -error;
        }
        return in->ended || object->read_shut ? 0 : -EAGAIN;
    }
    uint32_t total = in->len < t->bytes ? in->len : (uint32_t)t->bytes;
    uint32_t done = 0;
    for (uint64_t i = 0; i < t->count && done < total; i++) {
        uint64_t part = t->parts[i].iov_len;
        uint32_t step = part < total - done ? (uint32_t)part : total - done;
        stream_look(in, done, t->parts[i].iov_base, step);
        done += step;
    }
    RS_CHECK(done == total);
    if (peek) return total;
    stream_drop(in, total);
    if (object->peer) sim_world_changed(world, object->peer);
    return total;
}

static int64_t write_stream(sim_world *world, sim_object *object, const transfer *t) {
    RS_CHECK(object->kind == SIM_PIPE_WRITER || object->kind == SIM_SOCKET);
    sim_object *peer = object->peer;
    RS_CHECK(!peer || peer->peer == object);
    if (object->write_shut || !peer || peer->read_shut) return -EPIPE;
    if (t->bytes == 0) return 0;
    uint32_t room = stream_room(&peer->in);
    bool whole = object->kind == SIM_PIPE_WRITER && t->bytes <= SIM_PIPE_ATOMIC;
    if (room == 0 || (whole && room < t->bytes)) return -EAGAIN;
    uint32_t total = room < t->bytes ? room : (uint32_t)t->bytes;
    if (!stream_reserve(&peer->in, peer->in.len + total)) return -ENOMEM;
    uint32_t done = 0;
    for (uint64_t i = 0; i < t->count && done < total; i++) {
        uint64_t part = t->parts[i].iov_len;
        uint32_t step = part < total - done ? (uint32_t)part : total - done;
        stream_put(&peer->in, t->parts[i].iov_base, step);
        done += step;
    }
    RS_CHECK(done == total);
    sim_world_changed(world, peer);
    return total;
}

static int64_t offset_of(const rs_request *request) {
    RS_CHECK(rs_request_traits(request)->moves == RS_MOVES_MEMORY);
    return rs_request_traits(request)->memory == RS_MEMORY_VECTOR ? request->vector.offset : request->transfer.offset;
}

static int64_t transfer_file(sim_object *object, const rs_request *request, const transfer *t, bool write) {
    RS_CHECK(object->kind == SIM_FILE);
    uint64_t done = 0;
    int64_t offset = offset_of(request);
    if (t->bytes == 0) {
        return write ? sim_file_write(object, offset, NULL, 0) : sim_file_read(object, offset, NULL, 0);
    }
    for (uint64_t i = 0; i < t->count && done < t->bytes; i++) {
        uint64_t part = t->parts[i].iov_len < t->bytes - done ? t->parts[i].iov_len : t->bytes - done;
        void *bytes = t->parts[i].iov_base;
        int64_t at = offset >= 0 ? offset + (int64_t)done : -1;
        int64_t moved = write ? sim_file_write(object, at, bytes, part) : sim_file_read(object, at, bytes, part);
        if (moved < 0) return done > 0 ? (int64_t)done : moved;
        done += (uint64_t)moved;
        if ((uint64_t)moved < part) break;
    }
    return (int64_t)done;
}

/* What is wrong with this kind of request on this kind of object; 0: nothing. */
static int64_t refuse(const sim_object *object, const rs_request *request, bool write) {
    bool message = rs_request_is_message(request);
    if (message && object->kind != SIM_SOCKET) return -ENOTSOCK;
    if (object->kind == SIM_FILE) return 0;
    if (object->kind == (write ? SIM_PIPE_READER : SIM_PIPE_WRITER)) return -EBADF;
    if (!message && offset_of(request) >= 0) return -ESPIPE;
    if (object->kind != SIM_SOCKET || object->state == SIM_CONNECTED) return 0;
    if (object->family == AF_UNIX) return write ? -ENOTCONN : -EINVAL;
    return write ? -EPIPE : -ENOTCONN;
}

static int64_t transfer_bytes(sim_world *world, sim_object *object, const rs_request *request, uint64_t limit) {
    bool write = rs_op_kinds[request->kind].side == RS_SIDE_WRITE;
    int64_t error = refuse(object, request, write);
    if (error) return error;
    struct iovec single;
    transfer t = transfer_of(request, &single, UINT64_MAX);
    bool whole = write && object->kind == SIM_PIPE_WRITER && t.bytes <= SIM_PIPE_ATOMIC;
    if (!whole && t.bytes > limit) t.bytes = limit;
    if (object->kind == SIM_FILE) return transfer_file(object, request, &t, write);
    if (write) return write_stream(world, object, &t);
    int64_t result = read_stream(world, object, &t, rs_request_message_flags(request) & MSG_PEEK);
    RS_CHECK(result <= 0 || (uint64_t)result <= t.bytes);
    if (result >= 0 && request->kind == RS_OP_RECVMSG) {
        /* Nothing comes beside the bytes of a stream. */
        struct msghdr *message = request->message.header;
        message->msg_namelen = 0;
        message->msg_controllen = 0;
        message->msg_flags = 0;
    }
    return result;
}

/* --- from one to the other --- */

/* So many bytes can be written there now, or what is wrong. */
static int64_t room_in(const sim_object *object) {
    RS_CHECK(object->kind != SIM_PIPE_READER);
    if (object->kind == SIM_FILE) {
        if ((object->open_flags & O_ACCMODE) == O_RDONLY) return -EBADF;
        if (object->open_flags & O_APPEND) return -EINVAL;
        return object->position < SIM_FILE_MAX - SIM_STREAM_CAPACITY ? (int64_t)SIM_STREAM_CAPACITY : -EFBIG;
    }
    if (object->write_shut || !object->peer || object->peer->read_shut) return -EPIPE;
    uint32_t room = stream_room(&object->peer->in);
    return room > 0 ? (int64_t)room : -EAGAIN;
}

static int64_t look(sim_object *pipe, void *bytes, uint64_t len) {
    RS_CHECK(pipe->kind == SIM_PIPE_READER);
    struct iovec part = {.iov_base = bytes, .iov_len = len};
    return read_stream(NULL, pipe, &(transfer){&part, 1, len}, true);
}

/* At most `limit` bytes, of which there must be one. A tee leaves them where they are. */
static int64_t move_bytes(sim_world *world, sim_object *from, const rs_request *request, uint64_t limit) {
    sim_object *to = sim_world_find(world, request->splice.to_fd);
    if (!to) return -EBADF;
    if (from->kind == SIM_PIPE_WRITER || to->kind == SIM_PIPE_READER) return -EBADF;
    bool tee = request->kind == RS_OP_TEE;
    bool reads = from->kind == SIM_PIPE_READER, writes = to->kind == SIM_PIPE_WRITER;
    if (tee ? !reads || !writes : !reads && !writes) return -EINVAL;
    if (request->splice.len == 0) return 0;
    rs_request part = {.kind = RS_OP_READ, .transfer.offset = -1};
    int64_t error = refuse(from, &part, false);
    if (error == 0) error = refuse(to, &part, true);
    int64_t room = error ? error : room_in(to);
    if (room < 0) return room;
    uint64_t len = request->splice.len < limit ? request->splice.len : limit;
    if (len > (uint64_t)room) len = (uint64_t)room;
    /* What is taken out of the one has a place in the other. */
    if (to->kind != SIM_FILE && !stream_reserve(&to->peer->in, to->peer->in.len + (uint32_t)len)) return -ENOMEM;
    void *bytes = rs_try_alloc(len);
    if (!bytes) return -ENOMEM;
    part.transfer = (rs_transfer){.address = bytes, .len = len, .offset = -1};
    int64_t moved = tee ? look(from, bytes, len) : transfer_bytes(world, from, &part, len);
    if (moved > 0) {
        part = (rs_request){.kind = RS_OP_WRITE, .transfer = {.address = bytes, .len = (uint64_t)moved, .offset = -1}};
        int64_t put = transfer_bytes(world, to, &part, (uint64_t)moved);
        RS_CHECK(put == moved || to->kind == SIM_FILE);
        moved = put;
    }
    free(bytes);
    return moved;
}

/* --- readiness --- */

static uint32_t socket_readiness(const sim_object *socket) {
    RS_CHECK(socket->kind == SIM_SOCKET);
    if (socket->state == SIM_LISTENING) return socket->pending_len > 0 ? POLLIN | POLLRDNORM : 0;
    if (socket->state != SIM_CONNECTED) return POLLOUT | POLLWRNORM | POLLHUP;
    bool ended = socket->in.ended || socket->read_shut;
    bool shut = socket->write_shut || !socket->peer;
    uint32_t events = 0;
    if (socket->in.len > 0 || ended) events |= POLLIN | POLLRDNORM;
    if (ended) events |= POLLRDHUP;
    if (shut || stream_room(&socket->peer->in) > 0) events |= POLLOUT | POLLWRNORM;
    if (ended && shut) events |= POLLHUP;
    if (socket->error) events |= POLLERR;
    return events;
}

static uint32_t readiness(const sim_object *object) {
    switch (object->kind) {
    case SIM_FILE: return POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM;
    case SIM_SOCKET: return socket_readiness(object);
    case SIM_PIPE_READER:
        return (object->in.len > 0 ? POLLIN | POLLRDNORM : 0) | (object->in.ended ? POLLHUP : 0);
    default:
        if (!object->peer) return POLLOUT | POLLWRNORM | POLLERR;
        return stream_room(&object->peer->in) >= SIM_PIPE_ATOMIC ? POLLOUT | POLLWRNORM : 0;
    }
}

static int64_t poll_object(const sim_object *object, const rs_request *request) {
    RS_CHECK(request->kind == RS_OP_POLL);
    uint32_t events = readiness(object) & (request->poll.events | POLLERR | POLLHUP);
    return events ? (int64_t)events : -EAGAIN;
}

/* --- requests --- */

int64_t sim_world_attempt(sim_world *world, sim_object *object, const rs_request *request, uint64_t limit) {
    RS_CHECK(!rs_request_traits(request)->never_waits);
    if (request->kind == RS_OP_OPEN) return sim_file_open(world, request);
    if (request->kind == RS_OP_WAITID) return -ECHILD;
    if (request->kind == RS_OP_UNLINK) return sim_file_unlink(world, request->path.path);
    if (request->kind == RS_OP_RENAME) return sim_file_rename(world, request->path.path, request->path.to);
    if (request->kind == RS_OP_MKDIR) return -EOPNOTSUPP;
    if (request->kind == RS_OP_STATX && request->fd < 0) return sim_file_statx(world, NULL, request);
    if (!object) return -EBADF;
    switch (request->kind) {
    case RS_OP_STATX: return sim_file_statx(world, object, request);
    case RS_OP_ACCEPT: return sim_socket_accept(world, object);
    case RS_OP_CONNECT: return sim_socket_connect(world, object, request);
    case RS_OP_POLL: return poll_object(object, request);
    case RS_OP_FSYNC: return object->kind == SIM_FILE ? 0 : -EINVAL;
    case RS_OP_SPLICE: case RS_OP_TEE: return move_bytes(world, object, request, limit);
    case RS_OP_COPY_RANGE: return -EOPNOTSUPP;
    case RS_OP_FTRUNCATE: return sim_file_resize(object, request->truncate.size);
    case RS_OP_FALLOCATE: return sim_file_allocate(object, request);
    default: return transfer_bytes(world, object, request, limit);
    }
}

int64_t sim_world_perform(sim_world *world, const rs_request *request) {
    RS_CHECK(rs_request_traits(request)->never_waits);
    switch (request->kind) {
    case RS_OP_CLOSE: return sim_world_close(world, request->fd);
    case RS_OP_PIPE: return new_pipe(world, request);
    default: return sim_socket_perform(world, request);
    }
}
