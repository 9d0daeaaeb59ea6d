/* queue: Ringspun::Queue and SizedQueue, with the semantics of Ruby's. Their rules are the engine's (flow/queue.h).
 *
 * What the engine has of an item is its index in a row of the queue, which keeps it alive inside as well as on the way from or to
 * a strand that waits. At an index that is free stands the one that is free after it.
 */
#include "sync.h"

#include <mruby/error.h>

typedef struct {
    rsm_machine *machine;
    rs_queue engine;
    rsm_values items;
    mrb_int kept;
    mrb_int free;               /* an index; -1: none */
} rsm_queue;

static void queue_free(mrb_state *mrb, void *data) {
    if (data) rs_queue_free(&((rsm_queue *)data)->engine);
    mrb_free(mrb, data);
}

static const struct mrb_data_type queue_type = {"Ringspun::Queue", queue_free};

static rsm_queue *peek(mrb_state *mrb, mrb_value self) { return mrb_data_get_ptr(mrb, self, &queue_type); }

static rsm_queue *get(mrb_state *mrb, mrb_value self) {
    rsm_queue *queue = peek(mrb, self);
    if (RS_UNLIKELY(rsm_bind(mrb, self, &queue->machine))) rs_queue_forget(&queue->engine);
    return queue;
}

/* --- items --- */

static uint64_t keep(mrb_state *mrb, rsm_queue *queue, mrb_value item) {
    mrb_int index = queue->free;
    if (index < 0) {
        index = queue->items.len;
        rsm_values_push(mrb, &queue->items, item);
    } else {
        queue->free = mrb_fixnum(*rsm_values_place(&queue->items, index));
        rsm_values_set(mrb, &queue->items, index, item);
    }
    queue->kept++;
    return (uint64_t)index;
}

static mrb_value take(mrb_state *mrb, rsm_queue *queue, uint64_t index) {
    mrb_value *place = rsm_values_place(&queue->items, (mrb_int)index), item = *place;
    *place = mrb_fixnum_value(queue->free);
    queue->free = (mrb_int)index;
    if (RS_LIKELY(--queue->kept > 0 || queue->items.len <= RSM_PAGE)) return item;
    rsm_values_clear(mrb, &queue->items);
    queue->free = -1;
    return item;
}

/* --- pushing --- */

/* Self; nil: there is no place. */
static mrb_value pushed(mrb_state *mrb, mrb_value self, uint64_t index, rs_queue_answer answer) {
    if (RS_LIKELY(answer == RS_QUEUE_DONE)) return self;
    take(mrb, peek(mrb, self), index);
    if (answer == RS_QUEUE_NO_MEMORY) mrb_exc_raise(mrb, mrb_obj_value(mrb->nomem_err));
    if (answer == RS_QUEUE_CLOSED) {
        mrb_raise(mrb, rsm_class(mrb, "ClosedError"), "the queue is closed; nothing can be pushed any more");
    }
    return mrb_nil_value();
}

static mrb_value after_push(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    mrb_value self = mrb->c->ci->stack[0];
    uint64_t index = rs_strand_hand(rs_running(machine->engine));
    rs_queue_answer answer = rs_queue_pushed(machine->engine, &peek(mrb, self)->engine, kind, result);
    mrb_value value = pushed(mrb, self, index, answer);
    if (answer == RS_QUEUE_WAITS && kind != RS_WAKE_TIMEOUT) rsm_raise_wake(mrb, machine, kind);
    return value;
}

