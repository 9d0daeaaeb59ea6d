/* The order of answers: which request each one is for, and what is none. */
#include "codec/replies.h"
#include "test.h"

#include <stdlib.h>

#define STATEMENT (RPG_STEP_BIND | RPG_STEP_EXECUTE | RPG_STEP_SYNC)
#define FIRST_USE (RPG_STEP_PARSE | RPG_STEP_DESCRIBE | STATEMENT)

static char tags[64];

static rpg_event take(rpg_replies *replies, uint8_t type) {
    return rpg_replies_take(replies, &(rpg_message){type, (const uint8_t *)"", 0});
}

#define CHECK_TAKEN(replies, type, event, n)                                                                          \
    do {                                                                                                              \
        rpg_event taken = take(replies, type);                                                                        \
        CHECK_EQUAL(event, taken.kind);                                                                               \
        CHECK(taken.tag == &tags[n]);                                                                                 \
    } while (0)

#define CHECK_ENDED(replies, n, how)                                                                                  \
    do {                                                                                                              \
        void *tag = NULL;                                                                                             \
        rpg_end_kind end = RPG_ENDED_WELL;                                                                            \
        CHECK(rpg_replies_next_ended(replies, &tag, &end));                                                           \
        CHECK(tag == &tags[n]);                                                                                       \
        CHECK_EQUAL(how, end);                                                                                        \
    } while (0)

static bool none_ended(rpg_replies *replies) {
    void *tag;
    rpg_end_kind end;
    return !rpg_replies_next_ended(replies, &tag, &end);
}

TEST(answers_are_for_requests_in_the_order_in_which_these_were_sent) {
    rpg_replies replies = {0};
    for (int i = 0; i < 3; i++) CHECK(rpg_replies_expect(&replies, STATEMENT, &tags[i]));
    for (int i = 0; i < 3; i++) {
        CHECK_TAKEN(&replies, '2', RPG_EVENT_STEP, i);
        CHECK_TAKEN(&replies, 'D', RPG_EVENT_ROW, i);
        CHECK_TAKEN(&replies, 'D', RPG_EVENT_ROW, i);
        CHECK_TAKEN(&replies, 'C', RPG_EVENT_COMPLETE, i);
        CHECK(none_ended(&replies));
        CHECK_TAKEN(&replies, 'Z', RPG_EVENT_READY, i);
        CHECK_ENDED(&replies, i, RPG_ENDED_WELL);
        CHECK(none_ended(&replies));
    }
    CHECK_EQUAL(RPG_EVENT_PROTOCOL_ERROR, take(&replies, 'Z').kind);
    rpg_replies_free(&replies);
}

TEST(a_first_use_tells_parameters_and_columns_before_it_is_bound) {
    rpg_replies replies = {0};
    rpg_replies_expect(&replies, FIRST_USE | RPG_STEP_CLOSE, &tags[0]);
    CHECK_TAKEN(&replies, '3', RPG_EVENT_STEP, 0);
    CHECK_TAKEN(&replies, '1', RPG_EVENT_STEP, 0);
    CHECK_TAKEN(&replies, 't', RPG_EVENT_PARAMETERS, 0);
    CHECK_TAKEN(&replies, 'T', RPG_EVENT_COLUMNS, 0);
    CHECK_TAKEN(&replies, '2', RPG_EVENT_STEP, 0);
    CHECK_TAKEN(&replies, 'I', RPG_EVENT_EMPTY, 0);
    CHECK_TAKEN(&replies, 'Z', RPG_EVENT_READY, 0);
    CHECK_ENDED(&replies, 0, RPG_ENDED_WELL);
    rpg_replies_free(&replies);
}

/* Each message at each place where it is none, for a connection that believed it would give one request the rows of another. */
TEST(whatever_comes_out_of_turn_is_an_error_of_the_protocol) {
    const uint16_t orders[] = {FIRST_USE, STATEMENT, RPG_STEP_SYNC, RPG_STEP_CLOSE | RPG_STEP_SYNC};
    const char *allowed[] = {"1", "2", "Z", "3"};
    for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++) {
        for (int type = 1; type < 256; type++) {
            rpg_replies replies = {0};
            rpg_replies_expect(&replies, orders[i], &tags[0]);
            bool expected = strchr(allowed[i], type) || strchr("ENSA", type);
            CHECK_EQUAL(!expected, take(&replies, (uint8_t)type).kind == RPG_EVENT_PROTOCOL_ERROR);
            rpg_replies_free(&replies);
        }
    }
}

