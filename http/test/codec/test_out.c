/* What is sent: lines and fields, how a body is framed, dates, and the words behind a status. */
#include "codec/date.h"
#include "codec/out.h"
#include "codec/plan.h"
#include "codec/reasons.h"
#include "test.h"

static uint8_t buffer[1000];

static rhttp_text text_of(const char *chars) { return (rhttp_text){chars, strlen(chars)}; }

static bool is(const uint8_t *end, const char *expected) {
    size_t len = (size_t)(end - buffer);
    bool same = len == strlen(expected) && memcmp(buffer, expected, len) == 0;
    if (!same) printf("  it is not `%s`, but `%.*s`\n", expected, (int)len, (const char *)buffer);
    return same;
}

TEST(each_piece_is_as_long_as_it_has_said) {
    CHECK(is(rhttp_put_status_line(buffer, 200, RHTTP_TEXT("OK")), "HTTP/1.1 200 OK\r\n"));
    CHECK_EQUAL(17, rhttp_status_line_size(RHTTP_TEXT("OK")));
    CHECK(is(rhttp_put_status_line(buffer, 599, RHTTP_TEXT("")), "HTTP/1.1 599 \r\n"));
    CHECK_EQUAL(15, rhttp_status_line_size(RHTTP_TEXT("")));
    CHECK(is(rhttp_put_request_line(buffer, RHTTP_TEXT("GET"), RHTTP_TEXT("/a")), "GET /a HTTP/1.1\r\n"));
    CHECK_EQUAL(17, rhttp_request_line_size(RHTTP_TEXT("GET"), RHTTP_TEXT("/a")));
    CHECK(is(rhttp_put_field(buffer, RHTTP_TEXT("a"), RHTTP_TEXT("b c")), "a: b c\r\n"));
    CHECK_EQUAL(8, rhttp_field_size(RHTTP_TEXT("a"), RHTTP_TEXT("b c")));
    CHECK(is(rhttp_put_field(buffer, RHTTP_TEXT("a"), (rhttp_text){NULL, 0}), "a: \r\n"));
    CHECK(is(rhttp_put_last_chunk(buffer), "0\r\n") && is(rhttp_put_end(buffer), "\r\n"));
    CHECK_EQUAL(RHTTP_LAST_CHUNK_SIZE, rhttp_put_last_chunk(buffer) - buffer);
}

TEST(numbers_are_written_as_they_are) {
    const struct { uint64_t number; const char *decimal, *hex; } cases[] = {
        {1, "1", "1\r\n"}, {9, "9", "9\r\n"}, {10, "10", "a\r\n"}, {15, "15", "f\r\n"}, {16, "16", "10\r\n"},
        {4095, "4095", "fff\r\n"}, {UINT64_MAX, "18446744073709551615", "ffffffffffffffff\r\n"}
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        CHECK(is(rhttp_put_number(buffer, cases[i].number), cases[i].decimal));
        CHECK_EQUAL(strlen(cases[i].decimal), rhttp_number_size(cases[i].number));
        CHECK(is(rhttp_put_chunk_head(buffer, cases[i].number), cases[i].hex));
        CHECK_EQUAL(strlen(cases[i].hex), rhttp_chunk_head_size(cases[i].number));
    }
    CHECK(is(rhttp_put_number(buffer, 0), "0"));
    CHECK_EQUAL(1, rhttp_number_size(0));
    CHECK_EQUAL(RHTTP_NUMBER_MAX, rhttp_number_size(UINT64_MAX));
}

