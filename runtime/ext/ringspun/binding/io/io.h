/* io: I/O methods of Ringspun::Machine. The header for this room and the rooms above. */
#ifndef RINGSPUN_IO_H
#define RINGSPUN_IO_H

#include "binding/core/core.h"

#include <limits.h>
#include <sys/uio.h>

typedef enum { RSB_IN, RSB_OUT } rsb_direction;

/* Where a read puts its bytes. */
typedef struct {
    VALUE buffer;
    void *address;
    size_t length;
    size_t offset;
    bool string;
} rsb_target;

/* --- arguments.c --- */

uint32_t rsb_flags(VALUE value, const char *what);
VALUE rsb_writing_end(VALUE io);
VALUE rsb_path(VALUE path);

/* The descriptor of an object of class IO. -1: it is closed. */
int rsb_fd_of_io(VALUE io);
/* The descriptor of an Integer, an IO, or an object with to_io; raises if it is closed. */
int rsb_fd(VALUE io);

/* The same for a machine, which forgets what it knew of the descriptor of an IO object: others may have reopened it. */
int rsb_io_fd(rsb_machine *machine, VALUE io);

/* The same for an op that begins now. If the strand's turn is over, other strands run first; raises if they have closed the
 * descriptor. The caller checks its arguments before this, and takes addresses after it. */
int rsb_op_fd(rsb_machine *machine, VALUE io);

/* The same for an op that sends a buffer. If other strands run, `source` is replaced first by one that they cannot change
 * (rsb_own_source). */
int rsb_op_source_fd(rsb_machine *machine, VALUE io, VALUE *source);

/* That of a descriptor that is given as an Integer, before other strands run; of any other object 0. */
uint32_t rsb_generation(rsb_machine *machine, VALUE io);
/* Raises unless the number still means the descriptor that it meant at that generation. */
void rsb_check_descriptor(rsb_machine *machine, VALUE io, int fd, uint32_t generation, const char *what);

rsb_target rsb_target_of(VALUE buffer, VALUE length, VALUE at);
void rsb_target_filled(const rsb_target *target, int64_t result);
void rsb_source_of(VALUE buffer, rs_transfer *transfer);

/* A source that the program cannot change: a frozen String that shares the bytes, or a copy of a slice. Any other IO::Buffer is
 * returned itself, and may change. */
VALUE rsb_own_source(VALUE buffer);

/* These raise if the buffer is frozen, read-only, freed, or in use by an op. */
void rsb_string_writable(VALUE string);
void rsb_buffer_check(VALUE buffer);

bool rsb_is_buffer(VALUE object);
bool rsb_is_slice(VALUE buffer);
NORETURN(void rsb_fail_busy(void));
void rsb_init_arguments(void);

/* --- request.c --- */

/* The machine, for ops without a descriptor yet and for loops of ops on one. Other strands may run first. */
rsb_machine *rsb_io_machine(VALUE self);

/* Performs the request, waiting if need be; raises what fails. `buffer` is the object in which its address lies, or nil; for a
 * vector, an Array of objects that the caller has locked. The second goes on until all bytes are moved. */
int64_t rsb_request(rsb_machine *machine, rs_request *request, VALUE buffer, rsb_direction direction, const char *what);
int64_t rsb_request_all(rsb_machine *machine, rs_request *request, VALUE buffer, rsb_direction direction, const char *what);
/* The rest of a request that has moved `done` bytes already. Returns how many were moved in all; a failure of the rest
 * does not raise. */
int64_t rsb_request_rest(rsb_machine *machine, rs_request *request, int64_t done, VALUE buffer, rsb_direction direction,
                         const char *what);
int64_t rsb_wait_for(rsb_machine *machine, rs_request *request, VALUE buffer, rsb_direction direction);

/* rsb_wait_for, for a request whose answer comes in the memory that it owns. An outgoing String must be frozen. */
int64_t rsb_message_wait(rsb_machine *machine, rs_request *request, VALUE buffer, void *answer, size_t answer_size,
                         rsb_direction direction);

