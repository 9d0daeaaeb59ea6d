#include "client/flight.h"
#include "client/ending.h"
#include "client/window.h"

/* Rows of one leg of a stream. Of two legs is still read what nobody wants. */
#define LEG_ROWS 500u

/* --- statements --- */

static rpg_span span_of(VALUE string) { return (rpg_span){(const uint8_t *)RSTRING_PTR(string), (size_t)RSTRING_LEN(string)}; }

/* What is sent once more relies on no name: whoever parses it meanwhile may fail as well. */
static rpg_span name_for(const rpg_statement *statement, const rpg_request *request) {
    return (rpg_span){(const uint8_t *)statement->name, request->again ? 0 : statement->name_len};
}

static void give_name(rpg_lane *lane, rpg_statement *statement) {
    statement->named = ++lane->named;
    statement->name_len = (uint8_t)snprintf(statement->name, sizeof(statement->name), "%s_%u", lane->prefix, statement->named);
}

/* --- messages --- */

/* Of a statement that is parsed in the same flight nobody knows the columns for sure. */
static void put_bind(rpg_out *out, const rpg_statement *statement, rpg_request *request) {
    const rpg_columns *columns = NIL_P(request->formats) ? NULL : rpg_columns_get(request->formats);
    uint16_t count = columns ? columns->count : 0;
    rpg_span name = name_for(statement, request);
    size_t begun = rpg_begin_bind(out, name, (rpg_span){request->params, request->params_len}, count);
    for (uint16_t i = 0; i < count; i++) rpg_put_u16(out, rpg_type_is_binary(columns->types[i]));
    rpg_end(out, begun);
    request->named = name.len > 0 ? statement->named : 0;
}

static bool is_to_be_named(const rpg_lane *lane, const rpg_statement *statement, const rpg_request *request) {
    return lane->names && !request->again && (statement->used || request->prepared);
}

/* What is sent in binary is of the type that was told before, or nothing is executed. */
static uint32_t type_of(const rpg_statement *statement, const rpg_request *request, uint16_t place) {
    uint32_t type = 0;
    if (!NIL_P(statement->declared)) memcpy(&type, RSTRING_PTR(statement->declared) + place * sizeof(type), sizeof(type));
    if (type == 0 && rpg_request_is_binary(request, place) && place < statement->parameters_len) type = statement->parameters[place];
    return type;
}

static uint16_t types_len(const rpg_statement *statement, const rpg_request *request) {
    if (rpg_request_has_binary(request)) return rpg_request_params(request);
    return NIL_P(statement->declared) ? 0 : (uint16_t)(RSTRING_LEN(statement->declared) / (long)sizeof(uint32_t));
}

/* The memory in which parameters are encoded is free while a flight is made. */
static void put_parse_and_describe(rpg_lane *lane, const rpg_statement *statement, const rpg_request *request, rpg_span name) {
    uint16_t count = types_len(statement, request);
    uint32_t *types = count > 0 ? (uint32_t *)(void *)rpg_out_room(&lane->scratch, sizeof(*types) * count) : NULL;
    for (uint16_t i = 0; types && i < count; i++) types[i] = type_of(statement, request, i);
    rpg_put_parse(&lane->flight, name, span_of(statement->sql), types, types ? count : 0);
    if (count > 0 && !types) lane->flight.state = RPG_OUT_NO_MEMORY;
    rpg_out_cut(&lane->scratch, 0);
    rpg_put_describe(&lane->flight, 'S', name);
}

static uint16_t put_parse(rpg_lane *lane, rpg_statement *statement, const rpg_request *request) {
    if (name_for(statement, request).len > 0) return 0;
    if (is_to_be_named(lane, statement, request)) give_name(lane, statement);
    statement->used = true;
    put_parse_and_describe(lane, statement, request, name_for(statement, request));
    return RPG_STEP_PARSE | RPG_STEP_DESCRIBE;
}

/* One name that is not needed any more. */
static uint16_t put_close(rpg_lane *lane) {
    if (lane->closes.len == 0) return 0;
    size_t len = strlen((const char *)lane->closes.bytes);
    rpg_put_close(&lane->flight, 'S', (rpg_span){lane->closes.bytes, len});
    memmove(lane->closes.bytes, lane->closes.bytes + len + 1, lane->closes.len - len - 1);
    lane->closes.len -= len + 1;
    return RPG_STEP_CLOSE;
}

