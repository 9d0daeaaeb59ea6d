#include "server/connection.h"

#include <math.h>

#define A_SECOND 1e9

static void connection_mark(void *data) {
    const rhs_connection *connection = data;
    rb_gc_mark(connection->stream);
    rb_gc_mark(connection->thread);
    rb_gc_mark(connection->base);
    rb_gc_mark(connection->held);
    rb_gc_mark(connection->trailers_read);
    rb_gc_mark(connection->asked);
}

static void connection_free(void *data) {
    rhs_connection *connection = data;
    xfree(connection->list);
    xfree(connection->trailers);
    xfree(connection);
}

static size_t connection_size(const void *data) { return sizeof(rhs_connection); }

static const rb_data_type_t type = {
    .wrap_struct_name = "Ringspun::HTTP::Connection",
    .function = {.dmark = connection_mark, .dfree = connection_free, .dsize = connection_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

rhs_connection *rhs_connection_get(VALUE self) { return rb_check_typeddata(self, &type); }

rhs_connection *rhs_connection_here(VALUE self) {
    rhs_connection *connection = rhs_connection_get(self);
    if (RB_LIKELY(connection->thread == rb_thread_current())) return connection;
    rb_raise(rhs_eWrongThread, "this request is served on another thread; what a thread makes for its answer goes there by a "
             "Thread::Queue, from which the body takes and writes it");
}

rhs_connection *rhs_connection_at(VALUE self, rhs_step step, const char *what) {
    rhs_connection *connection = rhs_connection_here(self);
    if (RB_UNLIKELY(connection->step != step)) rb_raise(rhs_eUsage, "%s does not come now in this connection", what);
    return connection;
}

/* --- what it is made of --- */

static VALUE option(VALUE options, const char *name) { return rb_hash_fetch(options, ID2SYM(rb_intern(name))); }

/* @param options [Hash] every limit, by its name in rhttp_limits */
static void read_limits(rhttp_limits *limits, VALUE options) {
    *limits = rhttp_usual_limits;
    limits->line_max = NUM2UINT(option(options, "line_max"));
    limits->head_max = NUM2UINT(option(options, "head_max"));
    limits->fields_max = NUM2USHORT(option(options, "fields_max"));
    limits->name_max = NUM2USHORT(option(options, "name_max"));
    limits->body_max = NUM2ULL(option(options, "body_max"));
}

int64_t rhs_nanoseconds(VALUE seconds) { return NIL_P(seconds) ? RINGSPUN_NEVER : (int64_t)(NUM2DBL(seconds) * A_SECOND); }

static void read_clocks(rhs_clocks *clocks, VALUE options) {
    clocks->first_byte_ns = rhs_nanoseconds(option(options, "first_byte"));
    clocks->keep_alive_ns = rhs_nanoseconds(option(options, "keep_alive"));
    clocks->head_ns = rhs_nanoseconds(option(options, "head"));
    clocks->body_ns = rhs_nanoseconds(option(options, "body"));
    clocks->write_ns = rhs_nanoseconds(option(options, "write"));
    clocks->body_rate = NUM2ULL(option(options, "body_rate"));
}

/* @param stream [Stream]
 * @param base [Hash] the env of a request, without what only the request says
 * @param options [Hash{Symbol => Numeric, nil}] limits, and seconds; all of them, for {Limits} has read what a user has given */
static VALUE connection_new(VALUE class, VALUE stream, VALUE base, VALUE options) {
    rhs_connection *connection;
    VALUE self = TypedData_Make_Struct(class, rhs_connection, &type, connection);
    connection->stream = stream;
    connection->thread = rb_thread_current();
    connection->held = connection->trailers_read = connection->asked = Qnil;
    connection->base = rb_convert_type(base, T_HASH, "Hash", "to_hash");
    read_limits(&connection->limits, options);
    read_clocks(&connection->clocks, options);
    return self;
}

/* --- waiting --- */

int64_t rhs_from_now(int64_t ns) { return ns == RINGSPUN_NEVER ? RINGSPUN_NEVER : ringspun->now() + ns; }

typedef struct {
    VALUE stream;
    int64_t deadline;
    rhs_came came;
} wait;

static VALUE wait_for_more(VALUE data) {
    wait *wait = (void *)data;
    wait->came = ringspun->stream_more(wait->stream, wait->deadline) ? RHS_MORE : RHS_ENDED;
    return Qnil;
}

/* The program may have a deadline of its own around it, which is no fault of the client. */
static VALUE look_whose_deadline(VALUE data, VALUE error) {
    wait *wait = (void *)data;
    if (ringspun->now() < wait->deadline) rb_exc_raise(error);
    wait->came = RHS_LATE;
    return Qnil;
}

rhs_came rhs_wait_for_more(rhs_connection *connection, int64_t deadline) {
    wait wait = {.stream = connection->stream, .deadline = deadline};
    rb_rescue2(wait_for_more, (VALUE)&wait, look_whose_deadline, (VALUE)&wait, rhs_eTimeout, (VALUE)0);
    return wait.came;
}

bool rhs_more(rhs_connection *connection, int64_t deadline, const char *what) {
    rhs_came came = rhs_wait_for_more(connection, deadline);
    if (came == RHS_LATE) rhs_refuse(connection, 408, what);
    return came == RHS_MORE;
}

/* --- refusing --- */

void rhs_refuse(rhs_connection *connection, uint16_t status, const char *message) {
    if (connection->step == RHS_READS) {
        connection->step = RHS_OWES;
        connection->version = RHTTP_1_1;
        connection->method = RHTTP_OTHER_METHOD;
        connection->owes_continue = false;
    }
    connection->is_last = true;
    connection->is_broken = true;
    connection->body_has_ended = true; /* nobody knows where it ends, so nobody may read on */
    rhs_raise_request(status, message);
}

void rhs_refuse_wrong(rhs_connection *connection, uint8_t wrong) {
    rhs_refuse(connection, rhttp_wrong_status((rhttp_wrong)wrong), rhttp_wrong_text((rhttp_wrong)wrong));
}

/* --- what is asked of it --- */

/* @return [nil]
 * @raise [WrongThreadError] it is served on another thread */
static VALUE connection_check_thread(VALUE self) {
    rhs_connection_here(self);
    return Qnil;
}

/* @return [Boolean] whether the head of the answer was sent */
static VALUE connection_answering_p(VALUE self) {
    uint8_t step = rhs_connection_get(self)->step;
    return rhs_bool(step == RHS_ANSWERS || step == RHS_HAS_ANSWERED || step == RHS_TUNNELS);
}

/* @return [Boolean] whether all of the answer was sent */
static VALUE connection_answered_p(VALUE self) { return rhs_bool(rhs_connection_get(self)->step == RHS_HAS_ANSWERED); }

/* A client that was told so may have sent one, also if the server has begun to stop meanwhile.
 * @return [Boolean] whether another request may come on it */
static VALUE connection_keeps_p(VALUE self) {
    const rhs_connection *connection = rhs_connection_get(self);
    return rhs_bool(connection->step == RHS_HAS_ANSWERED && connection->plan.keeps_alive && connection->body_has_ended && !connection->is_broken);
}

/* @return [Boolean] whether the answer has ended, and said that the connection goes on */
static VALUE connection_answered_for_more_p(VALUE self) {
    const rhs_connection *connection = rhs_connection_get(self);
    return rhs_bool(connection->step == RHS_HAS_ANSWERED && connection->plan.keeps_alive);
}

/* @return [Boolean] whether the answer has not ended, and the end of the connection would be taken for its end */
static VALUE connection_endless_p(VALUE self) {
    const rhs_connection *connection = rhs_connection_get(self);
    return rhs_bool(connection->step == RHS_ANSWERS && connection->plan.body == RHTTP_BODY_UNTIL_CLOSE);
}

/* @return [Boolean] whether another protocol is spoken from here on */
static VALUE connection_tunnel_p(VALUE self) {
    const rhs_connection *connection = rhs_connection_get(self);
    bool will_tunnel = connection->step == RHS_HOLDS && connection->plan.body == RHTTP_BODY_TUNNEL;
    return rhs_bool(connection->step == RHS_TUNNELS || will_tunnel);
}

/* @return [Integer, nil] the status of the answer; nil: none has been sent */
static VALUE connection_status(VALUE self) {
    const rhs_connection *connection = rhs_connection_get(self);
    return connection->status == 0 || connection->step == RHS_HOLDS ? Qnil : UINT2NUM(connection->status);
}

/* @return [Integer] bytes of the answer's body so far, without what frames it */
static VALUE connection_sent(VALUE self) { return ULL2NUM(rhs_connection_get(self)->sent); }

/* @return [Integer] bytes of the request's body so far */
static VALUE connection_received(VALUE self) { return ULL2NUM(rhs_connection_get(self)->read); }

/* @return [Hash] an empty one, which copies have room for that many entries */
static VALUE connection_roomy(VALUE class, VALUE entries) { return rb_hash_new_capa(NUM2LONG(entries)); }

/* Gives the connection to the program: nothing is read or written any more.
 *
 * @return [String] what the client has sent, and nobody has read */
static VALUE connection_give_up(VALUE self) {
    rhs_connection *connection = rhs_connection_at(self, RHS_OWES, "a hijack");
    const char *bytes;
    size_t len;
    ringspun->stream_peek(connection->stream, &bytes, &len);
    VALUE rest = rb_str_new(bytes, (long)len);
    ringspun->stream_drop(connection->stream, len);
    connection->step = RHS_TUNNELS;
    return rest;
}

/* The answer that is due, or the next one, is the last of this connection.
 * @return [nil] */
static VALUE connection_last(VALUE self) {
    rhs_connection_get(self)->is_last = true;
    return Qnil;
}

static int64_t shorter(int64_t one, int64_t other) { return one < other ? one : other; }

/* The server stops: the next answer whose head is sent is the last one, and a wait for a request that begins from now on ends
 * soon.
 * @param seconds [Numeric, nil] what such a wait may take at most; nil: no other limit than before
 * @return [nil] */
static VALUE connection_leave(VALUE self, VALUE seconds) {
    rhs_connection *connection = rhs_connection_get(self);
    int64_t ns = rhs_nanoseconds(seconds);
    connection->is_last = true;
    connection->clocks.first_byte_ns = shorter(connection->clocks.first_byte_ns, ns);
    connection->clocks.keep_alive_ns = shorter(connection->clocks.keep_alive_ns, ns);
    return Qnil;
}

/* @return [Boolean] whether the last answer was sent, and the client has sent more, or may be about to */
static VALUE connection_unread_p(VALUE self) {
    const rhs_connection *connection = rhs_connection_get(self);
    if (connection->step != RHS_HAS_ANSWERED) return Qfalse;
    const char *bytes;
    size_t len;
    ringspun->stream_peek(connection->stream, &bytes, &len);
    return rhs_bool(len > 0 || connection->is_broken || !connection->body_has_ended);
}

/* @return [Float] when the present wait for a request is over, on the machine's clock */
static VALUE connection_due(VALUE self) {
    int64_t due_ns = rhs_connection_get(self)->due_ns;
    return DBL2NUM(due_ns == RINGSPUN_NEVER ? HUGE_VAL : (double)due_ns / A_SECOND);
}

/* The wait for a request that comes next has begun before.
 * @param due [Float] when it is over, on the machine's clock */
static VALUE connection_set_due(VALUE self, VALUE due) {
    rhs_connection *connection = rhs_connection_get(self);
    double ns = NUM2DBL(due) * A_SECOND;
    connection->due_ns = ns < (double)RINGSPUN_NEVER ? (int64_t)ns : RINGSPUN_NEVER;
    return due;
}

/* @return [Boolean] whether no byte of the next request has come */
static VALUE connection_idle_p(VALUE self) { return rhs_bool(rhs_connection_get(self)->step == RHS_WAITS); }

VALUE rhs_init_connection(void) {
    VALUE class = rb_define_class_under(rhs_mHTTP, "Connection", rb_cObject);
    rb_undef_alloc_func(class);
    rb_define_singleton_method(class, "new", connection_new, 3);
    rb_define_singleton_method(class, "roomy", connection_roomy, 1);
    rb_define_method(class, "check_thread", connection_check_thread, 0);
    rb_define_method(class, "answered?", connection_answered_p, 0);
    rb_define_method(class, "answered_for_more?", connection_answered_for_more_p, 0);
    rb_define_method(class, "status", connection_status, 0);
    rb_define_method(class, "sent", connection_sent, 0);
    rb_define_method(class, "received", connection_received, 0);
    rb_define_method(class, "endless?", connection_endless_p, 0);
    rb_define_method(class, "tunnel?", connection_tunnel_p, 0);
    rb_define_method(class, "give_up", connection_give_up, 0);
    rb_define_method(class, "answering?", connection_answering_p, 0);
    rb_define_method(class, "keeps?", connection_keeps_p, 0);
    rb_define_method(class, "last!", connection_last, 0);
    rb_define_method(class, "leave", connection_leave, 1);
    rb_define_method(class, "unread?", connection_unread_p, 0);
    rb_define_method(class, "idle?", connection_idle_p, 0);
    rb_define_method(class, "due", connection_due, 0);
    rb_define_method(class, "due=", connection_set_due, 1);
    return class;
}
