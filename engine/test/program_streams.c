/* program_streams: roles that move bytes: producers and consumers, servers and clients, files, and descriptors that are
 * closed under those who wait on them. */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

static bool resets(const worker *self) { return self->program->faults.reset > 0; }

/* What a request for a new descriptor may answer instead. */
static bool is_open_failure(const worker *self) {
    return (self->task.result == -EMFILE || self->task.result == -ENFILE) && self->program->faults.open_failure > 0;
}

/* Ends the ops on a descriptor that is to be closed, and counts those that take their time. */
static uint32_t waiting_at(const worker *self, int fd) {
    return rs_descriptor_closing(self->program->driver.machine, fd);
}

static rs_scope *beside(const worker *self) { return self->task.strand->own.parent; }

static bool open_stream(worker *self) {
    self->stream = &self->own_stream;
    self->stream->socket = chance(self, 50);
    int *fds = self->stream->fds;
    rs_request request = self->stream->socket ? request_socketpair(fds) : request_pipe(fds);
    return task_request(&self->task, &request, RS_NEVER);
}

static bool stream_is_open(worker *self) {
    bool goes_on = program_goes_on(self);
    bool made = self->task.wake == RS_WAKE_VALUE && self->task.result == 0;
    if (!made) self->stream->fds[0] = self->stream->fds[1] = -1;
    if (self->task.wake == RS_WAKE_VALUE && !made) EXPECT(self, is_open_failure(self), self->task.result);
    return made && goes_on;
}

/* --- producers and consumers --- */

static bool start_write(worker *self) {
    stream *stream = self->stream;
    uint64_t len = 1 + draw(self, self->left > 20000 ? 20000 : self->left);
    uint8_t *bytes = buffer_take(self, len);
    for (uint64_t i = 0; i < len; i++) bytes[i] = stream_byte(stream->produced + i);
    rs_request request = stream->socket && chance(self, 50) ? request_send(stream->fds[1], bytes, len)
                                                            : request_write(stream->fds[1], bytes, len);
    if (chance(self, 20)) {
        self->parts[0] = (struct iovec){bytes, len / 2};
        self->parts[1] = (struct iovec){bytes + len / 2, len - len / 2};
        request = (rs_request){.kind = RS_OP_WRITEV, .fd = stream->fds[1],
                               .vector = {.parts = self->parts, .count = 2, .offset = -1}};
        if (chance(self, 50)) request.options = RS_REQUEST_ALL;
    } else if (chance(self, 40)) {
        request.options = RS_REQUEST_ALL;
    }
    return task_request(&self->task, &request, wait_until(self, draw_deadline(self, 30, 3 * MS)));
}

static bool written(worker *self) {
    bool goes_on = program_goes_on(self);
    buffer_give(self);
    if (self->task.wake != RS_WAKE_VALUE) return goes_on;
    int64_t result = self->task.result;
    if (result > 0) {
        EXPECT(self, (uint64_t)result <= self->buffer_len, result);
        self->stream->produced += (uint64_t)result;
        self->left -= (uint32_t)result < self->left ? (uint32_t)result : self->left;
        return true;
    }
    if (result == -EPIPE) EXPECT(self, self->stream->reader_ending || resets(self), result);
    else EXPECT(self, result == -ECONNRESET && self->stream->socket && resets(self), result);
    return false;
}

static bool close_end(worker *self, int end) { return clean_request(self, request_close(self->stream->fds[end])); }

void producer_step(task *task) {
    worker *self = (worker *)task;
    TASK_BEGIN(task);
    WAIT(self, open_stream(self));
    if (!stream_is_open(self) && self->stream->fds[0] < 0) goto done;
    self->other = program_spawn(self->program, beside(self), ROLE_CONSUMER);
    if (self->other) self->other->stream = self->stream;
    self->left = (uint32_t)draw(self, chance(self, 10) ? 200000 : 6000);
    enclose(self);
    while (self->left > 0 && self->other) {
        WAIT(self, start_write(self));
        if (!written(self)) break;
        if (chance(self, 30)) {
            WAIT(self, task_park(task, RS_WAIT_SLEEP, 0, wait_until(self, draw_deadline(self, 100, 2 * MS))));
            if (!program_goes_on(self)) break;
        }
    }
    clean_begin(self);
    self->stream->writer_ending = true;
    WAIT_CLEAN(self, close_end(self, 1));
    clean_closed(self);
    if (!self->other) {
        WAIT_CLEAN(self, close_end(self, 0));
        clean_closed(self);
    }
    clean_end(self);
    unclose(self);
done:
    TASK_END(task);
}

