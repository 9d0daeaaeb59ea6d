/* queue: Ringspun::Queue and SizedQueue, with the semantics of Ruby's.
 *
 * Hand-over: a pusher gives its item to the popper that has waited longest, in the same step that wakes it. A pop gives the free
 * place to the pusher that has waited longest, and takes its item into the queue. So an item never goes to a strand that does not
 * wait any more, and the item of a cancelled pusher was never in the queue. Strands in a selector are served in the same order.
 */
#include "select.h"

#include <limits.h>

typedef struct {
    VALUE machine;
    VALUE items;
    rs_list poppers;
    rs_list pushers;
    rs_source for_items;        /* watches of selectors */
    rs_source for_places;
    long max;                   /* 0: no limit */
    bool closed;
} rsb_queue;

enum { CLOSED = 0, SERVED = 1 };

static const rsb_list_kind for_item = {.what = "an item of a Queue"}, for_place = {.what = "a place in a SizedQueue"};

static void queue_mark(void *data) {
    rsb_queue *queue = data;
    rb_gc_mark(queue->machine);
    rb_gc_mark(queue->items);
}

static void queue_free(void *data) {
    rsb_queue *queue = data;
    rs_source_drop(&queue->for_items);
    rs_source_drop(&queue->for_places);
    xfree(queue);
}

