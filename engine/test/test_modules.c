/* The modules that stand alone: timers, run queue and strand table, lists, ops, descriptors, inbox, trace. */
#include "test.h"

#include "ringspun/engine.h"

#include "backend/uring/entry.h"
#include "core/machine.h"
#include "kernel/op_table.h"
#include "rooms.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/uio.h>

static uint64_t random_state = 1;

static uint64_t draw(uint64_t bound) {
    uint64_t word = random_state += 0x9E3779B97F4A7C15u;
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
    return (word ^ (word >> 31)) % bound;
}

static const rs_sim_faults no_faults;

static rs_machine *new_machine(uint32_t strands_max) {
    rs_machine *machine = rs_machine_new();
    rs_options options = rs_default_options();
    options.strands_max = strands_max;
    options.faults = &no_faults;
    RS_ASSERT(rs_machine_open(machine, &rs_backend_sim, &options) == 0);
    return machine;
}

static void drop_machine(rs_machine *machine) {
    rs_machine_close(machine);
    rs_machine_free(machine);
}

/* --- timers --- */

enum { TIMERS = 200 };

/* The earliest of those that are set, and of equals the one set first, found by looking at all. */
static int naive_earliest(const rs_timer *timers, int64_t now_ns) {
    int best = -1;
    for (int i = 0; i < TIMERS; i++) {
        if (!rs_timer_is_set(&timers[i]) || timers[i].deadline_ns > now_ns) continue;
        bool first = best < 0 || timers[i].deadline_ns < timers[best].deadline_ns;
        if (first || (timers[i].deadline_ns == timers[best].deadline_ns && timers[i].order < timers[best].order)) best = i;
    }
    return best;
}

TEST(timers_agree_with_a_naive_model) {
    rs_timers timers = {0};
    rs_timer all[TIMERS];
    uint32_t set = 0;
    random_state = 7;
    for (int i = 0; i < TIMERS; i++) rs_timer_init(&all[i], RS_TIMER_PARK);
    for (int round = 0; round < 40000; round++) {
        rs_timer *one = &all[draw(TIMERS)];
        switch (draw(4)) {
        case 0: case 1:
            set += !rs_timer_is_set(one);
            RS_ASSERT(rs_timers_reserve(&timers, set));
            rs_timer_set(&timers, one, (int64_t)draw(300));
            break;
        case 2:
            set -= rs_timer_is_set(one);
            rs_timer_clear(&timers, one);
            break;
        default: {
            int64_t now_ns = (int64_t)draw(300);
            int expected = naive_earliest(all, now_ns);
            rs_timer *popped = rs_timers_pop_due(&timers, now_ns);
            CHECK(popped == (expected < 0 ? NULL : &all[expected]));
            set -= popped != NULL;
            CHECK(!popped || !rs_timer_is_set(popped));
        }
        }
        CHECK_EQUAL(set, timers.len);
        int earliest = naive_earliest(all, RS_NEVER);
        CHECK_EQUAL(earliest < 0 ? RS_NEVER : all[earliest].deadline_ns, rs_timers_earliest(&timers));
        if (test_failures) break;
    }
    rs_timers_free(&timers);
}

TEST(a_timer_for_never_is_not_set) {
    rs_timers timers = {0};
    rs_timer timer;
    rs_timer_init(&timer, RS_TIMER_SCOPE);
    RS_ASSERT(rs_timers_reserve(&timers, 1));
    rs_timer_set(&timers, &timer, 5);
    rs_timer_set(&timers, &timer, RS_NEVER);
    CHECK(!rs_timer_is_set(&timer));
    CHECK(rs_timers_pop_due(&timers, RS_NEVER - 1) == NULL);
    rs_timers_free(&timers);
    CHECK_EQUAL(RS_NEVER, rs_deadline_after(5, RS_NEVER));
    CHECK_EQUAL(RS_NEVER, rs_deadline_after(RS_NEVER - 1, 1));
    CHECK_EQUAL(5, rs_deadline_after(5, -3));
    CHECK_EQUAL(8, rs_deadline_after(5, 3));
}

