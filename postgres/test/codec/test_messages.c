/* The messages of a server as they are taken apart, and those of a client as they are written. */
#include "codec/message.h"
#include "codec/request.h"
#include "test.h"

#include <stdlib.h>

static rpg_span text(const char *chars) { return (rpg_span){(const uint8_t *)chars, strlen(chars)}; }

static bool same(rpg_span span, const char *chars) { return span.len == strlen(chars) && memcmp(span.bytes, chars, span.len) == 0; }

/* A message of a server, made by what writes those of a client. */
static rpg_message message_of(rpg_out *out) {
    rpg_message message = {0};
    size_t needed;
    CHECK_EQUAL(RPG_WHOLE, rpg_message_next(out->bytes, out->len, &message, &needed));
    CHECK_EQUAL(out->len, needed);
    return message;
}

TEST(a_message_is_whole_from_its_last_byte_on) {
    const uint8_t bytes[] = {'Z', 0, 0, 0, 5, 'I', 'x'};
    rpg_message message;
    size_t needed;
    for (size_t len = 0; len < 6; len++) {
        CHECK_EQUAL(RPG_PART, rpg_message_next(bytes, len, &message, &needed));
        CHECK_EQUAL(len < 5 ? 5 : 6, needed);
    }
    CHECK_EQUAL(RPG_WHOLE, rpg_message_next(bytes, sizeof(bytes), &message, &needed));
    CHECK_EQUAL(6, needed);
    CHECK_EQUAL('Z', message.type);
    CHECK_EQUAL(1, message.len);
    CHECK_EQUAL('I', message.body[0]);
}

static rpg_found found(uint8_t type, uint32_t len) {
    uint8_t bytes[5] = {type};
    rpg_message message;
    size_t needed;
    rpg_store_u32(bytes + 1, len);
    return rpg_message_next(bytes, sizeof(bytes), &message, &needed);
}

TEST(a_length_that_no_such_message_has_is_wrong_at_once) {
    for (uint32_t len = 0; len < 4; len++) CHECK_EQUAL(RPG_WRONG, found('D', len));
    CHECK_EQUAL(RPG_WRONG, found('D', 0x80000000u));
    CHECK_EQUAL(RPG_WRONG, found('D', 0xffffffffu));
    CHECK_EQUAL(RPG_PART, found('D', 0x40000003u));
    CHECK_EQUAL(RPG_WRONG, found('D', 0x40000004u));
    CHECK_EQUAL(RPG_PART, found('Z', 5));
    CHECK_EQUAL(RPG_WRONG, found('Z', 40000));
}

TEST(a_type_that_no_server_sends_is_wrong_at_its_first_byte) {
    const char *known = "RKSZvTntDCIsENA123GHWdcV";
    for (int type = 0; type < 256; type++) {
        uint8_t byte = (uint8_t)type;
        rpg_message message;
        size_t needed;
        rpg_found expected = type && strchr(known, type) ? RPG_PART : RPG_WRONG;
        CHECK_EQUAL(expected, rpg_message_next(&byte, 1, &message, &needed));
    }
}

TEST(a_reader_that_ran_out_answers_nothing_more) {
    const uint8_t bytes[] = {1, 2, 3};
    rpg_reader reader = rpg_reader_over(bytes, sizeof(bytes));
    CHECK_EQUAL(0x102, rpg_read_u16(&reader));
    CHECK_EQUAL(0, rpg_read_u32(&reader));
    CHECK(reader.bad);
    CHECK_EQUAL(0, rpg_read_u8(&reader));
    CHECK(!rpg_reader_is_done(&reader));
}

TEST(a_text_without_its_end_is_bad) {
    rpg_reader reader = rpg_reader_over((const uint8_t *)"ab\0cd", 5);
    CHECK(same(rpg_read_text(&reader), "ab"));
    CHECK_EQUAL(0, rpg_read_text(&reader).len);
    CHECK(reader.bad);
}

TEST(columns_are_read_as_they_were_written) {
    rpg_out out = {0};
    size_t begun = rpg_begin(&out, 'T');
    rpg_put_u16(&out, 2);
    for (uint32_t i = 0; i < 2; i++) {
        rpg_put_text(&out, i ? "b" : "alpha", i ? 1 : 5);
        rpg_put_u32(&out, 7 + i);
        rpg_put_u16(&out, (uint16_t)(i + 1));
        rpg_put_u32(&out, 23);
        rpg_put_u16(&out, 4);
        rpg_put_u32(&out, UINT32_MAX);
        rpg_put_u16(&out, (uint16_t)i);
    }
    rpg_end(&out, begun);
    rpg_message message = message_of(&out);
    rpg_reader reader;
    uint16_t count;
    rpg_column column;
    CHECK(rpg_read_columns(&message, &reader, &count));
    CHECK_EQUAL(2, count);
    CHECK(rpg_read_column(&reader, &column));
    CHECK(same(column.name, "alpha"));
    CHECK_EQUAL(7, column.table);
    CHECK_EQUAL(-1, column.type_modifier);
    CHECK_EQUAL(0, column.format);
    CHECK(!rpg_reader_is_done(&reader));
    CHECK(rpg_read_column(&reader, &column));
    CHECK(same(column.name, "b"));
    CHECK_EQUAL(1, column.format);
    CHECK(rpg_reader_is_done(&reader));
    rpg_out_free(&out);
}

