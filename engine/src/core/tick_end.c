#include "core/tick_end.h"

#include <stdlib.h>

bool rs_tick_ends_add(rs_links *ends, void (*call)(uintptr_t data), uintptr_t data) {
    RS_CHECK(call != NULL);
    rs_tick_end *end = rs_try_alloc(sizeof(*end));
    if (!end) return false;
    *end = (rs_tick_end){.call = call, .data = data};
    rs_links_append(ends, &end->link);
    return true;
}

/* Those that are asked for by a call are for the next end. Those that are still due stay in the list, where they are visited. */
void rs_tick_ends_call(rs_links *ends) {
    const rs_link *last = ends->last;
    for (bool more = last != NULL; more && ends->first;) {
        rs_tick_end *end = RS_LINKED(ends->first, rs_tick_end, link);
        rs_tick_end called = *end;
        more = &end->link != last;
        rs_links_remove(ends, &end->link);
        free(end);
        called.call(called.data);
    }
}

void rs_tick_ends_visit(const rs_links *ends, void (*visit)(uintptr_t data)) {
    RS_EACH_LINKED(ends, rs_tick_end, link, end) visit(end->data);
}

void rs_tick_ends_forget(rs_links *ends) {
    RS_EACH_LINKED(ends, rs_tick_end, link, end) free(end);
    *ends = (rs_links){0};
}