TEST(an_error_ends_one_request_and_leaves_those_behind_its_sync_alone) {
    rpg_replies replies = {0};
    for (int i = 0; i < 3; i++) rpg_replies_expect(&replies, STATEMENT, &tags[i]);
    CHECK_TAKEN(&replies, '2', RPG_EVENT_STEP, 0);
    CHECK_TAKEN(&replies, 'E', RPG_EVENT_ERROR, 0);
    CHECK(none_ended(&replies));
    CHECK_TAKEN(&replies, 'Z', RPG_EVENT_READY, 0);
    CHECK_ENDED(&replies, 0, RPG_ENDED_BY_ERROR);
    CHECK(none_ended(&replies));
    CHECK_TAKEN(&replies, '2', RPG_EVENT_STEP, 1);
    CHECK_TAKEN(&replies, 'C', RPG_EVENT_COMPLETE, 1);
    CHECK_TAKEN(&replies, 'Z', RPG_EVENT_READY, 1);
    CHECK_ENDED(&replies, 1, RPG_ENDED_WELL);
    rpg_replies_free(&replies);
}

TEST(an_error_in_a_batch_skips_all_up_to_its_sync_also_what_is_sent_afterwards) {
    rpg_replies replies = {0};
    uint16_t without_sync = RPG_STEP_BIND | RPG_STEP_EXECUTE;
    for (int i = 0; i < 3; i++) rpg_replies_expect(&replies, without_sync, &tags[i]);
    CHECK_TAKEN(&replies, '2', RPG_EVENT_STEP, 0);
    CHECK_TAKEN(&replies, 'C', RPG_EVENT_COMPLETE, 0);
    CHECK_ENDED(&replies, 0, RPG_ENDED_WELL);
    CHECK_TAKEN(&replies, 'E', RPG_EVENT_ERROR, 1);
    CHECK_ENDED(&replies, 1, RPG_ENDED_BY_ERROR);
    CHECK_ENDED(&replies, 2, RPG_ENDED_SKIPPED);
    CHECK(none_ended(&replies));
    rpg_replies_expect(&replies, without_sync, &tags[3]);
    rpg_replies_expect(&replies, RPG_STEP_SYNC, &tags[4]);
    rpg_replies_expect(&replies, STATEMENT, &tags[5]);
    CHECK_ENDED(&replies, 3, RPG_ENDED_SKIPPED);
    CHECK(none_ended(&replies));
    CHECK_EQUAL(RPG_EVENT_PROTOCOL_ERROR, take(&replies, '2').kind);
    CHECK_TAKEN(&replies, 'Z', RPG_EVENT_READY, 4);
    CHECK_ENDED(&replies, 4, RPG_ENDED_WELL);
    CHECK_TAKEN(&replies, '2', RPG_EVENT_STEP, 5);
    rpg_replies_free(&replies);
}

TEST(a_simple_query_has_several_results_and_ends_by_itself) {
    rpg_replies replies = {0};
    rpg_replies_expect(&replies, RPG_STEP_QUERY, &tags[0]);
    rpg_replies_expect(&replies, RPG_STEP_QUERY, &tags[1]);
    CHECK_TAKEN(&replies, 'T', RPG_EVENT_COLUMNS, 0);
    CHECK_TAKEN(&replies, 'D', RPG_EVENT_ROW, 0);
    CHECK_TAKEN(&replies, 'C', RPG_EVENT_COMPLETE, 0);
    CHECK_TAKEN(&replies, 'C', RPG_EVENT_COMPLETE, 0);
    CHECK_TAKEN(&replies, 'E', RPG_EVENT_ERROR, 0);
    CHECK(none_ended(&replies));
    CHECK_TAKEN(&replies, 'Z', RPG_EVENT_READY, 0);
    CHECK_ENDED(&replies, 0, RPG_ENDED_BY_ERROR);
    CHECK_TAKEN(&replies, 'I', RPG_EVENT_EMPTY, 1);
    CHECK_TAKEN(&replies, 'Z', RPG_EVENT_READY, 1);
    CHECK_ENDED(&replies, 1, RPG_ENDED_WELL);
    rpg_replies_free(&replies);
}