TEST(a_row_has_values_and_null_and_no_other_negative_length) {
    rpg_out out = {0};
    size_t begun = rpg_begin(&out, 'D');
    rpg_put_u16(&out, 3);
    rpg_put_u32(&out, 2);
    rpg_put_bytes(&out, "hi", 2);
    rpg_put_u32(&out, UINT32_MAX);
    rpg_put_u32(&out, (uint32_t)-2);
    rpg_end(&out, begun);
    rpg_message message = message_of(&out);
    rpg_reader reader;
    uint16_t count;
    rpg_span value;
    CHECK(rpg_read_row(&message, &reader, &count));
    CHECK(rpg_read_value(&reader, &value) && same(value, "hi"));
    CHECK(rpg_read_value(&reader, &value) && value.bytes == NULL);
    CHECK(!rpg_read_value(&reader, &value));
    rpg_out_free(&out);
}

TEST(a_row_that_claims_more_values_than_it_has_room_for_is_refused) {
    rpg_out out = {0};
    size_t begun = rpg_begin(&out, 'D');
    rpg_put_u16(&out, 65535);
    rpg_put_u32(&out, 0);
    rpg_end(&out, begun);
    rpg_message message = message_of(&out);
    rpg_reader reader;
    uint16_t count;
    CHECK(!rpg_read_row(&message, &reader, &count));
    rpg_out_free(&out);
}

TEST(an_error_has_fields_up_to_its_zero) {
    rpg_reader reader = rpg_reader_over((const uint8_t *)"SERROR\0C23505\0\0", 15);
    uint8_t code;
    rpg_span value;
    CHECK(rpg_read_error_field(&reader, &code, &value) && code == 'S' && same(value, "ERROR"));
    CHECK(rpg_read_error_field(&reader, &code, &value) && code == 'C' && same(value, "23505"));
    CHECK(rpg_read_error_field(&reader, &code, &value) && code == 0);
    reader = rpg_reader_over((const uint8_t *)"SERROR\0", 7);
    CHECK(rpg_read_error_field(&reader, &code, &value));
    CHECK(!rpg_read_error_field(&reader, &code, &value)); /* without its zero */
}

static bool key_of(size_t len) {
    uint8_t body[4 + 300] = {0, 0, 0, 42};
    rpg_message message = {RPG_KEY_DATA, body, 4 + len};
    uint32_t process;
    rpg_span key;
    bool fine = rpg_read_key_data(&message, &process, &key);
    if (fine) CHECK_EQUAL(42, process);
    if (fine) CHECK_EQUAL(len, key.len);
    return fine;
}

TEST(a_key_has_from_4_to_256_bytes) {
    CHECK(!key_of(0));
    CHECK(!key_of(3));
    CHECK(key_of(4));
    CHECK(key_of(32));
    CHECK(key_of(256));
    CHECK(!key_of(257));
}

TEST(the_status_of_ready_is_one_of_three) {
    uint8_t status;
    for (int byte = 0; byte < 256; byte++) {
        uint8_t body = (uint8_t)byte;
        rpg_message message = {RPG_READY, &body, 1};
        CHECK_EQUAL(byte == 'I' || byte == 'T' || byte == 'E', rpg_read_ready(&message, &status));
    }
    CHECK(!rpg_read_ready(&(rpg_message){RPG_READY, (const uint8_t *)"II", 2}, &status));
}

TEST(negotiation_counts_its_options) {
    uint8_t body[] = {0, 0, 0, 0, 0, 0, 0, 2, '_', 'a', 0, '_', 'b', 0};
    rpg_message message = {RPG_NEGOTIATE, body, sizeof(body)};
    uint32_t newest, unknown;
    CHECK(rpg_read_negotiate(&message, &newest, &unknown));
    CHECK_EQUAL(2, unknown);
    body[7] = 1; /* bytes are left */
    CHECK(!rpg_read_negotiate(&message, &newest, &unknown));
    body[7] = 3; /* one is wanting */
    CHECK(!rpg_read_negotiate(&message, &newest, &unknown));
    body[4] = 0xff; /* four billion of them */
    CHECK(!rpg_read_negotiate(&message, &newest, &unknown));
}

TEST(authentication_has_a_method_and_a_rest) {
    uint32_t method;
    rpg_span rest;
    uint8_t body[] = {0, 0, 0, 5, 1, 2, 3, 4};
    CHECK(rpg_read_authentication(&(rpg_message){'R', body, 8}, &method, &rest));
    CHECK_EQUAL(5, method);
    CHECK_EQUAL(4, rest.len);
    CHECK(rpg_read_authentication(&(rpg_message){'R', body, 4}, &method, &rest));
    CHECK_EQUAL(0, rest.len);
    CHECK(!rpg_read_authentication(&(rpg_message){'R', body, 3}, &method, &rest));
}

