#include "client/lane.h"
#include "client/params.h"

#include <stdlib.h>

/* So many bytes of rows in one look are worth the block that they lie in; fewer are copied. */
#define BLOCK_WORTH 8192u

static VALUE cLane;
static ID id_error_of, id_lost;

/* --- requests --- */

static void append(rpg_requests *list, rpg_request *request) {
    request->next = NULL;
    if (list->last) list->last->next = request;
    else list->first = request;
    list->last = request;
    list->len++;
}

static rpg_request *take_first(rpg_requests *list) {
    rpg_request *first = list->first;
    list->first = first->next;
    if (!list->first) list->last = NULL;
    list->len--;
    return first;
}

static void take_out(rpg_requests *list, rpg_request *request) {
    rpg_request *previous = NULL;
    for (rpg_request *each = list->first; each != request; each = each->next) previous = each;
    if (previous) previous->next = request->next;
    else list->first = request->next;
    if (list->last == request) list->last = previous;
    list->len--;
}

static void free_request(rpg_request *request) {
    rpg_rows_free(&request->rows);
    free(request->error);
    free(request);
}

static void free_requests(rpg_requests *list) {
    while (list->first) free_request(take_first(list));
}

static void mark_requests(const rpg_requests *list) {
    for (const rpg_request *each = list->first; each; each = each->next) {
        rb_gc_mark(each->statement);
        rb_gc_mark(each->formats);
    }
}

/* --- the object --- */

static void lane_mark(void *data) {
    const rpg_lane *lane = data;
    rb_gc_mark(lane->stream);
    rb_gc_mark(lane->statements);
    mark_requests(&lane->outbox);
    mark_requests(&lane->sent);
}

static void lane_free(void *data) {
    rpg_lane *lane = data;
    free_requests(&lane->outbox);
    free_requests(&lane->sent);
    rpg_replies_free(&lane->replies);
    rpg_out_free(&lane->params);
    rpg_out_free(&lane->flight);
    free(lane->runs);
    xfree(lane);
}

