/* process: Machine#waitid, #pidfd_open, and signals by a pidfd. */
#include "io.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static VALUE waitid_name;

/* nil: another thread or strand has reaped the child before. Ruby answers a status with pid -1 then. */
static VALUE reap(VALUE pid) {
    VALUE status = rb_funcall(rb_path2class("Process::Status"), rb_intern("wait"), 2, pid, INT2FIX(WNOHANG));
    return NIL_P(status) || NUM2INT(rb_funcall(status, rb_intern("pid"), 0)) < 0 ? Qnil : status;
}

/* Called when a child that has ended could not be reaped. Raises if a sandbox forbids wait4(2): otherwise that would look forever
 * as if another thread had reaped it. */
static void check_reaping(void) {
    if (waitpid(getpid(), NULL, WNOHANG) < 0 && errno != ECHILD) rb_syserr_fail(errno, "wait4");
}

static VALUE close_pidfd(VALUE fd) {
    close(FIX2INT(fd));
    return Qnil;
}

typedef struct {
    rsb_machine *machine;
    int fd;
    int64_t result;
} pidfd_wait;

static VALUE wait_pidfd(VALUE argument) {
    pidfd_wait *call = (pidfd_wait *)argument;
    rs_request request = {.kind = RS_OP_POLL, .fd = call->fd, .poll.events = POLLIN};
    call->result = rs_try(call->machine->engine, &request);
    if (call->result == -EAGAIN) call->result = rsb_perform(call->machine, &request, &(rsb_op_wait){.answers_close = true});
    return Qnil;
}

static VALUE note_lost(VALUE argument, VALUE error) {
    ((pidfd_wait *)argument)->result = RS_LOST;
    return Qnil;
}

static VALUE wait_unless_lost(VALUE call) { return rb_rescue2(wait_pidfd, call, note_lost, call, rsb_eUnsupported, (VALUE)0); }

/* Waits on a pidfd: pidfd_open(2). False: a sandbox forbids it, or there is no descriptor left. */
static bool wait_for_end(rsb_machine *machine, int pid) {
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0 && errno == ESRCH) rb_syserr_fail(ECHILD, "waitid");
    if (fd < 0) return false;
    pidfd_wait call = {machine, fd, 0};
    rb_ensure(wait_unless_lost, (VALUE)&call, close_pidfd, INT2FIX(fd));
    return call.result >= 0;
}

/* A pidfd stands for one process and becomes readable when that ends (pidfd_open(2)): there is none for any child, for a process
 * group, or for children that stop or continue. A worker thread could block in waitid(2) forever. So the strand polls, less often
 * the longer it has waited. */
#define LOOK_MIN_NS 500000
#define LOOK_MAX_NS 50000000
#define LOOKS_A_WAIT 16         /* the wait lasts at most a 16th longer than the child, beyond LOOK_MIN_NS */

static void look_later(rsb_machine *machine, int64_t *begun_ns) {
    int64_t now_ns = rs_now(machine->engine);
    if (*begun_ns == 0) *begun_ns = now_ns;
    int64_t delay_ns = (now_ns - *begun_ns) / LOOKS_A_WAIT;
    if (delay_ns < LOOK_MIN_NS) delay_ns = LOOK_MIN_NS;
    if (delay_ns > LOOK_MAX_NS) delay_ns = LOOK_MAX_NS;
    rsb_strand *strand = rsb_running(machine);
    strand->blocker = waitid_name;
    rs_wake_kind kind = rsb_wait(machine, RS_WAIT_BLOCK, 0, now_ns + delay_ns, NULL, NULL, NULL);
    strand->blocker = Qnil;
    if (kind == RS_WAKE_CANCEL || kind == RS_WAKE_INTERRUPT) rsb_raise_wake(machine, kind);
}

VALUE rsb_wait_for_change(rsb_machine *machine, VALUE pid, int options) {
    for (int64_t begun_ns = 0;;) {
        VALUE status = rb_funcall(rb_path2class("Process::Status"), rb_intern("wait"), 2, pid, INT2NUM(options | WNOHANG));
        if (!NIL_P(status)) return status;
        look_later(machine, &begun_ns);
    }
}

static VALUE wait_by_looking(rsb_machine *machine, int number) {
    VALUE status = rsb_wait_for_change(machine, INT2NUM(number), 0);
    if (NUM2INT(rb_funcall(status, rb_intern("pid"), 0)) < 0) rb_syserr_fail(ECHILD, "waitid");
    return status;
}

static bool is_refused(int64_t result) { return result == -EPERM || result == -ENOSYS || result == -EACCES; }

