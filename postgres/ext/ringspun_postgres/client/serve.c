#include "client/serve.h"
#include "client/asides.h"
#include "client/copying.h"
#include "client/ending.h"
#include "client/flight.h"
#include "client/inbox.h"
#include "client/script_results.h"
#include "client/stuck.h"

#include <stdlib.h>

/* So many bytes of rows in one look are worth the block that they lie in; fewer are copied. */
#define BLOCK_WORTH 8192u

/* Requests that end in one look. */
#define ENDED_MAX 256u

/* --- messages --- */

static bool begins_with(rpg_span text, const char *word) {
    size_t len = strlen(word);
    return text.len >= len && memcmp(text.bytes, word, len) == 0;
}

/* Of an error after which the server ends the connection: its message. */
static bool note_fatal(rpg_lane *lane, const rpg_message *message) {
    rpg_reader reader = rpg_reader_over(message->body, message->len);
    uint8_t code;
    rpg_span text;
    bool fatal = false;
    while (rpg_read_error_field(&reader, &code, &text) && code != 0) {
        int len = text.len < sizeof(lane->fatal) ? (int)text.len : (int)sizeof(lane->fatal) - 1;
        if (code == 'S' || code == 'V') fatal |= begins_with(text, "FATAL") || begins_with(text, "PANIC"); /* a pooler has no V */
        if (code == 'M' && fatal) snprintf(lane->fatal, sizeof(lane->fatal), "%.*s", len, (const char *)text.bytes);
    }
    return fatal;
}

static void take_error(rpg_lane *lane, rpg_request *request, const rpg_message *message) {
    if (note_fatal(lane, message) || !request) return;
    if (request->abandoned || request->error) return;
    request->error = malloc(message->len);
    if (!request->error) return;
    memcpy(request->error, message->body, message->len);
    request->error_len = message->len;
}

/* https://www.postgresql.org/docs/17/protocol-message-formats.html has the tags. */
static bool changes_session(rpg_span tag) {
    static const char *const words[] = {"SET", "RESET", "LISTEN", "UNLISTEN", "PREPARE", "DECLARE", "DISCARD", "DEALLOCATE", "LOAD"};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        if (begins_with(tag, words[i])) return true;
    }
    return false;
}

static bool is_one_of(rpg_span text, const char *const *words) {
    for (; *words; words++) {
        if (begins_with(text, *words)) return true;
    }
    return false;
}

/* Whether a statement may mean something else now, as where a column has another type. */
static bool changes_schema(rpg_span tag) {
    static const char *const ways[] = {"CREATE ", "ALTER ", "DROP ", NULL};
    static const char *const others[] = {"INDEX", "ROLE", "SEQUENCE", "TRIGGER", "POLICY", "DATABASE", "STATISTICS", NULL};
    if (!is_one_of(tag, ways)) return false;
    const uint8_t *space = memchr(tag.bytes, ' ', tag.len);
    size_t before = (size_t)(space - tag.bytes) + 1;
    return !is_one_of((rpg_span){tag.bytes + before, tag.len - before}, others);
}

/* Until it is committed others do not see it, and what is rolled back is as it was. */
static void note_schema(rpg_lane *lane, rpg_span tag, const rpg_verdict *verdict) {
    bool changes = changes_schema(tag), of_session = verdict->of_session && begins_with(tag, "CREATE");
    if (changes && of_session) lane->schema++;
    else if (changes || (lane->changed_schema && begins_with(tag, "ROLLBACK"))) rpg_schema++;
    lane->changed_schema |= changes && !of_session;
}

static void take_tag(rpg_lane *lane, rpg_request *request, const rpg_message *message) {
    static const rpg_verdict none = {0};
    rpg_span tag;
    if (!rpg_read_complete(message, &tag)) return;
    const rpg_verdict *verdict = NIL_P(request->statement) ? &none : &rpg_statement_get(request->statement)->verdict;
    lane->left_state |= verdict->leaves || (changes_session(tag) && !verdict->ends_with_transaction);
    note_schema(lane, tag, verdict);
    request->tag_len = (uint8_t)(tag.len < RPG_TAG_MAX ? tag.len : RPG_TAG_MAX);
    memcpy(request->tag, tag.bytes, request->tag_len);
}

/* Each column is looked at when somebody needs them. An empty description means that there are none. */
static bool take_columns(rpg_request *request, bool scripted, const rpg_message *message) {
    rpg_reader reader;
    uint16_t count;
    if (!rpg_read_columns(message, &reader, &count)) return false;
    if (NIL_P(request->statement)) return scripted; /* else it was an empty query */
    rpg_statement_describe(rpg_statement_get(request->statement), (rpg_span){message->body, message->len});
    return true;
}

static void take_no_columns(rpg_request *request) {
    rpg_statement_describe(rpg_statement_get(request->statement), (rpg_span){NULL, 0});
}

typedef enum { TAKEN, UNSAFE, NO_MEMORY, COPIES, WRONG } taken;