/* --- strands --- */

TEST(a_name_does_not_outlive_its_strand) {
    rs_strands strands;
    rs_strands_init(&strands, 1000);
    rs_strand *one = rs_strand_take(&strands);
    rs_id id = rs_strand_id(one);
    CHECK(id != RS_NO_ID);
    CHECK(rs_strand_find(&strands, id) == one);
    rs_strand_release(&strands, one);
    CHECK(rs_strand_find(&strands, id) == NULL);
    rs_strand *other = rs_strand_take(&strands);
    CHECK(other == one);
    CHECK(rs_strand_id(other) != id);
    CHECK(rs_strand_find(&strands, id) == NULL);
    CHECK(rs_strand_find(&strands, rs_id_make(5000, 1)) == NULL);
    /* The generation comes round without ever naming nobody. */
    rs_strand_release(&strands, other);
    one->generation = UINT32_MAX;
    CHECK(rs_strand_id(rs_strand_take(&strands)) != RS_NO_ID);
    CHECK_EQUAL(1, one->generation);
    rs_strands_free(&strands);
}

TEST(strands_have_a_limit_and_do_not_move) {
    enum { LIMIT = 1000 };
    rs_strands strands;
    rs_strand *all[LIMIT];
    rs_strands_init(&strands, LIMIT);
    for (int i = 0; i < LIMIT; i++) all[i] = rs_strand_take(&strands);
    CHECK(rs_strand_take(&strands) == NULL);
    for (int i = 0; i < LIMIT; i++) CHECK(rs_strand_at(&strands, all[i]->index) == all[i]);
    CHECK_EQUAL(LIMIT, rs_strands_live(&strands));
    for (int i = 0; i < LIMIT; i += 2) rs_strand_release(&strands, all[i]);
    CHECK_EQUAL(LIMIT / 2, rs_strands_live(&strands));
    CHECK(rs_strand_take(&strands) != NULL);
    rs_strands_free(&strands);
}

TEST(the_run_queue_is_first_in_first_out_with_a_front_door) {
    rs_strands strands;
    rs_strands_init(&strands, 10);
    rs_strand *all[5];
    for (int i = 0; i < 5; i++) all[i] = rs_strand_take(&strands);
    CHECK(rs_run_pop(&strands) == NULL);
    rs_run_push_front(&strands, all[0]);
    rs_run_push(&strands, all[1]);
    rs_run_push(&strands, all[2]);
    rs_run_push_front(&strands, all[3]);
    CHECK_EQUAL(4, strands.run_len);
    CHECK(rs_run_pop(&strands) == all[3]);
    rs_run_push(&strands, all[4]);
    rs_strand *expected[] = {all[0], all[1], all[2], all[4], NULL};
    for (int i = 0; i < 5; i++) CHECK(rs_run_pop(&strands) == expected[i]);
    CHECK_EQUAL(0, strands.run_len);
    rs_run_push(&strands, all[1]);
    rs_run_push_woken(&strands, all[2]);
    rs_run_forget(&strands);
    CHECK(!all[1]->queued && !all[2]->queued && rs_run_pop(&strands) == NULL);
    rs_strands_free(&strands);
}

