/* What a byte may be, and what a name is known by. */
#include "codec/chars.h"
#include "codec/methods.h"
#include "codec/names.h"
#include "test.h"

#include <ctype.h>

static bool is_one_of(int byte, const char *chars) { return byte && strchr(chars, byte); }

static bool is_letter_or_digit(int byte) { return byte < 0x80 && isalnum(byte); }

TEST(a_byte_is_what_the_grammars_say) {
    for (int byte = 0; byte < 256; byte++) {
        bool is_token = is_letter_or_digit(byte) || is_one_of(byte, "!#$%&'*+-.^_`|~");
        bool is_value = byte == '\t' || (byte >= ' ' && byte != 0x7f), is_visible = byte > ' ' && byte < 0x7f;
        CHECK_EQUAL(is_token, rhttp_is((uint8_t)byte, RHTTP_TOKEN));
        CHECK_EQUAL(is_value, rhttp_is((uint8_t)byte, RHTTP_VALUE));
        CHECK_EQUAL(is_visible && byte != '#', rhttp_is((uint8_t)byte, RHTTP_TARGET));
        CHECK_EQUAL(is_letter_or_digit(byte) || is_one_of(byte, "-._~"), rhttp_is((uint8_t)byte, RHTTP_HOST));
        CHECK_EQUAL(byte < 0x80 ? tolower(byte) : byte, rhttp_small((uint8_t)byte));
        CHECK_EQUAL(byte < 0x80 && isxdigit(byte), rhttp_hex((uint8_t)byte) >= 0);
    }
    CHECK_EQUAL(15, rhttp_hex('F'));
    CHECK_EQUAL(10, rhttp_hex('a'));
}

TEST(a_value_ends_at_the_same_byte_by_eights_and_by_ones) {
    for (int byte = 0; byte < 256; byte++) {
        for (size_t at = 0; at < 19; at++) {
            uint8_t bytes[19];
            memset(bytes, (const uint8_t[]){'x', 0xff, '\t', 0x80}[byte % 4], sizeof(bytes));
            bytes[at] = (uint8_t)byte;
            CHECK_EQUAL(rhttp_past(bytes, 0, sizeof(bytes), RHTTP_VALUE), rhttp_past_value(bytes, 0, sizeof(bytes)));
            CHECK_EQUAL(rhttp_past(bytes, 3, at, RHTTP_VALUE), at < 3 ? 3 : rhttp_past_value(bytes, 3, at));
        }
    }
}

static rhttp_name name_of(const char *name) { return rhttp_name_of((const uint8_t *)name, strlen(name)); }

TEST(every_name_is_found_in_small_letters_and_in_capitals) {
    for (int name = RHTTP_OTHER_NAME + 1; name < RHTTP_NAME_COUNT; name++) {
        char capitals[64] = {0};
        const char *text = rhttp_name_text((rhttp_name)name);
        for (size_t i = 0; text[i]; i++) capitals[i] = (char)toupper(text[i]);
        if (name_of(text) != (rhttp_name)name) printf("  its letters are not those of %s\n", text);
        CHECK_EQUAL(name, name_of(text));
        CHECK_EQUAL(name, name_of(capitals));
    }
    CHECK_EQUAL(RHTTP_NAME_HOST, name_of("Host"));
    CHECK_EQUAL(88, RHTTP_NAME_COUNT - 1);
}

TEST(a_name_that_is_nearly_one_is_none) {
    for (int name = RHTTP_OTHER_NAME + 1; name < RHTTP_NAME_COUNT; name++) {
        char other[64] = {0};
        const char *text = rhttp_name_text((rhttp_name)name);
        size_t len = strlen(text);
        strcpy(other, text);
        for (size_t i = 0; i < len; i++) {
            other[i] = '^'; /* 0x5e: its bit of a small letter makes `~` of it */
            CHECK_EQUAL(RHTTP_OTHER_NAME, name_of(other));
            other[i] = '_';
            CHECK_EQUAL(RHTTP_OTHER_NAME, name_of(other));
            other[i] = text[i];
        }
        other[len] = 'x';
        CHECK_EQUAL(RHTTP_OTHER_NAME, name_of(other));
        other[len - 1] = 0;
        CHECK(name_of(other) != (rhttp_name)name);
    }
    CHECK_EQUAL(RHTTP_OTHER_NAME, name_of("x"));
    CHECK_EQUAL(RHTTP_OTHER_NAME, name_of(""));
}

TEST(what_frames_or_routes_a_message_is_no_trailer) {
    const char *no[] = {"content-length", "transfer-encoding", "host", "connection", "trailer", "te", "authorization", "cookie",
                        "set-cookie", "content-type", "content-encoding", "expect", "range", "upgrade"};
    const char *yes[] = {"etag", "server", "x-request-id", "grpc-status", "digest", "x"};
    for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++) CHECK(rhttp_name_is_of_head_only(name_of(no[i])));
    for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++) CHECK(!rhttp_name_is_of_head_only(name_of(yes[i])));
}

TEST(a_method_is_known_by_its_capitals) {
    for (int method = RHTTP_OTHER_METHOD + 1; method < RHTTP_METHOD_COUNT; method++) {
        const char *text = rhttp_method_text((rhttp_method)method);
        CHECK_EQUAL(method, rhttp_method_of((const uint8_t *)text, strlen(text)));
    }
    CHECK_EQUAL(RHTTP_METHOD_GET, rhttp_method_of((const uint8_t *)"GET", 3));
    CHECK_EQUAL(RHTTP_OTHER_METHOD, rhttp_method_of((const uint8_t *)"get", 3));
    CHECK_EQUAL(RHTTP_OTHER_METHOD, rhttp_method_of((const uint8_t *)"GETS", 4));
}

int main(int argc, char **argv) { return test_main(argc, argv); }
