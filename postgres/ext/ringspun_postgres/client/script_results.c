#include "client/script_results.h"
#include "client/ending.h"

static rpg_request *begin_result(rpg_request *request, rpg_span description) {
    rpg_request *result = rpg_request_new(request->lane, Qnil, description);
    if (!result) return NULL;
    rpg_requests_append(&request->script->results, result);
    request->script->open = true;
    return result;
}

/* What nobody waits for any more is not kept. Who waited has left between two looks, so no rows of this look are meant for it. */
static void forget_results(const rpg_request *request) {
    if (!request->abandoned) return;
    rpg_requests_free(&request->script->results);
    request->script->open = false;
}

rpg_request *rpg_script_taker(rpg_request *request, rpg_event_kind kind, const rpg_message *message) {
    rpg_script *script = request->script;
    switch (kind) {
    case RPG_EVENT_COLUMNS:
        forget_results(request);
        return begin_result(request, (rpg_span){message->body, message->len});
    case RPG_EVENT_ROW: return script->open && !request->abandoned ? script->results.last : request;
    case RPG_EVENT_COMPLETE: {
        forget_results(request);
        rpg_request *result = script->open ? script->results.last : begin_result(request, (rpg_span){NULL, 0});
        script->open = false;
        return result;
    }
    default: return request;
    }
}
