/* sort: what the descriptor of an IO is, as far as the hooks for transfers need it. */
#include "scheduler.h"

#include <fcntl.h>
#include <sys/socket.h>

static ID id_sort;

/* The kind of an IO's descriptor is looked up once and kept in an instance variable of the IO, because the same number may later
 * mean another descriptor. For a frozen IO it is looked up every time. */
enum { SORT_KIND = 7, SORT_SOCKET = 8, SORT_BYTES = 16, SORT_REPORTS_MORE = 32, SORT_BITS = 6 };

NORETURN(RSB_APART static void fail_to_reserve(int fd));
RSB_APART static void fail_to_reserve(int fd) {
    if (fd < RS_DESCRIPTORS_MAX) rsb_fail_memory();
    rb_raise(rsb_eUnsupported, "descriptor %d: a machine takes numbers below %d; let the process open fewer files (RLIMIT_NOFILE)", fd,
             RS_DESCRIPTORS_MAX);
}

static void reserve(rsb_machine *machine, int fd) {
    if (RS_UNLIKELY(!rs_descriptors_reserve(rs_descriptors_of(machine->engine), fd))) fail_to_reserve(fd);
}

/* Tries getsockopt(2) first: that takes less stack than rs_descriptor_classify. */
RSB_APART static long look_up(rsb_machine *machine, int fd) {
    int type = 0, family = 0;
    socklen_t size = sizeof(int);
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0) return rs_descriptor_classify(fd);
    if (!(fcntl(fd, F_GETFL) & O_NONBLOCK)) return RS_FD_BLOCKING;
    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size);
    reserve(machine, fd);
    rs_descriptor_note(rs_descriptors_of(machine->engine), fd, RS_FD_STREAM, true);
    rs_socket_made(machine->engine, fd, family, type);
    bool bytes, reports_more;
    rs_descriptor_noted(rs_descriptors_of(machine->engine), fd, &bytes, &reports_more);
    return RS_FD_STREAM | SORT_SOCKET | (bytes ? SORT_BYTES : 0) | (reports_more ? SORT_REPORTS_MORE : 0);
}

RSB_APART VALUE rsb_sort_look_up(rsb_machine *machine, VALUE io, int fd) {
    VALUE known = LONG2FIX(((long)fd << SORT_BITS) | look_up(machine, fd));
    if (RB_TYPE_P(io, T_FILE) && !OBJ_FROZEN(io)) rb_ivar_set(io, id_sort, known);
    return known;
}

VALUE rsb_sort_of(rsb_machine *machine, VALUE io, int fd) {
    VALUE known = rb_attr_get(io, id_sort);
    return RS_UNLIKELY(NIL_P(known) || FIX2LONG(known) >> SORT_BITS != fd) ? rsb_sort_look_up(machine, io, fd) : known;
}

void rsb_sort_restore(rsb_machine *machine, VALUE sort_of_io, int fd) {
    long sort = FIX2LONG(sort_of_io);
    reserve(machine, fd);
    rs_descriptor_restore(rs_descriptors_of(machine->engine), fd, (rs_fd_kind)(sort & SORT_KIND), sort & SORT_SOCKET, sort & SORT_BYTES,
                          sort & SORT_REPORTS_MORE);
}

RSB_APART bool rsb_is_open_as(VALUE io, int fd) { return rsb_fd_of_io(io) == fd; }

void rsb_init_scheduler_sort(void) { id_sort = rb_intern("ringspun_sort"); }