TEST(what_belongs_to_no_request_may_come_at_any_time) {
    rpg_replies replies = {0};
    for (const char *type = "NSA"; *type; type++) CHECK_EQUAL(RPG_EVENT_ASIDE, take(&replies, (uint8_t)*type).kind);
    rpg_replies_expect(&replies, STATEMENT, &tags[0]);
    for (const char *type = "NSA"; *type; type++) CHECK_EQUAL(RPG_EVENT_ASIDE, take(&replies, (uint8_t)*type).kind);
    CHECK_TAKEN(&replies, '2', RPG_EVENT_STEP, 0);
    rpg_replies_free(&replies);
}

TEST(an_error_that_nobody_asked_for_is_a_server_that_is_about_to_close) {
    rpg_replies replies = {0};
    rpg_event event = take(&replies, 'E');
    CHECK_EQUAL(RPG_EVENT_ERROR, event.kind);
    CHECK(event.tag == NULL);
    CHECK(none_ended(&replies));
}

TEST(a_copy_to_the_server_ends_with_what_it_answers_to_the_last_of_the_data) {
    rpg_replies replies = {0};
    rpg_replies_expect(&replies, RPG_STEP_QUERY, &tags[0]);
    CHECK_TAKEN(&replies, 'G', RPG_EVENT_COPY_IN, 0);
    CHECK_EQUAL(RPG_COPIES_IN, replies.copy);
    CHECK_TAKEN(&replies, 'C', RPG_EVENT_COMPLETE, 0);
    CHECK_EQUAL(RPG_NO_COPY, replies.copy);
    CHECK_TAKEN(&replies, 'Z', RPG_EVENT_READY, 0);
    rpg_replies_free(&replies);
}

TEST(a_copy_from_the_server_has_data_until_it_is_done) {
    rpg_replies replies = {0};
    rpg_replies_expect(&replies, RPG_STEP_QUERY, &tags[0]);
    CHECK_EQUAL(RPG_EVENT_PROTOCOL_ERROR, take(&replies, 'd').kind);
    CHECK_TAKEN(&replies, 'H', RPG_EVENT_COPY_OUT, 0);
    CHECK_TAKEN(&replies, 'd', RPG_EVENT_COPY_DATA, 0);
    CHECK_EQUAL(RPG_EVENT_PROTOCOL_ERROR, take(&replies, 'C').kind);
    CHECK_TAKEN(&replies, 'c', RPG_EVENT_COPY_DONE, 0);
    CHECK_TAKEN(&replies, 'C', RPG_EVENT_COMPLETE, 0);
    CHECK_TAKEN(&replies, 'Z', RPG_EVENT_READY, 0);
    rpg_replies_free(&replies);
}

TEST(a_copy_that_fails_is_over) {
    rpg_replies replies = {0};
    rpg_replies_expect(&replies, RPG_STEP_QUERY, &tags[0]);
    CHECK_TAKEN(&replies, 'H', RPG_EVENT_COPY_OUT, 0);
    CHECK_TAKEN(&replies, 'E', RPG_EVENT_ERROR, 0);
    CHECK_TAKEN(&replies, 'Z', RPG_EVENT_READY, 0);
    CHECK_ENDED(&replies, 0, RPG_ENDED_BY_ERROR);
    rpg_replies_free(&replies);
}

TEST(a_portal_may_have_more_rows) {
    rpg_replies replies = {0};
    rpg_replies_expect(&replies, STATEMENT, &tags[0]);
    CHECK_TAKEN(&replies, '2', RPG_EVENT_STEP, 0);
    CHECK_TAKEN(&replies, 'D', RPG_EVENT_ROW, 0);
    CHECK_TAKEN(&replies, 's', RPG_EVENT_SUSPENDED, 0);
    CHECK_TAKEN(&replies, 'Z', RPG_EVENT_READY, 0);
    CHECK_ENDED(&replies, 0, RPG_ENDED_WELL);
    rpg_replies_free(&replies);
}