static mrb_value queue_push(mrb_state *mrb, mrb_value self) {
    rsm_queue *queue = get(mrb, self);
    bool is_sized = queue->engine.max > 0, non_block = false;
    int64_t deadline_ns = rsm_wait_arguments(mrb, queue->machine, 1, is_sized ? 2 : 1, &non_block);
    if (!is_sized && deadline_ns != RS_NEVER) {
        mrb_raise(mrb, rsm_class(mrb, "UsageError"),
                  "push: a Queue is never full, so there is nothing to wait for; timeout: is for a SizedQueue");
    }
    mrb_value item = mrb_get_argv(mrb)[0];
    uint64_t index = keep(mrb, queue, item);
    mrb_value value = pushed(mrb, self, index, rs_queue_push(queue->machine->engine, &queue->engine, index));
    if (RS_LIKELY(!mrb_nil_p(value))) return value;
    if (non_block) mrb_raise(mrb, rsm_class(mrb, "UsageError"), "the queue is full; push without non_block waits for a place");
    rsm_check_boundary(mrb);
    rs_queue_offer(queue->machine->engine, keep(mrb, queue, item));
    return rsm_wait_in(mrb, queue->machine, &queue->engine.pushers, RS_WAIT_LIST, 0, deadline_ns, after_push);
}

/* --- popping --- */

static mrb_value after_pop(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    rsm_queue *queue = peek(mrb, mrb->c->ci->stack[0]);
    uint64_t index;
    rs_queue_answer answer = rs_queue_popped(machine->engine, &queue->engine, kind, result, &index);
    if (RS_LIKELY(answer == RS_QUEUE_DONE)) return take(mrb, queue, index);
    if (answer == RS_QUEUE_WAITS && kind != RS_WAKE_TIMEOUT) rsm_raise_wake(mrb, machine, kind);
    return mrb_nil_value();
}

static mrb_value queue_pop(mrb_state *mrb, mrb_value self) {
    rsm_queue *queue = get(mrb, self);
    bool non_block = false;
    int64_t deadline_ns = rsm_wait_arguments(mrb, queue->machine, 0, 1, &non_block);
    uint64_t index;
    rs_queue_answer answer = rs_queue_pop(queue->machine->engine, &queue->engine, &index);
    if (RS_LIKELY(answer == RS_QUEUE_DONE)) return take(mrb, queue, index);
    if (non_block) mrb_raise(mrb, rsm_class(mrb, "UsageError"), "the queue is empty; pop without non_block waits for an item");
    if (answer == RS_QUEUE_CLOSED) return mrb_nil_value();
    return rsm_wait_in(mrb, queue->machine, &queue->engine.poppers, RS_WAIT_LIST, 0, deadline_ns, after_pop);
}

static mrb_value after_pop_or(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, rs_wake_kind kind, int64_t result) {
    rsm_queue *queue = peek(mrb, mrb->c->ci->stack[0]);
    uint64_t index;
    rs_queue_answer answer = rs_queue_popped(machine->engine, &queue->engine, kind, result, &index);
    if (RS_LIKELY(answer == RS_QUEUE_DONE)) return take(mrb, queue, index);
    if (answer == RS_QUEUE_WAITS) rsm_raise_wake(mrb, machine, kind);
    return mrb->c->ci->stack[1];
}

/* Queue#__pop_or(closed): an item, which may be nil; `closed` when no more will come. */
static mrb_value queue_pop_or(mrb_state *mrb, mrb_value self) {
    mrb_value closed = mrb_get_arg1(mrb);
    rsm_queue *queue = get(mrb, self);
    uint64_t index;
    rs_queue_answer answer = rs_queue_pop(queue->machine->engine, &queue->engine, &index);
    if (RS_LIKELY(answer == RS_QUEUE_DONE)) return take(mrb, queue, index);
    if (answer == RS_QUEUE_CLOSED) return closed;
    return rsm_wait_in(mrb, queue->machine, &queue->engine.poppers, RS_WAIT_LIST, 0, RS_NEVER, after_pop_or);
}

/* --- the rest --- */

static mrb_value queue_close(mrb_state *mrb, mrb_value self) {
    rsm_queue *queue = get(mrb, self);
    rs_queue_close(queue->machine->engine, &queue->engine);
    return self;
}

static mrb_value queue_closed_p(mrb_state *mrb, mrb_value self) { return mrb_bool_value(peek(mrb, self)->engine.closed); }

static mrb_value queue_size(mrb_state *mrb, mrb_value self) { return rsm_integer(mrb, peek(mrb, self)->engine.len); }

static mrb_value queue_num_waiting(mrb_state *mrb, mrb_value self) {
    return rsm_integer(mrb, rs_queue_waiting(&peek(mrb, self)->engine));
}

