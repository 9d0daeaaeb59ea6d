/* list: the elements of a value that has commas between them, without the blanks around each. Owns nothing. Empty ones are passed
 * over: https://www.rfc-editor.org/rfc/rfc9110#section-5.6.1.2 */
#ifndef RINGSPUN_HTTP_LIST_H
#define RINGSPUN_HTTP_LIST_H

#include "codec/chars.h"
#include "codec/span.h"

/* Takes the first element off the list. False: there is none left. */
static inline bool rhttp_list_take(const uint8_t *bytes, rhttp_span *list, rhttp_span *element) {
    size_t at = list->at, end = rhttp_span_end(*list);
    while (at < end && (bytes[at] == ',' || rhttp_is_blank(bytes[at]))) at++;
    size_t begin = at;
    while (at < end && bytes[at] != ',') at++;
    *list = rhttp_between(at, end);
    while (at > begin && rhttp_is_blank(bytes[at - 1])) at--;
    *element = rhttp_between(begin, at);
    return at > begin;
}

#endif