TEST(both_sides_of_the_run_queue_are_one_in_order_but_for_those_that_are_preferred) {
    rs_strands strands;
    rs_strands_init(&strands, 10);
    rs_strand *all[8];
    for (int i = 0; i < 8; i++) all[i] = rs_strand_take(&strands);
    for (int i = 0; i < 6; i++) (i % 3 ? rs_run_push_woken : rs_run_push)(&strands, all[i]);
    rs_run_push_front(&strands, all[6]);
    CHECK_EQUAL(7, strands.run_len);
    CHECK(rs_run_last(&strands) == all[5]);
    rs_strand *in_order[] = {all[6], all[0], all[1], all[2], all[3]};
    for (int i = 0; i < 5; i++) CHECK(rs_run_pop(&strands) == in_order[i]);
    rs_run_push(&strands, all[0]);
    rs_run_push(&strands, all[1]);
    CHECK(rs_run_last(&strands) == all[1]);
    rs_run_push_woken(&strands, all[2]);
    rs_run_push_woken(&strands, all[3]);
    rs_run_prefer_woken(&strands); /* four of them */
    rs_run_push_woken(&strands, all[6]);
    rs_run_prefer_woken(&strands); /* none of the others has run since: the fifth waits for one of them */
    rs_strand *preferred[] = {all[4], all[5], all[2], all[3], all[0], all[6], all[1]};
    for (int i = 0; i < 7; i++) CHECK(rs_run_pop(&strands) == preferred[i]);
    for (int i = 0; i < 4; i++) (i % 2 ? rs_run_push_woken : rs_run_push)(&strands, all[i]);
    rs_run_push_front_of_others(&strands, all[4]);
    CHECK(rs_run_pop(&strands) == all[4]);
    rs_run_push_front_of_others(&strands, all[4]);
    rs_run_prefer_woken(&strands);
    rs_strand *passed[] = {all[1], all[3], all[4], all[0], all[2]};
    for (int i = 0; i < 5; i++) CHECK(rs_run_pop(&strands) == passed[i]);
    CHECK(rs_run_last(&strands) == NULL);
    CHECK_EQUAL(0, strands.run_len);
    rs_strands_free(&strands);
}

/* --- lists --- */

enum { WAITERS = 12 };

static void check_list(rs_machine *machine, const rs_list *list, rs_strand *const *model, uint32_t len) {
    CHECK_EQUAL(len, list->len);
    uint32_t link = list->head, previous = 0;
    for (uint32_t i = 0; i < len; i++) {
        CHECK(link != 0);
        if (!link) return;
        rs_strand *strand = rs_strand_at(&machine->strands, link - 1);
        CHECK(strand == model[i]);
        CHECK_EQUAL(previous, strand->waiter.previous);
        previous = link;
        link = strand->waiter.next;
    }
    CHECK_EQUAL(0, link);
    CHECK_EQUAL(previous, list->tail);
}

TEST(a_list_agrees_with_an_array) {
    rs_machine *machine = new_machine(100);
    rs_strand *strands[WAITERS], *model[WAITERS];
    rs_list list = {0};
    uint32_t len = 0;
    random_state = 3;
    for (int i = 0; i < WAITERS; i++) {
        strands[i] = rs_strand_take(&machine->strands);
        strands[i]->state = RS_STRAND_PARKED;
    }
    for (int round = 0; round < 5000 && !test_failures; round++) {
        rs_strand *strand = strands[draw(WAITERS)];
        if (!strand->waiter.list) {
            rs_list_append(machine, &list, strand, (uint64_t)round);
            model[len++] = strand;
        } else {
            uint32_t at = 0;
            while (model[at] != strand) at++;
            memmove(&model[at], &model[at + 1], sizeof(model[0]) * (--len - at));
            rs_list_remove(machine, strand);
            CHECK(strand->waiter.list == NULL);
        }
        check_list(machine, &list, model, len);
        CHECK(rs_list_first(machine, &list) == (len ? model[0] : NULL));
    }
    rs_list_remove(machine, rs_strand_at(&machine->strands, 0));
    while (len > 0) rs_list_remove(machine, model[--len]);
    check_list(machine, &list, model, 0);
    for (int i = 0; i < WAITERS; i++) rs_strand_release(&machine->strands, strands[i]);
    drop_machine(machine);
}

/* --- links and sources --- */

typedef struct {
    int number;
    rs_link link;
    bool in;
} linked;

