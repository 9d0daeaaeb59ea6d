#include "codec/plan.h"

#include "codec/out.h"

static bool is_tunnel(const rhttp_answer *answer) {
    return answer->status == 101 || (answer->method == RHTTP_METHOD_CONNECT && answer->status / 100 == 2);
}

/* Neither a body nor a field that speaks of one: https://www.rfc-editor.org/rfc/rfc9110#section-8.6 */
static bool never_has_body(uint16_t status) { return status / 100 == 1 || status == 204; }

/* No body, but a length of the one that a GET would have got, where somebody has said that:
 * https://www.rfc-editor.org/rfc/rfc9110#section-9.3.2, #section-15.4.5 */
static bool has_other_body(const rhttp_answer *answer) { return answer->method == RHTTP_METHOD_HEAD || answer->status == 304; }

/* HTTP/1.0 has no chunks, so the end of the connection is the end of the body. */
static void plan_body(rhttp_plan *plan, const rhttp_answer *answer) {
    if (answer->gives == RHTTP_GIVES_STREAM) {
        plan->body = answer->version == RHTTP_1_1 ? RHTTP_BODY_CHUNKED : RHTTP_BODY_UNTIL_CLOSE;
        plan->keeps_alive &= plan->body == RHTTP_BODY_CHUNKED;
    } else {
        plan->body = RHTTP_BODY_LENGTH;
        plan->says_len = true;
        plan->len = answer->gives == RHTTP_GIVES_LENGTH ? answer->len : 0;
    }
}

static rhttp_says says_of(const rhttp_plan *plan, uint8_t version) {
    if (!plan->keeps_alive) return RHTTP_SAYS_CLOSE;
    return version == RHTTP_1_0 ? RHTTP_SAYS_KEEP_ALIVE : RHTTP_SAYS_NOTHING;
}

rhttp_plan rhttp_plan_answer(const rhttp_answer *answer) {
    rhttp_plan plan = {.keeps_alive = answer->keeps_alive};
    bool says_len = answer->gives == RHTTP_GIVES_LENGTH && answer->says_len;
    if (is_tunnel(answer)) return (rhttp_plan){.body = RHTTP_BODY_TUNNEL};
    if (never_has_body(answer->status)) {
        plan.body = RHTTP_BODY_NONE;
    } else if (has_other_body(answer)) {
        plan.body = RHTTP_BODY_NONE;
        plan.says_len = says_len;
        plan.len = answer->len;
    } else if (answer->status == 205) { /* has a body of no bytes: https://www.rfc-editor.org/rfc/rfc9110#section-15.3.6 */
        plan.body = RHTTP_BODY_NONE;
        plan.says_len = true;
    } else {
        plan_body(&plan, answer);
    }
    bool is_interim = answer->status / 100 == 1; /* the answer is still to come, and says what becomes of the connection */
    if (!is_interim) plan.says = (uint8_t)says_of(&plan, answer->version);
    return plan;
}

/* Whether such a request is about its body, and says so when it has none: https://www.rfc-editor.org/rfc/rfc9110#section-8.6 */
static bool wants_body(rhttp_method method) {
    return method == RHTTP_METHOD_POST || method == RHTTP_METHOD_PUT || method == RHTTP_METHOD_PATCH;
}

rhttp_plan rhttp_plan_request(rhttp_method method, rhttp_gives gives, uint64_t len) {
    if (gives == RHTTP_GIVES_STREAM) return (rhttp_plan){.body = RHTTP_BODY_CHUNKED, .keeps_alive = true};
    if (gives == RHTTP_GIVES_NOTHING && !wants_body(method)) return (rhttp_plan){.body = RHTTP_BODY_NONE, .keeps_alive = true};
    return (rhttp_plan){.body = RHTTP_BODY_LENGTH, .says_len = true, .keeps_alive = true,
                        .len = gives == RHTTP_GIVES_LENGTH ? len : 0};
}

static const rhttp_text length_name = RHTTP_TEXT_OF("content-length"), coding_name = RHTTP_TEXT_OF("transfer-encoding"),
                        connection_name = RHTTP_TEXT_OF("connection"), chunked = RHTTP_TEXT_OF("chunked");

static const rhttp_text said[] = {
    [RHTTP_SAYS_NOTHING] = RHTTP_TEXT_OF(""), [RHTTP_SAYS_CLOSE] = RHTTP_TEXT_OF("close"),
    [RHTTP_SAYS_KEEP_ALIVE] = RHTTP_TEXT_OF("keep-alive")
};

/* Where there is a number for it, a value of no bytes stands for that. */
static size_t length_size(uint64_t len) { return rhttp_field_size(length_name, RHTTP_TEXT("")) + rhttp_number_size(len); }

static uint8_t *put_length(uint8_t *to, uint64_t len) {
    uint8_t *end = rhttp_put_field(to, length_name, RHTTP_TEXT(""));
    return rhttp_put_end(rhttp_put_number(end - RHTTP_END_SIZE, len));
}

size_t rhttp_plan_size(const rhttp_plan *plan) {
    size_t size = plan->says_len ? length_size(plan->len) : 0;
    if (plan->body == RHTTP_BODY_CHUNKED) size += rhttp_field_size(coding_name, chunked);
    return plan->says == RHTTP_SAYS_NOTHING ? size : size + rhttp_field_size(connection_name, said[plan->says]);
}

uint8_t *rhttp_put_plan(uint8_t *to, const rhttp_plan *plan) {
    if (plan->says_len) to = put_length(to, plan->len);
    if (plan->body == RHTTP_BODY_CHUNKED) to = rhttp_put_field(to, coding_name, chunked);
    return plan->says == RHTTP_SAYS_NOTHING ? to : rhttp_put_field(to, connection_name, said[plan->says]);
}
