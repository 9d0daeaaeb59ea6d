/* io: what the files that make requests share. */
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

/* Whatever names a descriptor: Integer, IO, anything with to_io. */
int rsb_fd(VALUE io);

/* The number, as it is now. */
int rsb_io_fd(rsb_machine *machine, VALUE io);

/* The same for an op that begins now, after the others have run if the strand's turn is over. They may have closed that
 * descriptor: then it raises. Whatever else they could change is looked at before, and addresses are taken afterwards. */
int rsb_op_fd(rsb_machine *machine, VALUE io);

/* The same for one that sends a buffer: it becomes one that the others cannot have changed (see rsb_own_source). */
int rsb_op_source_fd(rsb_machine *machine, VALUE io, VALUE *source);

/* Raises unless the number still means the descriptor that it meant at that generation. */
void rsb_check_descriptor(rsb_machine *machine, VALUE io, int fd, uint32_t generation, const char *what);

rsb_target rsb_target_of(VALUE buffer, VALUE length, VALUE at);
void rsb_target_filled(const rsb_target *target, int64_t result);
void rsb_source_of(VALUE buffer, rs_transfer *transfer);

/* A source that nobody changes: a frozen view of a String, a copy of a slice. Any other IO::Buffer is sent as it is by then. */
VALUE rsb_own_source(VALUE buffer);

/* These raise when it is frozen, read-only, freed, or an op has it. */
void rsb_string_writable(VALUE string);
void rsb_buffer_check(VALUE buffer);

bool rsb_is_buffer(VALUE object);
bool rsb_is_slice(VALUE buffer);
NORETURN(void rsb_fail_busy(void));
void rsb_init_arguments(void);

/* --- request.c --- */

/* The machine, for what has no descriptor yet, or works on one in several steps: it may let other strands run. */
rsb_machine *rsb_io_machine(VALUE self);

/* Does the request, waiting if need be, and raises what fails. `buffer` is what its address lies in, or nil;
 * of a vector an Array of those, which the caller has locked. */
int64_t rsb_request(rsb_machine *machine, rs_request *request, VALUE buffer, rsb_direction direction, const char *what);
int64_t rsb_request_all(rsb_machine *machine, rs_request *request, VALUE buffer, rsb_direction direction, const char *what);
/* The rest of one that has moved `done` bytes: they are told whatever becomes of it. */
int64_t rsb_request_rest(rsb_machine *machine, rs_request *request, int64_t done, VALUE buffer, rsb_direction direction,
                         const char *what);
int64_t rsb_wait_for(rsb_machine *machine, rs_request *request, VALUE buffer, rsb_direction direction);

/* The same for a request whose answer comes in what it owns; an outgoing String must be frozen. */
int64_t rsb_message_wait(rsb_machine *machine, rs_request *request, VALUE buffer, void *answer, size_t answer_size,
                         rsb_direction direction);

/* What the request owns belongs to the caller until it waits: this frees it where it did not. */
int64_t rsb_request_owning(rsb_machine *machine, rs_request *request, const char *what);

/* Raises what the kernel said, and more clearly where the descriptor is open, but not for this. */
NORETURN(void rsb_refused(rsb_machine *machine, int64_t result, const char *what, int fd));

/* As F_GETFL has it; negative: there is none. */
int rsb_mode_of(rsb_machine *machine, int fd);

/* Asked not to wait, and it would. */
bool rsb_must_not_wait(rsb_machine *machine, const rs_request *request);

/* An op that makes two descriptors. `where` is that of the request's fields which says where they go. */
VALUE rsb_make_pair(rsb_machine *machine, rs_request *request, int **where, const char *what);

/* Each of a file. */
void rsb_init_accept(void);
void rsb_init_close(void);
void rsb_init_receive(void);
void rsb_init_vector(void);
void rsb_init_file(void);
void rsb_init_child(void);
void rsb_init_paths(void);
void rsb_init_rights(void);
void rsb_init_splice(void);

/* --- close.c --- */

/* Hands what stands in an IO's own buffer to the kernel, for who wants its data to be safe. Answers nil. */
VALUE rsb_flush_own_buffer(VALUE io);

/* Ends what is under way on it, and closes it. */
void rsb_close(rsb_machine *machine, VALUE io);
/* For CRuby, which asks in the midst of closing an IO, when the IO has lost its number already: whatever is raised here, the number
 * is closed. False: CRuby is to close it itself, because that is what this strand waits for, or because it is not open. */
bool rsb_close_for_ruby(rsb_machine *machine, int fd);

/* In the middle of IO#close, where that waits for a child process: the numbers are free, and may be somebody else's. */
void rsb_closed(rsb_machine *machine);

/* --- process.c --- */

/* As waitpid(2) takes it: a pid, -1 for any child, 0 or less than -1 for those of a process group. */
VALUE rsb_wait_for_child(rsb_machine *machine, int number);

/* The same with options, as WUNTRACED is one. Answers whatever Process::Status.wait does, which may be an error. */
VALUE rsb_wait_for_change(rsb_machine *machine, VALUE pid, int options);

/* --- splice.c --- */

/* Bytes that go from one descriptor to another without coming into the program. */
typedef struct {
    rsb_machine *machine;
    VALUE from, to;
    rs_request request;
    uint32_t from_generation, to_generation;
    bool offload;               /* a file is among them */
    int64_t deadline_ns;
    const char *what;
} rsb_mover;

/* For descriptors of which the program says that they are open. */
rsb_mover rsb_mover_of(rsb_machine *machine, uint8_t kind, VALUE from, VALUE to, const char *what);

/* After others have run: raises unless both numbers still mean what they meant. */
void rsb_mover_check(const rsb_mover *mover);

/* False: a splice between those would keep the thread. */
bool rsb_mover_fits(const rsb_mover *mover);

/* So many bytes at most. What was moved, 0 at the end, RSB_TIME_IS_UP or -errno; raises what cancels the strand, and a
 * ClosedError when one of the two has been closed while it waited. */
int64_t rsb_move(rsb_mover *mover, uint64_t len);

/* The same, or -EAGAIN when it would wait; for what is no file. */
int64_t rsb_move_at_once(rsb_mover *mover, uint64_t len);

NORETURN(void rsb_fail_move(const rsb_mover *mover, int64_t result));

void rsb_init_io(void);
void rsb_init_socket(void);
void rsb_init_inotify(void);

#endif