static bool start_read(worker *self) {
    uint64_t len = 1 + draw(self, chance(self, 20) ? 40000 : 2000);
    uint8_t *bytes = buffer_take(self, len);
    int fd = self->stream->fds[0];
    rs_request request = self->stream->socket && chance(self, 50) ? request_recv(fd, bytes, len)
                                                                  : request_read(fd, bytes, len);
    if (self->stream->socket && chance(self, 20)) {
        self->parts[0] = (struct iovec){bytes, len / 2};
        self->parts[1] = (struct iovec){bytes + len / 2, len - len / 2};
        self->message = (struct msghdr){.msg_iov = self->parts, .msg_iovlen = 2};
        request = (rs_request){.kind = RS_OP_RECVMSG, .fd = fd, .message.header = &self->message};
    } else if (chance(self, 20) && !resets(self)) {
        /* A kernel tells a reset once; behind bytes that have come it would be lost on the way. */
        request.options = RS_REQUEST_ALL;
    }
    return task_request(&self->task, &request, wait_until(self, draw_deadline(self, 30, 3 * MS)));
}

static bool have_read(worker *self) {
    bool goes_on = program_goes_on(self);
    stream *stream = self->stream;
    int64_t result = self->task.result;
    bool value = self->task.wake == RS_WAKE_VALUE;
    for (int64_t i = 0; value && i < result; i++) {
        if (self->buffer[i] == stream_byte(stream->consumed + (uint64_t)i)) continue;
        program_fail(self, "a wrong byte arrived, number", (int64_t)stream->consumed + i);
        break;
    }
    buffer_give(self);
    if (!value) return goes_on;
    if (result > 0) {
        stream->consumed += (uint64_t)result;
        return true;
    }
    if (result == 0) {
        EXPECT(self, stream->writer_ending, (int64_t)stream->consumed);
        EXPECT(self, stream->consumed == stream->produced, (int64_t)(stream->produced - stream->consumed));
    } else {
        EXPECT(self, result == -ECONNRESET && stream->socket && resets(self), result);
    }
    return false;
}

static bool start_poll(worker *self) {
    rs_request request = request_poll(self->stream->fds[0], POLLIN);
    return task_request(&self->task, &request, wait_until(self, draw_deadline(self, 30, 3 * MS)));
}

static bool have_polled(worker *self) {
    if (self->task.wake == RS_WAKE_VALUE) {
        EXPECT(self, self->task.result & (POLLIN | POLLHUP | POLLERR), self->task.result);
    }
    return program_goes_on(self);
}

void consumer_step(task *task) {
    worker *self = (worker *)task;
    TASK_BEGIN(task);
    enclose(self);
    for (;;) {
        if (chance(self, 20)) {
            WAIT(self, start_poll(self));
            if (!have_polled(self)) break;
        }
        WAIT(self, start_read(self));
        if (!have_read(self)) break;
        if (chance(self, 20)) {
            WAIT(self, task_park(task, RS_WAIT_SLEEP, 0, wait_until(self, draw_deadline(self, 100, MS))));
            if (!program_goes_on(self)) break;
        }
    }
    clean_begin(self);
    self->stream->reader_ending = true;
    WAIT_CLEAN(self, close_end(self, 0));
    clean_closed(self);
    clean_end(self);
    unclose(self);
    TASK_END(task);
}

/* --- servers and clients --- */

static bool instant(worker *self, rs_request request) { return task_request(&self->task, &request, RS_NEVER); }

static bool start_accept(worker *self) {
    rs_request request = request_accept(self->fd);
    return task_request(&self->task, &request, wait_until(self, draw_deadline(self, 100, 10 * MS)));
}

