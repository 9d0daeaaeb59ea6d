/* failure: what a request raises that the system has refused. */
#include "io.h"

#include <mruby/error.h>
#include <mruby/string.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* mruby-errno gives it the class of the number. */
static mrb_value system_error(mrb_state *mrb, int number, mrb_value what) {
    struct RClass *class = rsm_class(mrb, "SystemCallError");
    if (mrb_class_defined(mrb, "SystemCallError")) {
        return mrb_obj_new(mrb, class, 2, (mrb_value[]){what, mrb_fixnum_value(number)});
    }
    mrb_value error = mrb_exc_new_str(mrb, class, mrb_format(mrb, "%s - %v", strerror(number), what));
    mrb_iv_set(mrb, error, mrb_intern_lit(mrb, "errno"), mrb_fixnum_value(number));
    return error;
}

/* "connect to 127.0.0.1:1", "open /tmp/file". */
static mrb_value described(mrb_state *mrb, const rs_request *request) {
    const char *name = rs_request_traits(request)->name;
    switch (request->kind) {
    case RS_OP_OPEN: return mrb_format(mrb, "%s %s", name, request->open.path);
    case RS_OP_UNLINK: return mrb_format(mrb, "%s %s", name, request->path.path);
    case RS_OP_CONNECT:
    case RS_OP_BIND: return mrb_format(mrb, "%s to %v", name, rsm_address_text(mrb, request->address.bytes, request->address.len));
    default: return mrb_str_new_cstr(mrb, name);
    }
}

/* How it was opened, if it is open; negative: it is not. */
static int mode_of(const rsm_machine *machine, int fd) {
    return rs_is_simulated(machine->engine) ? rs_sim_mode(machine->engine, fd) : fcntl(fd, F_GETFL);
}

/* The method that runs is one of an IO. */
static bool is_io(mrb_state *mrb, mrb_value self) {
    return mrb_class_defined(mrb, "IO") && mrb_obj_is_kind_of(mrb, self, mrb_class_get(mrb, "IO"));
}

void rsm_fail_closed(mrb_state *mrb, const rs_request *request) {
    if (is_io(mrb, mrb->c->ci->stack[0])) mrb_raise(mrb, mrb_class_get(mrb, "IOError"), "stream closed in another strand");
    const char *what = rs_request_traits(request)->name;
    mrb_raisef(mrb, rsm_class(mrb, "ClosedError"), "%s: descriptor %d is not open any more", what, request->fd);
}

static mrb_noreturn void refuse_descriptor(mrb_state *mrb, rsm_machine *machine, const rs_request *request, const char *what) {
    int fd = request->fd, mode = rs_descriptor_is_closing(rs_descriptors_of(machine->engine), fd) ? -1 : mode_of(machine, fd);
    if (mode < 0) rsm_fail_closed(mrb, request);
    mrb_raisef(mrb, rsm_class(mrb, "UsageError"), "%s: descriptor %d is open for %s only", what, fd,
               (mode & O_ACCMODE) == O_WRONLY ? "writing" : "reading");
}

void rsm_fail(mrb_state *mrb, rsm_machine *machine, int64_t result, const rs_request *request) {
    const char *what = rs_request_traits(request)->name;
    switch (result) {
    case RS_NO_MEMORY: mrb_exc_raise(mrb, mrb_obj_value(mrb->nomem_err));
    case RS_LOST: mrb_raisef(mrb, rsm_class(mrb, "UnsupportedError"), "%s: %s", what, rs_refusal_text(machine->engine));
    case -EBADF: refuse_descriptor(mrb, machine, request, what);
    case -ENOTSOCK:
    case -EOPNOTSUPP: mrb_raisef(mrb, rsm_class(mrb, "UnsupportedError"), "%s: not supported on descriptor %d", what, request->fd);
    default: mrb_exc_raise(mrb, system_error(mrb, (int)-result, described(mrb, request)));
    }
}
