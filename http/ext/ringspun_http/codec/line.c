#include "codec/line.h"

#include "codec/chars.h"

void rhttp_head_begin(rhttp_head *head, const rhttp_limits *limits, rhttp_field *list) {
    *head = (rhttp_head){.limits = limits};
    rhttp_fields_begin(&head->fields, list, limits->fields_max, limits->name_max, 0);
}

bool rhttp_pass(rhttp_head *head, size_t at) {
    head->fields.at = (uint32_t)at;
    head->fields.mark = (uint32_t)at;
    head->step++;
    return true;
}

bool rhttp_pause(rhttp_head *head, size_t at) {
    head->fields.at = (uint32_t)at;
    head->fields.found = RHTTP_PART;
    return false;
}

bool rhttp_refuse(rhttp_head *head, size_t at, rhttp_wrong wrong) {
    head->fields.found = (uint8_t)rhttp_fields_refuse(&head->fields, at, wrong);
    return false;
}

bool rhttp_take_byte(rhttp_head *head, const uint8_t *bytes, size_t end, uint8_t expected, rhttp_wrong otherwise) {
    size_t at = head->fields.at;
    if (at == end) return rhttp_pause(head, at);
    if (bytes[at] != expected) return rhttp_refuse(head, at, rhttp_wrong_byte(bytes[at], otherwise));
    return rhttp_pass(head, at + 1);
}

/* In capitals, with one digit on each side: https://www.rfc-editor.org/rfc/rfc9112#section-2.3 */
static bool goes_on_as_version(size_t place, uint8_t byte) {
    static const char form[] = "HTTP/0.0";
    return form[place] == '0' ? rhttp_is_digit(byte) : byte == (uint8_t)form[place];
}

/* A later one of HTTP/1 is read as the last that is known: https://www.rfc-editor.org/rfc/rfc9110#section-2.5 */
bool rhttp_take_version(rhttp_head *head, const uint8_t *bytes, size_t end, rhttp_wrong otherwise) {
    enum { VERSION_LEN = 8 };
    size_t at = head->fields.at, begin = head->fields.mark;
    for (; at < begin + VERSION_LEN; at++) {
        if (at == end) return rhttp_pause(head, at);
        if (!goes_on_as_version(at - begin, bytes[at])) return rhttp_refuse(head, at, rhttp_wrong_byte(bytes[at], otherwise));
    }
    if (bytes[at - 3] != '1') return rhttp_refuse(head, begin, RHTTP_WRONG_VERSION);
    head->version = bytes[at - 1] == '0' ? RHTTP_1_0 : RHTTP_1_1;
    return rhttp_pass(head, at);
}

/* With the two bytes of its end. */
size_t rhttp_line_end_max(const rhttp_head *head) { return (size_t)head->line + head->limits->line_max + 2; }

rhttp_found rhttp_take_fields(rhttp_head *head, const uint8_t *bytes, size_t len) {
    size_t max = head->limits->head_max, end = len < max ? len : max;
    if (head->fields.at > end) return rhttp_fields_refuse(&head->fields, end, RHTTP_WRONG_HEAD_LONG);
    rhttp_found found = rhttp_fields_take(&head->fields, bytes, end);
    if (found == RHTTP_PART && len >= max) return rhttp_fields_refuse(&head->fields, end, RHTTP_WRONG_HEAD_LONG);
    if (found == RHTTP_WHOLE) head->len = head->fields.at;
    return found;
}