static taken take_row(rpg_lane *lane, rpg_request *request, size_t from, size_t to) {
    rpg_run_of_rows *last = lane->runs_len > 0 ? &lane->runs[lane->runs_len - 1] : NULL;
    if (request->abandoned) return TAKEN;
    lane->runs_bytes += to - from;
    if (last && last->request == request && last->to == from) {
        last->to = to;
        last->count++;
        return TAKEN;
    }
    if (lane->runs_len == lane->runs_capacity) {
        uint32_t capacity = lane->runs_capacity ? lane->runs_capacity * 2 : 16;
        rpg_run_of_rows *runs = realloc(lane->runs, sizeof(*runs) * capacity);
        if (!runs) return NO_MEMORY;
        lane->runs = runs;
        lane->runs_capacity = capacity;
    }
    lane->runs[lane->runs_len++] = (rpg_run_of_rows){request, from, to, 1};
    return TAKEN;
}

/* What another strand has begun on a connection that all share would be everybody's. What was sent behind it has met that, and is
 * rolled back with it, so no more is taken, whatever the server says of it. */
static taken take_ready(rpg_lane *lane, rpg_request *request, const rpg_message *message) {
    if (!rpg_read_ready(message, &lane->status)) return WRONG;
    if (RB_UNLIKELY(lane->changed_schema && lane->status == 'I')) {
        lane->changed_schema = false;
        rpg_schema++;
    }
    bool unsafe = lane->shared ? rpg_is_unsafe(lane) : !lane->renewing && rpg_settings_unreadable(&lane->settings).len > 0;
    if (!unsafe) return TAKEN;
    request->unsafe = true;
    return UNSAFE;
}

static taken take_copy(rpg_lane *lane, rpg_request *request, const rpg_message *message) {
    if (request->copy != RPG_COPY_ASKED) return COPIES;
    if (!rpg_read_copy(message, &request->copy_format, &request->copy_columns)) return WRONG;
    bool is_given_up = message->type == RPG_COPY_OUT || request->copy_way == RPG_COPY_IN; /* where its strand has gone */
    if (request->abandoned) return is_given_up ? TAKEN : WRONG;
    rpg_copy_begins(request, message->type);
    return TAKEN;
}

static taken of_aside(rpg_aside aside) {
    if (aside == RPG_ASIDE_TAKEN) return TAKEN;
    return aside == RPG_ASIDE_WRONG ? WRONG : NO_MEMORY;
}

static taken take_message(rpg_lane *lane, const rpg_message *message, size_t from, size_t to) {
    rpg_event event = rpg_replies_take(&lane->replies, message);
    rpg_request *request = event.tag;
    bool scripted = request && request->script;
    if (RB_UNLIKELY(scripted)) request = rpg_script_taker(request, event.kind, message);
    if (RB_UNLIKELY(event.tag && !request)) return NO_MEMORY;
    switch (event.kind) {
    case RPG_EVENT_ROW: return request->copy ? WRONG : take_row(lane, request, from, to);
    case RPG_EVENT_COMPLETE: take_tag(lane, request, message); return TAKEN;
    case RPG_EVENT_COLUMNS: return take_columns(request, scripted, message) ? TAKEN : WRONG;
    case RPG_EVENT_NO_COLUMNS: take_no_columns(request); return TAKEN;
    case RPG_EVENT_READY: return take_ready(lane, request, message);
    case RPG_EVENT_ERROR:
        take_error(lane, request, message);
        return TAKEN;
    case RPG_EVENT_STEP:
        if (message->type == RPG_PARSED) request->parses = false;
        return TAKEN;
    case RPG_EVENT_SUSPENDED: request->suspended = true; return request->copy ? WRONG : TAKEN;
    case RPG_EVENT_ASIDE: return of_aside(rpg_take_aside(lane, message));
    case RPG_EVENT_PARAMETERS: return rpg_statement_type(rpg_statement_get(request->statement), message) ? TAKEN : WRONG;
    case RPG_EVENT_EMPTY: return TAKEN;
    case RPG_EVENT_COPY_IN:
    case RPG_EVENT_COPY_OUT: return take_copy(lane, request, message);
    case RPG_EVENT_COPY_DATA: return take_row(lane, request, from, to);
    case RPG_EVENT_COPY_DONE: return TAKEN;
    default: return message->type == RPG_COPY_BOTH ? COPIES : WRONG;
    }
}

/* --- rows --- */

static bool keep_copies(rpg_lane *lane, const uint8_t *bytes) {
    bool fine = true;
    for (uint32_t i = 0; i < lane->runs_len && fine; i++) {
        const rpg_run_of_rows *run = &lane->runs[i];
        fine = rpg_rows_copy(&run->request->rows, (rpg_span){bytes + run->from, run->to - run->from}, run->count);
    }
    return fine;
}