static const rb_data_type_t lane_type = {
    .wrap_struct_name = "Ringspun::Postgres::Lane",
    .function = {.dmark = lane_mark, .dfree = lane_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static rpg_lane *get(VALUE self) { return rb_check_typeddata(self, &lane_type); }

static VALUE lane_new(VALUE class, VALUE stream, VALUE prefix) {
    rpg_lane *lane;
    VALUE self = TypedData_Make_Struct(class, rpg_lane, &lane_type, lane);
    lane->self = self;
    lane->stream = stream;
    lane->statements = rb_hash_new();
    snprintf(lane->prefix, sizeof(lane->prefix), "%s", StringValueCStr(prefix));
    return self;
}

/* --- the end of requests --- */

static void finish(rpg_request *request, rpg_end_kind end) {
    request->done = true;
    request->end = (uint8_t)end;
    if (request->abandoned) free_request(request);
    else if (request->parked) ringspun->wake_here(request->waker, 0);
}

static rpg_request *first_parked(const rpg_requests *list) {
    rpg_request *each = list->first;
    while (each && !each->parked) each = each->next;
    return each;
}

/* The one whose reply comes next, of those who wait, reads from now on. */
static void pass_on(rpg_lane *lane) {
    lane->reader = NULL;
    const rpg_request *next = first_parked(&lane->sent);
    if (!next) next = first_parked(&lane->outbox);
    if (next) ringspun->wake_here(next->waker, 0);
}

/* Nothing more will come: who waits is told, and no other statement is taken. */
static void lose(rpg_lane *lane, const char *why) {
    if (lane->lost[0]) return;
    snprintf(lane->lost, sizeof(lane->lost), "%s", why);
    while (lane->outbox.first) finish(take_first(&lane->outbox), RPG_ENDED_SKIPPED);
    while (lane->sent.first) finish(take_first(&lane->sent), RPG_ENDED_SKIPPED);
    rpg_replies_free(&lane->replies);
}

/* Its owner waits no more. */
static void leave(void *data) {
    rpg_request *request = data;
    request->parked = false;
    if (request->done) {
        free_request(request);
    } else if (request->sent) {
        request->abandoned = true;
        rpg_rows_free(&request->rows);
    } else {
        take_out(&request->lane->outbox, request);
        free_request(request);
    }
}

/* --- a flight --- */

static rpg_span span_of(VALUE string) { return (rpg_span){(const uint8_t *)RSTRING_PTR(string), (size_t)RSTRING_LEN(string)}; }

static rpg_span name_of(const rpg_statement *statement) { return (rpg_span){(const uint8_t *)statement->name, statement->name_len}; }

static void give_name(rpg_lane *lane, rpg_statement *statement) {
    statement->name_len = (uint8_t)snprintf(statement->name, sizeof(statement->name), "%s_%u", lane->prefix, ++lane->names);
}

static void put_formats(rpg_out *out, VALUE formats) {
    if (NIL_P(formats)) {
        rpg_put_u16(out, 0);
        return;
    }
    const rpg_columns *columns = rpg_columns_get(formats);
    rpg_put_u16(out, columns->count);
    for (uint16_t i = 0; i < columns->count; i++) rpg_put_u16(out, rpg_type_is_binary(columns->types[i]));
}

static void put_bind(rpg_lane *lane, const rpg_statement *statement, const rpg_request *request) {
    rpg_out *out = &lane->flight;
    size_t begun = rpg_begin(out, 'B');
    rpg_put_u8(out, 0); /* the unnamed portal */
    rpg_put_text(out, statement->name, statement->name_len);
    rpg_put_bytes(out, lane->params.bytes + request->params, request->params_len);
    put_formats(out, request->formats);
    rpg_end(out, begun);
}

static uint16_t put_parse(rpg_lane *lane, rpg_statement *statement) {
    if (statement->used && statement->name_len > 0) return 0;
    if (statement->used) give_name(lane, statement);
    statement->used = true;
    rpg_put_parse(&lane->flight, name_of(statement), span_of(statement->sql), NULL, 0);
    rpg_put_describe(&lane->flight, 'S', name_of(statement));
    return RPG_STEP_PARSE | RPG_STEP_DESCRIBE;
}

static void put_request(rpg_lane *lane, rpg_request *request) {
    rpg_statement *statement = rpg_statement_get(request->statement);
    request->formats = statement->columns;
    uint16_t steps = put_parse(lane, statement);
    request->parses = steps != 0;
    put_bind(lane, statement, request);
    rpg_put_execute(&lane->flight, (rpg_span){(const uint8_t *)"", 0}, 0);
    rpg_put_sync(&lane->flight);
    steps |= RPG_STEP_BIND | RPG_STEP_EXECUTE | RPG_STEP_SYNC;
    if (!rpg_replies_expect(&lane->replies, steps, request)) lane->flight.state = RPG_OUT_NO_MEMORY;
}

/* At the end of the tick: all that lie in the outbox. */
static void take_off(VALUE self) {
    rpg_lane *lane = get(self);
    lane->flight_asked = false;
    while (lane->outbox.first) {
        rpg_request *request = take_first(&lane->outbox);
        append(&lane->sent, request);
        request->sent = true;
        put_request(lane, request);
    }
    bool fine = lane->flight.state == RPG_OUT_FINE && ringspun->stream_put(lane->stream, lane->flight.bytes, lane->flight.len);
    rpg_out_cut(&lane->flight, 0);
    rpg_out_cut(&lane->params, 0);
    if (!fine) lose(lane, "the statements could not be sent");
}

/* --- what comes --- */

/* The server knows nothing of what it could not parse. */
static void forget_name(rpg_statement *statement) {
    statement->used = false;
    statement->name_len = 0;
}

static void take_error(rpg_request *request, const rpg_message *message) {
    if (request->parses) forget_name(rpg_statement_get(request->statement));
    if (request->abandoned || request->error) return;
    request->error = malloc(message->len);
    if (!request->error) return;
    memcpy(request->error, message->body, message->len);
    request->error_len = message->len;
}

static void take_tag(rpg_request *request, const rpg_message *message) {
    rpg_span tag;
    if (!rpg_read_complete(message, &tag)) return;
    request->tag_len = (uint8_t)(tag.len < RPG_TAG_MAX ? tag.len : RPG_TAG_MAX);
    memcpy(request->tag, tag.bytes, request->tag_len);
}

static void take_columns(rpg_request *request, rpg_span description) {
    bool same = rpg_statement_describe(rpg_statement_get(request->statement), description);
    if (!same && !NIL_P(request->formats)) request->again = true;
}

/* False: no memory. */
static bool take_row(rpg_lane *lane, rpg_request *request, size_t from, size_t to) {
    rpg_run_of_rows *last = lane->runs_len > 0 ? &lane->runs[lane->runs_len - 1] : NULL;
    if (request->abandoned) return true;
    lane->runs_bytes += to - from;
    if (last && last->request == request) {
        last->to = to;
        last->count++;
        return true;
    }
    if (lane->runs_len == lane->runs_capacity) {
        uint32_t capacity = lane->runs_capacity ? lane->runs_capacity * 2 : 16;
        rpg_run_of_rows *runs = realloc(lane->runs, sizeof(*runs) * capacity);
        if (!runs) return false;
        lane->runs = runs;
        lane->runs_capacity = capacity;
    }
    lane->runs[lane->runs_len++] = (rpg_run_of_rows){request, from, to, 1};
    return true;
}

typedef enum { TAKEN, NO_MEMORY, WRONG } taken;

static taken take_message(rpg_lane *lane, const rpg_message *message, size_t from, size_t to) {
    rpg_event event = rpg_replies_take(&lane->replies, message);
    rpg_request *request = event.tag;
    switch (event.kind) {
    case RPG_EVENT_ROW: return take_row(lane, request, from, to) ? TAKEN : NO_MEMORY;
    case RPG_EVENT_COMPLETE: take_tag(request, message); return TAKEN;
    case RPG_EVENT_COLUMNS: take_columns(request, (rpg_span){message->body, message->len}); return TAKEN;
    case RPG_EVENT_NO_COLUMNS: take_columns(request, (rpg_span){NULL, 0}); return TAKEN;
    case RPG_EVENT_READY: return rpg_read_ready(message, &lane->status) ? TAKEN : WRONG;
    case RPG_EVENT_ERROR:
        if (request) take_error(request, message);
        return TAKEN;
    case RPG_EVENT_STEP:
        if (message->type == RPG_PARSED) request->parses = false;
        return TAKEN;
    case RPG_EVENT_PARAMETERS:
    case RPG_EVENT_EMPTY:
    case RPG_EVENT_ASIDE: return TAKEN;
    default: return WRONG;
    }
}

static bool keep_copies(rpg_lane *lane, const uint8_t *bytes) {
    bool fine = true;
    for (uint32_t i = 0; i < lane->runs_len && fine; i++) {
        const rpg_run_of_rows *run = &lane->runs[i];
        fine = rpg_rows_copy(&run->request->rows, (rpg_span){bytes + run->from, run->to - run->from}, run->count);
    }
    return fine;
}

/* With all that was looked at. */
static bool keep_block(rpg_lane *lane, size_t len) {
    size_t start, capacity;
    void *memory = ringspun->stream_take(lane->stream, len, &start, &capacity);
    rpg_block *block = rpg_block_new(memory, ringspun->block_free);
    if (!block) {
        ringspun->block_free(memory);
        return false;
    }
    bool fine = true;
    for (uint32_t i = 0; i < lane->runs_len && fine; i++) {
        const rpg_run_of_rows *run = &lane->runs[i];
        rpg_span rows = {(const uint8_t *)memory + start + run->from, run->to - run->from};
        fine = rpg_rows_add(&run->request->rows, block, rows, run->count);
    }
    rpg_block_drop(block);
    return fine;
}

/* The rows of this look become those of their requests, and what was looked at is gone. */
static bool keep_rows(rpg_lane *lane, const uint8_t *bytes, size_t len) {
    bool fine;
    if (lane->runs_bytes >= BLOCK_WORTH) {
        fine = keep_block(lane, len);
    } else {
        fine = keep_copies(lane, bytes);
        ringspun->stream_drop(lane->stream, len);
    }
    lane->runs_len = 0;
    lane->runs_bytes = 0;
    return fine;
}

/* Those that have ended in this look, whose rows are theirs by now. `ended`: how many, oldest first. */
static void finish_ended(rpg_lane *lane, const uint8_t *ends, uint32_t ended) {
    for (uint32_t i = 0; i < ended && lane->sent.first; i++) finish(take_first(&lane->sent), (rpg_end_kind)ends[i]);
}

#define ENDED_MAX 256

/* All that has come, as far as it is whole, or as many requests as end in it at most. True: there was something. */
static bool serve(rpg_lane *lane) {
    const char *chars;
    size_t len, at = 0, needed;
    uint8_t ends[ENDED_MAX];
    uint32_t ended = 0;
    rpg_message message;
    rpg_found found = RPG_PART;
    taken how = TAKEN;
    ringspun->stream_peek(lane->stream, &chars, &len);
    const uint8_t *bytes = (const uint8_t *)chars;
    while (ended < ENDED_MAX && how == TAKEN &&
           (found = rpg_message_next(bytes + at, len - at, &message, &needed)) == RPG_WHOLE) {
        how = take_message(lane, &message, at, at + needed);
        at += needed;
        void *tag;
        rpg_end_kind end;
        while (ended < ENDED_MAX && rpg_replies_next_ended(&lane->replies, &tag, &end)) ends[ended++] = (uint8_t)end;
    }
    if (at > 0 && !keep_rows(lane, bytes, at)) how = NO_MEMORY;
    finish_ended(lane, ends, ended);
    if (how == NO_MEMORY) lose(lane, "there was no memory for what the server sent");
    else if (how == WRONG || found == RPG_WRONG) lose(lane, "the server sent what is no answer to what was asked");
    return at > 0;
}

/* --- waiting --- */

typedef struct {
    rpg_lane *lane;
    rpg_request *request;
    int64_t deadline;
} reading;

static VALUE read_for(VALUE argument) {
    const reading *r = (const reading *)argument;
    while (serve(r->lane)) {
        if (r->request->done) return Qnil;
    }
    while (!r->request->done) {
        if (!ringspun->stream_more(r->lane->stream, r->deadline)) lose(r->lane, "the server has closed the connection");
        else while (serve(r->lane)) {}
    }
    return Qnil;
}

static void read_as_reader(rpg_lane *lane, rpg_request *request, int64_t deadline) {
    reading r = {lane, request, deadline};
    int state = 0;
    lane->reader = request;
    rb_protect(read_for, (VALUE)&r, &state);
    pass_on(lane);
    if (!state) return;
    VALUE error = rb_errinfo();
    if (rb_obj_is_kind_of(error, rb_eSystemCallError)) {
        rb_set_errinfo(Qnil);
        lose(lane, RSTRING_PTR(rb_obj_as_string(error)));
        return;
    }
    leave(request);
    rb_jump_tag(state);
}

static void keep_waker(ringspun_waker waker, void *data) {
    rpg_request *request = data;
    request->waker = waker;
    request->parked = true;
}

static void wait_for(rpg_lane *lane, rpg_request *request, int64_t deadline) {
    while (!request->done) {
        if (!lane->reader) {
            read_as_reader(lane, request, deadline);
        } else if (ringspun->park_or(deadline, "a reply of Postgres", keep_waker, leave, request, NULL)) {
            request->parked = false;
        } else {
            rb_raise(rpg_eTimeout, "the statement: the deadline has passed");
        }
    }
}

/* --- statements --- */

static VALUE statement_of(rpg_lane *lane, VALUE sql) {
    VALUE statement = rb_hash_lookup(lane->statements, sql);
    if (!NIL_P(statement)) return statement;
    sql = rb_str_new_frozen(sql);
    statement = rpg_statement_new(sql);
    rb_hash_aset(lane->statements, sql, statement);
    return statement;
}

static rpg_request *new_request(rpg_lane *lane, VALUE statement, VALUE params) {
    size_t before = lane->params.len;
    rpg_put_params(&lane->params, params);
    rpg_request *request = lane->params.state == RPG_OUT_FINE ? calloc(1, sizeof(*request)) : NULL;
    if (!request) {
        bool too_long = lane->params.state == RPG_OUT_TOO_LONG;
        rpg_out_cut(&lane->params, before);
        if (too_long) rb_raise(rpg_eUsage, "a parameter has at most 2147483647 bytes");
        rb_memerror();
    }
    *request = (rpg_request){.lane = lane, .statement = statement, .formats = Qnil, .params = before,
                             .params_len = lane->params.len - before};
    return request;
}

NORETURN(static void fail_lost(const rpg_lane *lane, bool in_doubt));
static void fail_lost(const rpg_lane *lane, bool in_doubt) {
    rb_exc_raise(rb_funcall(rpg_mPostgres, id_lost, 2, rb_utf8_str_new_cstr(lane->lost), in_doubt ? Qtrue : Qfalse));
}

NORETURN(static void fail(rpg_request *request));
static void fail(rpg_request *request) {
    rpg_lane *lane = request->lane;
    VALUE sql = rpg_statement_get(request->statement)->sql, body = Qnil;
    bool told = request->error, sent = request->sent;
    if (told) body = rb_str_new((const char *)request->error, (long)request->error_len);
    free_request(request);
    if (!told) fail_lost(lane, sent);
    rb_exc_raise(rb_funcall(rpg_mPostgres, id_error_of, 2, body, sql));
}

static VALUE result_of(rpg_request *request) {
    rpg_result *result;
    VALUE self = rpg_result_new(&result);
    result->binary = !NIL_P(request->formats);
    result->tag_len = request->tag_len;
    memcpy(result->tag, request->tag, request->tag_len);
    rpg_rows_move(&result->rows, &request->rows);
    VALUE statement = request->statement, formats = request->formats;
    free_request(request);
    result->columns = NIL_P(formats) ? rpg_statement_columns(rpg_statement_get(statement)) : formats;
    RB_GC_GUARD(statement);
    return self;
}

static VALUE lane_query(VALUE self, VALUE sql, VALUE params, VALUE seconds) {
    rpg_lane *lane = get(self);
    int64_t deadline = ringspun->deadline(seconds);
    Check_Type(sql, T_STRING);
    Check_Type(params, T_ARRAY);
    params = rpg_encode_params(params);
    if (lane->lost[0]) fail_lost(lane, false);
    rpg_request *request = new_request(lane, statement_of(lane, sql), params);
    append(&lane->outbox, request);
    if (!lane->flight_asked) lane->flight_asked = ringspun->at_tick_end(take_off, self);
    if (!lane->flight_asked) lose(lane, "there was no memory for the statement");
    wait_for(lane, request, deadline);
    VALUE statement = request->statement;
    if (request->end != RPG_ENDED_WELL) fail(request);
    VALUE result = result_of(request);
    RB_GC_GUARD(statement);
    RB_GC_GUARD(self);
    return result;
}

void rpg_init_lane(void) {
    id_error_of = rb_intern("error_of");
    id_lost = rb_intern("lost");
    cLane = rb_define_class_under(rpg_mPostgres, "Lane", rb_cObject);
    rb_undef_alloc_func(cLane);
    rb_define_singleton_method(cLane, "new", lane_new, 2);
    rb_define_method(cLane, "query", lane_query, 3);
    rb_global_variable(&cLane);
}
