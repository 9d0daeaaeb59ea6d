#include "codec/replies.h"
#include "codec/check.h"

#include <stdlib.h>

/* Requests without an answer that have room at first. It doubles. */
#define FIRST_CAPACITY 16u

/* These have an answer even after an error. */
#define ENDING_STEPS (RPG_STEP_QUERY | RPG_STEP_SYNC)

static uint16_t next_step(const rpg_expected *expected) { return (uint16_t)(expected->steps & -expected->steps); }

/* --- what always holds --- */

static bool is_ring(const rpg_replies *replies) {
    uint32_t capacity = replies->capacity;
    if (capacity == 0) return !replies->ring && replies->len == 0;
    return replies->ring && (capacity & (capacity - 1)) == 0 && replies->first < capacity && replies->len <= capacity;
}

/* A COPY is of a step that executes, and an error has ended it. */
static bool copies_soundly(const rpg_replies *replies) {
    if (replies->copy == RPG_NO_COPY) return true;
    uint16_t step = replies->len > 0 ? next_step(&replies->ring[replies->first]) : 0;
    return !replies->skips && (step == RPG_STEP_EXECUTE || step == RPG_STEP_QUERY);
}

static bool is_sound(const rpg_replies *replies) {
    if (!is_ring(replies) || !copies_soundly(replies)) return false;
    return replies->len == 0 || !replies->ring[replies->first].has_parameters ||
           next_step(&replies->ring[replies->first]) == RPG_STEP_DESCRIBE;
}

/* A simple query stands alone, for it has a ReadyForQuery of its own. */
static bool are_steps(uint16_t steps) {
    return steps != 0 && steps < RPG_STEP_SYNC * 2 && (!(steps & RPG_STEP_QUERY) || steps == RPG_STEP_QUERY);
}

/* Else rpg_replies_next_ended has something to say. */
static bool awaits_answer(const rpg_replies *replies, const rpg_expected *expected) {
    return expected->steps != 0 && !(replies->skips && (expected->steps & ~ENDING_STEPS));
}

/* --- the ring --- */

void rpg_replies_free(rpg_replies *replies) {
    free(replies->ring);
    *replies = (rpg_replies){0};
}

static rpg_expected *at(const rpg_replies *replies, uint32_t place) {
    return &replies->ring[(replies->first + place) & (replies->capacity - 1)];
}

static bool grow(rpg_replies *replies) {
    uint32_t capacity = replies->capacity ? replies->capacity * 2 : FIRST_CAPACITY;
    rpg_expected *ring = malloc(sizeof(*ring) * capacity);
    if (!ring) return false;
    for (uint32_t i = 0; i < replies->len; i++) ring[i] = *at(replies, i);
    free(replies->ring);
    replies->ring = ring;
    replies->capacity = capacity;
    replies->first = 0;
    return true;
}

bool rpg_replies_expect(rpg_replies *replies, uint16_t steps, void *tag) {
    RPG_CHECK(is_sound(replies));
    RPG_CHECK(are_steps(steps));
    RPG_CHECK(tag);
    if (replies->len == replies->capacity && !grow(replies)) return false;
    *at(replies, replies->len++) = (rpg_expected){.tag = tag, .steps = steps};
    return true;
}

/* --- what a message is --- */

static rpg_event_kind step_done(rpg_expected *expected, rpg_event_kind kind) {
    RPG_CHECK(expected->steps != 0);
    expected->steps &= (uint16_t)(expected->steps - 1);
    expected->has_parameters = false;
    return kind;
}

static rpg_event_kind done_if(rpg_expected *expected, uint16_t step, rpg_event_kind kind) {
    return next_step(expected) == step ? step_done(expected, kind) : RPG_EVENT_PROTOCOL_ERROR;
}

static bool is_before_columns(const rpg_expected *expected) {
    return next_step(expected) == RPG_STEP_DESCRIBE && expected->has_parameters;
}