static bool start_message(worker *self) {
    rs_request request = request_recv(self->connection, buffer_take(self, 700), 700);
    return task_request(&self->task, &request, wait_until(self, draw_deadline(self, 10, 10 * MS)));
}

/* The first byte of a message is its sender's number, so what it sent is known. */
static bool have_message(worker *self) {
    bool goes_on = program_goes_on(self);
    int64_t result = self->task.wake == RS_WAKE_VALUE ? self->task.result : 1;
    for (int64_t i = 0; self->task.wake == RS_WAKE_VALUE && i < result; i++) {
        if (self->moved == 0) self->item = self->buffer[i];
        else EXPECT(self, self->buffer[i] == stream_byte(self->moved), (int64_t)self->moved);
        self->moved++;
    }
    buffer_give(self);
    if (result > 0) return goes_on;
    if (result < 0) {
        EXPECT(self, result == -ECONNRESET && resets(self), result);
    } else if (self->moved > 0) {
        worker *client = &self->program->workers[self->item];
        EXPECT(self, client->role == ROLE_CLIENT && client->ending, self->item);
        EXPECT(self, client->moved == self->moved, (int64_t)client->moved);
    }
    return false;
}

void server_step(task *task) {
    worker *self = (worker *)task;
    TASK_BEGIN(task);
    enclose(self);
    WAIT(self, instant(self, request_socket()));
    program_ended(self);
    if (task->wake != RS_WAKE_VALUE || task->result < 0) goto done;
    self->fd = (int)task->result;
    snprintf(self->path, sizeof(self->path), "door %u", self->number);
    WAIT(self, instant(self, request_bind(self->fd, self->path)));
    if (!program_goes_on(self) || task->wake != RS_WAKE_VALUE) goto close;
    EXPECT(self, task->result == 0, task->result);
    WAIT(self, instant(self, request_listen(self->fd, (uint32_t)draw(self, 3))));
    if (!program_goes_on(self) || task->wake != RS_WAKE_VALUE) goto close;
    for (self->left = 1 + (uint32_t)draw(self, 4); self->left > 0; self->left--) {
        worker *client = program_spawn(self->program, beside(self), ROLE_CLIENT);
        if (client) client->other = self;
    }
    for (self->left = 1 + (uint32_t)draw(self, 5); self->left > 0; self->left--) {
        WAIT(self, start_accept(self));
        if (task->wake == RS_WAKE_VALUE && task->result >= 0) self->connection = (int)task->result;
        else if (task->wake == RS_WAKE_VALUE) EXPECT(self, is_open_failure(self), task->result);
        if (!program_goes_on(self)) break;
        self->moved = 0;
        while (self->connection >= 0) {
            WAIT(self, start_message(self));
            if (!have_message(self)) break;
        }
        if (self->connection >= 0) {
            clean_begin(self);
            WAIT_CLEAN(self, clean_request(self, request_close(self->connection)));
            clean_closed(self);
            clean_end(self);
            self->connection = -1;
        }
    }
close:
    clean_begin(self);
    WAIT_CLEAN(self, clean_request(self, request_close(self->fd)));
    clean_closed(self);
    clean_end(self);
done:
    unclose(self);
    TASK_END(task);
}

static bool start_connect(worker *self) {
    rs_request request = request_connect(self->fd, self->other->path);
    return task_request(&self->task, &request, wait_until(self, draw_deadline(self, 50, 5 * MS)));
}

static bool start_sending(worker *self) {
    uint64_t len = self->left;
    uint8_t *bytes = buffer_take(self, len);
    for (uint64_t i = 0; i < len; i++) bytes[i] = stream_byte(self->moved + i);
    if (self->moved == 0) bytes[0] = (uint8_t)self->number;
    rs_request request = request_send(self->fd, bytes, len);
    return task_request(&self->task, &request, wait_until(self, draw_deadline(self, 30, 5 * MS)));
}

