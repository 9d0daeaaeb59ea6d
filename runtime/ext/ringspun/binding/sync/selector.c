#include "binding/stream/stream.h"
#include "selector.h"

VALUE rsb_cSelector;

/* --- the object --- */

static void mark_branch(const rsb_branch *b) {
    rb_gc_mark(b->source);
    rb_gc_mark(b->item);
    rb_gc_mark(b->block);
}

static void selector_mark(void *data) {
    rsb_selector *s = data;
    rb_gc_mark(s->machine);
    rb_gc_mark(s->after);
    rb_gc_mark(s->otherwise);
    for (long i = 0; i < s->len; i++) mark_branch(s->branches[i]);
    if (s->left) mark_branch(s->left);
}

static void free_branches(rsb_selector *s) {
    for (long i = 0; i < s->made; i++) free(s->branches[i]);
    free(s->branches);
    free(s->left);
    s->branches = NULL;
    s->left = NULL;
    s->len = s->made = s->capacity = 0;
}

static void selector_free(void *data) {
    rsb_selector *s = data;
    rs_selector_abandon(&s->engine);
    free_branches(s);
    xfree(s);
}

static void selector_compact(void *data) {
    rsb_selector *s = data;
    s->self = rb_gc_location(s->self);
}

static size_t selector_size(const void *data) {
    const rsb_selector *s = data;
    return sizeof(*s) + (size_t)s->capacity * sizeof(*s->branches) + (size_t)s->made * sizeof(rsb_branch);
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
    rs_selector_open(&machine->engine, &s->engine);
    return s;
}

rsb_selector *rsb_selector_get(VALUE self, rsb_machine **machine) {
    rsb_selector *s = peek(self);
    if (RS_UNLIKELY(NIL_P(s->machine))) rb_raise(rsb_eUsage, "the selector was not initialized; call super in initialize");
    if (RS_UNLIKELY(s->closed)) rb_raise(rsb_eClosed, "the selector is closed");
    *machine = rsb_machine_of(s->machine);
    return s;
}

VALUE rsb_watch_source(const rs_watch *watch) { return ((const rsb_branch *)watch)->source; }

/* --- its branches --- */

static VALUE block_or_nil(void) { return rb_block_given_p() ? rb_block_proc() : Qnil; }

static rs_source *source_of(rsb_branch *b) {
    switch (b->kind) {
    case POP: return rsb_queue_source(b->source, false);
    case PUSH: return rsb_queue_source(b->source, true);
    case ACQUIRE: return rsb_semaphore_source(b->source);
    case RESULT: return b->result->source(b->source);
    case STREAM: return rsb_stream_source(b->source);
    case POP_CHANNEL:
    case PUSH_CHANNEL: return rsb_channel_check(b->source, b->item), NULL;
    default: return NULL;
    }
}

static rsb_branch *take_branch(rsb_selector *s) {
    if (s->len < s->made) return s->branches[s->len++];
    if (s->made == s->capacity) {
        long capacity = s->capacity ? s->capacity * 2 : 8;
        s->branches = rsb_realloc(s->branches, sizeof(rsb_branch *) * (size_t)capacity);
        s->capacity = capacity;
    }
    s->branches[s->made] = rsb_alloc(sizeof(rsb_branch));
    s->made++;
    return s->branches[s->len++];
}

static rsb_branch *place(rsb_selector *s, const rsb_branch *given, rs_source *watched) {
    rsb_branch *b = take_branch(s);
    memcpy(b, given, sizeof(*b));
    rs_watch_open(&s->engine, &b->watch, watched);
    rs_watch_offer(&b->watch, given->item);
    return b;
}

static VALUE add(rsb_selector *s, rsb_branch_kind kind, VALUE source, VALUE item, VALUE block) {
    rsb_branch given = {.source = source, .item = item, .block = block, .kind = kind, .at = s->len};
    if (kind == RESULT) given.result = rsb_result_kind_of(source);
    rsb_machine *machine = rsb_machine_of(s->machine);
    if (kind == READABLE || kind == WRITABLE) {
        int fd = rsb_io_fd(machine, source);
        given.generation = rs_descriptor_generation(machine->engine.descriptors, fd);
    }
    rs_source *watched = source_of(&given); /* may raise, so it comes before any change */
    rsb_branch *b = place(s, &given, watched);
    if (kind == POP_CHANNEL || kind == PUSH_CHANNEL) rsb_channel_observe(source, &b->watch, kind == PUSH_CHANNEL);
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
    if (rsb_is_channel(queue)) return add(s, POP_CHANNEL, queue, Qnil, block_or_nil());
    if (!rsb_is_queue(queue)) refuse("pop", "a Ringspun::Queue or Channel", queue);
    return add(s, POP, queue, Qnil, block_or_nil());
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
    if (rsb_is_channel(queue)) return add(s, PUSH_CHANNEL, queue, item, block_or_nil());
    if (!rsb_is_queue(queue)) refuse("push", "a Ringspun::Queue or Channel", queue);
    return add(s, PUSH, queue, item, block_or_nil());
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
    return add(s, ACQUIRE, semaphore, Qnil, block_or_nil());
}

