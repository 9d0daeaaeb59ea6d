#include "codec/fields.h"

#include <string.h>

#include "codec/chars.h"
#include "codec/check.h"

/* What is read next. A line goes through the first five. */
enum { LINE, NAME, BLANKS, VALUE, LINE_END, HEAD_END };

void rhttp_fields_begin(rhttp_fields *fields, rhttp_field *list, uint16_t room, uint16_t name_max, size_t at) {
    *fields = (rhttp_fields){.list = list, .room = room, .name_max = name_max, .step = LINE, .at = (uint32_t)at};
}

rhttp_found rhttp_fields_refuse(rhttp_fields *fields, size_t at, rhttp_wrong wrong) {
    RHTTP_CHECK(wrong != RHTTP_FINE);
    fields->at = (uint32_t)at;
    fields->wrong = (uint8_t)wrong;
    return RHTTP_WRONG;
}

rhttp_wrong rhttp_wrong_byte(uint8_t byte, rhttp_wrong otherwise) {
    switch (byte) {
    case 0: return RHTTP_WRONG_NUL;
    case '\n': return RHTTP_WRONG_BARE_LF;
    default: return otherwise;
    }
}

/* A step is true when it has been done and `step` is the next; otherwise `found` says why there is no next one now. */

static bool pass(rhttp_fields *fields, size_t at, uint8_t next) {
    fields->at = (uint32_t)at;
    fields->step = next;
    return true;
}

static bool pause(rhttp_fields *fields, size_t at) {
    fields->at = (uint32_t)at;
    fields->found = RHTTP_PART;
    return false;
}

static bool refuse(rhttp_fields *fields, size_t at, rhttp_wrong wrong) {
    fields->found = (uint8_t)rhttp_fields_refuse(fields, at, wrong);
    return false;
}

static bool begin_line(rhttp_fields *fields, const uint8_t *bytes, size_t end) {
    size_t at = fields->at;
    if (at == end) return pause(fields, at);
    if (bytes[at] == '\r') return pass(fields, at + 1, HEAD_END);
    if (rhttp_is_blank(bytes[at])) return refuse(fields, at, RHTTP_WRONG_FOLDED);
    if (fields->count == fields->room) return refuse(fields, at, RHTTP_WRONG_FIELDS_MANY);
    fields->mark = (uint32_t)at;
    return pass(fields, at, NAME);
}

static void end_name(rhttp_fields *fields, const uint8_t *bytes, size_t at) {
    rhttp_span name = rhttp_between(fields->mark, at);
    uint8_t known = (uint8_t)rhttp_name_of(bytes + name.at, name.len);
    bool has_underscore = known == RHTTP_OTHER_NAME && memchr(bytes + name.at, '_', name.len);
    fields->list[fields->count] = (rhttp_field){.name = name, .known = known, .has_underscore = has_underscore};
}

static bool take_name(rhttp_fields *fields, const uint8_t *bytes, size_t end) {
    size_t at = rhttp_past(bytes, fields->at, end, RHTTP_TOKEN);
    if (at - fields->mark > fields->name_max) return refuse(fields, at, RHTTP_WRONG_NAME_LONG);
    if (at == end) return pause(fields, at);
    bool is_empty = at == fields->mark;
    if (rhttp_is_blank(bytes[at])) return refuse(fields, at, RHTTP_WRONG_BLANK_IN_NAME);
    if (bytes[at] != ':' || is_empty) return refuse(fields, at, rhttp_wrong_byte(bytes[at], RHTTP_WRONG_NAME));
    end_name(fields, bytes, at);
    return pass(fields, at + 1, BLANKS);
}

static bool skip_blanks(rhttp_fields *fields, const uint8_t *bytes, size_t end) {
    size_t at = fields->at;
    while (at < end && rhttp_is_blank(bytes[at])) at++;
    if (at == end) return pause(fields, at);
    fields->mark = (uint32_t)at;
    return pass(fields, at, VALUE);
}

static bool take_value(rhttp_fields *fields, const uint8_t *bytes, size_t end) {
    size_t at = rhttp_past_value(bytes, fields->at, end);
    if (at == end) return pause(fields, at);
    if (bytes[at] != '\r') return refuse(fields, at, rhttp_wrong_byte(bytes[at], RHTTP_WRONG_CONTROL));
    size_t value_end = at;
    while (value_end > fields->mark && rhttp_is_blank(bytes[value_end - 1])) value_end--;
    fields->list[fields->count++].value = rhttp_between(fields->mark, value_end);
    return pass(fields, at + 1, LINE_END);
}

static bool take_line_feed(rhttp_fields *fields, const uint8_t *bytes, size_t end) {
    size_t at = fields->at;
    if (at == end) return pause(fields, at);
    if (bytes[at] != '\n') return refuse(fields, at, RHTTP_WRONG_BARE_CR);
    return pass(fields, at + 1, LINE);
}

static bool end_head(rhttp_fields *fields, const uint8_t *bytes, size_t end) {
    if (take_line_feed(fields, bytes, end)) fields->found = RHTTP_WHOLE;
    return false;
}

/* From the step at which the last piece ended. False: there is no next line now. */
static bool take_line(rhttp_fields *fields, const uint8_t *bytes, size_t end) {
    return (fields->step != LINE || begin_line(fields, bytes, end)) &&
           (fields->step != NAME || take_name(fields, bytes, end)) &&
           (fields->step != BLANKS || skip_blanks(fields, bytes, end)) &&
           (fields->step != VALUE || take_value(fields, bytes, end)) &&
           (fields->step != LINE_END || take_line_feed(fields, bytes, end)) &&
           (fields->step != HEAD_END || end_head(fields, bytes, end));
}

rhttp_found rhttp_fields_take(rhttp_fields *fields, const uint8_t *bytes, size_t end) {
    RHTTP_CHECK(fields->wrong == RHTTP_FINE && fields->at <= end);
    while (take_line(fields, bytes, end)) {}
    return (rhttp_found)fields->found;
}
