/* api: the functions of ringspun.h. */
#include "ringspun.h"
#include "binding/io/io.h"

#include <pthread.h>

static int64_t api_now(void) { return rs_now(&rsb_current()->engine); }

static int64_t api_deadline(VALUE seconds) { return rsb_deadline(rsb_current(), seconds, "deadline"); }

static bool api_park(int64_t deadline, void (*start)(ringspun_waker waker, void *data), void *data, int64_t *value) {
    rsb_machine *machine = rsb_current();
    rs_machine *engine = &machine->engine;
    rsb_raise_refusal(machine);
    rs_strand *me = rs_running(engine);
    /* The ticket of the park that follows: nobody parks in between, for `start` must not wait. */
    ringspun_waker waker = {machine, rs_strand_id(me), rs_next_ticket(engine)};
    rs_expect_waker(engine);
    start(waker, data);
    /* A signal handler may have run meanwhile. Without a park the ticket must not become another wait's. */
    if (rs_refusal(engine, 0) != RS_WAKE_VALUE) rs_void_ticket(engine, waker.ticket);
    int64_t result = 0;
    rs_wake_kind kind = rsb_wait(machine, RS_WAIT_WAKER, 0, deadline, NULL, 0, &result);
    if (kind == RS_WAKE_TIMEOUT) return false;
    rsb_raise_wake(machine, kind);
    if (value) *value = result;
    return true;
}

/* The machine's memory stays until its last waker was woken, but it may be closed by then, on its own thread. */
static void api_wake(ringspun_waker waker, int64_t value) {
    rsb_machine *machine = waker.machine;
    rs_message *message = rs_alloc(sizeof(*message));
    *message = (rs_message){.kind = RS_MESSAGE_WAKE, .name = waker.strand, .payload = waker.ticket, .value = value};
    pthread_mutex_lock(&machine->wake_lock);
    if (machine->wakeable) {
        rs_send(&machine->engine, message);
    } else {
        rs_drop_waker(&machine->engine);
        free(message);
    }
    pthread_mutex_unlock(&machine->wake_lock);
}

static void api_yield(void) { rsb_yield(rsb_current()); }

static long api_read(int fd, VALUE string, long length, long offset) {
    VALUE arguments[] = {INT2FIX(fd), string, LONG2NUM(length), LONG2NUM(offset)};
    return NUM2LONG(rb_funcallv(rsb_current()->self, rb_intern("read"), 4, arguments));
}

static long api_write(int fd, VALUE string) {
    return NUM2LONG(rb_funcall(rsb_current()->self, rb_intern("write"), 2, INT2FIX(fd), string));
}

static int api_wait_ready(int fd, int events) {
    return NUM2INT(rb_funcall(rsb_current()->self, rb_intern("poll"), 2, INT2FIX(fd), INT2FIX(events)));
}

static VALUE api_with_deadline(int64_t deadline, VALUE (*body)(VALUE argument), VALUE argument) {
    return rsb_until(rsb_current(), deadline, body, argument, "the deadline has passed");
}

static const ringspun_api api = {
    .version = RINGSPUN_API_VERSION, .now = api_now, .deadline = api_deadline, .park = api_park, .wake = api_wake,
    .yield = api_yield, .read = api_read, .write = api_write, .wait_ready = api_wait_ready, .with_deadline = api_with_deadline,
};

void rsb_init_api(void) {
    /* Where ringspun_get_api of ringspun.h finds the table. */
    rb_define_const(rsb_mRingspun, "C_API", ULL2NUM((uintptr_t)&api));
}
