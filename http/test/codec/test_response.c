/* The heads of answers, as a client reads them. */
#include "codec/head.h"
#include "test.h"

static rhttp_field fields[100];
static rhttp_response response;
static const char *source;

static rhttp_found take_for(rhttp_method asked, const char *head) {
    source = head;
    rhttp_response_begin(&response, &rhttp_usual_limits, fields, asked);
    return rhttp_response_take(&response, (const uint8_t *)head, strlen(head));
}

static rhttp_found take(const char *head) { return take_for(RHTTP_METHOD_GET, head); }

static rhttp_body body_of(rhttp_method asked, const char *head) {
    CHECK_EQUAL(RHTTP_WHOLE, take_for(asked, head));
    return (rhttp_body)response.head.body;
}

static rhttp_wrong wrong_of(const char *head) {
    CHECK_EQUAL(RHTTP_WRONG, take(head));
    return (rhttp_wrong)response.head.fields.wrong;
}

static bool is(rhttp_span span, const char *expected) {
    return span.len == strlen(expected) && memcmp(source + span.at, expected, span.len) == 0;
}

TEST(a_head_has_a_status_and_a_reason) {
    CHECK_EQUAL(RHTTP_WHOLE, take("HTTP/1.1 404 Not \xe4 Found\r\nServer: x\r\nContent-Length: 3\r\n\r\n"));
    CHECK(response.status == 404 && is(response.reason, "Not \xe4 Found") && response.head.version == RHTTP_1_1);
    CHECK(response.head.fields.count == 2 && fields[0].known == RHTTP_NAME_SERVER);
    CHECK(response.head.body == RHTTP_BODY_LENGTH && response.head.body_len == 3 && response.head.keeps_alive);
    CHECK_EQUAL(RHTTP_WHOLE, take("HTTP/1.0 299 \r\n\r\n"));
    CHECK(response.status == 299 && is(response.reason, "") && !response.head.keeps_alive);
    CHECK_EQUAL(RHTTP_WHOLE, take("HTTP/1.1 200\r\n\r\n"));
    CHECK(is(response.reason, ""));
}

TEST(a_head_that_comes_byte_by_byte_is_scanned_once) {
    const char *heads[] = {"HTTP/1.1 200 OK\r\nA: b\r\n\r\n", "HTTP/1.1 200\r\nA: b\r\n\r\n"};
    for (int i = 0; i < 2; i++) {
        rhttp_response_begin(&response, &rhttp_usual_limits, fields, RHTTP_METHOD_GET);
        for (size_t len = 0; len < strlen(heads[i]); len++) {
            CHECK_EQUAL(RHTTP_PART, rhttp_response_take(&response, (const uint8_t *)heads[i], len));
            CHECK_EQUAL(len, response.head.fields.at);
        }
        CHECK_EQUAL(RHTTP_WHOLE, rhttp_response_take(&response, (const uint8_t *)heads[i], strlen(heads[i])));
        CHECK_EQUAL(strlen(heads[i]), response.head.len);
    }
}

TEST(a_first_line_that_is_none_is_refused) {
    const char *lines[] = {"HTTP/1.1 99 x",  "HTTP/1.1 2000 x", "HTTP/1.1 20 x",     "HTTP/1.1  200 x",
                           "http/1.1 200 x", "HTTP/1.1 200\tx", "HTTP/1 200 x",      "HTTP/1.1 +20 x",
                           "HTTP/1.1 020 x", " HTTP/1.1 200 x", "HTTP/1.1 200 \x01", "ICY 200 OK"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        char head[64];
        snprintf(head, sizeof(head), "%s\r\n\r\n", lines[i]);
        CHECK_EQUAL(RHTTP_WRONG_STATUS_LINE, wrong_of(head));
    }
    CHECK_EQUAL(RHTTP_WRONG_VERSION, wrong_of("HTTP/2.0 200 OK\r\n\r\n"));
    CHECK_EQUAL(RHTTP_WRONG_BARE_LF, wrong_of("HTTP/1.1 200 OK\n\n"));
    CHECK_EQUAL(RHTTP_WRONG_BARE_CR, wrong_of("HTTP/1.1 200 OK\rx\r\n\r\n"));
    CHECK_EQUAL(RHTTP_WRONG_BARE_LF, wrong_of("HTTP/1.1 200\n OK\r\n\r\n"));
}