static void check_links(const rs_links *links, linked *const *model, uint32_t len) {
    uint32_t at = 0;
    const rs_link *before = NULL;
    RS_EACH_LINKED(links, linked, link, each) {
        if (at < len) CHECK(each == model[at]);
        CHECK(each->link.previous == before);
        before = &each->link;
        at++;
    }
    CHECK_EQUAL(len, at);
    CHECK(links->last == before);
    CHECK_EQUAL(len == 0, rs_links_empty(links));
}

TEST(links_agree_with_an_array) {
    enum { THINGS = 12 };
    linked things[THINGS] = {0}, *model[THINGS];
    rs_links links = {0};
    uint32_t len = 0;
    for (int round = 0; round < 5000 && !test_failures; round++) {
        linked *thing = &things[draw(THINGS)];
        uint32_t at = 0;
        if (thing->in) {
            while (model[at] != thing) at++;
            memmove(&model[at], &model[at + 1], sizeof(model[0]) * (--len - at));
            rs_links_remove(&links, &thing->link);
        } else if (draw(2)) {
            rs_links_append(&links, &thing->link);
            model[len++] = thing;
        } else {
            rs_links_prepend(&links, &thing->link);
            memmove(&model[1], &model[0], sizeof(model[0]) * len++);
            model[0] = thing;
        }
        thing->in = !thing->in;
        check_links(&links, model, len);
    }
    CHECK(RS_LINKED((rs_link *)NULL, linked, link) == NULL);
    RS_EACH_LINKED(&links, linked, link, each) rs_links_remove(&links, &each->link);
    check_links(&links, model, 0);
}

typedef struct {
    rs_watcher watcher;
    int told;
} hearer;

static void hear(rs_watcher *watcher) { ((hearer *)watcher)->told++; }

TEST(a_source_tells_those_that_watch_it_until_they_leave_or_it_goes) {
    rs_source source = {0};
    hearer hearers[3] = {0};
    for (int i = 0; i < 3; i++) rs_watcher_init(&hearers[i].watcher, &source, hear);
    rs_source_ready(&source);
    rs_watcher_leave(&hearers[1].watcher);
    rs_watcher_leave(&hearers[1].watcher);
    rs_source_ready(&source);
    CHECK(rs_source_is_watched(&source));
    rs_source_drop(&source);
    rs_source_ready(&source);
    CHECK(!rs_source_is_watched(&source));
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(i == 1 ? 1 : 2, hearers[i].told);
        CHECK(!hearers[i].watcher.source);
        rs_watcher_leave(&hearers[i].watcher);
    }
}

/* --- ops and descriptors --- */

TEST(what_is_left_of_a_vector_begins_behind_what_was_moved) {
    char bytes[10];
    struct iovec parts[4] = {{bytes, 0}, {bytes, 3}, {bytes + 3, 0}, {bytes + 3, 7}};
    rs_request request = {.kind = RS_OP_WRITEV, .options = RS_REQUEST_ALL,
                          .vector = {.parts = parts, .count = 4, .offset = 100}};
    CHECK_EQUAL(10, rs_request_len(&request));
    CHECK(rs_request_goes_on(&request, 2));
    CHECK(request.vector.parts == &parts[1] && request.vector.count == 3 && parts[1].iov_base == bytes + 2);
    CHECK_EQUAL(102, request.vector.offset);
    CHECK(rs_request_goes_on(&request, 5));
    CHECK(request.vector.parts == &parts[3] && request.vector.count == 1 && parts[3].iov_base == bytes + 7);
    CHECK_EQUAL(3, rs_request_len(&request));
    CHECK(!rs_request_goes_on(&request, 3));
    CHECK_EQUAL(7, request.done);
}

