#include "codec/framing.h"

#include "codec/chars.h"
#include "codec/list.h"

/* The fields that say how a message is to be read: the first of each name, and whether there is another one. */
typedef struct {
    const rhttp_field *host;
    const rhttp_field *length;
    const rhttp_field *coding;
    const rhttp_field *upgrade;
    bool host_again;
    bool length_again;
    bool coding_again;
    bool closes;
    bool keeps_alive;
    bool upgrades;
    bool expects_continue;
} gathered;

static bool is_word(const uint8_t *bytes, rhttp_span span, const char *word, size_t len) {
    return rhttp_is_same(bytes + span.at, span.len, word, len);
}

#define IS_WORD(bytes, span, word) is_word(bytes, span, word, sizeof(word) - 1)

static void gather_connection(gathered *all, const uint8_t *bytes, rhttp_span list) {
    rhttp_span option;
    while (rhttp_list_take(bytes, &list, &option)) {
        all->closes |= IS_WORD(bytes, option, "close");
        all->keeps_alive |= IS_WORD(bytes, option, "keep-alive");
        all->upgrades |= IS_WORD(bytes, option, "upgrade");
    }
}

static void gather_expectation(gathered *all, const uint8_t *bytes, rhttp_span list) {
    rhttp_span expectation;
    while (rhttp_list_take(bytes, &list, &expectation)) all->expects_continue |= IS_WORD(bytes, expectation, "100-continue");
}

static void note(const rhttp_field **first, const rhttp_field *field, bool *again) {
    *again |= *first != NULL;
    if (!*first) *first = field;
}

static gathered gather(const rhttp_head *head, const uint8_t *bytes) {
    gathered all = {0};
    bool upgrade_again = false;
    for (uint16_t i = 0; i < head->fields.count; i++) {
        const rhttp_field *field = &head->fields.list[i];
        switch (field->known) {
        case RHTTP_NAME_HOST: note(&all.host, field, &all.host_again); break;
        case RHTTP_NAME_CONTENT_LENGTH: note(&all.length, field, &all.length_again); break;
        case RHTTP_NAME_TRANSFER_ENCODING: note(&all.coding, field, &all.coding_again); break;
        case RHTTP_NAME_UPGRADE: note(&all.upgrade, field, &upgrade_again); break;
        case RHTTP_NAME_CONNECTION: gather_connection(&all, bytes, field->value); break;
        case RHTTP_NAME_EXPECT: gather_expectation(&all, bytes, field->value); break;
        default: break;
        }
    }
    return all;
}

/* --- lengths --- */

bool rhttp_read_length(const uint8_t *digits, size_t len, uint64_t *length) {
    *length = 0;
    for (size_t i = 0; i < len; i++) {
        if (!rhttp_is_digit(digits[i])) return false;
        uint64_t digit = (uint64_t)(digits[i] - '0');
        if (*length > (INT64_MAX - digit) / 10) return false;
        *length = *length * 10 + digit;
    }
    return len > 0;
}

/* Another coding than `chunked`: one that might be known elsewhere when the list has `chunked` once, and at its end. */
static rhttp_wrong wrong_coding(const uint8_t *bytes, rhttp_span list) {
    rhttp_span coding;
    bool is_chunked = false, others = false;
    while (rhttp_list_take(bytes, &list, &coding)) {
        bool is_token = rhttp_past(bytes, coding.at, rhttp_span_end(coding), RHTTP_TOKEN) == rhttp_span_end(coding);
        if (is_chunked || !is_token || IS_WORD(bytes, coding, "identity")) return RHTTP_WRONG_CODING;
        is_chunked = IS_WORD(bytes, coding, "chunked");
        others |= !is_chunked;
    }
    return is_chunked && others ? RHTTP_WRONG_CODING_UNKNOWN : RHTTP_WRONG_CODING;
}

/* Whether the value stands there as nearly all write it, with one blank before it or none, and none behind it. Readers have been
 * found which take `chunked ` for another word than `chunked`:
 * https://portswigger.net/research/http-desync-attacks-request-smuggling-reborn */
static bool is_plain(const uint8_t *bytes, const rhttp_field *field) {
    size_t begin = rhttp_span_end(field->name) + 1;
    bool plain_before = field->value.at == begin || (field->value.at == begin + 1 && bytes[begin] == ' ');
    return plain_before && bytes[rhttp_span_end(field->value)] == '\r';
}

static rhttp_wrong judge_coding(rhttp_head *head, const uint8_t *bytes, const gathered *all) {
    if (all->length) return RHTTP_WRONG_LENGTH_AND_CODING;
    if (all->coding_again) return RHTTP_WRONG_CODINGS;
    if (head->version == RHTTP_1_0) return RHTTP_WRONG_CODING_OF_1_0;
    if (!IS_WORD(bytes, all->coding->value, "chunked")) return wrong_coding(bytes, all->coding->value);
    if (!is_plain(bytes, all->coding)) return RHTTP_WRONG_CODING;
    head->body = RHTTP_BODY_CHUNKED;
    return RHTTP_FINE;
}

