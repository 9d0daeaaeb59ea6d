/* pace: how far a client may be behind with what is sent to it, and for how long it may take nothing at all. */
#include "server/connection.h"

/* What has not left may be so much before the program waits for the client. */
#define UNSENT_MAX ((size_t)256 << 10)

/* Seconds are a Float on their way to the stream, which may make its deadline so much earlier. */
#define ROUNDED_NS 1000

/* How often it looks, in the time that a client has, whether that has taken some. */
#define LOOKS 4

#define A_SECOND 1e9

static ID id_write, id_flush, id_timeout;
static VALUE nothing;

typedef struct {
    rhs_connection *connection;
    ID method;
    int64_t deadline;
    bool is_done;
} pace;

static int64_t look_ns(const rhs_connection *connection) {
    int64_t ns = connection->clocks.write_ns;
    return ns == RINGSPUN_NEVER ? ns : ns / LOOKS;
}

static VALUE options_of(const rhs_connection *connection) {
    VALUE options = rb_hash_new();
    rb_hash_aset(options, ID2SYM(id_timeout), DBL2NUM((double)look_ns(connection) / A_SECOND));
    return options;
}

/* A write of no bytes waits until the stream is below a mark of its own. */
static VALUE try_to_wait(VALUE data) {
    pace *pace = (void *)data;
    VALUE arguments[2];
    int count = 0;
    bool has_limit = pace->connection->clocks.write_ns != RINGSPUN_NEVER;
    if (pace->method == id_write) arguments[count++] = nothing;
    if (has_limit) arguments[count++] = options_of(pace->connection);
    rb_funcallv_kw(pace->connection->stream, pace->method, count, arguments, has_limit ? RB_PASS_KEYWORDS : RB_NO_KEYWORDS);
    pace->is_done = true;
    return Qnil;
}

/* The program may have a deadline of its own around it, which is no fault of the client. */
static VALUE look_whose_deadline(VALUE data, VALUE error) {
    pace *pace = (void *)data;
    if (ringspun->now() < pace->deadline - ROUNDED_NS) rb_exc_raise(error);
    return error;
}

NORETURN(static void raise_late(const rhs_connection *connection, VALUE error));
static void raise_late(const rhs_connection *connection, VALUE error) {
    VALUE seconds = DBL2NUM((double)connection->clocks.write_ns / A_SECOND);
    VALUE message = rb_sprintf("the client has taken nothing of the answer for %" PRIsVALUE " s", seconds);
    rb_exc_raise(rb_funcall(error, rb_intern("exception"), 1, message));
}

/* A client that takes bytes, be it slowly, has its time again. */
static void wait_for_client(rhs_connection *connection, ID method) {
    for (int still = 0;;) {
        size_t before = ringspun->stream_unsent(connection->stream);
        pace pace = {.connection = connection, .method = method, .deadline = rhs_from_now(look_ns(connection))};
        VALUE error = rb_rescue2(try_to_wait, (VALUE)&pace, look_whose_deadline, (VALUE)&pace, rhs_eTimeout, (VALUE)0);
        if (pace.is_done) return;
        still = ringspun->stream_unsent(connection->stream) < before ? 0 : still + 1;
        if (still == LOOKS) raise_late(connection, error);
    }
}

void rhs_keep_pace(rhs_connection *connection) {
    if (RB_UNLIKELY(ringspun->stream_unsent(connection->stream) > UNSENT_MAX)) wait_for_client(connection, id_write);
}

void rhs_flush(rhs_connection *connection) {
    wait_for_client(connection, id_flush);
}

void rhs_init_pace(void) {
    id_write = rb_intern("write");
    id_flush = rb_intern("flush");
    id_timeout = rb_intern("timeout");
    nothing = rb_str_new_static("", 0);
    rb_gc_register_mark_object(rb_obj_freeze(nothing));
}
