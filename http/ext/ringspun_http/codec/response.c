#include "codec/chars.h"
#include "codec/framing.h"
#include "codec/line.h"

/* What is read next. */
enum { VERSION, BLANK, STATUS, AFTER_STATUS, REASON, LINE_LF, FIELDS, DONE };

void rhttp_response_begin(rhttp_response *response, const rhttp_limits *limits, rhttp_field *list, rhttp_method asked) {
    *response = (rhttp_response){.asked = (uint8_t)asked};
    rhttp_head_begin(&response->head, limits, list);
}

/* Three digits; those beyond 599 are none of HTTP's, and a client takes them for a 5xx:
 * https://www.rfc-editor.org/rfc/rfc9110#section-15 */
static bool take_status(rhttp_response *response, const uint8_t *bytes, size_t end) {
    enum { STATUS_LEN = 3 };
    rhttp_head *head = &response->head;
    size_t at = head->fields.at;
    for (; at < head->fields.mark + STATUS_LEN; at++) {
        if (at == end) return rhttp_pause(head, at);
        bool fits = rhttp_is_digit(bytes[at]) && (at > head->fields.mark || bytes[at] != '0');
        if (!fits) return rhttp_refuse(head, at, rhttp_wrong_byte(bytes[at], RHTTP_WRONG_STATUS_LINE));
        response->status = (uint16_t)(response->status * 10 + (bytes[at] - '0'));
    }
    return rhttp_pass(head, at);
}

/* The blank before the reason stands there also where there is no reason: https://www.rfc-editor.org/rfc/rfc9112#section-4. Some
 * servers leave it out with the reason, and nobody takes that for anything else. */
static bool take_blank(rhttp_head *head, const uint8_t *bytes, size_t end) {
    size_t at = head->fields.at;
    if (at < end && bytes[at] == '\r') {
        head->step = REASON;
        head->fields.mark = (uint32_t)at;
        return true;
    }
    return rhttp_take_byte(head, bytes, end, ' ', RHTTP_WRONG_STATUS_LINE);
}

static bool take_reason(rhttp_response *response, const uint8_t *bytes, size_t end) {
    rhttp_head *head = &response->head;
    size_t at = rhttp_past(bytes, head->fields.at, end, RHTTP_VALUE);
    if (at == end) return rhttp_pause(head, at);
    if (bytes[at] != '\r') return rhttp_refuse(head, at, rhttp_wrong_byte(bytes[at], RHTTP_WRONG_STATUS_LINE));
    response->reason = rhttp_between(head->fields.mark, at);
    return rhttp_pass(head, at + 1);
}

static bool take_parts(rhttp_response *response, const uint8_t *bytes, size_t end) {
    rhttp_head *head = &response->head;
    return (head->step != VERSION || rhttp_take_version(head, bytes, end, RHTTP_WRONG_STATUS_LINE)) &&
           (head->step != BLANK || rhttp_take_byte(head, bytes, end, ' ', RHTTP_WRONG_STATUS_LINE)) &&
           (head->step != STATUS || take_status(response, bytes, end)) &&
           (head->step != AFTER_STATUS || take_blank(head, bytes, end)) &&
           (head->step != REASON || take_reason(response, bytes, end)) &&
           (head->step != LINE_LF || rhttp_take_byte(head, bytes, end, '\n', RHTTP_WRONG_BARE_CR));
}

static bool take_line(rhttp_response *response, const uint8_t *bytes, size_t len) {
    rhttp_head *head = &response->head;
    size_t max = rhttp_line_end_max(head);
    if (take_parts(response, bytes, len < max ? len : max)) return true;
    if (head->fields.found == RHTTP_PART && len >= max) rhttp_refuse(head, max, RHTTP_WRONG_STATUS_LINE_LONG);
    return false;
}

rhttp_found rhttp_response_take(rhttp_response *response, const uint8_t *bytes, size_t len) {
    rhttp_head *head = &response->head;
    if (head->step == DONE) return RHTTP_WHOLE;
    if (head->fields.wrong) return RHTTP_WRONG;
    if (head->step < FIELDS && !take_line(response, bytes, len)) return (rhttp_found)head->fields.found;
    rhttp_found found = rhttp_take_fields(head, bytes, len);
    if (found != RHTTP_WHOLE) return found;
    rhttp_wrong wrong = rhttp_judge_response(response, bytes);
    if (wrong != RHTTP_FINE) return rhttp_fields_refuse(&head->fields, head->len, wrong);
    head->step = DONE;
    return RHTTP_WHOLE;
}