TEST(what_would_begin_another_field_may_not_be_sent) {
    CHECK(rhttp_may_send_name(RHTTP_TEXT("x-a_b")) && rhttp_may_send_value(RHTTP_TEXT("")));
    CHECK(rhttp_may_send_value(RHTTP_TEXT(" a\tb\xff ")) && !rhttp_may_send_name(RHTTP_TEXT("")));
    CHECK(!rhttp_may_send_name(RHTTP_TEXT("a b")) && !rhttp_may_send_name(RHTTP_TEXT("a:")));
    for (int byte = 0; byte < 256; byte++) {
        char value[] = "0123456789abcdef";
        value[byte % 16] = (char)byte;
        bool may = byte == '\t' || (byte >= ' ' && byte != 0x7f);
        CHECK_EQUAL(may, rhttp_may_send_value((rhttp_text){value, 16}));
        CHECK_EQUAL(may && byte > ' ' && byte < 0x7f && byte != '#', rhttp_may_send_target((rhttp_text){value, 16}));
        if (!may) CHECK(!rhttp_may_send_name((rhttp_text){value, 16}) && !rhttp_may_send_method((rhttp_text){value, 16}));
    }
    CHECK(!rhttp_may_send_method(RHTTP_TEXT("")) && rhttp_may_send_method(RHTTP_TEXT("GET")));
    CHECK(!rhttp_may_send_target(RHTTP_TEXT("")));
    CHECK(rhttp_may_send_status(100) && rhttp_may_send_status(999) && !rhttp_may_send_status(99) && !rhttp_may_send_status(1000));
}

/* What a program answers, in short, and what the head says of it. */
typedef struct {
    rhttp_answer answer;
    rhttp_body body;
    const char *fields;
    bool keeps_alive;
} answer_case;

#define ANSWER(version_of, method_of, status_of, gives_of, ...)                                                                \
    {.version = RHTTP_1_##version_of, .method = RHTTP_METHOD_##method_of, .status = status_of, .gives = RHTTP_GIVES_##gives_of, \
     .keeps_alive = true, __VA_ARGS__}
#define LONG .len = 5
#define SAID .len = 5, .says_len = true
#define NOTHING_SAID .len = 0, .says_len = true
#define LAST .keeps_alive = false

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static const answer_case answers[] = {
    {ANSWER(1, GET, 200, LENGTH, LONG), RHTTP_BODY_LENGTH, "content-length: 5\r\n", true},
    {ANSWER(1, GET, 200, LENGTH, LONG, LAST), RHTTP_BODY_LENGTH, "content-length: 5\r\nconnection: close\r\n", false},
    {ANSWER(1, GET, 200, NOTHING, .len = 0), RHTTP_BODY_LENGTH, "content-length: 0\r\n", true},
    {ANSWER(1, POST, 201, STREAM, .len = 0), RHTTP_BODY_CHUNKED, "transfer-encoding: chunked\r\n", true},
    {ANSWER(1, GET, 200, STREAM, LAST), RHTTP_BODY_CHUNKED, "transfer-encoding: chunked\r\nconnection: close\r\n", false},
    {ANSWER(0, GET, 200, LENGTH, LONG), RHTTP_BODY_LENGTH, "content-length: 5\r\nconnection: keep-alive\r\n", true},
    {ANSWER(0, GET, 200, STREAM, .len = 0), RHTTP_BODY_UNTIL_CLOSE, "connection: close\r\n", false},
    {ANSWER(1, HEAD, 200, LENGTH, LONG), RHTTP_BODY_NONE, "", true},
    {ANSWER(1, HEAD, 200, LENGTH, SAID), RHTTP_BODY_NONE, "content-length: 5\r\n", true},
    {ANSWER(1, HEAD, 200, LENGTH, .len = 0), RHTTP_BODY_NONE, "", true},
    {ANSWER(1, HEAD, 200, STREAM, .len = 0), RHTTP_BODY_NONE, "", true},
    {ANSWER(0, HEAD, 200, STREAM, .len = 0), RHTTP_BODY_NONE, "connection: keep-alive\r\n", true},
    {ANSWER(1, GET, 304, LENGTH, .len = 0), RHTTP_BODY_NONE, "", true},
    {ANSWER(1, GET, 304, LENGTH, SAID), RHTTP_BODY_NONE, "content-length: 5\r\n", true},
    {ANSWER(1, GET, 204, LENGTH, SAID), RHTTP_BODY_NONE, "", true},
    {ANSWER(1, HEAD, 200, LENGTH, NOTHING_SAID), RHTTP_BODY_NONE, "content-length: 0\r\n", true},
    {ANSWER(1, GET, 204, NOTHING, LAST), RHTTP_BODY_NONE, "connection: close\r\n", false},
    {ANSWER(1, GET, 205, LENGTH, LONG), RHTTP_BODY_NONE, "content-length: 0\r\n", true},
    {ANSWER(1, GET, 103, NOTHING, LAST), RHTTP_BODY_NONE, "", false},
    {ANSWER(1, GET, 101, STREAM, .len = 0), RHTTP_BODY_TUNNEL, "", false},
    {ANSWER(1, CONNECT, 200, NOTHING, .len = 0), RHTTP_BODY_TUNNEL, "", false},
    {ANSWER(1, CONNECT, 405, LENGTH, LONG), RHTTP_BODY_LENGTH, "content-length: 5\r\n", true}
};
#pragma GCC diagnostic pop