/* `number` is the same for waitpid(2), which is used if waitid(2) is refused. */
static VALUE wait_for_one_of(rsb_machine *machine, idtype_t kind, int id, int number) {
    for (int64_t begun_ns = 0;;) {
        rs_request request = {.kind = RS_OP_WAITID, .fd = -1, .wait = {.id_type = (int32_t)kind, .id = id}};
        int64_t pid = rs_try(machine->engine, &request);
        if (pid == -EAGAIN && !rs_tries_first(machine->engine)) pid = rsb_wait_for(machine, &request, Qnil, RSB_OUT);
        if (pid == -EAGAIN) {
            look_later(machine, &begun_ns);
            continue;
        }
        if (is_refused(pid)) return wait_by_looking(machine, number);
        if (pid < 0) rb_syserr_fail((int)-pid, "waitid");
        VALUE status = reap(LL2NUM(pid));
        if (!NIL_P(status)) return status;
        check_reaping(); /* another wait for any child has reaped it, or a sandbox forbids to */
    }
}

VALUE rsb_wait_for_child(rsb_machine *machine, int number) {
    if (number == -1) return wait_for_one_of(machine, P_ALL, 0, number);
    if (number <= 0) return wait_for_one_of(machine, P_PGID, number == 0 ? getpgrp() : -number, number);
    /* waitid first, because pidfd_open(2) also takes a process that is no child of this one, and could not be reaped. */
    rs_request request = {.kind = RS_OP_WAITID, .fd = -1, .wait = {.id_type = P_PID, .id = number}};
    int64_t ended = rs_try(machine->engine, &request);
    bool waits = ended == -EAGAIN;
    if (waits && rs_tries_first(machine->engine) && !wait_for_end(machine, number)) {
        return wait_for_one_of(machine, P_PID, number, number);
    }
    if (waits && !rs_tries_first(machine->engine)) ended = rsb_wait_for(machine, &request, Qnil, RSB_OUT);
    if (is_refused(ended)) return wait_by_looking(machine, number);
    if (ended < 0 && ended != -EAGAIN) rb_syserr_fail((int)-ended, "waitid");
    VALUE status = reap(INT2FIX(number));
    if (NIL_P(status)) check_reaping();
    if (NIL_P(status)) rb_syserr_fail(ECHILD, "waitid: the process is not a child of this one");
    return status;
}

/* Waits for a child process to end and reaps it.
 *
 * May switch strands.
 *
 * @param pid [Integer] a child; -1 for any
 * @return [Process::Status]
 * @raise [Errno::ECHILD] when there is no such child
 * @since 0.1.0
 * @see https://man7.org/linux/man-pages/man2/pidfd_open.2.html
 */
static VALUE machine_waitid(VALUE self, VALUE pid) {
    rsb_machine *machine = rsb_io_machine(self);
    int number = (int)rsb_integer(pid, INT32_MIN, INT32_MAX, "waitid: the pid");
    if (number < -1 || number == 0) rb_raise(rsb_eUsage, "waitid: expected the pid of a child, or -1 for any, got %d", number);
    return rsb_wait_for_child(machine, number);
}

/* Opens a descriptor for a process, which need not be a child. It stands for that process even if the pid is used again, and is
 * readable ({#poll}) once the process has ended.
 *
 * May switch strands.
 *
 * @param pid [Integer]
 * @return [Integer] descriptor, closed on exec
 * @raise [Errno::ESRCH] when there is no such process
 * @raise [UnsupportedError] on a simulated machine
 * @raise [UsageError, SystemCallError]
 * @since 0.1.0
 * @see https://man7.org/linux/man-pages/man2/pidfd_open.2.html
 */
static VALUE machine_pidfd_open(VALUE self, VALUE pid) {
    rsb_machine *machine = rsb_io_machine(self);
    int number = (int)rsb_integer(pid, 1, INT32_MAX, "pidfd_open: the pid");
    if (rs_is_simulated(machine->engine)) rb_raise(rsb_eUnsupported, "pidfd_open: a simulated machine has no processes");
    int fd = (int)syscall(SYS_pidfd_open, number, 0);
    if (fd < 0) rb_syserr_fail(errno, "pidfd_open");
    rs_descriptor_forget(rs_descriptors_of(machine->engine), fd);
    return INT2FIX(fd);
}

static VALUE machine_signal_by_pidfd(VALUE self, VALUE pidfd, VALUE signal) {
    rsb_machine *machine = rsb_machine_of(self);
    int fd = rsb_op_fd(machine, pidfd);
    if (syscall(SYS_pidfd_send_signal, fd, NUM2INT(signal), NULL, 0) == 0) return Qnil;
    if (errno == EBADF && rsb_mode_of(machine, fd) >= 0) rb_raise(rsb_eUsage, "pidfd_send_signal: descriptor %d is no pidfd", fd);
    rsb_fail(-errno, "pidfd_send_signal", fd);
}

void rsb_init_process(void) {
    waitid_name = rb_obj_freeze(rb_str_new_cstr("waitid"));
    rb_gc_register_address(&waitid_name);
    rb_define_method(rsb_cMachine, "waitid", machine_waitid, 1);
    rb_define_method(rsb_cMachine, "pidfd_open", machine_pidfd_open, 1);
    rb_define_private_method(rsb_cMachine, "signal_by_pidfd", machine_signal_by_pidfd, 2);
}
