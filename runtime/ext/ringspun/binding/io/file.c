/* file: Machine#open, #fsync, #statx, #pipe and #poll. */
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- opening --- */

static int open_flags(VALUE flags) {
    if (NIL_P(flags)) return O_RDONLY;
    if (RB_INTEGER_TYPE_P(flags)) return (int)rsb_integer(flags, 0, INT32_MAX, "open flags");
    if (!RB_TYPE_P(flags, T_STRING)) {
        rb_raise(rsb_eUsage, "open flags: expected an Integer (File::RDONLY ...) or a mode String, got %" PRIsVALUE,
                 rsb_inspect(flags));
    }
    static const struct {
        const char *mode;
        int flags;
    } modes[] = {{"r", O_RDONLY}, {"r+", O_RDWR}, {"w", O_WRONLY | O_CREAT | O_TRUNC}, {"w+", O_RDWR | O_CREAT | O_TRUNC},
                 {"a", O_WRONLY | O_CREAT | O_APPEND}, {"a+", O_RDWR | O_CREAT | O_APPEND},
                 {"wx", O_WRONLY | O_CREAT | O_EXCL}};
    size_t len = (size_t)RSTRING_LEN(flags);
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (len == strlen(modes[i].mode) && memcmp(RSTRING_PTR(flags), modes[i].mode, len) == 0) return modes[i].flags;
    }
    rb_raise(rsb_eUsage, "unknown open mode %" PRIsVALUE ": use r, r+, w, w+, a, a+, wx or Integer flags", rsb_inspect(flags));
}

static char *path_copy(VALUE path) {
    return memcpy(rsb_alloc((size_t)RSTRING_LEN(path) + 1), RSTRING_PTR(path), (size_t)RSTRING_LEN(path));
}

/* Opens a file.
 *
 * May switch strands.
 *
 * @param path [String, Pathname]
 * @param flags [Integer, String] File::WRONLY | ..., or a mode like "w"
 * @param mode [Integer] permissions of a file that is created
 * @return [Integer] descriptor, closed on exec
 * @raise [SystemCallError]
 * @since 0.1.0
 */
static VALUE machine_open(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 1, 3);
    rsb_machine *machine = rsb_machine_of(self);
    int flags = open_flags(argc > 1 ? argv[1] : Qnil);
    uint32_t mode = argc > 2 ? (uint32_t)rsb_integer(argv[2], 0, 07777, "open mode") : 0666;
    VALUE name = rsb_path(argv[0]);
    rsb_after_inline(machine);
    char *path = path_copy(name);
    rs_request request = {.kind = RS_OP_OPEN, .fd = -1, .owned = path,
                          .open = {.path = path, .flags = (uint32_t)flags, .mode = mode}};
    int64_t fd = rs_try(machine->engine, &request);
    if (fd == -EAGAIN) fd = rsb_wait_for(machine, &request, Qnil, RSB_OUT);
    else free(path);
    if (fd < 0) rb_syserr_fail_str((int)-fd, name);
    return LL2NUM(fd);
}

/* --- files --- */

/* Writes the buffer of an IO object, and waits until the file's data has reached the disk.
 *
 * May switch strands.
 *
 * @param io [Integer, IO]
 * @param data_only [Boolean] leave out metadata that is not needed to read the data back
 * @return [nil]
 * @since 0.1.0
 */
static VALUE machine_fsync(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 1, 2);
    rsb_machine *machine = rsb_machine_of(self);
    if (!RB_INTEGER_TYPE_P(argv[0])) rsb_flush_own_buffer(argv[0]);
    rs_request request = {.kind = RS_OP_FSYNC, .fd = rsb_op_fd(machine, argv[0]),
                          .fsync.data_only = argc > 1 && RTEST(argv[1])};
    rsb_request(machine, &request, Qnil, RSB_OUT, "fsync");
    return Qnil;
}

static VALUE seconds_of(const struct statx_timestamp *stamp) {
    struct timespec time = {.tv_sec = stamp->tv_sec, .tv_nsec = stamp->tv_nsec};
    return rb_time_timespec_new(&time, INT_MAX);
}

static VALUE statx_hash(const struct statx *st) {
    VALUE hash = rb_hash_new();
#define PUT(name, value) rb_hash_aset(hash, ID2SYM(rb_intern(name)), value)
    static const char *const types[] = {"unknown", "fifo", "characterSpecial", "", "directory", "", "blockSpecial", "",
                                        "file", "", "link", "", "socket"};
    PUT("type", ID2SYM(rb_intern(types[(st->stx_mode & S_IFMT) >> 12])));
    PUT("mode", UINT2NUM(st->stx_mode & 07777));
    PUT("size", ULL2NUM(st->stx_size));
    PUT("blocks", ULL2NUM(st->stx_blocks));
    PUT("block_size", UINT2NUM(st->stx_blksize));
    PUT("links", UINT2NUM(st->stx_nlink));
    PUT("uid", UINT2NUM(st->stx_uid));
    PUT("gid", UINT2NUM(st->stx_gid));
    PUT("inode", ULL2NUM(st->stx_ino));
    PUT("accessed_at", seconds_of(&st->stx_atime));
    PUT("modified_at", seconds_of(&st->stx_mtime));
    PUT("changed_at", seconds_of(&st->stx_ctime));
    if (st->stx_mask & STATX_BTIME) PUT("created_at", seconds_of(&st->stx_btime));
#undef PUT
    return hash;
}