TEST(a_name_does_not_outlive_its_op) {
    rs_ops ops;
    rs_request request = {.kind = RS_OP_READ, .fd = 3};
    rs_ops_init(&ops, 300);
    rs_op *one = rs_op_take(&ops, &request);
    rs_id id = rs_op_id(one);
    CHECK(rs_op_find(&ops, id) == NULL);
    one->state = RS_OP_SUBMITTED;
    CHECK(rs_op_find(&ops, id) == one);
    one->state = RS_OP_TERMINAL;
    CHECK(rs_op_find(&ops, id) == NULL);
    one->request.owned = malloc(10);
    rs_op_release(&ops, one);
    rs_op *other = rs_op_take(&ops, &request);
    other->state = RS_OP_SUBMITTED;
    CHECK(other == one);
    CHECK(rs_op_find(&ops, id) == NULL);
    CHECK(rs_op_find(&ops, rs_id_make(100000, 1)) == NULL);
    for (int i = 1; i < 300; i++) CHECK(rs_op_take(&ops, &request) != NULL);
    CHECK(rs_op_take(&ops, &request) == NULL);
    CHECK_EQUAL(300, ops.slab.used);
    rs_ops_free(&ops);
}

TEST(ops_hang_at_their_descriptor_in_order) {
    enum { OPS = 20 };
    rs_ops ops;
    rs_descriptors descriptors = {0};
    rs_op *all[OPS];
    rs_ops_init(&ops, OPS);
    CHECK_EQUAL(RS_FD_UNKNOWN, rs_descriptor_kind(&descriptors, 500));
    for (int i = 0; i < OPS; i++) {
        all[i] = rs_op_take(&ops, &(rs_request){.kind = RS_OP_READ, .fd = i % 2 ? 3 : 700});
        rs_descriptor_add(&descriptors, &ops, all[i]);
    }
    rs_descriptor_remove(&descriptors, &ops, all[1]);
    rs_descriptor_remove(&descriptors, &ops, all[9]);
    rs_descriptor_remove(&descriptors, &ops, all[19]);
    int expected[] = {3, 5, 7, 11, 13, 15, 17}, count = 0;
    for (uint32_t link = descriptors.table[3].first; link; link = rs_op_at(&ops, link - 1)->next) {
        CHECK(rs_op_at(&ops, link - 1) == all[expected[count++]]);
    }
    CHECK_EQUAL(7, count);
    CHECK_EQUAL(all[17]->index + 1, descriptors.table[3].last);
    for (int i = 0; i < OPS; i += 2) rs_descriptor_remove(&descriptors, &ops, all[i]);
    CHECK_EQUAL(0, descriptors.table[700].first);
    CHECK_EQUAL(0, descriptors.table[700].last);
    rs_descriptors_free(&descriptors);
    rs_ops_free(&ops);
}

/* --- inbox --- */

enum { SENDERS = 4, MESSAGES = 20000 };
static rs_inbox inbox;

static void *push_all(void *argument) {
    for (int64_t i = 0; i < MESSAGES; i++) {
        rs_message *message = calloc(1, sizeof(*message));
        *message = (rs_message){.kind = RS_MESSAGE_USER, .name = (uintptr_t)argument, .value = i};
        rs_inbox_push(&inbox, message);
    }
    return NULL;
}

TEST(the_inbox_loses_nothing_and_keeps_each_senders_order) {
    pthread_t threads[SENDERS];
    int64_t next[SENDERS] = {0}, total = 0, disorder = 0;
    CHECK(rs_inbox_empty(&inbox) && rs_inbox_take(&inbox) == NULL);
    for (uintptr_t i = 0; i < SENDERS; i++) pthread_create(&threads[i], NULL, push_all, (void *)i);
    while (total < (int64_t)SENDERS * MESSAGES) {
        for (rs_message *message = rs_inbox_take(&inbox); message;) {
            rs_message *following = message->next;
            disorder += message->value != next[message->name]++;
            total++;
            free(message);
            message = following;
        }
    }
    for (int i = 0; i < SENDERS; i++) pthread_join(threads[i], NULL);
    CHECK_EQUAL(0, disorder);
    CHECK(rs_inbox_empty(&inbox));
}

