/* The heads of requests: what is read from them, and what is refused. More of these: nasty_heads.tsv. */
#include "pieces.h"
#include "test.h"

#define FIELDS_ROOM 100

static rhttp_field fields[FIELDS_ROOM];
static rhttp_request request;
static const char *source;

static rhttp_found take_by(const rhttp_limits *limits, const char *head) {
    source = head;
    rhttp_request_begin(&request, limits, fields);
    return rhttp_request_take(&request, (const uint8_t *)head, strlen(head));
}

static rhttp_found take(const char *head) { return take_by(&rhttp_usual_limits, head); }

static bool is(rhttp_span span, const char *expected) {
    return span.len == strlen(expected) && memcmp(source + span.at, expected, span.len) == 0;
}

static rhttp_wrong wrong_of(const char *head) {
    CHECK_EQUAL(RHTTP_WRONG, take(head));
    return (rhttp_wrong)request.head.fields.wrong;
}

static rhttp_wrong wrong_by(const rhttp_limits *limits, const char *head) {
    return take_by(limits, head) == RHTTP_WRONG ? (rhttp_wrong)request.head.fields.wrong : RHTTP_FINE;
}

TEST(a_head_is_read_where_it_lies) {
    const char *head =
        "POST /a/b?c=d&e HTTP/1.1\r\nHost: example.org:8080\r\nX-Odd:\t one  two \r\nAccept:\r\nContent-Length: 12\r\n\r\nbody";
    CHECK_EQUAL(RHTTP_WHOLE, take(head));
    CHECK_EQUAL(strlen(head) - 4, request.head.len);
    CHECK(is(request.method, "POST") && request.known_method == RHTTP_METHOD_POST);
    CHECK(is(request.target, "/a/b?c=d&e") && is(request.path, "/a/b") && is(request.query, "c=d&e"));
    CHECK_EQUAL(RHTTP_FORM_ORIGIN, request.form);
    CHECK(is(request.host.text, "example.org:8080") && is(request.host.name, "example.org") && request.host.port == 8080);
    CHECK_EQUAL(RHTTP_1_1, request.head.version);
    CHECK_EQUAL(4, request.head.fields.count);
    CHECK(is(fields[1].name, "X-Odd") && is(fields[1].value, "one  two") && fields[1].known == RHTTP_OTHER_NAME);
    CHECK(is(fields[2].value, "") && fields[2].known == RHTTP_NAME_ACCEPT);
    CHECK(request.head.body == RHTTP_BODY_LENGTH && request.head.body_len == 12 && request.head.keeps_alive);
}

TEST(a_field_is_found_by_its_name) {
    CHECK_EQUAL(RHTTP_WHOLE, take("GET / HTTP/1.1\r\nCookie: a=1\r\nHost: h\r\ncookie: b=2\r\n\r\n"));
    const rhttp_field *first = rhttp_head_next(&request.head, RHTTP_NAME_COOKIE, NULL);
    CHECK(first == &fields[0]);
    CHECK(rhttp_head_next(&request.head, RHTTP_NAME_COOKIE, first) == &fields[2]);
    CHECK(!rhttp_head_next(&request.head, RHTTP_NAME_COOKIE, &fields[2]));
    CHECK(!rhttp_head_next(&request.head, RHTTP_NAME_ORIGIN, NULL));
}

TEST(a_head_that_comes_byte_by_byte_is_scanned_once) {
    const char *head = "\r\nGET /x HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n";
    rhttp_request_begin(&request, &rhttp_usual_limits, fields);
    for (size_t len = 0; len < strlen(head); len++) {
        CHECK_EQUAL(RHTTP_PART, rhttp_request_take(&request, (const uint8_t *)head, len));
        CHECK_EQUAL(len, request.head.fields.at);
        CHECK_EQUAL(len > 2, rhttp_request_has_begun(&request));
    }
    CHECK_EQUAL(RHTTP_WHOLE, rhttp_request_take(&request, (const uint8_t *)head, strlen(head)));
    CHECK_EQUAL(RHTTP_WHOLE, rhttp_request_take(&request, (const uint8_t *)head, strlen(head)));
    CHECK_EQUAL(strlen(head), request.head.len);
}

TEST(what_is_wrong_stays_wrong) {
    CHECK_EQUAL(RHTTP_WRONG_VERSION, wrong_of("GET / HTTP/2.0\r\n\r\n"));
    CHECK_EQUAL(RHTTP_WRONG, rhttp_request_take(&request, (const uint8_t *)source, strlen(source)));
    CHECK_EQUAL(RHTTP_WRONG_VERSION, request.head.fields.wrong);
}