static rpg_event_kind take_parameters(rpg_expected *expected) {
    if (next_step(expected) != RPG_STEP_DESCRIBE || expected->has_parameters) return RPG_EVENT_PROTOCOL_ERROR;
    expected->has_parameters = true;
    return RPG_EVENT_PARAMETERS;
}

static rpg_event_kind take_columns(rpg_expected *expected) {
    if (next_step(expected) == RPG_STEP_QUERY) return RPG_EVENT_COLUMNS;
    return is_before_columns(expected) ? step_done(expected, RPG_EVENT_COLUMNS) : RPG_EVENT_PROTOCOL_ERROR;
}

/* What an EXECUTE or a simple query sends, of which the latter goes on. */
static rpg_event_kind in_execution(rpg_expected *expected, rpg_event_kind kind, bool ends) {
    uint16_t step = next_step(expected);
    if (step == RPG_STEP_QUERY) return kind;
    if (step != RPG_STEP_EXECUTE) return RPG_EVENT_PROTOCOL_ERROR;
    return ends ? step_done(expected, kind) : kind;
}

static rpg_event_kind begin_copy(rpg_replies *replies, rpg_expected *expected, rpg_copy_kind copy, rpg_event_kind kind) {
    if (replies->copy != RPG_NO_COPY || in_execution(expected, kind, false) != kind) return RPG_EVENT_PROTOCOL_ERROR;
    replies->copy = (uint8_t)copy;
    return kind;
}

/* The messages that end an execution without a COPY. */
static rpg_event_kind end_without_copy(const rpg_replies *replies, rpg_expected *expected, rpg_event_kind kind) {
    return replies->copy == RPG_NO_COPY ? in_execution(expected, kind, true) : RPG_EVENT_PROTOCOL_ERROR;
}

static rpg_event_kind suspend(const rpg_replies *replies, rpg_expected *expected) {
    bool suspends = replies->copy == RPG_NO_COPY && next_step(expected) == RPG_STEP_EXECUTE;
    return suspends ? step_done(expected, RPG_EVENT_SUSPENDED) : RPG_EVENT_PROTOCOL_ERROR;
}

static rpg_event_kind in_copy_out(rpg_replies *replies, rpg_event_kind kind) {
    if (replies->copy != RPG_COPIES_OUT) return RPG_EVENT_PROTOCOL_ERROR;
    if (kind == RPG_EVENT_COPY_DONE) replies->copy = RPG_NO_COPY;
    return kind;
}

static rpg_event_kind complete(rpg_replies *replies, rpg_expected *expected) {
    if (replies->copy == RPG_COPIES_OUT) return RPG_EVENT_PROTOCOL_ERROR;
    replies->copy = RPG_NO_COPY;
    return in_execution(expected, RPG_EVENT_COMPLETE, true);
}

static rpg_event_kind fail(rpg_replies *replies, rpg_expected *expected) {
    expected->steps &= ENDING_STEPS;
    expected->end = RPG_ENDED_BY_ERROR;
    expected->has_parameters = false;
    replies->skips = next_step(expected) != RPG_STEP_QUERY;
    replies->copy = RPG_NO_COPY;
    return RPG_EVENT_ERROR;
}

/* A simple query ends by itself, and any other by its Sync. */
static rpg_event_kind ready(rpg_replies *replies, rpg_expected *expected) {
    uint16_t step = next_step(expected);
    if ((step & ENDING_STEPS) == 0 || replies->copy != RPG_NO_COPY) return RPG_EVENT_PROTOCOL_ERROR;
    replies->skips = false;
    return step_done(expected, RPG_EVENT_READY);
}

