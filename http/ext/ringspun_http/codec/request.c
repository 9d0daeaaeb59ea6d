#include "codec/chars.h"
#include "codec/framing.h"
#include "codec/line.h"
#include "codec/target.h"

/* What is read next. */
enum { BEFORE, BEFORE_END, METHOD, TARGET, VERSION, LINE_CR, LINE_LF, FIELDS, DONE };

void rhttp_request_begin(rhttp_request *request, const rhttp_limits *limits, rhttp_field *list) {
    *request = (rhttp_request){.form = RHTTP_FORM_ORIGIN};
    rhttp_head_begin(&request->head, limits, list);
}

bool rhttp_request_has_begun(const rhttp_request *request) {
    return request->head.step >= METHOD && request->head.fields.at > request->head.line;
}

/* One empty line, or none. */
static bool skip_empty_line(rhttp_head *head, const uint8_t *bytes, size_t end) {
    size_t at = head->fields.at;
    if (at == end) return rhttp_pause(head, at);
    if (bytes[at] == '\r') return rhttp_pass(head, at + 1);
    head->step = METHOD;
    return true;
}

static bool end_empty_line(rhttp_head *head, const uint8_t *bytes, size_t end) {
    if (!rhttp_take_byte(head, bytes, end, '\n', RHTTP_WRONG_BARE_CR)) return false;
    head->line = head->fields.at;
    return true;
}

static bool take_method(rhttp_request *request, const uint8_t *bytes, size_t end) {
    rhttp_head *head = &request->head;
    size_t begin = head->fields.mark, at = rhttp_past(bytes, head->fields.at, end, RHTTP_TOKEN);
    if (at - begin > head->limits->method_max) return rhttp_refuse(head, at, RHTTP_WRONG_METHOD_LONG);
    if (at == end) return rhttp_pause(head, at);
    if (bytes[at] != ' ' || at == begin) {
        return rhttp_refuse(head, at, rhttp_wrong_byte(bytes[at], RHTTP_WRONG_REQUEST_LINE));
    }
    request->method = rhttp_between(begin, at);
    request->known_method = (uint8_t)rhttp_method_of(bytes + begin, at - begin);
    return rhttp_pass(head, at + 1);
}

static bool take_target(rhttp_request *request, const uint8_t *bytes, size_t end) {
    rhttp_head *head = &request->head;
    size_t begin = head->fields.mark, at = rhttp_past(bytes, head->fields.at, end, RHTTP_TARGET);
    if (at == end) return rhttp_pause(head, at);
    bool ends = bytes[at] == ' ' || bytes[at] == '\r' || bytes[at] == '\t';
    if (bytes[at] != ' ' || at == begin) {
        return rhttp_refuse(head, at, rhttp_wrong_byte(bytes[at], ends ? RHTTP_WRONG_REQUEST_LINE : RHTTP_WRONG_TARGET));
    }
    request->target = rhttp_between(begin, at);
    rhttp_wrong wrong = rhttp_target_read(request, bytes);
    return wrong == RHTTP_FINE ? rhttp_pass(head, at + 1) : rhttp_refuse(head, begin, wrong);
}

/* True: nothing stands before the line, or no more than an empty one. */
static bool take_what_is_before(rhttp_head *head, const uint8_t *bytes, size_t end) {
    return (head->step != BEFORE || skip_empty_line(head, bytes, end)) &&
           (head->step != BEFORE_END || end_empty_line(head, bytes, end));
}

static bool take_parts(rhttp_request *request, const uint8_t *bytes, size_t end) {
    rhttp_head *head = &request->head;
    return (head->step != METHOD || take_method(request, bytes, end)) &&
           (head->step != TARGET || take_target(request, bytes, end)) &&
           (head->step != VERSION || rhttp_take_version(head, bytes, end, RHTTP_WRONG_REQUEST_LINE)) &&
           (head->step != LINE_CR || rhttp_take_byte(head, bytes, end, '\r', RHTTP_WRONG_REQUEST_LINE)) &&
           (head->step != LINE_LF || rhttp_take_byte(head, bytes, end, '\n', RHTTP_WRONG_BARE_CR));
}

static bool take_line(rhttp_request *request, const uint8_t *bytes, size_t len) {
    rhttp_head *head = &request->head;
    if (!take_what_is_before(head, bytes, len)) return false;
    size_t max = rhttp_line_end_max(head);
    if (take_parts(request, bytes, len < max ? len : max)) return true;
    if (head->fields.found == RHTTP_PART && len >= max) rhttp_refuse(head, max, RHTTP_WRONG_LINE_LONG);
    return false;
}

rhttp_found rhttp_request_take(rhttp_request *request, const uint8_t *bytes, size_t len) {
    rhttp_head *head = &request->head;
    if (head->step == DONE) return RHTTP_WHOLE;
    if (head->fields.wrong) return RHTTP_WRONG;
    if (head->step < FIELDS && !take_line(request, bytes, len)) return (rhttp_found)head->fields.found;
    rhttp_found found = rhttp_take_fields(head, bytes, len);
    if (found != RHTTP_WHOLE) return found;
    rhttp_wrong wrong = rhttp_judge_request(request, bytes);
    if (wrong != RHTTP_FINE) return rhttp_fields_refuse(&head->fields, head->len, wrong);
    head->step = DONE;
    return RHTTP_WHOLE;
}