static VALUE add_result(rsb_selector *s, VALUE source, VALUE block) {
    if (rsb_result_kind_of(source)) return add(s, RESULT, source, Qnil, block);
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
    return add(s, rsb_is_stream(io) ? STREAM : READABLE, io, Qnil, block);
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
    return add(s, WRITABLE, rsb_writing_end(io), Qnil, block_or_nil());
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
    if (rsb_is_queue(source)) add(s, POP, source, Qnil, Qnil);
    else if (rsb_is_channel(source)) add(s, POP_CHANNEL, source, Qnil, Qnil);
    else if (rsb_result_kind_of(source)) add_result(s, source, Qnil);
    else if (rsb_is_semaphore(source)) add(s, ACQUIRE, source, Qnil, Qnil);
    else add_readable(s, source, Qnil);
}

#define SPARE_BRANCHES 8

/* The branch is no longer in use, and becomes the first of the unused ones. */
static void unuse(rsb_selector *s, rsb_branch *b) {
    rsb_branch *last = s->branches[--s->len];
    s->branches[b->at] = last;
    last->at = b->at;
    s->branches[s->len] = b;
}

/* Removes a branch that was served. Its strand takes the item, place or permit when it runs. */
static void leave_served(rsb_selector *s, rsb_branch *b) {
    unuse(s, b);
    s->branches[s->len] = s->branches[--s->made];
    free(s->left); /* one may be left of a strand of the parent process */
    s->left = b;
}

static void remove_branch(rsb_selector *s, rsb_branch *b) {
    bool served = s->engine.served == &b->watch;
    rs_watch_close(&b->watch);
    if (served) leave_served(s, b);
    else unuse(s, b);
    if (s->made - s->len > SPARE_BRANCHES) free(s->branches[--s->made]);
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
    long before = s->len;
    for (long i = s->len - 1; i >= 0; i--) {
        if (s->branches[i]->source == source) remove_branch(s, s->branches[i]);
    }
    return s->len < before ? Qtrue : Qfalse;
}

/* --- its beginning and end --- */

/* @yieldparam on [Selector] self, to add branches
 * @since 0.1.0 */
static VALUE selector_initialize(VALUE self) {
    rsb_selector *s = peek(self);
    if (!NIL_P(s->machine)) rb_raise(rsb_eUsage, "the selector was initialized already");
    rsb_machine *machine = rsb_current();
    s->machine = machine->self;
    rs_selector_open(&machine->engine, &s->engine);
    if (rb_block_given_p()) rb_yield(self);
    return self;
}

void rsb_selector_close(rsb_selector *s) {
    if (s->closed) return;
    s->closed = true;
    rs_selector_close(&s->engine);
    rsb_branch *served = (rsb_branch *)s->engine.served;
    if (served && served != s->left) leave_served(s, served);
    rsb_branch *left = s->left;
    s->left = NULL;
    free_branches(s);
    s->left = left;
}

/* Leaves all its sources. A strand that waits in it gets a ClosedError.
 *
 * @return [nil] also when it is closed already
 * @since 0.1.0
 */
static VALUE selector_close(VALUE self) {
    rsb_selector *s = peek(self);
    if (s->closed || NIL_P(s->machine) || !rsb_machine_any_thread(s->machine)->open) return Qnil;
    rsb_machine_of(s->machine);
    rsb_selector_close(s);
    return Qnil;
}

/* @return [Boolean]
 * @since 0.1.0 */
static VALUE selector_closed_p(VALUE self) {
    rsb_selector *s = peek(self);
    return s->closed || (!NIL_P(s->machine) && !s->engine.machine) ? Qtrue : Qfalse;
}

/* @return [Integer] the number of branches
 * @since 0.1.0 */
static VALUE selector_size_of(VALUE self) { return LONG2NUM(peek(self)->len); }

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
    if (RS_UNLIKELY(!s || s->closed)) s = rsb_selector_new(machine);
    *self = s->self;
    return &s->engine;
}

void rsb_selector_watch(rs_selector *selector, VALUE object, rs_source *source) {
    rsb_selector *s = (rsb_selector *)selector;
    rsb_branch given = {.source = object, .item = Qnil, .block = Qnil, .kind = RESULT, .at = s->len};
    rs_watch_idle(&place(s, &given, source)->watch);
}

#define SPARE_CAPACITY_MAX 64

void rsb_selector_give_back(rsb_machine *machine, rs_selector *selector) {
    rsb_selector **spare = spare_of(machine), *s = (rsb_selector *)selector;
    if (*spare || s->capacity > SPARE_CAPACITY_MAX) rsb_selector_close(s);
    if (s->closed) return;
    while (s->len > 0) remove_branch(s, s->branches[s->len - 1]);
    *spare = s;
}

static void end_selectors(rsb_machine *machine) {
    rs_machine *engine = &machine->engine;
    for (rs_selector *any; (any = rs_selectors_any(engine));) rsb_selector_close((rsb_selector *)any);
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
    rsb_init_select();
}