TEST(an_answer_says_where_its_body_ends_and_whether_the_connection_goes_on) {
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
        rhttp_plan plan = rhttp_plan_answer(&answers[i].answer);
        int failures = test_failures;
        CHECK_EQUAL(answers[i].body, plan.body);
        CHECK(is(rhttp_put_plan(buffer, &plan), answers[i].fields));
        CHECK_EQUAL(strlen(answers[i].fields), rhttp_plan_size(&plan));
        CHECK_EQUAL(answers[i].keeps_alive, plan.keeps_alive);
        if (test_failures > failures) printf("  in row %zu\n", i);
    }
}

TEST(a_request_says_where_its_body_ends) {
    const struct { rhttp_method method; rhttp_gives gives; const char *fields; } cases[] = {
        {RHTTP_METHOD_GET, RHTTP_GIVES_NOTHING, ""}, {RHTTP_METHOD_POST, RHTTP_GIVES_NOTHING, "content-length: 0\r\n"},
        {RHTTP_METHOD_PUT, RHTTP_GIVES_LENGTH, "content-length: 7\r\n"},
        {RHTTP_METHOD_GET, RHTTP_GIVES_LENGTH, "content-length: 7\r\n"},
        {RHTTP_METHOD_POST, RHTTP_GIVES_STREAM, "transfer-encoding: chunked\r\n"}
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        rhttp_plan plan = rhttp_plan_request(cases[i].method, cases[i].gives, 7);
        CHECK(is(rhttp_put_plan(buffer, &plan), cases[i].fields) && plan.keeps_alive);
    }
}

TEST(a_date_is_that_of_the_second) {
    const struct { int64_t second; const char *expected; } cases[] = {
        {0, "Thu, 01 Jan 1970 00:00:00 GMT"}, {784111777, "Sun, 06 Nov 1994 08:49:37 GMT"},
        {951782400, "Tue, 29 Feb 2000 00:00:00 GMT"},
        {951868799, "Tue, 29 Feb 2000 23:59:59 GMT"}, {951868800, "Wed, 01 Mar 2000 00:00:00 GMT"},
        {4107542400, "Mon, 01 Mar 2100 00:00:00 GMT"}, {1796083199, "Mon, 30 Nov 2026 23:59:59 GMT"},
        {253402300799, "Fri, 31 Dec 9999 23:59:59 GMT"}, {253402300800, "Fri, 31 Dec 9999 23:59:59 GMT"},
        {-1, "Thu, 01 Jan 1970 00:00:00 GMT"}
    };
    rhttp_date date = {0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        for (int twice = 0; twice < 2; twice++) {
            CHECK(memcmp(cases[i].expected, rhttp_date_at(&date, cases[i].second), RHTTP_DATE_LEN) == 0);
        }
    }
}

TEST(a_status_has_a_reason_or_none) {
    CHECK(strcmp(rhttp_reason(200), "OK") == 0 && strcmp(rhttp_reason(404), "Not Found") == 0);
    CHECK(strcmp(rhttp_reason(100), "Continue") == 0 && strcmp(rhttp_reason(511), "Network Authentication Required") == 0);
    const uint16_t unknown[] = {0, 99, 299, 306, 418, 599, 600, 999, 65535};
    for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++) CHECK(strcmp(rhttp_reason(unknown[i]), "") == 0);
    for (uint16_t status = 100; status < 600; status++) CHECK(rhttp_may_send_value(text_of(rhttp_reason(status))));
}

int main(int argc, char **argv) { return test_main(argc, argv); }
