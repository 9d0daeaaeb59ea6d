/* thread: plain threads that ask a lane by themselves: Lane#ask. wake.h says who does what. */
#include "client/ask.h"
#include "client/bell.h"
#include "client/ending.h"
#include "client/flight.h"
#include "client/inits.h"
#include "client/lane_object.h"
#include "client/params.h"
#include "client/serve.h"
#include "client/wake.h"
#include "client/window.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <ruby/thread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Bytes that a thread receives at once, and where they did not suffice. */
#define ROOM 8192u
#define ROOM_MUCH 65536u

static VALUE sym_untyped, sym_busy;
static ID id_suspected;

/* --- what is left to the machine --- */

static void enter(rpg_lane *lane) { lane->threads.active = true; }

static void leave(rpg_lane *lane) {
    lane->threads.active = false;
    if (RB_LIKELY(!lane->threads.calls)) return;
    lane->threads.calls = false;
    rpg_bell_ring(lane);
}

static void wake_if_done(const rpg_request *request) {
    if (request && request->done && request->parked) ringspun->wake_here(request->waker, 0);
}

/* Does what plain threads have left to the machine, in whose thread this is called. */
static VALUE lane_rouse(VALUE self) {
    rpg_lane *lane = rpg_lane_get(self);
    while (lane->threads.roused.first) {
        rpg_request *request = rpg_requests_take_first(&lane->threads.roused);
        request->roused = false;
        wake_if_done(request);
    }
    wake_if_done(lane->attendant);
    wake_if_done(lane->listener);
    if (!lane->reader) rpg_pass_on(lane);
    rpg_ask_flight(lane);
    return Qnil;
}

/* --- the threads' number of the socket --- */

static bool has_number(rpg_lane *lane) {
    if (lane->threads.fd < 0) lane->threads.fd = fcntl(lane->fd, F_DUPFD_CLOEXEC, 3);
    return lane->threads.fd >= 0;
}

/* --- sending --- */

/* What was written by the machine must have left, or would come behind. */
static bool may_send(rpg_lane *lane) {
    return !lane->flight_asked && lane->outbox.len == 0 && lane->flight.len == 0 && ringspun->stream_unsent(lane->stream) == 0;
}

/* Where nobody reads, what has come must lie where a thread finds it. */
static bool may_read(const rpg_lane *lane) {
    const char *bytes;
    size_t len = 0;
    if (!lane->reader) ringspun->stream_peek(lane->stream, &bytes, &len);
    return len == 0;
}

static VALUE why_not(rpg_lane *lane, rpg_statement *statement) {
    bool idle = lane->sent.len == 0 && lane->outbox.len == 0;
    VALUE refused = rpg_why_not(lane, statement, idle && !(statement->history && rpg_history_is_slow(statement->history)));
    if (!NIL_P(refused)) return refused;
    if (lane->shared && rpg_window_is_closed(lane)) return rpg_sym_stuck;
    return has_number(lane) && may_send(lane) && may_read(lane) ? Qnil : sym_busy;
}

/* What the kernel does not take stays in the flight, and the machine sends it. */
static void send_flight(rpg_lane *lane) {
    rpg_out *flight = &lane->flight;
    ssize_t sent = send(lane->threads.fd, flight->bytes, flight->len, MSG_DONTWAIT | MSG_NOSIGNAL);
    bool later = sent < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ENOMEM);
    if (sent < 0 && !later) sent = (ssize_t)flight->len; /* the connection has ended, and its reader hears why */
    if (sent > 0 && (size_t)sent < flight->len) memmove(flight->bytes, flight->bytes + sent, flight->len - (size_t)sent);
    rpg_out_cut(flight, flight->len - (size_t)(sent > 0 ? sent : 0));
    lane->threads.calls |= flight->len > 0;
}

/* False: the lane has no room for it. */
static bool send_at_once(rpg_lane *lane, rpg_request *request) {
    rpg_note_head(lane);
    rpg_requests_append(&lane->outbox, request);
    rpg_window_enter(lane, request);
    rpg_load_flight(lane);
    if (!request->sent) {
        rpg_window_end(lane, request);
        rpg_requests_take_out(&lane->outbox, request);
        return false;
    }
    if (lane->flight.state == RPG_OUT_FINE) send_flight(lane);
    else rpg_lose(lane, "there was no memory for the statements");
    return true;
}