static bool setting_of(const char *bytes, size_t len) {
    rpg_span name, value;
    return rpg_read_parameter_status(&(rpg_message){'S', (const uint8_t *)bytes, len}, &name, &value);
}

TEST(a_setting_has_a_name_and_a_value) {
    CHECK(setting_of("a\0b\0", 4));
    CHECK(setting_of("a\0\0", 3));
    CHECK(!setting_of("\0b\0", 3));
    CHECK(!setting_of("a\0b", 3));
    CHECK(!setting_of("a\0b\0c", 5));
}

static void check_written(rpg_out *out, const char *bytes, size_t len) {
    CHECK_EQUAL(len, out->len);
    CHECK(out->len == len && memcmp(bytes, out->bytes, len) == 0);
    rpg_out_free(out);
}

#define CHECK_WRITTEN(out, literal) check_written(&(out), literal, sizeof(literal) - 1)

TEST(a_statement_is_written_as_the_protocol_has_it) {
    rpg_out out = {0};
    rpg_put_parse(&out, text("s1"), text("select $1"), (const uint32_t[]){23}, 1);
    CHECK_WRITTEN(out, "P\0\0\0\x17s1\0select $1\0\0\x01\0\0\0\x17");
    const char params[] = "\0\3\0\1\0\0\0\0\0\3\0\0\0\4\0\0\0\7\xff\xff\xff\xff\0\0\0\0";
    size_t begun = rpg_begin_bind(&out, text("s1"), (rpg_span){(const uint8_t *)params, sizeof(params) - 1}, 1);
    rpg_put_u16(&out, 1);
    rpg_end(&out, begun);
    CHECK_WRITTEN(out, "B\0\0\0\x26\0s1\0\0\3\0\1\0\0\0\0\0\3\0\0\0\4\0\0\0\7\xff\xff\xff\xff\0\0\0\0\0\1\0\1");
    rpg_put_execute(&out, text(""), 0);
    CHECK_WRITTEN(out, "E\0\0\0\x09\0\0\0\0\0");
    rpg_put_sync(&out);
    CHECK_WRITTEN(out, "S\0\0\0\4");
    rpg_put_close(&out, 'S', text("s1"));
    CHECK_WRITTEN(out, "C\0\0\0\x08Ss1\0");
}

TEST(what_comes_before_a_connection_has_no_type) {
    rpg_out out = {0};
    rpg_put_ssl_request(&out);
    CHECK_WRITTEN(out, "\0\0\0\x08\x04\xd2\x16\x2f");
    rpg_put_cancel_request(&out, 7, text("key!"));
    CHECK_WRITTEN(out, "\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\7key!");
    rpg_put_startup(&out, 0x30000, (const rpg_span[]){text("user"), text("me")}, 2);
    CHECK_WRITTEN(out, "\0\0\0\x11\0\3\0\0user\0me\0\0");
}

TEST(what_begins_a_connection_answers_the_server) {
    rpg_out out = {0};
    rpg_put_password(&out, text("secret"));
    CHECK_WRITTEN(out, "p\0\0\0\x0bsecret\0");
    rpg_put_sasl_initial(&out, text("SCRAM"), text("n,,"));
    CHECK_WRITTEN(out, "p\0\0\0\x11SCRAM\0\0\0\0\3n,,");
    rpg_put_sasl_response(&out, text("c=x"));
    CHECK_WRITTEN(out, "p\0\0\0\7c=x");
    rpg_put_query(&out, text("select 1"));
    CHECK_WRITTEN(out, "Q\0\0\0\x0dselect 1\0");
}

TEST(a_copy_writes_a_header_for_its_rows_and_its_end) {
    rpg_out out = {0};
    rpg_put_copy_header(&out, 4);
    rpg_put_copy_done(&out);
    rpg_put_copy_fail(&out, text("no"));
    CHECK_WRITTEN(out, "d\0\0\0\x08" "c\0\0\0\4" "f\0\0\0\7no\0");
}

TEST(a_message_longer_than_its_length_can_say_fails_and_can_be_cut_away) {
    rpg_out out = {0};
    rpg_put_sync(&out);
    size_t before = out.len, begun = rpg_begin(&out, 'B');
    out.len += INT32_MAX; /* which nobody has written */
    rpg_end(&out, begun);
    CHECK_EQUAL(RPG_OUT_TOO_LONG, out.state);
    rpg_put_sync(&out);
    CHECK_EQUAL(RPG_OUT_TOO_LONG, out.state);
    rpg_out_cut(&out, before);
    rpg_put_sync(&out);
    CHECK_WRITTEN(out, "S\0\0\0\4S\0\0\0\4");
}

int main(int argc, char **argv) { return test_main(argc, argv); }