/* The status of a file: :type (a word of File.ftype, as a Symbol), :mode, :size, :blocks, :block_size, :links, :uid, :gid,
 * :inode, :accessed_at, :modified_at, :changed_at and, if the filesystem has it, :created_at. A symbolic link is followed, as by
 * File.stat.
 *
 * May switch strands.
 *
 * @param target [Integer, IO, String, Pathname] a descriptor or a path
 * @return [Hash{Symbol => Object}]
 * @raise [SystemCallError]
 * @since 0.1.0
 * @see https://man7.org/linux/man-pages/man2/statx.2.html
 */
static VALUE machine_statx(VALUE self, VALUE target) {
    rsb_machine *machine = rsb_machine_of(self);
    bool named = RB_TYPE_P(target, T_STRING) || rb_respond_to(target, rb_intern("to_path"));
    if (rb_respond_to(target, rb_intern("to_io"))) named = false;
    VALUE path = named ? rsb_path(target) : Qnil;
    if (named) rsb_after_inline(machine);
    int fd = named ? -1 : rsb_op_fd(machine, target);
    size_t path_len = named ? (size_t)RSTRING_LEN(path) : 0;
    /* One block for the answer and the path, which the op owns. */
    struct statx *block = rsb_alloc(sizeof(struct statx) + path_len + 1);
    if (named) memcpy(block + 1, RSTRING_PTR(path), path_len);
    rs_request request = {.kind = RS_OP_STATX, .fd = fd, .owned = block,
                          .statx = {.path = named ? (const char *)(block + 1) : NULL, .answer = block,
                                    .mask = STATX_BASIC_STATS | STATX_BTIME, .flags = named ? 0 : AT_EMPTY_PATH}};
    struct statx answer;
    int64_t result = rs_try(machine->engine, &request);
    if (result == -EAGAIN) {
        result = rsb_perform(machine, &request, &(rsb_op_wait){.answer = &answer, .answer_size = sizeof(answer)});
    } else {
        answer = *block;
        free(block);
    }
    if (result < 0 && named) rb_syserr_fail_str((int)-result, path);
    if (result < 0) rsb_fail(result, "statx", request.fd);
    return statx_hash(&answer);
}

/* --- pipes and readiness --- */

/* Makes a pipe.
 *
 * May switch strands.
 *
 * @return [Array(Integer, Integer)] reading end, writing end; non-blocking and closed on exec
 * @since 0.1.0 */
static VALUE machine_pipe(VALUE self) {
    rs_request request = {.kind = RS_OP_PIPE, .fd = -1};
    return rsb_make_pair(rsb_io_machine(self), &request, &request.pipe.pair, "pipe");
}

#define POLL_WRITES (POLLOUT | POLLWRNORM | POLLWRBAND)
#define POLL_KNOWN (POLLIN | POLLPRI | POLLOUT | POLLRDHUP | POLLRDNORM | POLLRDBAND | POLLWRNORM | POLLWRBAND | POLLERR | POLLHUP)

static uint32_t poll_mask(VALUE events) {
    if (RB_INTEGER_TYPE_P(events)) {
        uint32_t mask = rsb_flags(events, "poll: the mask");
        if (mask && (mask & ~(uint32_t)POLL_KNOWN) == 0) return mask;
        rb_raise(rsb_eUsage, "poll: %#x is no mask of events; use :readable, :writable, :priority or IO::READABLE and its kin",
                 mask);
    }
    VALUE list = rb_Array(events);
    uint32_t mask = 0;
    for (long i = 0; i < RARRAY_LEN(list); i++) {
        VALUE name = RARRAY_AREF(list, i);
        if (name == ID2SYM(rb_intern("readable"))) mask |= POLLIN;
        else if (name == ID2SYM(rb_intern("writable"))) mask |= POLLOUT;
        else if (name == ID2SYM(rb_intern("priority"))) mask |= POLLPRI;
        else rb_raise(rsb_eUsage, "poll: unknown event %" PRIsVALUE "; use :readable, :writable or :priority", rsb_inspect(name));
    }
    if (!mask) rb_raise(rsb_eUsage, "poll: no event to wait for");
    return mask;
}

/* Waits until a descriptor is ready. An error counts as ready: the next operation raises it.
 *
 * May switch strands.
 *
 * @param io [Integer, IO]
 * @param events [Symbol, Array<Symbol>, Integer] :readable, :writable, :priority, or a mask of IO::READABLE and its kin
 * @return [Integer] the mask of ready events: IO::READABLE, IO::PRIORITY, IO::WRITABLE, and POLLERR, POLLHUP of poll(2)
 * @since 0.1.0
 */
static VALUE machine_poll(VALUE self, VALUE io, VALUE events) {
    rsb_machine *machine = rsb_machine_of(self);
    uint32_t mask = poll_mask(events);
    bool reads = mask & ~(uint32_t)POLL_WRITES, writes = mask & POLL_WRITES;
    if (reads && writes && rsb_writing_end(io) != io) {
        rb_raise(rsb_eUsage, "poll: this IO has a descriptor for each direction; wait for one of them at a time");
    }
    int fd = rsb_op_fd(machine, reads ? io : rsb_writing_end(io));
    rs_request request = {.kind = RS_OP_POLL, .fd = fd, .poll.events = mask};
    return LL2NUM(rsb_request(machine, &request, Qnil, RSB_OUT, "poll"));
}

void rsb_init_file(void) {
    rb_define_method(rsb_cMachine, "open", machine_open, -1);
    rb_define_method(rsb_cMachine, "fsync", machine_fsync, -1);
    rb_define_method(rsb_cMachine, "statx", machine_statx, 1);
    rb_define_method(rsb_cMachine, "pipe", machine_pipe, 0);
    rb_define_method(rsb_cMachine, "poll", machine_poll, 2);
    rsb_init_process();
}