TEST(many_requests_keep_their_order_while_the_ring_grows_around_its_end) {
    rpg_replies replies = {0};
    static char many[1000];
    int sent = 0, answered = 0;
    while (answered < 1000) {
        for (int i = 0; i < 7 && sent < 1000; i++) CHECK(rpg_replies_expect(&replies, RPG_STEP_SYNC, &many[sent++]));
        for (int i = 0; i < 3 && answered < sent; i++, answered++) {
            void *tag;
            rpg_end_kind end;
            CHECK(take(&replies, 'Z').tag == &many[answered]);
            CHECK(rpg_replies_next_ended(&replies, &tag, &end) && tag == &many[answered]);
        }
    }
    rpg_replies_free(&replies);
}

TEST(a_message_that_has_no_body_comes_without_one) {
    const struct { uint16_t steps; uint8_t type; } all[] = {
        {RPG_STEP_PARSE, '1'}, {RPG_STEP_BIND, '2'}, {RPG_STEP_CLOSE, '3'}, {RPG_STEP_EXECUTE, 'I'}, {RPG_STEP_EXECUTE, 's'},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        rpg_replies replies = {0};
        rpg_replies_expect(&replies, all[i].steps | RPG_STEP_SYNC, &tags[0]);
        const rpg_message longer = {all[i].type, (const uint8_t *)"x", 1};
        CHECK_EQUAL(RPG_EVENT_PROTOCOL_ERROR, rpg_replies_take(&replies, &longer).kind);
        rpg_replies_free(&replies);
    }
}

TEST(a_copy_is_ended_by_no_other_answer) {
    const uint8_t copies[] = "GH", others[] = "Is";
    for (size_t i = 0; i < 4; i++) {
        rpg_replies replies = {0};
        rpg_replies_expect(&replies, STATEMENT, &tags[0]);
        CHECK_TAKEN(&replies, '2', RPG_EVENT_STEP, 0);
        take(&replies, copies[i / 2]);
        CHECK_EQUAL(RPG_EVENT_PROTOCOL_ERROR, take(&replies, others[i % 2]).kind);
        rpg_replies_free(&replies);
    }
}

TEST(an_error_after_half_of_a_description_ends_the_request) {
    rpg_replies replies = {0};
    rpg_replies_expect(&replies, FIRST_USE, &tags[0]);
    CHECK_TAKEN(&replies, '1', RPG_EVENT_STEP, 0);
    CHECK_TAKEN(&replies, 't', RPG_EVENT_PARAMETERS, 0);
    CHECK_TAKEN(&replies, 'E', RPG_EVENT_ERROR, 0);
    CHECK(none_ended(&replies));
    CHECK_TAKEN(&replies, 'Z', RPG_EVENT_READY, 0);
    CHECK_ENDED(&replies, 0, RPG_ENDED_BY_ERROR);
    rpg_replies_free(&replies);
}

/* Also what a server says after it is not listened to any more finds the state as it was. */
TEST(an_error_of_the_protocol_changes_nothing) {
    rpg_replies replies = {0};
    rpg_replies_expect(&replies, FIRST_USE, &tags[0]);
    const rpg_message longer = {'1', (const uint8_t *)"x", 1};
    CHECK_EQUAL(RPG_EVENT_PROTOCOL_ERROR, rpg_replies_take(&replies, &longer).kind);
    for (const char *type = "2nTDCIsGHdcZ"; *type; type++) CHECK_EQUAL(RPG_EVENT_PROTOCOL_ERROR, take(&replies, (uint8_t)*type).kind);
    CHECK_EQUAL(RPG_NO_COPY, replies.copy);
    CHECK_TAKEN(&replies, '1', RPG_EVENT_STEP, 0);
    rpg_replies_free(&replies);
}

int main(int argc, char **argv) { return test_main(argc, argv); }