static bool have_sent(worker *self) {
    bool goes_on = program_goes_on(self);
    buffer_give(self);
    if (self->task.wake != RS_WAKE_VALUE) return goes_on;
    if (self->task.result > 0) {
        self->moved += (uint64_t)self->task.result;
        self->left -= (uint32_t)self->task.result;
        return true;
    }
    bool gone = self->task.result == -EPIPE || self->task.result == -ECONNRESET;
    EXPECT(self, gone && (self->other->ending || resets(self)), self->task.result);
    return false;
}

void client_step(task *task) {
    worker *self = (worker *)task;
    TASK_BEGIN(task);
    enclose(self);
    WAIT(self, instant(self, request_socket()));
    program_ended(self);
    if (task->wake != RS_WAKE_VALUE || task->result < 0) goto done;
    self->fd = (int)task->result;
    WAIT(self, start_connect(self));
    if (task->wake == RS_WAKE_VALUE && task->result < 0) {
        EXPECT(self, task->result == -ECONNREFUSED || task->result == -ENOENT, task->result);
        EXPECT(self, self->other->ending, task->result);
    }
    if (!program_goes_on(self) || task->wake != RS_WAKE_VALUE || task->result < 0) goto close;
    for (self->left = 1 + (uint32_t)draw(self, 3000); self->left > 0;) {
        WAIT(self, start_sending(self));
        if (!have_sent(self)) break;
    }
close:
    clean_begin(self);
    WAIT_CLEAN(self, clean_request(self, request_close(self->fd)));
    clean_closed(self);
    clean_end(self);
done:
    unclose(self);
    TASK_END(task);
}

/* --- files --- */

static bool start_file_op(worker *self, rs_op_kind kind) {
    uint64_t len = 1 + draw(self, 5000);
    uint8_t *bytes = buffer_take(self, len);
    for (uint64_t i = 0; kind == RS_OP_PWRITE && i < len; i++) bytes[i] = stream_byte(self->moved + i);
    rs_request request = {.kind = (uint8_t)kind, .fd = self->fd,
                          .transfer = {.address = bytes, .len = len,
                                       .offset = kind == RS_OP_PWRITE ? (int64_t)self->moved : 0}};
    if (chance(self, 30)) request.options = RS_REQUEST_ALL;
    return task_request(&self->task, &request, wait_until(self, draw_deadline(self, 20, 3 * MS)));
}

static bool have_file_op(worker *self, rs_op_kind kind) {
    bool goes_on = program_goes_on(self);
    int64_t result = self->task.result;
    if (self->task.wake == RS_WAKE_VALUE) {
        EXPECT(self, result >= 0, result);
        if (kind == RS_OP_PWRITE) self->moved += (uint64_t)result;
        else EXPECT(self, (result > 0) == (self->moved > 0), result);
        for (int64_t i = 0; kind == RS_OP_PREAD && i < result; i++) {
            EXPECT(self, self->buffer[i] == stream_byte((uint64_t)i), i);
        }
    }
    buffer_give(self);
    return goes_on;
}

static bool start_statx(worker *self) {
    rs_request request = request_statx(self->fd);
    return task_request(&self->task, &request, wait_until(self, draw_deadline(self, 30, MS)));
}