static const rpg_span unnamed = {(const uint8_t *)"", 0};

static uint16_t put_sync(rpg_lane *lane) {
    rpg_put_sync(&lane->flight);
    return RPG_STEP_SYNC;
}

/* Without a Sync, which would end the portal outside of a transaction. */
static uint16_t put_leg(rpg_lane *lane) {
    rpg_put_execute(&lane->flight, unnamed, LEG_ROWS);
    rpg_put_flush(&lane->flight);
    return RPG_STEP_EXECUTE;
}

static uint16_t put_statement(rpg_lane *lane, rpg_request *request) {
    rpg_statement *statement = rpg_statement_get(request->statement);
    uint16_t steps = put_close(lane), parse = put_parse(lane, statement, request);
    request->parses = parse != 0 && !request->again;
    request->formats = parse ? Qnil : statement->columns;
    put_bind(&lane->flight, statement, request);
    steps |= parse | RPG_STEP_BIND;
    if (request->leg) return steps | put_leg(lane);
    rpg_put_execute(&lane->flight, unnamed, 0);
    return steps | RPG_STEP_EXECUTE | (request->syncs ? put_sync(lane) : 0);
}

/* Without a name, for its first use decides whether it has one. */
static uint16_t put_description(rpg_lane *lane, const rpg_request *request) {
    put_parse_and_describe(lane, rpg_statement_get(request->statement), request, unnamed);
    return RPG_STEP_PARSE | RPG_STEP_DESCRIBE | put_sync(lane);
}

static uint16_t put_empty_query(rpg_lane *lane) {
    rpg_put_query(&lane->flight, (rpg_span){(const uint8_t *)"", 0});
    return RPG_STEP_QUERY;
}

static uint16_t put_script(rpg_lane *lane, const rpg_request *request) {
    rpg_put_query(&lane->flight, (rpg_span){request->params, request->params_len});
    return RPG_STEP_QUERY;
}

static uint16_t put_steps(rpg_lane *lane, rpg_request *request) {
    if (request->script) return put_script(lane, request);
    if (request->leg == RPG_LAST_LEG) return put_sync(lane);
    if (request->leg == RPG_NEXT_LEG) return put_leg(lane);
    if (request->describes) return put_description(lane, request);
    return NIL_P(request->statement) ? put_empty_query(lane) : put_statement(lane, request);
}

static void put_request(rpg_lane *lane, rpg_request *request) {
    size_t before = lane->flight.len;
    uint16_t steps = put_steps(lane, request);
    request->flight_len = lane->flight.len - before;
    lane->unanswered += request->flight_len;
    if (!rpg_replies_expect(&lane->replies, steps, request)) lane->flight.state = RPG_OUT_NO_MEMORY;
}

/* --- a flight --- */

void rpg_load_flight(rpg_lane *lane) {
    rpg_request *request;
    while ((request = rpg_window_next(lane))) {
        request->behind = lane->sent.len > 0;
        rpg_requests_append(&lane->sent, request);
        request->sent = true;
        if (RB_UNLIKELY(lane->observed)) request->seen = rpg_seen_new(rpg_now(lane));
        if (!request->abandoned) lane->live++;
        put_request(lane, request);
    }
}

/* Behind what a plain thread has left of its own. */
static void take_off(VALUE self) {
    rpg_lane *lane = RTYPEDDATA_GET_DATA(self);
    lane->flight_asked = false;
    rpg_load_flight(lane);
    bool fine = lane->flight.state == RPG_OUT_FINE &&
                (lane->flight.len == 0 || ringspun->stream_put(lane->stream, lane->flight.bytes, lane->flight.len));
    rpg_out_cut(&lane->flight, 0);
    if (!fine) rpg_lose(lane, "the statements could not be sent");
}

void rpg_ask_flight(rpg_lane *lane) {
    if (lane->flight_asked || (!lane->outbox.first && lane->flight.len == 0) || lane->lost[0]) return;
    if (RB_UNLIKELY(lane->threads.active)) {
        lane->threads.calls = true;
        return;
    }
    lane->flight_asked = ringspun->at_tick_end(take_off, lane->self);
    if (!lane->flight_asked) rpg_lose(lane, "there was no memory for the statements");
}