static VALUE submit(rpg_lane *lane, rpg_request *request) {
    enter(lane);
    VALUE refused = why_not(lane, rpg_statement_get(request->statement));
    if (NIL_P(refused) && !send_at_once(lane, request)) refused = sym_busy;
    leave(lane);
    return refused;
}

/* --- receiving --- */

typedef struct {
    int fd;
    uint8_t *room;
    size_t len;
    int64_t until;
    ssize_t got;
    int error;
} receiving;

static struct timespec *limit_of(int64_t until, struct timespec *left) {
    if (until == RINGSPUN_NEVER) return NULL;
    int64_t ns = until - rpg_clock();
    if (ns < 0) ns = 0;
    *left = (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    return left;
}

static void take_bytes(receiving *r) {
    r->got = recv(r->fd, r->room, r->len, MSG_DONTWAIT);
    r->error = r->got < 0 ? errno : 0;
}

static void *wait_for_bytes(void *argument) {
    receiving *r = argument;
    struct timespec left;
    struct pollfd one = {.fd = r->fd, .events = POLLIN};
    int ready = ppoll(&one, 1, limit_of(r->until, &left), NULL);
    r->error = ready < 0 ? errno : EAGAIN;
    if (ready > 0) take_bytes(r);
    return NULL;
}

/* CAME: or nothing was there. */
typedef enum { CAME, ENDED, NO_MEMORY, INTERRUPTED } came;

/* Takes what has come. If it waits for that, until it is late or interrupted. */
static came receive(rpg_lane *lane, int64_t until, bool waits) {
    rpg_out *in = &lane->threads.in;
    size_t len = in->len, room = len >= ROOM ? ROOM_MUCH : ROOM;
    receiving r = {.fd = lane->threads.fd, .room = rpg_out_room(in, room), .len = room, .until = until, .got = -1, .error = EINTR};
    rpg_out_cut(in, len);
    if (!r.room) return NO_MEMORY;
    lane->threads.receives = true;
    if (waits) rb_thread_call_without_gvl2(wait_for_bytes, &r, RUBY_UBF_IO, NULL);
    else take_bytes(&r);
    lane->threads.receives = false;
    if (lane->lost[0]) rpg_threads_close_number(lane);
    else if (r.got > 0) in->len += (size_t)r.got;
    if (r.got > 0 || lane->lost[0] || r.error == EAGAIN) return CAME;
    return r.got < 0 && r.error == EINTR ? INTERRUPTED : ENDED;
}

static void serve(rpg_lane *lane, const rpg_request *request) {
    enter(lane);
    while (!request->done && rpg_serve(lane)) {}
    leave(lane);
}

static void end_reading(rpg_lane *lane) {
    enter(lane);
    rpg_pass_on(lane);
    leave(lane);
}

static void lose(rpg_lane *lane, came how) {
    enter(lane);
    if (how == ENDED) rpg_lose_to_server(lane, "the server has closed the connection");
    else rpg_lose(lane, "there was no memory for what the server sent");
    leave(lane);
}

/* Reads for all who wait, until it has its own answer, is late, or interrupted: Ruby code that runs then must not keep others from
 * their answers. */
static void read_until(rpg_lane *lane, rpg_request *request, int64_t until, bool waited) {
    came how = CAME;
    lane->reader = request;
    serve(lane, request);
    for (bool waits = !waited; !request->done && how == CAME && !(waits && rpg_clock() >= until); waits = true) {
        how = receive(lane, until, waits);
        if (how == ENDED || how == NO_MEMORY) lose(lane, how);
        serve(lane, request);
    }
    end_reading(lane);
}

static VALUE suspect(VALUE self) { return rb_funcall(self, id_suspected, 0); }

static VALUE check_interrupts(VALUE unused) {
    rb_thread_check_ints();
    return unused;
}

/* Returns the state of what the thread is interrupted by. */
static int read_by_thread(rpg_lane *lane, rpg_request *request, int64_t deadline, bool waited) {
    int64_t suspected = rpg_suspected_from(lane);
    int state = 0;
    read_until(lane, request, suspected < deadline ? suspected : deadline, waited);
    if (request->done) return 0;
    if (rpg_clock() >= rpg_suspected_from(lane)) {
        lane->suspected = true;
        rb_protect(suspect, lane->self, &state);
    }
    if (!state) rb_protect(check_interrupts, Qnil, &state);
    return state;
}

/* --- waiting --- */

static VALUE sleep_until(VALUE argument) {
    int64_t deadline = *(const int64_t *)argument, left = deadline - rpg_clock();
    if (deadline == RINGSPUN_NEVER) rb_thread_sleep_forever();
    else if (left > 0) rb_thread_wait_for((struct timeval){.tv_sec = left / 1000000000, .tv_usec = left % 1000000000 / 1000 + 1});
    return Qnil;
}

static int sleep_among_others(rpg_request *request, int64_t deadline) {
    int state = 0;
    request->parked = true;
    rb_protect(sleep_until, (VALUE)&deadline, &state);
    request->parked = false;
    return state;
}

/* Nobody wants its answer any more. */
static void give_up(rpg_lane *lane, rpg_request *request) {
    enter(lane);
    bool nobody = !lane->reader || lane->reader == request;
    rpg_leave(request);
    if (nobody) rpg_pass_on(lane);
    lane->threads.calls |= rpg_is_orphaned(lane);
    leave(lane);
}

static void wait_by_thread(rpg_lane *lane, rpg_request *request, int64_t deadline) {
    int state = 0;
    bool late = false, waited = false;
    request->thread = rb_thread_current();
    while (!request->done && !state && !late) {
        if (!lane->reader || lane->reader == request) state = read_by_thread(lane, request, deadline, waited);
        else state = sleep_among_others(request, deadline);
        late = !request->done && rpg_clock() >= deadline;
        waited = true;
    }
    if (lane->reader == request && request->done) end_reading(lane);
    if (request->done && !state) return;
    give_up(lane, request); /* first, for Ruby code may be interrupted once more */
    if (state) rb_jump_tag(state);
    rb_exc_raise(rpg_late_error(lane, true));
}

/* --- the method --- */

static int64_t deadline_of(VALUE seconds) {
    if (NIL_P(seconds)) return RINGSPUN_NEVER;
    double ns = NUM2DBL(seconds) * 1e9;
    return ns < 1e18 ? rpg_clock() + (int64_t)ns : RINGSPUN_NEVER;
}

/* As #query, for a thread that runs no machine. Never switches strands. What would not be sent at once it does not take.
 *
 * @param (see #query)
 * @return [Result, Symbol] the Symbol says why it was not taken, or not executed, or :unsafe, what it has left */
static VALUE lane_ask(VALUE self, VALUE sql, VALUE params, VALUE seconds, VALUE prepared) {
    rpg_lane *lane = rpg_lane_get(self);
    if (NIL_P(lane->threads.bell) || lane->lost[0]) return sym_busy;
    int64_t deadline = deadline_of(seconds);
    if (deadline <= rpg_clock()) return sym_busy;
    params = rpg_encode_params(params);
    VALUE statement = rpg_ask_statement(lane, sql, params);
    if (!rpg_is_typed(statement, params)) return sym_untyped; /* to ask for the types is to wait */
    rpg_make_jsons(statement, params);
    rpg_request *request = rpg_ask_request(lane, statement, params);
    request->prepared = RTEST(prepared);
    VALUE answer = submit(lane, request);
    if (!NIL_P(answer)) {
        rpg_request_free(request);
        return answer;
    }
    wait_by_thread(lane, request, deadline);
    enter(lane);
    lane->threads.calls |= rpg_is_orphaned(lane) || lane->threads.awaited || lane->lost[0];
    leave(lane);
    answer = rpg_answer_of(lane, request);
    RB_GC_GUARD(statement);
    RB_GC_GUARD(params);
    if (rb_obj_is_kind_of(answer, rb_eException)) rb_exc_raise(answer);
    return answer;
}

/* @param bell [Bell, nil] by which threads that ask by themselves call the machine; nil: none may ask */
static VALUE lane_set_bell(VALUE self, VALUE bell) { return rpg_lane_get(self)->threads.bell = bell; }

/* @param awaited [Boolean] whether #rouse is also to be called when a thread has its answer */
static VALUE lane_set_awaited(VALUE self, VALUE awaited) {
    rpg_lane_get(self)->threads.awaited = RTEST(awaited);
    return awaited;
}

void rpg_init_thread(VALUE cLane) {
    id_suspected = rb_intern("suspected");
    sym_untyped = ID2SYM(rb_intern("untyped"));
    sym_busy = ID2SYM(rb_intern("busy"));
    rb_define_method(cLane, "ask", lane_ask, 4);
    rb_define_method(cLane, "rouse", lane_rouse, 0);
    rb_define_method(cLane, "bell=", lane_set_bell, 1);
    rb_define_method(cLane, "awaited=", lane_set_awaited, 1);
}
