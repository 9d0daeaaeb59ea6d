#include "binding/stream/stream.h"
#include "selector.h"

VALUE rsb_cSelector;

/* --- the object --- */

static void mark_word(uint64_t word) { rb_gc_mark((VALUE)word); }

static void selector_mark(void *data) {
    const rsb_selector *s = data;
    rb_gc_mark(s->machine);
    rb_gc_mark(s->after);
    rb_gc_mark(s->otherwise);
    rs_branches_each(&s->engine, mark_word);
}

static void selector_free(void *data) {
    rs_branches_free(&((rsb_selector *)data)->engine);
    xfree(data);
}

static void selector_compact(void *data) {
    rsb_selector *s = data;
    s->self = rb_gc_location(s->self);
}

static size_t selector_size(const void *data) {
    const rsb_selector *s = data;
    return sizeof(*s) + rs_branches_bytes(&s->engine);
}

static const rb_data_type_t selector_type = {
    .wrap_struct_name = "Ringspun::Selector",
    .function = {.dmark = selector_mark, .dfree = selector_free, .dsize = selector_size, .dcompact = selector_compact},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE selector_allocate(VALUE class) {
    rsb_selector *s;
    VALUE self = TypedData_Make_Struct(class, rsb_selector, &selector_type, s);
    s->self = self;
    s->machine = s->after = s->otherwise = Qnil;
    s->after_ns = RS_NEVER;
    return self;
}

static rsb_selector *peek(VALUE self) {
    rsb_selector *s;
    TypedData_Get_Struct(self, rsb_selector, &selector_type, s);
    return s;
}

rsb_selector *rsb_selector_new(rsb_machine *machine) {
    rsb_selector *s = peek(selector_allocate(rsb_cSelector));
    s->machine = machine->self;
    rs_branches_open(machine->engine, &s->engine);
    return s;
}

rsb_selector *rsb_selector_get(VALUE self, rsb_machine **machine) {
    rsb_selector *s = peek(self);
    if (RS_UNLIKELY(NIL_P(s->machine))) rb_raise(rsb_eUsage, "the selector was not initialized; call super in initialize");
    if (RS_UNLIKELY(s->engine.closed)) rb_raise(rsb_eClosed, "the selector is closed");
    *machine = rsb_machine_of(s->machine);
    return s;
}

VALUE rsb_watch_source(const rs_watch *watch) { return ((const rs_branch *)watch)->source; }

/* --- its branches --- */

static VALUE block_or_nil(void) { return rb_block_given_p() ? rb_block_proc() : Qnil; }

static rs_branch *place(rsb_selector *s, const rs_branch *given, rs_source *watched) {
    rs_branch *branch = rs_branches_add(&s->engine, given, watched);
    if (RS_LIKELY(branch != NULL)) return branch;
    rsb_collect_for(sizeof(*branch));
    branch = rs_branches_add(&s->engine, given, watched);
    if (!branch) rsb_fail_memory();
    return branch;
}

static uint32_t generation_of(rsb_machine *machine, VALUE source) {
    return rs_descriptor_generation(rs_descriptors_of(machine->engine), rsb_io_fd(machine, source));
}

static VALUE add(rsb_selector *s, rs_branch_kind kind, VALUE source, VALUE item, VALUE block) {
    void *from = NULL;
    rs_source *watched = NULL;
    const rsb_result_kind *result = NULL;
    uint32_t generation = 0;
    rsb_machine *machine = rsb_machine_of(s->machine);
    switch (kind) { /* may raise, so it comes before any change */
    case RS_BRANCH_POP:
    case RS_BRANCH_PUSH: from = rsb_queue_of(source); break;
    case RS_BRANCH_POP_CHANNEL:
    case RS_BRANCH_PUSH_CHANNEL: from = rsb_channel_of(source, item); break;
    case RS_BRANCH_ACQUIRE: from = rsb_semaphore_of(source); break;
    case RS_BRANCH_RESULT:
        result = rsb_result_kind_of(source);
        watched = result->source(source);
        break;
    case RS_BRANCH_STREAM: watched = rsb_stream_source(source); break;
    default: generation = generation_of(machine, source);
    }
    rs_branch given = {.kind = kind, .from = from, .source = source, .block = block, .watch.item = item, .look = result,
                       .generation = generation};
    place(s, &given, watched);
    return s->self;
}

NORETURN(static void refuse(const char *method, const char *expected, VALUE got));
static void refuse(const char *method, const char *expected, VALUE got) {
    rb_raise(rsb_eUsage, "%s: expected %s, got %" PRIsVALUE, method, expected, rsb_inspect(got));
}

/* Adds a branch that takes the first item of a queue. For a queue that is closed and empty, it wins at once with nil.
 *
 * @param queue [Queue, SizedQueue, Channel]
 * @yieldparam item [Object]
 * @return [Selector] self
 * @raise [UsageError] when the queue belongs to another machine
 * @since 0.1.0
 */
static VALUE selector_pop(VALUE self, VALUE queue) {
    rsb_machine *machine;
    rsb_selector *s = rsb_selector_get(self, &machine);
    if (rsb_is_channel(queue)) return add(s, RS_BRANCH_POP_CHANNEL, queue, Qnil, block_or_nil());
    if (!rsb_is_queue(queue)) refuse("pop", "a Ringspun::Queue or Channel", queue);
    return add(s, RS_BRANCH_POP, queue, Qnil, block_or_nil());
}

/* Adds a branch that puts an item at the end of a queue when there is a place. If the queue is closed, the wait raises a
 * ClosedError.
 *
 * @param queue [Queue, SizedQueue, Channel]
 * @param item [Object] the same each time that this branch wins
 * @yieldparam queue [Queue, SizedQueue, Channel]
 * @return [Selector] self
 * @raise [UsageError] when the queue belongs to another machine
 * @since 0.1.0
 */
static VALUE selector_push(VALUE self, VALUE queue, VALUE item) {
    rsb_machine *machine;
    rsb_selector *s = rsb_selector_get(self, &machine);
    if (rsb_is_channel(queue)) return add(s, RS_BRANCH_PUSH_CHANNEL, queue, item, block_or_nil());
    if (!rsb_is_queue(queue)) refuse("push", "a Ringspun::Queue or Channel", queue);
    return add(s, RS_BRANCH_PUSH, queue, item, block_or_nil());
}

/* Adds a branch that takes a permit of a semaphore. The program gives it back by {Semaphore#release}.
 *
 * @param semaphore [Semaphore]
 * @yieldparam semaphore [Semaphore]
 * @return [Selector] self
 * @raise [UsageError] when the semaphore belongs to another machine
 * @since 0.1.0
 */
static VALUE selector_acquire(VALUE self, VALUE semaphore) {
    rsb_machine *machine;
    rsb_selector *s = rsb_selector_get(self, &machine);
    if (!rsb_is_semaphore(semaphore)) refuse("acquire", "a Ringspun::Semaphore", semaphore);
    return add(s, RS_BRANCH_ACQUIRE, semaphore, Qnil, block_or_nil());
}

static VALUE add_result(rsb_selector *s, VALUE source, VALUE block) {
    if (rsb_result_kind_of(source)) return add(s, RS_BRANCH_RESULT, source, Qnil, block);
    refuse("result", "an evaluation or a strand", source);
}

/* Adds a branch for the result of an evaluation or a strand. The result stays there for others. A block gets an error like any
 * other result, as the block of {Evaluation#await_result} does; without a block the wait raises the error.
 *
 * @param source [Evaluation, Strand]
 * @yieldparam result [Object, Exception]
 * @return [Selector] self
 * @raise [UsageError] when the source belongs to another machine
 * @since 0.1.0
 */
static VALUE selector_result(VALUE self, VALUE source) {
    rsb_machine *machine;
    return add_result(rsb_selector_get(self, &machine), source, block_or_nil());
}

static VALUE add_readable(rsb_selector *s, VALUE io, VALUE block) {
    return add(s, rsb_is_stream(io) ? RS_BRANCH_STREAM : RS_BRANCH_READABLE, io, Qnil, block);
}

/* Adds a branch that wins when a stream or a descriptor can be read without waiting, or has ended. Nothing is read.
 *
 * @param io [Stream, IO, Integer]
 * @yieldparam io [Stream, IO, Integer]
 * @return [Selector] self
 * @raise [UsageError] when the stream belongs to another machine
 * @raise [ClosedError]
 * @since 0.1.0
 */
static VALUE selector_readable(VALUE self, VALUE io) {
    rsb_machine *machine;
    return add_readable(rsb_selector_get(self, &machine), io, block_or_nil());
}

/* Adds a branch that wins when a descriptor can be written without waiting.
 *
 * @param io [IO, Integer] no stream, which has a buffer, and waits in its `write`
 * @yieldparam io [IO, Integer]
 * @return [Selector] self
 * @raise [ClosedError, UsageError]
 * @since 0.1.0
 */
static VALUE selector_writable(VALUE self, VALUE io) {
    rsb_machine *machine;
    rsb_selector *s = rsb_selector_get(self, &machine);
    if (rsb_is_stream(io)) refuse("writable", "an IO or a descriptor; a stream waits in its write", io);
    return add(s, RS_BRANCH_WRITABLE, rsb_writing_end(io), Qnil, block_or_nil());
}

/* Adds a branch that wins when no source was ready for that long, from the beginning of each wait. Of several such branches only
 * the one with the shortest time counts.
 *
 * @param seconds [Numeric]
 * @return [Selector] self
 * @raise [UsageError]
 * @since 0.1.0
 */
static VALUE selector_after(VALUE self, VALUE seconds) {
    rsb_machine *machine;
    rsb_selector *s = rsb_selector_get(self, &machine);
    int64_t after_ns = rsb_seconds_to_ns(seconds, "after");
    if (s->after_ns != RS_NEVER && after_ns >= s->after_ns) return self;
    s->after_ns = after_ns;
    s->after = block_or_nil();
    return self;
}

/* Adds a branch that wins when no source is ready now. With this branch a wait never parks for long.
 *
 * @return [Selector] self
 * @since 0.1.0
 */
static VALUE selector_otherwise(VALUE self) {
    rsb_machine *machine;
    rsb_selector *s = rsb_selector_get(self, &machine);
    s->never_waits = true;
    s->otherwise = block_or_nil();
    return self;
}


void rsb_selector_add(rsb_selector *s, VALUE source) {
    if (rsb_is_queue(source)) add(s, RS_BRANCH_POP, source, Qnil, Qnil);
    else if (rsb_is_channel(source)) add(s, RS_BRANCH_POP_CHANNEL, source, Qnil, Qnil);
    else if (rsb_result_kind_of(source)) add_result(s, source, Qnil);
    else if (rsb_is_semaphore(source)) add(s, RS_BRANCH_ACQUIRE, source, Qnil, Qnil);
    else add_readable(s, source, Qnil);
}

/* Removes all branches on that source. If the waiting strand was given something by one of them, that branch still wins.
 *
 * @param source [Object] the argument of {#pop}, {#readable} or another of these methods
 * @return [Boolean] whether there was such a branch
 * @since 0.1.0
 */
static VALUE selector_delete(VALUE self, VALUE source) {
    rsb_machine *machine;
    rsb_selector *s = rsb_selector_get(self, &machine);
    return rs_branches_remove_all(&s->engine, source) > 0 ? Qtrue : Qfalse;
}

/* --- its beginning and end --- */

/* @yieldparam on [Selector] self, to add branches
 * @since 0.1.0 */
static VALUE selector_initialize(VALUE self) {
    rsb_selector *s = peek(self);
    if (!NIL_P(s->machine)) rb_raise(rsb_eUsage, "the selector was initialized already");
    rsb_machine *machine = rsb_current();
    s->machine = machine->self;
    rs_branches_open(machine->engine, &s->engine);
    if (rb_block_given_p()) rb_yield(self);
    return self;
}

/* Leaves all its sources. A strand that waits in it gets a ClosedError.
 *
 * @return [nil] also when it is closed already
 * @since 0.1.0
 */
static VALUE selector_close(VALUE self) {
    rsb_selector *s = peek(self);
    if (s->engine.closed || NIL_P(s->machine) || !rsb_machine_any_thread(s->machine)->open) return Qnil;
    rsb_machine_of(s->machine);
    rs_branches_close(&s->engine);
    return Qnil;
}

/* @return [Boolean]
 * @since 0.1.0 */
static VALUE selector_closed_p(VALUE self) {
    rsb_selector *s = peek(self);
    return s->engine.closed || (!NIL_P(s->machine) && !s->engine.selector.machine) ? Qtrue : Qfalse;
}

/* @return [Integer] the number of branches
 * @since 0.1.0 */
static VALUE selector_size_of(VALUE self) { return UINT2NUM(peek(self)->engine.used_len); }

/* --- selectors for one wait --- */

static void mark_spare(rsb_machine *machine);
static void end_selectors(rsb_machine *machine);
static rsb_part part = {.data_size = sizeof(rsb_selector *), .mark = mark_spare, .ends = end_selectors};

/* The spare selector that the machine keeps; NULL: none. */
static rsb_selector **spare_of(const rsb_machine *machine) { return rsb_part_data(machine, &part); }

static void mark_spare(rsb_machine *machine) {
    const rsb_selector *spare = *spare_of(machine);
    if (spare) rb_gc_mark(spare->self);
}

rs_selector *rsb_selector_borrow(rsb_machine *machine, VALUE *self) {
    rsb_selector **spare = spare_of(machine), *s = *spare;
    *spare = NULL;
    if (RS_UNLIKELY(!s || s->engine.closed)) s = rsb_selector_new(machine);
    *self = s->self;
    return &s->engine.selector;
}

void rsb_selector_watch(rs_selector *selector, VALUE object, rs_source *source) {
    rsb_selector *s = (rsb_selector *)selector;
    rs_branch given = {.kind = RS_BRANCH_RESULT, .source = object, .block = Qnil};
    rs_watch_idle(&place(s, &given, source)->watch);
}

void rsb_selector_give_back(rsb_machine *machine, rs_selector *selector) {
    rsb_selector **spare = spare_of(machine), *s = (rsb_selector *)selector;
    if (*spare) rs_branches_close(&s->engine);
    if (s->engine.closed) return;
    rs_branches_clear(&s->engine);
    *spare = s;
}

static void end_selectors(rsb_machine *machine) {
    rs_machine *engine = machine->engine;
    for (rs_selector *any; (any = rs_selectors_any(engine));) rs_branches_close((rs_branches *)any);
    while (rs_end_orphan_ops(engine) > 0) rsb_yield(machine);
}

/* Document-class: Ringspun::Selector
 *
 * Several sources, of which a strand waits for the first. It may be used for any number of waits. The cost of a wait grows with
 * the number of events since the last one, and not with that of the sources. It belongs to the machine of the thread that made
 * it.
 *
 * @since 0.1.0
 */
void rsb_init_selector(void) {
    rsb_register_part(&part);
    rsb_cSelector = rb_define_class_under(rsb_mRingspun, "Selector", rb_cObject);
    rb_define_alloc_func(rsb_cSelector, selector_allocate);
    rb_define_method(rsb_cSelector, "initialize", selector_initialize, 0);
    rb_define_method(rsb_cSelector, "initialize_copy", rsb_refuse_copy, 1);
    rb_define_method(rsb_cSelector, "pop", selector_pop, 1);
    rb_define_method(rsb_cSelector, "push", selector_push, 2);
    rb_define_method(rsb_cSelector, "acquire", selector_acquire, 1);
    rb_define_method(rsb_cSelector, "result", selector_result, 1);
    rb_define_method(rsb_cSelector, "readable", selector_readable, 1);
    rb_define_method(rsb_cSelector, "writable", selector_writable, 1);
    rb_define_method(rsb_cSelector, "after", selector_after, 1);
    rb_define_method(rsb_cSelector, "otherwise", selector_otherwise, 0);
    rb_define_method(rsb_cSelector, "delete", selector_delete, 1);
    rb_define_method(rsb_cSelector, "close", selector_close, 0);
    rb_define_method(rsb_cSelector, "closed?", selector_closed_p, 0);
    rb_define_method(rsb_cSelector, "size", selector_size_of, 0);
    rsb_init_results();
}