static rhttp_wrong judge_length(rhttp_head *head, const uint8_t *bytes, const gathered *all) {
    rhttp_span value = all->length->value;
    if (all->length_again) return RHTTP_WRONG_LENGTHS;
    if (!rhttp_read_length(bytes + value.at, value.len, &head->body_len)) return RHTTP_WRONG_LENGTH;
    head->body = RHTTP_BODY_LENGTH;
    return RHTTP_FINE;
}

static rhttp_wrong judge_body(rhttp_head *head, const uint8_t *bytes, const gathered *all) {
    if (all->coding) return judge_coding(head, bytes, all);
    return all->length ? judge_length(head, bytes, all) : RHTTP_FINE;
}

/* A length that only speaks of a body, as in the answer to a HEAD, may be any. */
static rhttp_wrong judge_size(const rhttp_head *head) {
    bool is_long = head->body == RHTTP_BODY_LENGTH && head->body_len > head->limits->body_max;
    return is_long ? RHTTP_WRONG_BODY_LONG : RHTTP_FINE;
}

/* --- connections --- */

/* HTTP/1.0 keeps one only where it says so: https://www.rfc-editor.org/rfc/rfc9112#section-9.3. It does not know of upgrades:
 * https://www.rfc-editor.org/rfc/rfc9110#section-7.8 */
static void judge_connection(rhttp_head *head, const gathered *all) {
    bool is_1_1 = head->version == RHTTP_1_1;
    head->keeps_alive = !all->closes && (is_1_1 || all->keeps_alive);
    if (is_1_1 && all->upgrades && all->upgrade) head->upgrade = all->upgrade->value;
}

/* --- hosts --- */

/* As https://www.rfc-editor.org/rfc/rfc9112#section-3.2 has it: there is one, and it is a host. Where the target is an address,
 * the host is the one in there, whatever the field says (3.2.2). The host of a CONNECT is the same in both. */
static rhttp_wrong judge_host(rhttp_request *request, const uint8_t *bytes, const gathered *all) {
    rhttp_host named;
    if (!all->host) return request->head.version == RHTTP_1_1 ? RHTTP_WRONG_NO_HOST : RHTTP_FINE;
    if (all->host_again) return RHTTP_WRONG_HOSTS;
    if (!rhttp_host_read(bytes, all->host->value, &named)) return RHTTP_WRONG_HOST;
    if (request->form == RHTTP_FORM_ABSOLUTE) return RHTTP_FINE;
    bool is_tunnel = request->form == RHTTP_FORM_AUTHORITY;
    if (is_tunnel && !rhttp_host_is_same(bytes, &request->host, &named, request->host.port)) return RHTTP_WRONG_OTHER_HOST;
    request->host = named;
    return RHTTP_FINE;
}

/* --- both kinds of heads --- */

/* What a CONNECT has behind it belongs to the tunnel, and readers do not agree whether a length counts:
 * https://www.rfc-editor.org/rfc/rfc9110#section-9.3.6 */
rhttp_wrong rhttp_judge_request(rhttp_request *request, const uint8_t *bytes) {
    rhttp_head *head = &request->head;
    gathered all = gather(head, bytes);
    rhttp_wrong wrong = judge_host(request, bytes, &all);
    if (wrong == RHTTP_FINE) wrong = judge_body(head, bytes, &all);
    if (wrong != RHTTP_FINE) return wrong;
    if (request->known_method == RHTTP_METHOD_CONNECT && head->body != RHTTP_BODY_NONE) return RHTTP_WRONG_BODY_OF_CONNECT;
    judge_connection(head, &all);
    request->expects_continue = all.expects_continue && head->version == RHTTP_1_1 && head->body != RHTTP_BODY_NONE;
    return judge_size(head);
}

/* What its status, or the method that was asked, says of the body before any field does. */
static bool is_tunnel(const rhttp_response *response) {
    return response->status == 101 || (response->asked == RHTTP_METHOD_CONNECT && response->status / 100 == 2);
}

static bool never_has_body(uint16_t status) { return status / 100 == 1 || status == 204; }

/* A length that is not what follows is allowed to the answers of a HEAD, and to a 304, which say what else would have followed.
 * An answer that never has a body must not have one: https://www.rfc-editor.org/rfc/rfc9110#section-8.6; 0 is a lie of none. */
rhttp_wrong rhttp_judge_response(rhttp_response *response, const uint8_t *bytes) {
    rhttp_head *head = &response->head;
    gathered all = gather(head, bytes);
    head->body = RHTTP_BODY_UNTIL_CLOSE;
    rhttp_wrong wrong = judge_body(head, bytes, &all);
    if (wrong != RHTTP_FINE) return wrong;
    judge_connection(head, &all);
    if (never_has_body(response->status) && (all.coding || head->body_len > 0)) return RHTTP_WRONG_BODY_OF_STATUS;
    if (is_tunnel(response)) head->body = RHTTP_BODY_TUNNEL;
    else if (never_has_body(response->status) || response->status == 304 || response->asked == RHTTP_METHOD_HEAD) {
        head->body = RHTTP_BODY_NONE;
    }
    head->keeps_alive &= head->body != RHTTP_BODY_UNTIL_CLOSE && head->body != RHTTP_BODY_TUNNEL;
    return judge_size(head);
}