static const rb_data_type_t queue_type = {
    .wrap_struct_name = "Ringspun::Queue",
    .function = {.dmark = queue_mark, .dfree = queue_free},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE queue_allocate(VALUE class) {
    rsb_queue *queue;
    VALUE self = TypedData_Make_Struct(class, rsb_queue, &queue_type, queue);
    queue->machine = queue->items = Qnil;
    queue->items = rb_ary_new();
    return self;
}

static rsb_queue *peek(VALUE self) {
    rsb_queue *queue;
    TypedData_Get_Struct(self, rsb_queue, &queue_type, queue);
    return queue;
}

static rsb_queue *get(VALUE self, rsb_machine **machine) {
    rsb_queue *queue = peek(self);
    *machine = rsb_current();
    if (RS_LIKELY(!rsb_bind(self, &queue->machine, *machine))) return queue;
    rs_list_forget(&queue->poppers);
    rs_list_forget(&queue->pushers);
    rs_source_drop(&queue->for_items);
    rs_source_drop(&queue->for_places);
    return queue;
}

/* The item that a waiting strand was given, or wants to push, lies in its handle until it runs. */
static void set_hand(rs_strand *strand, VALUE item) {
    rsb_strand *handle = strand->user;
    handle->value = item;
}

static VALUE take_hand(rsb_strand *handle) {
    VALUE item = handle->value;
    handle->value = Qnil;
    return item;
}

NORETURN(static void raise_closed(void));
static void raise_closed(void) { rb_raise(rsb_eClosed, "the queue is closed; nothing can be pushed any more"); }

/* --- pushing --- */

static bool give_to_popper(rsb_machine *machine, rsb_queue *queue, VALUE item) {
    rs_strand *popper = rs_list_first(&machine->engine, &queue->poppers);
    rs_watch *watch = RS_UNLIKELY(rs_source_is_watched(&queue->for_items)) ? rs_source_waiting(&queue->for_items, popper) : NULL;
    if (watch) {
        set_hand(rs_watch_strand(watch), item);
        rs_watch_serve(watch);
        return true;
    }
    if (!popper) return false;
    set_hand(popper, item);
    rs_list_wake_first(&machine->engine, &queue->poppers, SERVED);
    return true;
}

static void put(rsb_queue *queue, VALUE item) {
    rb_ary_push(queue->items, item);
    if (RS_UNLIKELY(rs_source_is_watched(&queue->for_items))) rs_source_ready(&queue->for_items);
}

static bool is_full(const rsb_queue *queue) { return queue->max > 0 && RARRAY_LEN(queue->items) >= queue->max; }

/* False: it is full. */
static bool push_now(rsb_machine *machine, rsb_queue *queue, VALUE item) {
    if (give_to_popper(machine, queue, item)) return true;
    if (RS_UNLIKELY(is_full(queue))) return false;
    put(queue, item);
    return true;
}

/* False: it stayed full until the timeout. After the timeout it tries once more: if the machine was late, the timer has fired
 * before the strand ran that has made room. */
static bool push_waiting(rsb_machine *machine, rsb_queue *queue, VALUE item, int64_t deadline_ns) {
    int64_t result = CLOSED;
    rs_strand *me = rs_running(&machine->engine);
    rsb_check_stack();
    set_hand(me, item);
    rs_wake_kind kind = rsb_wait_checked(machine, RS_WAIT_LIST, 0, deadline_ns, &queue->pushers, &for_place, &result);
    take_hand(me->user);
    if (kind == RS_WAKE_TIMEOUT) return !queue->closed && push_now(machine, queue, item);
    if (kind != RS_WAKE_VALUE) rsb_raise_wake(machine, kind);
    if (result == CLOSED) raise_closed();
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
    rsb_queue *queue = get(self, &machine);
    VALUE item, non_block = Qfalse, options = Qnil;
    if (argc == 1) item = argv[0];
    else if (queue->max > 0) rb_scan_args(argc, argv, "11:", &item, &non_block, &options);
    else rb_scan_args(argc, argv, "1:", &item, &options);
    if (queue->max == 0 && !NIL_P(rsb_timeout_option(options))) {
        rb_raise(rsb_eUsage, "push: a Queue is never full, so there is nothing to wait for; timeout: is for a SizedQueue");
    }
    int64_t deadline_ns = RS_NEVER;
    if (!NIL_P(options)) deadline_ns = deadline_of(machine, non_block, options);
    if (queue->closed) raise_closed();
    if (RS_LIKELY(push_now(machine, queue, item))) return self;
    if (RTEST(non_block)) rb_raise(rsb_eUsage, "the queue is full; push without non_block waits for a place");
    return push_waiting(machine, queue, item, deadline_ns) ? self : Qnil;
}

/* --- popping --- */

/* Gives a free place to the first waiting pusher. True: its item is in the queue. */
static bool serve_pusher(rsb_machine *machine, rsb_queue *queue) {
    if (is_full(queue)) return false;
    rs_strand *pusher = rs_list_first(&machine->engine, &queue->pushers);
    rs_watch *watch = RS_UNLIKELY(rs_source_is_watched(&queue->for_places)) ? rs_source_waiting(&queue->for_places, pusher) : NULL;
    if (watch) {
        put(queue, rsb_watch_item(watch));
        rs_watch_serve(watch);
        return true;
    }
    if (!pusher) {
        rs_source_ready(&queue->for_places);
        return false;
    }
    put(queue, ((rsb_strand *)pusher->user)->value);
    rs_list_wake_first(&machine->engine, &queue->pushers, SERVED);
    return true;
}

static VALUE take_first(rsb_machine *machine, rsb_queue *queue) {
    VALUE item = rb_ary_shift(queue->items);
    if (queue->pushers.len > 0 || RS_UNLIKELY(rs_source_is_watched(&queue->for_places))) serve_pusher(machine, queue);
    return item;
}

/* After the timeout it tries once more, as push_waiting does. */
static VALUE pop_waiting(rsb_machine *machine, rsb_queue *queue, int64_t deadline_ns) {
    int64_t result = CLOSED;
    rs_wake_kind kind = rsb_wait(machine, RS_WAIT_LIST, 0, deadline_ns, &queue->poppers, &for_item, &result);
    if (kind == RS_WAKE_TIMEOUT) return RARRAY_LEN(queue->items) > 0 ? take_first(machine, queue) : Qnil;
    if (kind != RS_WAKE_VALUE) rsb_raise_wake(machine, kind);
    return result == SERVED ? take_hand(rsb_running(machine)) : Qnil;
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
    rsb_queue *queue = get(self, &machine);
    VALUE non_block = Qfalse, options = Qnil;
    if (argc > 0) rb_scan_args(argc, argv, "01:", &non_block, &options);
    int64_t deadline_ns = RS_NEVER;
    if (!NIL_P(options)) deadline_ns = deadline_of(machine, non_block, options);
    if (RARRAY_LEN(queue->items) > 0) return take_first(machine, queue);
    if (RTEST(non_block)) rb_raise(rsb_eUsage, "the queue is empty; pop without non_block waits for an item");
    return queue->closed ? Qnil : pop_waiting(machine, queue, deadline_ns);
}

/* --- for selectors --- */

bool rsb_is_queue(VALUE object) { return rb_typeddata_is_kind_of(object, &queue_type); }

rs_source *rsb_queue_source(VALUE self, bool for_places) {
    rsb_machine *machine;
    rsb_queue *queue = get(self, &machine);
    return for_places ? &queue->for_places : &queue->for_items;
}

bool rsb_queue_take(VALUE self, VALUE *item) {
    rsb_machine *machine;
    rsb_queue *queue = get(self, &machine);
    *item = Qnil;
    if (RARRAY_LEN(queue->items) == 0) return queue->closed;
    *item = take_first(machine, queue);
    return true;
}

bool rsb_queue_put(VALUE self, VALUE item) {
    rsb_machine *machine;
    rsb_queue *queue = get(self, &machine);
    if (queue->closed) raise_closed();
    return push_now(machine, queue, item);
}

/* --- the rest --- */

/* Allows no more pushes; items inside can still be popped. Waiting poppers get nil, waiting pushers a ClosedError.
 *
 * @return [Queue] self
 * @since 0.1.0 */
static VALUE queue_close(VALUE self) {
    rsb_machine *machine;
    rsb_queue *queue = get(self, &machine);
    queue->closed = true;
    rs_list_wake_all(&machine->engine, &queue->poppers, CLOSED);
    rs_list_wake_all(&machine->engine, &queue->pushers, CLOSED);
    rs_source_ready(&queue->for_items);
    rs_source_ready(&queue->for_places);
    return self;
}

/* @return [Boolean]
 * @since 0.1.0 */
static VALUE queue_closed_p(VALUE self) { return peek(self)->closed ? Qtrue : Qfalse; }

/* @return [Boolean]
 * @since 0.1.0 */
static VALUE queue_empty_p(VALUE self) { return RARRAY_LEN(peek(self)->items) == 0 ? Qtrue : Qfalse; }

/* @return [Integer] items inside
 * @since 0.1.0 */
static VALUE queue_size(VALUE self) { return LONG2NUM(RARRAY_LEN(peek(self)->items)); }

/* @return [Integer] strands that wait to push or to pop, also in a {Selector}
 * @since 0.1.0 */
static VALUE queue_num_waiting(VALUE self) {
    rsb_queue *queue = peek(self);
    uint32_t selecting = rs_source_waiting_len(&queue->for_items) + rs_source_waiting_len(&queue->for_places);
    return UINT2NUM(queue->poppers.len + queue->pushers.len + selecting);
}

/* Drops all items; waiting pushers get the places.
 *
 * @return [Queue] self
 * @since 0.1.0 */
static VALUE queue_clear(VALUE self) {
    rsb_machine *machine;
    rsb_queue *queue = get(self, &machine);
    rb_ary_clear(queue->items);
    while (serve_pusher(machine, queue)) continue;
    return self;
}

static void set_max(rsb_queue *queue, VALUE max) {
    queue->max = (long)rsb_integer(max, 1, LONG_MAX, "a sized queue's max");
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
    rb_ary_concat(peek(self)->items, items);
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
static VALUE sized_max(VALUE self) { return LONG2NUM(peek(self)->max); }

/* Sets how many items fit. Waiting pushers get new places.
 *
 * @param max [Integer] at least 1
 * @since 0.1.0 */
static VALUE sized_set_max(VALUE self, VALUE max) {
    rsb_machine *machine;
    rsb_queue *queue = get(self, &machine);
    set_max(queue, max);
    while (serve_pusher(machine, queue)) continue;
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