TEST(a_target_has_one_of_four_forms) {
    CHECK_EQUAL(RHTTP_WHOLE, take("GET HTTPS://Example.org?q HTTP/1.1\r\nHost: example.ORG:443\r\n\r\n"));
    CHECK(request.form == RHTTP_FORM_ABSOLUTE && request.is_secure && is(request.path, "") && is(request.query, "q"));
    CHECK(is(request.host.text, "Example.org"));
    CHECK_EQUAL(RHTTP_WHOLE, take("GET http://h/a HTTP/1.0\r\n\r\n"));
    CHECK(is(request.path, "/a") && is(request.host.name, "h") && !request.is_secure);
    CHECK_EQUAL(RHTTP_WHOLE, take("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"));
    CHECK(request.form == RHTTP_FORM_ASTERISK && is(request.path, "*"));
    CHECK_EQUAL(RHTTP_WHOLE, take("CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n"));
    CHECK(request.form == RHTTP_FORM_AUTHORITY && is(request.path, ""));
    CHECK_EQUAL(RHTTP_WRONG_TARGET_FORM, wrong_of("CONNECT h HTTP/1.1\r\nHost: h\r\n\r\n"));
    CHECK_EQUAL(RHTTP_WRONG_TARGET_FORM, wrong_of("GET * HTTP/1.1\r\nHost: h\r\n\r\n"));
    CHECK_EQUAL(RHTTP_WRONG_TARGET, wrong_of("GET h:443 HTTP/1.1\r\nHost: h\r\n\r\n"));
    CHECK_EQUAL(RHTTP_WRONG_OTHER_HOST, wrong_of("CONNECT a:443 HTTP/1.1\r\nHost: b:443\r\n\r\n"));
}

/* https://www.rfc-editor.org/rfc/rfc9112#section-3.2.2 */
TEST(the_host_of_a_target_counts) {
    CHECK_EQUAL(RHTTP_WHOLE, take("GET http://a:81/ HTTP/1.1\r\nHost: b:82\r\n\r\n"));
    CHECK(is(request.host.text, "a:81") && is(request.host.name, "a") && request.host.port == 81);
    CHECK_EQUAL(RHTTP_WRONG_NO_HOST, wrong_of("GET http://a/ HTTP/1.1\r\n\r\n"));
    CHECK_EQUAL(RHTTP_WRONG_HOST, wrong_of("GET http://a/ HTTP/1.1\r\nHost:\r\n\r\n"));
    CHECK_EQUAL(RHTTP_WRONG_HOSTS, wrong_of("GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"));
}

/* https://www.rfc-editor.org/rfc/rfc9110#section-2.5 */
TEST(a_later_version_of_http_1_is_read_as_the_last_that_is_known) {
    CHECK_EQUAL(RHTTP_WHOLE, take("GET / HTTP/1.2\r\nHost: h\r\n\r\n"));
    CHECK(request.head.version == RHTTP_1_1 && request.head.keeps_alive);
    CHECK_EQUAL(RHTTP_WRONG_NO_HOST, wrong_of("GET / HTTP/1.9\r\n\r\n"));
}

static bool is_host(const char *value) {
    rhttp_host host;
    return rhttp_host_read((const uint8_t *)value, (rhttp_span){0, (uint32_t)strlen(value)}, &host);
}

TEST(a_host_is_a_name_or_an_address_with_a_port) {
    const char *yes[] = {"a", "a.b-c_d~e", "a:", "a:0", "a:65535", "127.0.0.1:80", "[::1]", "[::1]:80", "[2001:db8::a.b]", "0"};
    const char *no[] = {"",    ":", ":80", "a:65536", "a:000080", "a:8a",       "a:-1", "a b",      "a,b",     "a@b", "a/b",
                        "a?b", "[", "[]",  "[::1",    "[::1]x",   "[::1%25lo]", "a%41", "\xc3\xa4", "a:80:80", "a\tb"};
    for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++) CHECK(is_host(yes[i]));
    for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++) CHECK(!is_host(no[i]));
}

TEST(a_connection_goes_on_unless_a_side_says_no) {
    const struct { const char *rest; bool keeps_alive; } cases[] = {
        {"1\r\nHost: h\r\n\r\n", true}, {"1\r\nHost: h\r\nConnection: close\r\n\r\n", false},
        {"1\r\nHost: h\r\nConnection: x, Close\r\n\r\n", false}, {"1\r\nHost: h\r\nConnection: closed\r\n\r\n", true},
        {"0\r\n\r\n", false}, {"0\r\nConnection: Keep-Alive\r\n\r\n", true},
        {"0\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", false}
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char head[128];
        snprintf(head, sizeof(head), "GET / HTTP/1.%s", cases[i].rest);
        CHECK_EQUAL(RHTTP_WHOLE, take(head));
        CHECK_EQUAL(cases[i].keeps_alive, request.head.keeps_alive);
    }
}

TEST(an_upgrade_is_asked_for_by_both_fields_and_never_by_http_1_0) {
    CHECK_EQUAL(RHTTP_WHOLE, take("GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n"));
    CHECK(is(request.head.upgrade, "websocket"));
    CHECK_EQUAL(RHTTP_WHOLE, take("GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\r\n"));
    CHECK_EQUAL(0, request.head.upgrade.len);
    CHECK_EQUAL(RHTTP_WHOLE, take("GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"));
    CHECK_EQUAL(0, request.head.upgrade.len);
}

