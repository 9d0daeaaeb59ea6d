/* inotify: inotify(7) for Ringspun.watch. An object is one inotify descriptor. A forked child closes its copy, because an event
 * that the child reads is lost to the parent.
 */
#include "io.h"

#include <errno.h>
#include <sys/inotify.h>
#include <unistd.h>

typedef rsb_unshared inotify;

static void inotify_free(void *data) {
    int fd = rsb_unshared_leave(data);
    if (fd >= 0) close(fd);
    xfree(data);
}

static const rb_data_type_t inotify_type = {
    .wrap_struct_name = "Ringspun::Watch::Inotify",
    .function = {.dfree = inotify_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE inotify_allocate(VALUE class) {
    inotify *one;
    VALUE self = TypedData_Make_Struct(class, inotify, &inotify_type, one);
    one->fd = -1;
    return self;
}

static inotify *get(VALUE self) {
    inotify *one;
    TypedData_Get_Struct(self, inotify, &inotify_type, one);
    return one;
}

/* EMFILE: either the user has too many inotify instances, or the process too many descriptors: inotify_init(2). */
NORETURN(static void fail_to_open(int error));
static void fail_to_open(int error) {
    unsigned long long most = rsb_proc_number("/proc/sys/fs/inotify/max_user_instances");
    if (error == EMFILE && most > 0 && rsb_descriptors_left()) {
        rb_raise(rsb_eLimit, "watch: this user may not have more inotify instances; fs.inotify.max_user_instances is %llu", most);
    }
    rb_syserr_fail(error, "watch: inotify_init1");
}

static VALUE inotify_open(VALUE self) {
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0) fail_to_open(errno);
    rsb_unshare(get(self), fd);
    return self;
}

/* nil: it is closed. */
static VALUE inotify_descriptor(VALUE self) {
    int fd = get(self)->fd;
    return fd < 0 ? Qnil : INT2FIX(fd);
}

/* ENOSPC: the user has too many watches, in all processes together, or the kernel lacks a resource: inotify_add_watch(2). */
NORETURN(static void fail_to_add(int error, VALUE name));
static void fail_to_add(int error, VALUE name) {
    unsigned long long most = error == ENOSPC ? rsb_proc_number("/proc/sys/fs/inotify/max_user_watches") : 0;
    if (most == 0) rb_syserr_fail_str(error, rb_sprintf("watch: %" PRIsVALUE, name));
    rb_raise(rsb_eLimit, "watch: the system has no room for one more watch (%" PRIsVALUE "). As a rule this user then has as "
             "many, in all processes, as fs.inotify.max_user_watches allows, which is %llu", name, most);
}

/* Returns the watch descriptor. */
static VALUE inotify_add(VALUE self, VALUE path, VALUE mask) {
    VALUE name = rsb_path(path);
    int watch = inotify_add_watch(get(self)->fd, RSTRING_PTR(name), NUM2UINT(mask));
    if (watch < 0) fail_to_add(errno, name);
    return INT2FIX(watch);
}

static VALUE inotify_remove(VALUE self, VALUE watch) {
    return inotify_rm_watch(get(self)->fd, NUM2INT(watch)) == 0 ? Qtrue : Qfalse;
}

/* Returns the descriptor, which the caller closes. */
static VALUE inotify_release(VALUE self) {
    int fd = rsb_unshared_leave(get(self));
    return fd < 0 ? Qnil : INT2FIX(fd);
}

void rsb_init_inotify(void) {
    VALUE watch = rb_define_class_under(rsb_mRingspun, "Watch", rb_cObject);
    VALUE inotify = rb_define_class_under(watch, "Inotify", rb_cObject);
    rb_define_alloc_func(inotify, inotify_allocate);
    rb_define_method(inotify, "open", inotify_open, 0);
    rb_define_method(inotify, "descriptor", inotify_descriptor, 0);
    rb_define_method(inotify, "add", inotify_add, 2);
    rb_define_method(inotify, "remove", inotify_remove, 1);
    rb_define_method(inotify, "release", inotify_release, 0);
}
