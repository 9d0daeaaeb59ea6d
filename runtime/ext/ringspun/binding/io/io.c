/* io: Machine#read, #pread, #write and #pwrite. */
#include "io.h"

static int64_t file_offset(VALUE offset) { return rsb_integer(offset, 0, INT64_MAX, "file offset"); }

static VALUE read_into(rsb_machine *machine, rs_request *request, const rsb_target *target, const char *what) {
    request->transfer.address = target->address;
    request->transfer.len = target->length;
    int64_t bytes = rsb_request(machine, request, target->buffer, RSB_IN, what);
    rsb_target_filled(target, bytes);
    rsb_raise_pending(machine);
    return LL2NUM(bytes);
}

/* Reads the bytes that are there, at most length; waits until there are some.
 *
 * May switch strands.
 *
 * @param io [Integer, IO] a descriptor
 * @param buffer [String, IO::Buffer] a String gets the length of what was read; an IO::Buffer keeps its size
 * @param length [Integer] bytes; default 16384 for a String, what fits for an IO::Buffer
 * @param offset [Integer] where in the buffer, in bytes
 * @return [Integer] bytes read; 0 at the end of the stream
 * @raise [UsageError, ClosedError, SystemCallError]
 * @since 0.1.0
 */
static VALUE machine_read(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 2, 4);
    rsb_machine *machine = rsb_machine_of(self);
    rs_request request = {.kind = RS_OP_READ, .fd = rsb_op_fd(machine, argv[0]), .transfer.offset = -1};
    rsb_target target = rsb_target_of(argv[1], argc > 2 ? argv[2] : Qnil, argc > 3 ? argv[3] : Qnil);
    return read_into(machine, &request, &target, "read");
}

/* Reads at an offset of a file.
 *
 * May switch strands.
 *
 * @param io [Integer, IO]
 * @param buffer [String, IO::Buffer]
 * @param from [Integer] offset in the file, in bytes
 * @param length [Integer] bytes; default as for {#read}
 * @param offset [Integer] where in the buffer, in bytes
 * @return [Integer] bytes read; 0 at the end of the file
 * @since 0.1.0
 */
static VALUE machine_pread(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 3, 5);
    rsb_machine *machine = rsb_machine_of(self);
    rs_request request = {.kind = RS_OP_PREAD, .fd = rsb_op_fd(machine, argv[0]), .transfer.offset = file_offset(argv[2])};
    rsb_target target = rsb_target_of(argv[1], argc > 3 ? argv[3] : Qnil, argc > 4 ? argv[4] : Qnil);
    return read_into(machine, &request, &target, "pread");
}

static VALUE write_from(rsb_machine *machine, rs_request *request, VALUE buffer, const char *what) {
    rsb_source_of(buffer, &request->transfer);
    VALUE result = LL2NUM(rsb_request_all(machine, request, buffer, RSB_OUT, what));
    RB_GC_GUARD(buffer);
    return result;
}

/* Writes all bytes of the buffer.
 *
 * May switch strands.
 *
 * @param io [Integer, IO]
 * @param buffer [String, IO::Buffer]
 * @return [Integer] bytes written: all, unless an error or a cancellation came after the first; the next call or wait raises it
 * @raise [UsageError, ClosedError, SystemCallError]
 * @since 0.1.0
 */
static VALUE machine_write(VALUE self, VALUE io, VALUE buffer) {
    rsb_machine *machine = rsb_machine_of(self);
    int fd = rsb_op_source_fd(machine, rsb_writing_end(io), &buffer);
    rs_request request = {.kind = RS_OP_WRITE, .fd = fd, .transfer.offset = -1};
    return write_from(machine, &request, buffer, "write");
}

/* Writes all bytes of the buffer at an offset of a file.
 *
 * May switch strands.
 *
 * @param io [Integer, IO]
 * @param buffer [String, IO::Buffer]
 * @param from [Integer] offset in the file, in bytes
 * @return [Integer] bytes written, as by {#write}
 * @since 0.1.0
 */
static VALUE machine_pwrite(VALUE self, VALUE io, VALUE buffer, VALUE from) {
    rsb_machine *machine = rsb_machine_of(self);
    int fd = rsb_op_source_fd(machine, rsb_writing_end(io), &buffer);
    rs_request request = {.kind = RS_OP_PWRITE, .fd = fd, .transfer.offset = file_offset(from)};
    return write_from(machine, &request, buffer, "pwrite");
}

void rsb_init_io(void) {
    rb_define_method(rsb_cMachine, "read", machine_read, -1);
    rb_define_method(rsb_cMachine, "pread", machine_pread, -1);
    rb_define_method(rsb_cMachine, "write", machine_write, 2);
    rb_define_method(rsb_cMachine, "pwrite", machine_pwrite, 3);
    rsb_init_arguments();
    rsb_init_vector();
    rsb_init_receive();
    rsb_init_close();
    rsb_init_file();
    rsb_init_paths();
    rsb_init_rights();
    rsb_init_splice();
}