/* With all that was looked at. */
static bool keep_block(rpg_lane *lane, size_t len) {
    const uint8_t *start;
    rpg_block *block = rpg_inbox_take(lane, len, &start);
    bool fine = block != NULL;
    for (uint32_t i = 0; i < lane->runs_len && fine; i++) {
        const rpg_run_of_rows *run = &lane->runs[i];
        rpg_span rows = {start + run->from, run->to - run->from};
        fine = rpg_rows_add(&run->request->rows, block, rows, run->count);
    }
    if (block) rpg_block_drop(block);
    return fine;
}

static void wake_streams(const rpg_lane *lane) {
    for (uint32_t i = 0; i < lane->runs_len; i++) {
        const rpg_request *request = lane->runs[i].request;
        if (request->leg && request->parked) ringspun->wake_here(request->waker, 0); /* never of a thread */
    }
}

/* The rows of this look become those of their requests, and what was looked at is gone. */
static bool keep_rows(rpg_lane *lane, const uint8_t *bytes, size_t len) {
    bool fine;
    if (lane->runs_bytes >= BLOCK_WORTH) {
        fine = keep_block(lane, len);
    } else {
        fine = keep_copies(lane, bytes);
        rpg_inbox_drop(lane, len);
    }
    wake_streams(lane);
    lane->runs_len = 0;
    lane->runs_bytes = 0;
    return fine;
}

/* --- a look --- */

/* What a server works on one statement says nothing of what it works on a stream, nor does an empty query. */
static bool is_timed(const rpg_request *request) {
    return !NIL_P(request->statement) && !request->leg && !request->describes && rpg_statement_get(request->statement)->history;
}

/* How long the first was at the head, with others of its batch. A server sends each answer at once, so those of other groups that
 * have come in the same look took no time of their own, or nobody has looked: then nothing is known of any of them. */
static void note_times(rpg_lane *lane, const uint8_t *ends, uint32_t ended) {
    int64_t now = rpg_now(lane), took = now - lane->head_since;
    bool known = lane->fastest < INT64_MAX || took < RPG_SLOW;
    uint32_t groups = 0, first_len = 0, i = 0;
    lane->quiet_since = lane->head_since = now;
    lane->losses = rpg_losses();
    lane->stalled = lane->doubted = false;
    if (took < lane->fastest) lane->fastest = took;
    took -= lane->fastest;
    for (const rpg_request *each = lane->sent.first; each && i < ended; each = each->next, i++) {
        if (groups == 0) first_len++;
        groups += each->syncs;
    }
    if (!known || (took > RPG_SLOW && groups > 1)) return;
    i = 0;
    for (const rpg_request *each = lane->sent.first; each && i < ended; each = each->next, i++) {
        int64_t own = i < first_len ? took / first_len : 0;
        if (is_timed(each) && (ends[i] == RPG_ENDED_WELL || (own > RPG_SLOW && !rpg_has_met_lock(lane, each)))) {
            rpg_history_note(rpg_statement_get(each->statement)->history, own);
        }
    }
}

static void finish_ended(rpg_lane *lane, const uint8_t *ends, uint32_t ended) {
    if (ended == 0) return;
    note_times(lane, ends, ended);
    for (uint32_t i = 0; i < ended && lane->sent.first; i++) {
        lane->pipelines |= lane->sent.first->behind;
        rpg_finish_first(lane, (rpg_end_kind)ends[i]);
    }
    rpg_ask_flight(lane);
}

/* Whatever comes next might be taken for the answer to another request. */
static void break_off(rpg_lane *lane, const char *why) {
    lane->broken = !lane->lost[0] && !lane->fatal[0];
    rpg_lose(lane, why);
}

bool rpg_serve(rpg_lane *lane) {
    size_t at = 0, needed;
    rpg_span come;
    uint8_t ends[ENDED_MAX];
    uint32_t ended = 0;
    rpg_message message;
    rpg_found found = RPG_PART;
    taken how = TAKEN;
    if (RB_UNLIKELY(!rpg_inbox_look(lane, &come))) {
        rpg_lose(lane, "there was no memory for what the server sent");
        return false;
    }
    while (ended < ENDED_MAX && (how == TAKEN || how == UNSAFE)) {
        void *tag;
        rpg_end_kind end;
        if (rpg_replies_next_ended(&lane->replies, &tag, &end)) {
            ends[ended++] = (uint8_t)end;
        } else if (how == TAKEN && (found = rpg_message_next(come.bytes + at, come.len - at, &message, &needed)) == RPG_WHOLE) {
            how = take_message(lane, &message, at, at + needed);
            at += needed;
        } else {
            break;
        }
    }
    bool kept = at == 0 || keep_rows(lane, come.bytes, at);
    if (kept) finish_ended(lane, ends, ended);
    if (!kept || how == NO_MEMORY) rpg_lose(lane, "there was no memory for what the server sent");
    else if (how == COPIES) break_off(lane, RPG_COPY_REFUSED);
    else if (how == WRONG || found == RPG_WRONG) break_off(lane, "the server sent what is no answer to what was asked");
    else if (lane->fatal[0]) rpg_lose_to_server(lane, lane->fatal);
    else if (how == UNSAFE) rpg_lose(lane, "a statement has left a transaction open, or changed the session");
    return at > 0 || ended > 0;
}