/* Each place goes to a pusher that waits. */
static mrb_value queue_clear(mrb_state *mrb, mrb_value self) {
    rsm_queue *queue = get(mrb, self);
    uint64_t index = 0;
    for (size_t left = queue->engine.len; left > 0; left--) {
        rs_queue_pop(queue->machine->engine, &queue->engine, &index);
        take(mrb, queue, index);
    }
    return self;
}

static int64_t max_arg(mrb_state *mrb) { return rsm_int_arg(mrb, rsm_only_arg(mrb), 1, MRB_INT_MAX, "a sized queue's max"); }

static void make(mrb_state *mrb, mrb_value self) {
    rsm_refuse_again(mrb, self);
    rsm_values items;
    rsm_values_init(mrb, &items, self, mrb_intern_lit(mrb, "items"));
    rsm_queue *queue = mrb_calloc(mrb, 1, sizeof(*queue));
    queue->items = items;
    queue->free = -1;
    mrb_data_init(self, queue, &queue_type);
}

static mrb_value queue_initialize(mrb_state *mrb, mrb_value self) {
    mrb_value given = mrb_undef_value();
    mrb_get_args(mrb, "|o", &given);
    mrb_value items = mrb_undef_p(given) ? mrb_ary_new(mrb) : mrb_check_convert_type(mrb, given, MRB_TT_ARRAY, "Array", "to_a");
    if (mrb_nil_p(items)) {
        mrb_raisef(mrb, rsm_class(mrb, "UsageError"), "the first items of a queue must be an Array or Enumerable, got %!v", given);
    }
    make(mrb, self);
    rsm_queue *queue = peek(mrb, self);
    for (mrb_int i = 0; i < RARRAY_LEN(items); i++) {
        uint64_t index = keep(mrb, queue, RARRAY_PTR(items)[i]);
        if (!rs_queue_put(&queue->engine, index)) pushed(mrb, self, index, RS_QUEUE_NO_MEMORY);
    }
    return self;
}

static mrb_value sized_initialize(mrb_state *mrb, mrb_value self) {
    int64_t max = max_arg(mrb);
    make(mrb, self);
    rs_queue_limit(&peek(mrb, self)->engine, max);
    return self;
}

static mrb_value sized_max(mrb_state *mrb, mrb_value self) { return rsm_integer(mrb, (uint64_t)peek(mrb, self)->engine.max); }

static mrb_value sized_set_max(mrb_state *mrb, mrb_value self) {
    rsm_queue *queue = get(mrb, self);
    rs_queue_limit(&queue->engine, max_arg(mrb));
    while (rs_queue_take_in(queue->machine->engine, &queue->engine)) {}
    return mrb_get_arg1(mrb);
}

void rsm_init_queue(mrb_state *mrb, struct RClass *module) {
    struct RClass *queue = rsm_define_data(mrb, module, "Queue", mrb->object_class);
    mrb_define_method(mrb, queue, "initialize", queue_initialize, MRB_ARGS_OPT(1));
    mrb_define_method(mrb, queue, "push", queue_push, MRB_ARGS_ANY());
    mrb_define_method(mrb, queue, "pop", queue_pop, MRB_ARGS_ANY());
    mrb_define_method(mrb, queue, "__pop_or", queue_pop_or, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, queue, "close", queue_close, MRB_ARGS_NONE());
    mrb_define_method(mrb, queue, "closed?", queue_closed_p, MRB_ARGS_NONE());
    mrb_define_method(mrb, queue, "size", queue_size, MRB_ARGS_NONE());
    mrb_define_method(mrb, queue, "num_waiting", queue_num_waiting, MRB_ARGS_NONE());
    mrb_define_method(mrb, queue, "clear", queue_clear, MRB_ARGS_NONE());
    struct RClass *sized = rsm_define_data(mrb, module, "SizedQueue", queue);
    mrb_define_method(mrb, sized, "initialize", sized_initialize, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, sized, "max", sized_max, MRB_ARGS_NONE());
    mrb_define_method(mrb, sized, "max=", sized_set_max, MRB_ARGS_REQ(1));
}