/* For a request that owns memory: performs it, and frees that memory if no op has taken it. */
int64_t rsb_request_owning(rsb_machine *machine, rs_request *request, const char *what);

/* Raises the kernel's error. EBADF of an open descriptor becomes a UsageError that says in which mode it is open. */
NORETURN(void rsb_refused(rsb_machine *machine, int64_t result, const char *what, int fd));

/* The status flags of F_GETFL, fcntl(2); negative: the descriptor is not open. */
int rsb_mode_of(rsb_machine *machine, int fd);

/* True if the request has MSG_DONTWAIT: -EAGAIN is its answer then. */
bool rsb_must_not_wait(rsb_machine *machine, const rs_request *request);

/* Performs a request that makes two descriptors. `where` is the field of the request that points to the two. */
VALUE rsb_make_pair(rsb_machine *machine, rs_request *request, int **where, const char *what);

/* --- rights.c --- */

/* How many descriptors a message has brought, and the first of them in `first`; its control messages lie at `control`. Closes all
 * but the first `kept`. */
struct msghdr;
int rsb_rights_in(const struct msghdr *message, const void *control, int kept, int *first);

void rsb_init_accept(void);
void rsb_init_close(void);
void rsb_init_receive(void);
void rsb_init_vector(void);
void rsb_init_file(void);
void rsb_init_process(void);
void rsb_init_paths(void);
void rsb_init_rights(void);
void rsb_init_splice(void);

/* --- close.c --- */

/* Writes the buffer of an IO object to its descriptor. Returns nil. */
VALUE rsb_flush_own_buffer(VALUE io);

/* Ends the ops on the descriptor and closes it. */
void rsb_close(rsb_machine *machine, VALUE io);
/* For the hook that CRuby calls while it closes an IO (fptr_finalize_flush in io.c), when the IO has lost its number already: the
 * number is closed even if this raises. False: CRuby must close it, because the close of this strand has led to the hook, or
 * because it is not open. */
bool rsb_close_for_ruby(rsb_machine *machine, int fd);

/* For IO#close that waits for a child process: its descriptors are closed by now, and their numbers may be in use again. */
void rsb_closed(rsb_machine *machine);

/* --- process.c --- */

/* `number` is as in waitpid(2): a pid, -1 for any child, 0 or less than -1 for those of a process group. */
VALUE rsb_wait_for_child(rsb_machine *machine, int number);

/* The same with options of waitpid(2), such as WUNTRACED. Returns what Process::Status.wait does, which may stand for an
 * error. */
VALUE rsb_wait_for_change(rsb_machine *machine, VALUE pid, int options);

/* --- splice.c --- */

/* Moves bytes from one descriptor to another inside the kernel: splice(2), tee(2). */
typedef struct {
    rsb_machine *machine;
    VALUE from, to;
    rs_request request;
    uint32_t from_generation, to_generation;
    bool offload;               /* one of the two is a file */
    bool awaits_room;           /* the last wait was for room in `to` */
    int64_t deadline_ns;
    const char *what;
} rsb_mover;

/* Does not check that the two are open. */
rsb_mover rsb_mover_of(rsb_machine *machine, uint8_t kind, VALUE from, VALUE to, const char *what);

/* Called after other strands have run: raises unless both numbers still mean the same descriptors. */
void rsb_mover_check(const rsb_mover *mover);

/* False: a splice between the two could block the thread. */
bool rsb_mover_fits(const rsb_mover *mover);

/* Moves `len` bytes at most. Returns how many, 0 at the end, RSB_TIME_IS_UP or -errno. Raises what cancels the strand, and a
 * ClosedError if one of the two was closed while it waited. */
int64_t rsb_move(rsb_mover *mover, uint64_t len);

/* The same, but -EAGAIN instead of a wait; not for files. */
int64_t rsb_move_at_once(rsb_mover *mover, uint64_t len);

NORETURN(void rsb_fail_move(const rsb_mover *mover, int64_t result));

void rsb_init_io(void);
void rsb_init_socket(void);
void rsb_init_inotify(void);

#endif