/* --- trace --- */

static uint64_t hash_of(const rs_trace_event *events, int count) {
    rs_trace trace;
    CHECK(rs_trace_open(&trace));
    for (int i = 0; i < count; i++) {
        rs_trace_record(&trace, events[i].at_ns, events[i].kind, events[i].subject, events[i].detail);
    }
    rs_trace_close(&trace);
    return trace.hash;
}

TEST(the_trace_tells_runs_apart) {
    rs_trace_event events[3] = {{1, 2, 3, RS_TRACE_SPAWN}, {2, 2, 0, RS_TRACE_RUN}, {2, 2, 0, RS_TRACE_PARK}};
    rs_trace_event other[3];
    CHECK(hash_of(events, 3) == hash_of(events, 3));
    CHECK(hash_of(events, 3) != hash_of(events, 2));
    for (int i = 0; i < 4; i++) {
        memcpy(other, events, sizeof(other));
        if (i == 0) other[1].at_ns++;
        if (i == 1) other[1].subject++;
        if (i == 2) other[1].detail++;
        if (i == 3) other[1].kind++;
        CHECK(hash_of(events, 3) != hash_of(other, 3));
    }
    memcpy(other, events, sizeof(other));
    other[1] = events[2];
    other[2] = events[1];
    CHECK(hash_of(events, 3) != hash_of(other, 3));
    CHECK(strcmp(rs_trace_kind_name(RS_TRACE_WAKE_DROPPED), "wake dropped") == 0);
    CHECK(strcmp(rs_trace_kind_name(0), "?") == 0 && strcmp(rs_trace_kind_name(99), "?") == 0);
}

TEST(the_trace_keeps_the_last_events) {
    rs_trace trace;
    CHECK(rs_trace_open(&trace));
    for (int i = 0; i < RS_TRACE_RING + 5; i++) rs_trace_record(&trace, i, RS_TRACE_USER, 0, i);
    CHECK_EQUAL(RS_TRACE_RING + 5, trace.count);
    CHECK_EQUAL(RS_TRACE_RING, trace.ring[0].at_ns);
    CHECK_EQUAL(5, trace.ring[5].at_ns);
    rs_trace_close(&trace);
    CHECK(!trace.enabled && trace.ring == NULL);
    CHECK_EQUAL(RS_TRACE_RING + 5, trace.count);
}

TEST(every_op_kind_has_a_row_in_each_table) {
    for (uint32_t kind = 0; kind < RS_OP_KINDS; kind++) {
        const rs_op_traits *traits = &rs_op_kinds[kind];
        CHECK(traits->name != NULL);
        CHECK((traits->moves == RS_MOVES_MEMORY || traits->moves == RS_MOVES_MESSAGE) == (traits->memory != RS_MEMORY_NONE));
        CHECK(traits->moves == RS_MOVES_NOTHING || traits->effect == RS_EFFECT_DATA);
        bool makes_one = traits->makes != RS_MAKES_NOTHING && traits->makes != RS_MAKES_PAIR;
        CHECK((traits->effect == RS_EFFECT_DESCRIPTOR) == makes_one);
        CHECK(rs_op_calls[kind].attempt != NULL);
        bool can_wait = uring_opcode(kind) != URING_OP_NOP || rs_op_calls[kind].execute != NULL;
        CHECK(can_wait != traits->never_waits);
    }
}

TEST(every_wait_has_a_name) {
    for (uint32_t wait = 0; wait < RS_WAIT_KINDS; wait++) CHECK(strcmp(rs_wait_name(wait), "?") != 0);
    CHECK(strcmp(rs_wait_name(RS_WAIT_KINDS), "?") == 0);
}

int main(int argc, char **argv) { return test_main(argc, argv); }