TEST(a_line_without_an_end_is_too_long) {
    static char head[9000];
    memset(head, 'x', sizeof(head) - 1);
    memcpy(head, "HTTP/1.1 200 ", 13);
    CHECK_EQUAL(RHTTP_WRONG_STATUS_LINE_LONG, wrong_of(head));
}

TEST(a_body_ends_as_fields_status_and_method_say) {
    CHECK_EQUAL(RHTTP_BODY_UNTIL_CLOSE, body_of(RHTTP_METHOD_GET, "HTTP/1.1 200 OK\r\n\r\n"));
    CHECK(!response.head.keeps_alive);
    CHECK_EQUAL(RHTTP_BODY_CHUNKED, body_of(RHTTP_METHOD_GET, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"));
    CHECK_EQUAL(RHTTP_BODY_NONE, body_of(RHTTP_METHOD_HEAD, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"));
    CHECK(response.head.keeps_alive && response.head.body_len == 5);
    CHECK_EQUAL(RHTTP_BODY_NONE, body_of(RHTTP_METHOD_HEAD, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"));
    CHECK_EQUAL(RHTTP_BODY_NONE, body_of(RHTTP_METHOD_GET, "HTTP/1.1 304 x\r\nContent-Length: 5\r\n\r\n"));
    CHECK_EQUAL(RHTTP_BODY_NONE, body_of(RHTTP_METHOD_GET, "HTTP/1.1 204 x\r\nContent-Length: 0\r\n\r\n"));
    CHECK_EQUAL(RHTTP_BODY_NONE, body_of(RHTTP_METHOD_GET, "HTTP/1.1 100 Continue\r\n\r\n"));
    CHECK(response.head.keeps_alive);
    CHECK_EQUAL(RHTTP_BODY_LENGTH, body_of(RHTTP_METHOD_GET, "HTTP/1.1 205 x\r\nContent-Length: 0\r\n\r\n"));
    CHECK_EQUAL(RHTTP_BODY_TUNNEL, body_of(RHTTP_METHOD_CONNECT, "HTTP/1.1 200 OK\r\n\r\n"));
    CHECK_EQUAL(RHTTP_BODY_LENGTH, body_of(RHTTP_METHOD_CONNECT, "HTTP/1.1 403 No\r\nContent-Length: 5\r\n\r\n"));
    CHECK_EQUAL(RHTTP_BODY_TUNNEL, body_of(RHTTP_METHOD_GET,
                                           "HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"));
    CHECK(is(response.head.upgrade, "websocket") && !response.head.keeps_alive);
}

TEST(a_length_is_too_long_only_where_so_many_bytes_follow) {
    const char *head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
    rhttp_limits limits = rhttp_usual_limits;
    limits.body_max = 9;
    rhttp_response_begin(&response, &limits, fields, RHTTP_METHOD_HEAD);
    CHECK_EQUAL(RHTTP_WHOLE, rhttp_response_take(&response, (const uint8_t *)head, strlen(head)));
    rhttp_response_begin(&response, &limits, fields, RHTTP_METHOD_GET);
    CHECK_EQUAL(RHTTP_WRONG, rhttp_response_take(&response, (const uint8_t *)head, strlen(head)));
    CHECK_EQUAL(RHTTP_WRONG_BODY_LONG, response.head.fields.wrong);
}

TEST(a_body_that_two_readers_end_in_two_places_is_refused) {
    CHECK_EQUAL(RHTTP_WRONG_LENGTH_AND_CODING,
                wrong_of("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"));
    CHECK_EQUAL(RHTTP_WRONG_LENGTHS, wrong_of("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n"));
    CHECK_EQUAL(RHTTP_WRONG_CODING_UNKNOWN, wrong_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"));
    CHECK_EQUAL(RHTTP_WRONG_CODING, wrong_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"));
    CHECK_EQUAL(RHTTP_WRONG_CODING_OF_1_0, wrong_of("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"));
    CHECK_EQUAL(RHTTP_WRONG_BODY_OF_STATUS, wrong_of("HTTP/1.1 204 x\r\nContent-Length: 5\r\n\r\n"));
    CHECK_EQUAL(RHTTP_WRONG_BODY_OF_STATUS, wrong_of("HTTP/1.1 100 x\r\nTransfer-Encoding: chunked\r\n\r\n"));
}

int main(int argc, char **argv) { return test_main(argc, argv); }
