/* queue: Ringspun::Queue and SizedQueue, with the semantics of Ruby's. Their rules are the engine's (flow/queue.h). */
#include "select.h"

#include <limits.h>

typedef struct {
    VALUE machine;
    rs_queue engine;
} rsb_queue;

static const rsb_list_kind for_item = {.what = "an item of a Queue"}, for_place = {.what = "a place in a SizedQueue"};

static void mark_item(uint64_t item) { rb_gc_mark((VALUE)item); }

static void queue_mark(void *data) {
    const rsb_queue *queue = data;
    rb_gc_mark(queue->machine);
    rs_queue_each(&queue->engine, mark_item);
}

static void queue_free(void *data) {
    rs_queue_free(&((rsb_queue *)data)->engine);
    xfree(data);
}

static size_t queue_memsize(const void *data) {
    const rsb_queue *queue = data;
    return sizeof(*queue) + queue->engine.allocated * sizeof(uint64_t);
}

/* With write barriers, so that minor collections do not mark all items of an old queue: `wrote` and rsb_bind. */
static const rb_data_type_t queue_type = {
    .wrap_struct_name = "Ringspun::Queue",
    .function = {.dmark = queue_mark, .dfree = queue_free, .dsize = queue_memsize},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static VALUE queue_allocate(VALUE class) {
    rsb_queue *queue;
    VALUE self = TypedData_Make_Struct(class, rsb_queue, &queue_type, queue);
    queue->machine = Qnil;
    return self;
}

static rsb_queue *peek_data(VALUE self) {
    rsb_queue *queue;
    TypedData_Get_Struct(self, rsb_queue, &queue_type, queue);
    return queue;
}

static rs_queue *peek(VALUE self) { return &peek_data(self)->engine; }

static rs_queue *get(VALUE self, rsb_machine **machine) {
    rsb_queue *queue = peek_data(self);
    *machine = rsb_current();
    if (RS_LIKELY(!rsb_bind(self, &queue->machine, *machine))) return &queue->engine;
    RB_OBJ_WRITTEN(self, Qundef, queue->machine);
    rs_queue_forget(&queue->engine);
    return &queue->engine;
}

/* The item at the end may be new in the queue. */
static inline void wrote(VALUE self, const rs_queue *queue) {
    if (queue->len > 0) RB_OBJ_WRITTEN(self, Qundef, (VALUE)rs_queue_last(queue));
}

/* --- pushing --- */

static rs_queue_answer push_waiting(rsb_machine *machine, rs_queue *queue, VALUE item, int64_t deadline_ns) {
    int64_t result = 0;
    rsb_check_stack();
    rs_queue_offer(machine->engine, item);
    rs_wake_kind kind = rsb_wait_checked(machine, RS_WAIT_LIST, 0, deadline_ns, &queue->pushers, &for_place, &result);
    rs_queue_answer answer = rs_queue_pushed(machine->engine, queue, kind, result);
    if (answer == RS_QUEUE_WAITS && kind != RS_WAKE_TIMEOUT) rsb_raise_wake(machine, kind);
    return answer;
}

NORETURN(static void raise_unpushed(rs_queue_answer answer));
static void raise_unpushed(rs_queue_answer answer) {
    if (answer == RS_QUEUE_NO_MEMORY) rsb_fail_memory();
    rb_raise(rsb_eClosed, "the queue is closed; nothing can be pushed any more");
}

/* False: there is no place. */
static inline bool check_pushed(VALUE self, const rs_queue *queue, rs_queue_answer answer) {
    if (RS_UNLIKELY(answer > RS_QUEUE_WAITS)) raise_unpushed(answer);
    if (answer == RS_QUEUE_WAITS) return false;
    wrote(self, queue);
    return true;
}

static int64_t deadline_of(rsb_machine *machine, VALUE non_block, VALUE options) {
    VALUE timeout = rsb_timeout_option(options);
    if (RTEST(non_block) && !NIL_P(timeout)) rb_raise(rb_eArgError, "either non_block or a timeout: without a wait there is none");
    return rsb_deadline(machine, timeout, "timeout");
}

/* Puts an item at the end.
 *
 * On a Queue this never waits, and takes only the item. On a SizedQueue it waits for a place, first come, first served, and also
 * takes `non_block` (true: raise instead of waiting) and `timeout:` (seconds; nil: no limit).
 *
 * May switch strands.
 *
 * @param item [Object]
 * @return [Queue, nil] self; nil when there was no place in time
 * @raise [ClosedError]
 * @raise [UsageError] with non_block, when the queue is full
 * @since 0.1.0
 */
static VALUE queue_push(int argc, VALUE *argv, VALUE self) {
    rsb_machine *machine;
    rs_queue *queue = get(self, &machine);
    VALUE item, non_block = Qfalse, options = Qnil;
    if (argc == 1) item = argv[0];
    else if (queue->max > 0) rb_scan_args(argc, argv, "11:", &item, &non_block, &options);
    else rb_scan_args(argc, argv, "1:", &item, &options);
    if (queue->max == 0 && !NIL_P(rsb_timeout_option(options))) {
        rb_raise(rsb_eUsage, "push: a Queue is never full, so there is nothing to wait for; timeout: is for a SizedQueue");
    }
    int64_t deadline_ns = RS_NEVER;
    if (!NIL_P(options)) deadline_ns = deadline_of(machine, non_block, options);
    rs_queue_answer answer = rs_queue_push(machine->engine, queue, item);
    if (RS_LIKELY(check_pushed(self, queue, answer))) return self;
    if (RTEST(non_block)) rb_raise(rsb_eUsage, "the queue is full; push without non_block waits for a place");
    return check_pushed(self, queue, push_waiting(machine, queue, item, deadline_ns)) ? self : Qnil;
}

/* --- popping --- */

static inline bool check_popped(VALUE self, const rs_queue *queue, rs_queue_answer answer) {
    if (answer != RS_QUEUE_DONE) return false;
    if (queue->max > 0) wrote(self, queue); /* the item of a pusher that has waited for the place */
    return true;
}

static rs_queue_answer pop_waiting(rsb_machine *machine, VALUE self, rs_queue *queue, int64_t deadline_ns, uint64_t *item) {
    int64_t result = 0;
    rs_wake_kind kind = rsb_wait(machine, RS_WAIT_LIST, 0, deadline_ns, &queue->poppers, &for_item, &result);
    rs_queue_answer answer = rs_queue_popped(machine->engine, queue, kind, result, item);
    if (answer == RS_QUEUE_WAITS && kind != RS_WAKE_TIMEOUT) rsb_raise_wake(machine, kind);
    check_popped(self, queue, answer);
    return answer;
}

/* Takes the first item, waiting for one if need be.
 *
 * May switch strands.
 *
 * @param non_block [Boolean] raise instead of waiting
 * @param timeout [Numeric, nil] seconds; nil: no limit
 * @return [Object, nil] nil when the queue is closed and empty, or nothing came in time
 * @raise [UsageError] with non_block, when the queue is empty
 * @since 0.1.0
 */
static VALUE queue_pop(int argc, VALUE *argv, VALUE self) {
    rsb_machine *machine;
    rs_queue *queue = get(self, &machine);
    VALUE non_block = Qfalse, options = Qnil;
    if (argc > 0) rb_scan_args(argc, argv, "01:", &non_block, &options);
    int64_t deadline_ns = RS_NEVER;
    if (!NIL_P(options)) deadline_ns = deadline_of(machine, non_block, options);
    uint64_t item = Qnil;
    rs_queue_answer answer = rs_queue_pop(machine->engine, queue, &item);
    if (check_popped(self, queue, answer)) return (VALUE)item;
    if (RTEST(non_block)) rb_raise(rsb_eUsage, "the queue is empty; pop without non_block waits for an item");
    if (answer != RS_QUEUE_CLOSED) pop_waiting(machine, self, queue, deadline_ns, &item);
    return (VALUE)item;
}

/* Pops one item after the other until the queue is closed and empty.
 *
 * May switch strands.
 *
 * @yieldparam item [Object]
 * @return [Queue] self
 * @since 0.1.0
 */
static VALUE queue_each(VALUE self) {
    rsb_need_block("each");
    while (true) {
        rsb_machine *machine; /* asked for each item, because the block may fork */
        rs_queue *queue = get(self, &machine);
        uint64_t item = Qnil;
        rs_queue_answer answer = rs_queue_pop(machine->engine, queue, &item);
        if (!check_popped(self, queue, answer) && answer != RS_QUEUE_CLOSED) {
            answer = pop_waiting(machine, self, queue, RS_NEVER, &item);
        }
        if (answer == RS_QUEUE_CLOSED) return self;
        rb_yield((VALUE)item);
    }
}

/* --- for selectors --- */

bool rsb_is_queue(VALUE object) { return rb_typeddata_is_kind_of(object, &queue_type); }

rs_queue *rsb_queue_of(VALUE self) {
    rsb_machine *machine;
    return get(self, &machine);
}

void rsb_queue_wrote(VALUE self, const rs_queue *queue) { wrote(self, queue); }

/* --- the rest --- */

/* Allows no more pushes; items inside can still be popped. Waiting poppers get nil, waiting pushers a ClosedError.
 *
 * @return [Queue] self
 * @since 0.1.0 */
static VALUE queue_close(VALUE self) {
    rsb_machine *machine;
    rs_queue *queue = get(self, &machine);
    rs_queue_close(machine->engine, queue);
    return self;
}

/* @return [Boolean]
 * @since 0.1.0 */
static VALUE queue_closed_p(VALUE self) { return peek(self)->closed ? Qtrue : Qfalse; }

/* @return [Boolean]
 * @since 0.1.0 */
static VALUE queue_empty_p(VALUE self) { return peek(self)->len == 0 ? Qtrue : Qfalse; }

/* @return [Integer] items inside
 * @since 0.1.0 */
static VALUE queue_size(VALUE self) { return SIZET2NUM(peek(self)->len); }

/* @return [Integer] strands that wait to push or to pop, also in a {Selector}
 * @since 0.1.0 */
static VALUE queue_num_waiting(VALUE self) { return UINT2NUM(rs_queue_waiting(peek(self))); }

static void fill(rsb_machine *machine, VALUE self, rs_queue *queue) {
    while (rs_queue_take_in(machine->engine, queue)) wrote(self, queue);
}

/* Drops all items; waiting pushers get the places.
 *
 * @return [Queue] self
 * @since 0.1.0 */
static VALUE queue_clear(VALUE self) {
    rsb_machine *machine;
    rs_queue *queue = get(self, &machine);
    rs_queue_clear(queue);
    fill(machine, self, queue);
    return self;
}

static void set_max(rs_queue *queue, VALUE max) {
    rs_queue_limit(queue, rsb_integer(max, 1, LONG_MAX, "a sized queue's max"));
}

/* @param items [Enumerable] the first items
 * @since 0.1.0 */
static VALUE queue_initialize(int argc, VALUE *argv, VALUE self) {
    rb_check_arity(argc, 0, 1);
    if (argc == 0) return self;
    VALUE items = rb_check_convert_type(argv[0], T_ARRAY, "Array", "to_a");
    if (NIL_P(items)) {
        rb_raise(rsb_eUsage, "the first items of a queue must be an Array or Enumerable, got %" PRIsVALUE, rsb_inspect(argv[0]));
    }
    for (long i = 0; i < RARRAY_LEN(items); i++) {
        if (!rs_queue_put(peek(self), RARRAY_AREF(items, i))) rsb_fail_memory();
        wrote(self, peek(self));
    }
    return self;
}

/* @param max [Integer] how many items fit, at least 1
 * @since 0.1.0 */
static VALUE sized_initialize(VALUE self, VALUE max) {
    set_max(peek(self), max);
    return self;
}

/* @return [Integer]
 * @since 0.1.0 */
static VALUE sized_max(VALUE self) { return LL2NUM(peek(self)->max); }

/* Sets how many items fit. Waiting pushers get new places.
 *
 * @param max [Integer] at least 1
 * @since 0.1.0 */
static VALUE sized_set_max(VALUE self, VALUE max) {
    rsb_machine *machine;
    rs_queue *queue = get(self, &machine);
    set_max(queue, max);
    fill(machine, self, queue);
    return max;
}

void rsb_init_queue(void) {
    VALUE queue = rb_define_class_under(rsb_mRingspun, "Queue", rb_cObject);
    rb_define_alloc_func(queue, queue_allocate);
    rb_define_method(queue, "initialize_copy", rsb_refuse_copy, 1);
    rb_define_method(queue, "initialize", queue_initialize, -1);
    rb_define_method(queue, "push", queue_push, -1);
    rb_define_method(queue, "pop", queue_pop, -1);
    rb_define_method(queue, "close", queue_close, 0);
    rb_define_method(queue, "closed?", queue_closed_p, 0);
    rb_define_method(queue, "empty?", queue_empty_p, 0);
    rb_define_method(queue, "size", queue_size, 0);
    rb_define_method(queue, "num_waiting", queue_num_waiting, 0);
    rb_define_method(queue, "each", queue_each, 0);
    rb_define_method(queue, "clear", queue_clear, 0);
    rb_define_alias(queue, "<<", "push");
    rb_define_alias(queue, "enq", "push");
    rb_define_alias(queue, "shift", "pop");
    rb_define_alias(queue, "deq", "pop");
    rb_define_alias(queue, "length", "size");
    VALUE sized = rb_define_class_under(rsb_mRingspun, "SizedQueue", queue);
    rb_define_method(sized, "initialize", sized_initialize, 1);
    rb_define_method(sized, "max", sized_max, 0);
    rb_define_method(sized, "max=", sized_set_max, 1);
}
