/* objects: descriptors of others: IO objects of mruby-io, and numbers. */
#include "io.h"

#include <poll.h>

/* What it keeps for each machine. */
typedef struct {
    mrb_sym fileno_name;        /* to look it up takes longer than a wait */
} objects_data;

static void find_names(mrb_state *mrb, rsm_machine *machine);
static rsm_part objects_part = {.data_size = sizeof(objects_data), .made = find_names};

static objects_data *data_of(const rsm_machine *machine) { return rsm_part_data(machine, &objects_part); }

static void find_names(mrb_state *mrb, rsm_machine *machine) { data_of(machine)->fileno_name = mrb_intern_lit(mrb, "fileno"); }

/* The program may have closed the number, and opened another of that number, without the machine. */
static int number_of(mrb_state *mrb, mrb_value number) {
    int fd = (int)rsm_int_arg(mrb, number, 0, RS_DESCRIPTORS_MAX - 1, "a descriptor");
    rs_machine *engine = rsm_machine_of(mrb)->engine;
    if (rs_is_simulated(engine)) {
        mrb_raise(mrb, rsm_class(mrb, "UsageError"), "a simulated machine knows only the descriptors that it made, as a Stream");
    }
    rs_descriptor_forget(rs_descriptors_of(engine), fd);
    return fd;
}

static mrb_value machine_read(mrb_state *mrb, mrb_value self) {
    const mrb_value *arguments = mrb_get_argv(mrb);
    return rsm_read(mrb, number_of(mrb, arguments[0]), arguments[1], -1);
}

/* What there is room for. */
static mrb_value machine_write(mrb_state *mrb, mrb_value self) {
    const mrb_value *arguments = mrb_get_argv(mrb);
    return rsm_write(mrb, number_of(mrb, arguments[0]), arguments[1], -1, 0, &(rsm_op_wait){0});
}

static int descriptor_of(mrb_state *mrb, mrb_value io) {
    return number_of(mrb, mrb_funcall_id(mrb, io, data_of(rsm_machine_of(mrb))->fileno_name, 0));
}

/* IO#__readable(passed, within) */
static mrb_value io_readable(mrb_state *mrb, mrb_value self) {
    return rsm_poll(mrb, descriptor_of(mrb, self), POLLIN, mrb_get_argv(mrb)[1]);
}

static mrb_value io_writable(mrb_state *mrb, mrb_value self) {
    return rsm_poll(mrb, descriptor_of(mrb, self), POLLOUT, mrb_get_argv(mrb)[1]);
}

static mrb_value io_await_readable(mrb_state *mrb, mrb_value self) {
    if (!rsm_is_plain(mrb)) return rsm_await_with_options(mrb, self, POLLIN);
    return rsm_poll(mrb, descriptor_of(mrb, self), POLLIN, mrb_nil_value());
}

static mrb_value io_await_writable(mrb_state *mrb, mrb_value self) {
    if (!rsm_is_plain(mrb)) return rsm_await_with_options(mrb, self, POLLOUT);
    return rsm_poll(mrb, descriptor_of(mrb, self), POLLOUT, mrb_nil_value());
}

static void define_methods(mrb_state *mrb, struct RClass *module) {
    struct RClass *io = mrb_class_get(mrb, "IO"), *methods = mrb_define_module_under(mrb, module, "IOMethods");
    mrb_define_method(mrb, methods, "__readable", io_readable, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, methods, "__writable", io_writable, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, methods, "await_readable", io_await_readable, MRB_ARGS_ANY());
    mrb_define_method(mrb, methods, "await_writable", io_await_writable, MRB_ARGS_ANY());
    mrb_include_module(mrb, io, methods);
    mrb_prepend_module(mrb, io, mrb_define_module_under(mrb, module, "IOClosing"));
}

/* One step of IO#close. True: ops were on its descriptor, whose strands have been told; ask again, if no other strand has closed it
 * meanwhile. */
static mrb_value module_closing(mrb_state *mrb, mrb_value self) {
    int fd = (int)mrb_integer(mrb_get_arg1(mrb));
    rsm_machine *machine = rsm_machine_of_system(mrb);
    if (!machine || !rs_descriptor_has_ops(rs_descriptors_of(machine->engine), fd)) return mrb_false_value();
    if (machine != rsm_machine_of(mrb)) {
        mrb_raise(mrb, rsm_class(mrb, "UsageError"), "close: strands wait for it of the machine outside, which stands still");
    }
    rsm_check_boundary(mrb);
    rs_machine *engine = machine->engine;
    rs_descriptor_close_begin(engine, fd); /* or another strand has done it */
    if (rs_descriptor_closing(engine, fd) == 0) return mrb_false_value();
    return rsm_wait_in(mrb, machine, rs_descriptor_closers(rs_descriptors_of(engine)), RS_WAIT_LIST, RS_PARK_SHIELDED, RS_NEVER, rsm_after_ops_on_it);
}

/* The number is free. */
static mrb_value module_closed(mrb_state *mrb, mrb_value self) {
    int fd = (int)mrb_integer(mrb_get_arg1(mrb));
    rsm_machine *machine = rsm_machine_of_system(mrb);
    if (!machine || !rs_descriptor_is_closing(rs_descriptors_of(machine->engine), fd)) return mrb_nil_value();
    rs_descriptor_drop(machine->engine, fd);
    rs_descriptor_close_end(machine->engine, fd);
    return mrb_nil_value();
}

void rsm_init_objects(mrb_state *mrb, struct RClass *module, struct RClass *machine) {
    rsm_register_part(&objects_part);
    mrb_define_method(mrb, machine, "__read", machine_read, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, machine, "__write", machine_write, MRB_ARGS_REQ(2));
    mrb_define_module_function(mrb, module, "__closing", module_closing, MRB_ARGS_REQ(1));
    mrb_define_module_function(mrb, module, "__closed", module_closed, MRB_ARGS_REQ(1));
    if (mrb_class_defined(mrb, "IO")) define_methods(mrb, module);
}