static rpg_event_kind answer(rpg_replies *replies, rpg_expected *first, uint8_t type) {
    switch (type) {
    case RPG_CLOSED: return done_if(first, RPG_STEP_CLOSE, RPG_EVENT_STEP);
    case RPG_PARSED: return done_if(first, RPG_STEP_PARSE, RPG_EVENT_STEP);
    case RPG_BOUND: return done_if(first, RPG_STEP_BIND, RPG_EVENT_STEP);
    case RPG_PARAMETERS: return take_parameters(first);
    case RPG_ROW_DESCRIPTION: return take_columns(first);
    case RPG_NO_DATA: return is_before_columns(first) ? step_done(first, RPG_EVENT_NO_COLUMNS) : RPG_EVENT_PROTOCOL_ERROR;
    case RPG_ROW: return in_execution(first, RPG_EVENT_ROW, false);
    case RPG_COMPLETE: return complete(replies, first);
    case RPG_EMPTY: return end_without_copy(replies, first, RPG_EVENT_EMPTY);
    case RPG_SUSPENDED: return suspend(replies, first);
    case RPG_COPY_IN: return begin_copy(replies, first, RPG_COPIES_IN, RPG_EVENT_COPY_IN);
    case RPG_COPY_OUT: return begin_copy(replies, first, RPG_COPIES_OUT, RPG_EVENT_COPY_OUT);
    case RPG_COPY_DATA: return in_copy_out(replies, RPG_EVENT_COPY_DATA);
    case RPG_COPY_DONE: return in_copy_out(replies, RPG_EVENT_COPY_DONE);
    case RPG_READY: return ready(replies, first);
    default: return RPG_EVENT_PROTOCOL_ERROR; /* COPY both ways, and results of functions, are never asked for */
    }
}

static bool is_aside(uint8_t type) { return type == RPG_NOTICE || type == RPG_NOTIFICATION || type == RPG_PARAMETER_STATUS; }

/* A server that is about to close says so by an error that answers nothing. */
static rpg_event_kind unasked(uint8_t type) { return type == RPG_ERROR ? RPG_EVENT_ERROR : RPG_EVENT_PROTOCOL_ERROR; }

/* https://www.postgresql.org/docs/17/protocol-message-formats.html */
static bool has_no_body(uint8_t type) {
    switch (type) {
    case RPG_PARSED: case RPG_BOUND: case RPG_CLOSED: case RPG_NO_DATA: case RPG_EMPTY: case RPG_SUSPENDED: case RPG_COPY_DONE:
        return true;
    default: return false;
    }
}

rpg_event rpg_replies_take(rpg_replies *replies, const rpg_message *message) {
    RPG_CHECK(is_sound(replies));
    if (is_aside(message->type)) return (rpg_event){RPG_EVENT_ASIDE, NULL};
    if (replies->len == 0) return (rpg_event){unasked(message->type), NULL};
    rpg_expected *first = at(replies, 0);
    RPG_CHECK(awaits_answer(replies, first));
    bool may_answer = !replies->skips || message->type == RPG_READY || message->type == RPG_ERROR;
    bool has_wrong_body = message->type != RPG_ROW && message->len > 0 && has_no_body(message->type);
    if (!may_answer || has_wrong_body) return (rpg_event){RPG_EVENT_PROTOCOL_ERROR, first->tag};
    rpg_event_kind kind = message->type == RPG_ERROR ? fail(replies, first) : answer(replies, first, message->type);
    RPG_CHECK(is_sound(replies));
    return (rpg_event){kind, first->tag};
}

bool rpg_replies_next_ended(rpg_replies *replies, void **tag, rpg_end_kind *end) {
    RPG_CHECK(is_sound(replies));
    if (replies->len == 0) return false;
    rpg_expected *first = at(replies, 0);
    if (replies->skips && (first->steps & ~ENDING_STEPS)) {
        first->steps &= ENDING_STEPS;
        first->end = RPG_ENDED_SKIPPED;
    }
    if (first->steps) return false;
    *tag = first->tag;
    *end = (rpg_end_kind)first->end;
    replies->first = (replies->first + 1) & (replies->capacity - 1);
    replies->len--;
    return true;
}
