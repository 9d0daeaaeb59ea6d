#include "client/request.h"

#include <stdlib.h>

rpg_request *rpg_request_new(struct rpg_lane *lane, VALUE statement, rpg_span params) {
    rpg_request *request = malloc(sizeof(*request) + params.len);
    if (!request) return NULL;
    *request = (rpg_request){.lane = lane, .statement = statement, .caller = Qnil, .thread = Qnil, .formats = Qnil, .syncs = true, .params_len = params.len};
    if (params.len > 0) memcpy(request->params, params.bytes, params.len);
    return request;
}

bool rpg_request_has_binary(const rpg_request *request) {
    for (uint16_t i = 0; i < rpg_request_params(request); i++) {
        if (rpg_request_is_binary(request, i)) return true;
    }
    return false;
}

void rpg_requests_append(rpg_requests *list, rpg_request *request) {
    request->next = NULL;
    if (list->last) list->last->next = request;
    else list->first = request;
    list->last = request;
    list->len++;
}

void rpg_requests_add_passing(rpg_requests *list, rpg_request *request) {
    rpg_request *previous = NULL, *next = list->first;
    for (; next && next->passes; next = next->next) previous = next;
    request->passes = true;
    request->next = next;
    if (previous) previous->next = request;
    else list->first = request;
    if (!next) list->last = request;
    list->len++;
}

rpg_request *rpg_requests_take_first(rpg_requests *list) {
    rpg_request *first = list->first;
    list->first = first->next;
    if (!list->first) list->last = NULL;
    list->len--;
    return first;
}

void rpg_requests_take_out(rpg_requests *list, rpg_request *request) {
    rpg_request *previous = NULL;
    for (rpg_request *each = list->first; each != request; each = each->next) previous = each;
    if (previous) previous->next = request->next;
    else list->first = request->next;
    if (list->last == request) list->last = previous;
    list->len--;
}

void rpg_request_mark(const rpg_request *request) {
    rb_gc_mark(request->statement);
    rb_gc_mark(request->caller);
    rb_gc_mark(request->thread);
    rb_gc_mark(request->formats);
}

void rpg_requests_mark(const rpg_requests *list) {
    for (const rpg_request *each = list->first; each; each = each->next) rpg_request_mark(each);
}

bool rpg_request_has_field(const rpg_request *request, uint8_t field, const char *begin) {
    rpg_reader reader = rpg_reader_over(request->error, request->error_len);
    size_t len = strlen(begin);
    uint8_t code;
    rpg_span text;
    while (request->error && rpg_read_error_field(&reader, &code, &text) && code != 0) {
        if (code == field) return text.len >= len && memcmp(text.bytes, begin, len) == 0;
    }
    return false;
}

bool rpg_request_failed_by(const rpg_request *request, const char *sqlstate) { return rpg_request_has_field(request, 'C', sqlstate); }

bool rpg_request_complains(const rpg_request *request, const char *words) { return rpg_request_has_field(request, 'M', words); }
