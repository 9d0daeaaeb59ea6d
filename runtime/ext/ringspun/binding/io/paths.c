/* paths: Machine#unlink, #rename, #mkdir, #ftruncate, #fallocate, and a part of Ringspun.copy_file. */
#include "io.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Copies the paths into one block, which the op owns. */
static void put_paths(rs_request *request, VALUE path, VALUE other) {
    size_t len = (size_t)RSTRING_LEN(path) + 1, more = NIL_P(other) ? 0 : (size_t)RSTRING_LEN(other) + 1;
    char *block = rsb_alloc(len + more);
    memcpy(block, RSTRING_PTR(path), len);
    if (more) memcpy(block + len, RSTRING_PTR(other), more);
    request->path.path = request->owned = block;
    if (more) request->path.to = block + len;
}

static VALUE change(rsb_machine *machine, rs_request *request, VALUE path, VALUE other) {
    rsb_after_inline(machine);
    put_paths(request, path, other);
    int64_t result = rs_try(machine->engine, request);
    if (result == -EAGAIN) result = rsb_wait_for(machine, request, Qnil, RSB_OUT);
    else free(request->owned);
    RB_GC_GUARD(path);
    RB_GC_GUARD(other);
    if (result == -EOPNOTSUPP) {
        rb_raise(rsb_eUnsupported, "%s: a simulated machine has no folders", rs_op_kinds[request->kind].name);
    }
    if (result == 0) return Qnil;
    rb_syserr_fail_str((int)-result, NIL_P(other) ? path : rb_sprintf("(%" PRIsVALUE ", %" PRIsVALUE ")", path, other));
}

/* Removes a name of a file. The file is deleted when it has no name any more and no process has it open.
 *
 * May switch strands.
 *
 * @param path [String, Pathname]
 * @return [nil]
 * @raise [SystemCallError]
 * @since 0.1.0
 */
static VALUE machine_unlink(VALUE self, VALUE path) {
    rsb_machine *machine = rsb_machine_of(self);
    return change(machine, &(rs_request){.kind = RS_OP_UNLINK, .fd = -1}, rsb_path(path), Qnil);
}

/* Renames a file or a folder, atomically. A file that has the new name is replaced.
 *
 * May switch strands.
 *
 * @param from [String, Pathname]
 * @param to [String, Pathname]
 * @return [nil]
 * @raise [SystemCallError]
 * @since 0.1.0
 */
static VALUE machine_rename(VALUE self, VALUE from, VALUE to) {
    rsb_machine *machine = rsb_machine_of(self);
    VALUE before = rsb_path(from), after = rsb_path(to);
    return change(machine, &(rs_request){.kind = RS_OP_RENAME, .fd = -1}, before, after);
}

/* Makes a folder.
 *
 * May switch strands.
 *
 * @param path [String, Pathname]
 * @param mode [Integer] permissions, without the bits of the umask
 * @return [nil]
 * @raise [UnsupportedError] on a simulated machine, which has none
 * @raise [SystemCallError]
 * @since 0.1.0
 */
static VALUE machine_mkdir(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 1, 2);
    rsb_machine *machine = rsb_machine_of(self);
    uint32_t mode = argc > 1 ? (uint32_t)rsb_integer(argv[1], 0, 07777, "mkdir: the mode") : 0777;
    return change(machine, &(rs_request){.kind = RS_OP_MKDIR, .fd = -1, .path.mode = mode}, rsb_path(argv[0]), Qnil);
}

/* Sets the size of a file: cuts it, or extends it by zeros.
 *
 * May switch strands.
 *
 * @param io [Integer, IO] a file open for writing
 * @param size [Integer] bytes
 * @return [nil]
 * @raise [ClosedError, SystemCallError]
 * @since 0.1.0
 */
static VALUE machine_ftruncate(VALUE self, VALUE io, VALUE size) {
    rsb_machine *machine = rsb_machine_of(self);
    io = rsb_writing_end(io);
    int64_t bytes = rsb_integer(size, 0, INT64_MAX, "ftruncate: the size");
    rs_request request = {.kind = RS_OP_FTRUNCATE, .fd = rsb_op_fd(machine, io), .truncate.size = bytes};
    rsb_request(machine, &request, Qnil, RSB_OUT, "ftruncate");
    return Qnil;
}

/* Allocates disk space for a part of a file, so that later writes there do not fail for lack of space.
 *
 * May switch strands.
 *
 * @param io [Integer, IO] a file open for writing
 * @param length [Integer] bytes
 * @param offset [Integer] where the part begins, in bytes; a file that ends before the end of the part is extended
 * @return [nil]
 * @raise [UnsupportedError] when the filesystem cannot
 * @raise [ClosedError, SystemCallError]
 * @since 0.1.0
 */
static VALUE machine_fallocate(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 2, 3);
    rsb_machine *machine = rsb_machine_of(self);
    VALUE io = rsb_writing_end(argv[0]);
    int64_t bytes = rsb_integer(argv[1], 1, INT64_MAX, "fallocate: the length");
    int64_t offset = argc > 2 ? rsb_integer(argv[2], 0, INT64_MAX, "fallocate: the offset") : 0;
    rs_request request = {.kind = RS_OP_FALLOCATE, .fd = rsb_op_fd(machine, io),
                          .room = {.offset = offset, .len = (uint64_t)bytes}};
    rsb_request(machine, &request, Qnil, RSB_OUT, "fallocate");
    return Qnil;
}

/* For copy_file: copies bytes from one file's position to the other's by copy_file_range(2); nil: these files need another
 * way. */
static VALUE machine_copy_range(VALUE self, VALUE from, VALUE to, VALUE length) {
    rsb_machine *machine = rsb_machine_of(self);
    rs_request request = {.kind = RS_OP_COPY_RANGE, .fd = rsb_op_fd(machine, from),
                          .splice = {.to_fd = rsb_io_fd(machine, to), .len = NUM2ULL(length)}};
    int64_t bytes = rsb_wait_for(machine, &request, Qnil, RSB_OUT);
    if (bytes == -EXDEV || bytes == -EINVAL || bytes == -ENOSYS || bytes == -EOPNOTSUPP || bytes == -EPERM) return Qnil;
    if (bytes < 0) rsb_refused(machine, bytes, "copy_file", request.fd);
    return LL2NUM(bytes);
}

void rsb_init_paths(void) {
    rb_define_method(rsb_cMachine, "unlink", machine_unlink, 1);
    rb_define_method(rsb_cMachine, "rename", machine_rename, 2);
    rb_define_method(rsb_cMachine, "mkdir", machine_mkdir, -1);
    rb_define_method(rsb_cMachine, "ftruncate", machine_ftruncate, 2);
    rb_define_method(rsb_cMachine, "fallocate", machine_fallocate, -1);
    rb_define_private_method(rsb_cMachine, "copy_range", machine_copy_range, 3);
}