TEST(a_client_waits_for_a_100_where_it_has_a_body) {
    CHECK_EQUAL(RHTTP_WHOLE, take("PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nTransfer-Encoding: Chunked\r\n\r\n"));
    CHECK(request.expects_continue && request.head.body == RHTTP_BODY_CHUNKED);
    CHECK_EQUAL(RHTTP_WHOLE, take("PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n"));
    CHECK(!request.expects_continue);
    CHECK_EQUAL(RHTTP_WHOLE, take("PUT / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"));
    CHECK(!request.expects_continue);
}

TEST(a_name_with_an_underscore_is_marked) {
    CHECK_EQUAL(RHTTP_WHOLE, take("GET / HTTP/1.1\r\nHost: h\r\nX_Forwarded_For: 1\r\nX-A: 2\r\nContent_Length: 5\r\n\r\n"));
    CHECK(fields[1].has_underscore && !fields[2].has_underscore && fields[3].has_underscore);
    CHECK(fields[3].known == RHTTP_OTHER_NAME && request.head.body == RHTTP_BODY_NONE);
}

static const rhttp_limits small = {
    .line_max = 20, .head_max = 60, .fields_max = 3, .name_max = 5, .method_max = 4, .body_max = 9};

TEST(each_limit_has_a_word_of_its_own_and_its_last_byte_is_allowed) {
    CHECK_EQUAL(RHTTP_FINE, wrong_by(&small, "GET /345678 HTTP/1.0\r\n\r\n"));
    CHECK_EQUAL(RHTTP_WRONG_LINE_LONG, wrong_by(&small, "GET /3456789 HTTP/1.0\r\n\r\n"));
    CHECK_EQUAL(RHTTP_WRONG_LINE_LONG, wrong_by(&small, "GET /34567890123456789"));
    CHECK_EQUAL(RHTTP_WRONG_METHOD_LONG, wrong_by(&small, "PATCH / HTTP/1.0\r\n\r\n"));
    CHECK_EQUAL(RHTTP_FINE, wrong_by(&small, "GET / HTTP/1.0\r\nabcde:\r\n\r\n"));
    CHECK_EQUAL(RHTTP_WRONG_NAME_LONG, wrong_by(&small, "GET / HTTP/1.0\r\nabcdef:\r\n\r\n"));
    CHECK_EQUAL(RHTTP_WRONG_NAME_LONG, wrong_by(&small, "GET / HTTP/1.0\r\nabcdef"));
    CHECK_EQUAL(RHTTP_FINE, wrong_by(&small, "GET / HTTP/1.0\r\na:\r\nb:\r\nc:\r\n\r\n"));
    CHECK_EQUAL(RHTTP_WRONG_FIELDS_MANY, wrong_by(&small, "GET / HTTP/1.0\r\na:\r\nb:\r\nc:\r\nd"));
    CHECK_EQUAL(RHTTP_FINE, wrong_by(&small, "GET / HTTP/1.0\r\nabcd: 3456789012345678901234567890123456\r\n\r\n"));
    CHECK_EQUAL(60, request.head.len);
    CHECK_EQUAL(RHTTP_WRONG_HEAD_LONG, wrong_by(&small, "GET / HTTP/1.0\r\nabcd: 34567890123456789012345678901234567\r\n\r\n"));
    CHECK_EQUAL(RHTTP_WRONG_HEAD_LONG, wrong_by(&small, "GET / HTTP/1.0\r\nabcd: 3456789012345678901234567890123456789012345"));
}

TEST(a_body_that_is_too_long_is_refused_by_its_length) {
    rhttp_limits limits = rhttp_usual_limits;
    limits.body_max = 9;
    CHECK_EQUAL(RHTTP_FINE, wrong_by(&limits, "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n"));
    CHECK_EQUAL(RHTTP_WRONG_BODY_LONG, wrong_by(&limits, "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n"));
    CHECK_EQUAL(RHTTP_FINE,
                wrong_by(&rhttp_usual_limits, "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 9223372036854775807\r\n\r\n"));
    CHECK_EQUAL(RHTTP_WRONG_LENGTH, wrong_of("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 9223372036854775808\r\n\r\n"));
}

TEST(what_is_wrong_has_a_word_and_a_status) {
    for (int wrong = RHTTP_FINE + 1; wrong < RHTTP_WRONG_COUNT; wrong++) {
        uint16_t status = rhttp_wrong_status((rhttp_wrong)wrong);
        CHECK(status == 400 || status == 413 || status == 414 || status == 431 || status == 501 || status == 502 ||
              status == 505);
        CHECK(strlen(rhttp_wrong_text((rhttp_wrong)wrong)) > 10);
    }
    CHECK_EQUAL(0, rhttp_wrong_status(RHTTP_FINE));
}

int main(int argc, char **argv) { return test_main(argc, argv); }