void filer_step(task *task) {
    worker *self = (worker *)task;
    TASK_BEGIN(task);
    enclose(self);
    snprintf(self->path, sizeof(self->path), "file %u", self->number);
    WAIT(self, task_request(task, &(rs_request){.kind = RS_OP_OPEN, .fd = -1, .open.path = self->path,
                            .open.flags = O_RDWR | O_CREAT}, wait_until(self, draw_deadline(self, 30, 2 * MS))));
    if (task->wake == RS_WAKE_VALUE && task->result >= 0) self->fd = (int)task->result;
    else if (task->wake == RS_WAKE_VALUE) EXPECT(self, is_open_failure(self), task->result);
    if (!program_goes_on(self) || self->fd < 0) goto close;
    for (self->left = (uint32_t)draw(self, 6); self->left > 0; self->left--) {
        WAIT(self, start_file_op(self, RS_OP_PWRITE));
        if (!have_file_op(self, RS_OP_PWRITE)) goto close;
        WAIT(self, task_request(task, &(rs_request){.kind = RS_OP_FSYNC, .fd = self->fd},
                                wait_until(self, draw_deadline(self, 30, MS))));
        if (task->wake == RS_WAKE_VALUE) EXPECT(self, task->result == 0, task->result);
        if (!program_goes_on(self)) goto close;
        task->copy_answer_to = &self->answer;
        WAIT(self, start_statx(self));
        task->copy_answer_to = NULL;
        if (task->wake == RS_WAKE_VALUE) EXPECT(self, self->answer.stx_size == self->moved, (int64_t)self->moved);
        if (!program_goes_on(self)) goto close;
        WAIT(self, start_file_op(self, RS_OP_PREAD));
        if (!have_file_op(self, RS_OP_PREAD)) goto close;
    }
close:
    clean_begin(self);
    if (self->fd >= 0) {
        /* An fsync that was left behind is still at it. */
        while (waiting_at(self, self->fd) > 0) {
            WAIT_SHIELDED(self, task_wait_for_ops(task));
        }
        WAIT_CLEAN(self, clean_request(self, request_close(self->fd)));
        clean_closed(self);
    }
    clean_end(self);
    unclose(self);
    TASK_END(task);
}

/* --- a descriptor closed under those who wait on it --- */

static bool start_waiting(worker *self) {
    int fd = self->stream->fds[0];
    rs_request request = request_read(fd, buffer_take(self, 100), 100);
    if (chance(self, 30)) request = request_poll(fd, POLLIN);
    return task_request(&self->task, &request, wait_until(self, draw_deadline(self, 30, 5 * MS)));
}

/* It sees the descriptor closed, or the other end, and never a byte. */
static void check_victim(worker *self) {
    int64_t result = self->task.result;
    stream *stream = self->stream;
    if (result == -EBADF) EXPECT(self, stream->reader_ending, result);
    else if (result >= 0) EXPECT(self, stream->writer_ending || (stream->socket && resets(self)), result);
    else EXPECT(self, result == -ECONNRESET && stream->socket && resets(self), result);
}

void victim_step(task *task) {
    worker *self = (worker *)task;
    TASK_BEGIN(task);
    if (!self->stream) {
        WAIT(self, open_stream(self));
        if (!stream_is_open(self) && self->stream->fds[0] < 0) goto done;
        for (self->left = 1 + (uint32_t)draw(self, 3); self->left > 0; self->left--) {
            worker *other = program_spawn(self->program, beside(self), self->left == 1 ? ROLE_CLOSER : ROLE_VICTIM);
            if (other) other->stream = self->stream;
            self->other = other;
        }
    }
    enclose(self);
    while (!self->stream->reader_ending && (self->other || self->stream != &self->own_stream)) {
        WAIT(self, start_waiting(self));
        buffer_give(self);
        if (task->wake == RS_WAKE_VALUE) {
            check_victim(self);
            program_ended(self);
            break;
        }
        if (!program_goes_on(self)) break;
    }
    unclose(self);
    if (self->stream != &self->own_stream) goto done;
    if (!self->other) {
        self->stream->reader_ending = true;
        while (waiting_at(self, self->stream->fds[0]) > 0) {
            WAIT_SHIELDED(self, task_wait_for_ops(task));
        }
    }
    clean_begin(self);
    self->stream->writer_ending = true;
    if (!self->other) {
        WAIT_CLEAN(self, close_end(self, 0));
        clean_closed(self);
    }
    WAIT_CLEAN(self, close_end(self, 1));
    clean_closed(self);
    clean_end(self);
done:
    TASK_END(task);
}

void closer_step(task *task) {
    worker *self = (worker *)task;
    TASK_BEGIN(task);
    WAIT(self, task_park(task, RS_WAIT_SLEEP, 0, wait_until(self, draw_deadline(self, 100, 5 * MS))));
    program_goes_on(self);
    self->stream->reader_ending = true;
    while (waiting_at(self, self->stream->fds[0]) > 0) {
        WAIT_SHIELDED(self, task_wait_for_ops(task));
    }
    clean_begin(self);
    WAIT_CLEAN(self, close_end(self, 0));
    clean_closed(self);
    clean_end(self);
    TASK_END(task);
}
