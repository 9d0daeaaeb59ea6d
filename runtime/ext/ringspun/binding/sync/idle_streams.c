/* idle_streams: Ringspun::IdleStreams, for servers: streams that wait for their next bytes and have no strand meanwhile. One strand
 * takes those that can be read, and those that are late, one by one.
 *
 * A stream here is a branch of a selector, with an op in flight: no stack, and no buffer. It leaves when it is taken. Branches name
 * the stream and the object that the caller has for it; the third word of a branch is its place in the heap, as a Fixnum.
 */
#include "binding/stream/stream.h"
#include "select.h"

#include <poll.h>

typedef struct {
    int64_t deadline_ns;
    rs_branch *branch;
} due;

typedef struct {
    rs_branches engine;         /* first; one that is closed has no branches, whatever the heap says */
    VALUE machine;
    due *dues;                /* a heap: each is due no sooner than the one at (index - 1) / 2 */
    uint32_t len;
    uint32_t capacity;
} idle_streams;

static VALUE idle_class;

static void mark_word(uint64_t word) { rb_gc_mark((VALUE)word); }

static void idle_mark(void *data) {
    const idle_streams *idle = data;
    rb_gc_mark(idle->machine);
    rs_branches_each(&idle->engine, mark_word);
}

static void idle_free(void *data) {
    idle_streams *idle = data;
    rs_branches_free(&idle->engine);
    free(idle->dues);
    xfree(idle);
}

static size_t idle_size(const void *data) {
    const idle_streams *idle = data;
    return sizeof(*idle) + rs_branches_bytes(&idle->engine) + idle->capacity * sizeof(*idle->dues);
}

static const rb_data_type_t idle_type = {
    .wrap_struct_name = "Ringspun::IdleStreams",
    .function = {.dmark = idle_mark, .dfree = idle_free, .dsize = idle_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static idle_streams *peek(VALUE self) {
    idle_streams *idle;
    TypedData_Get_Struct(self, idle_streams, &idle_type, idle);
    return idle;
}

static idle_streams *get(VALUE self, rsb_machine **machine) {
    idle_streams *idle = peek(self);
    if (RS_UNLIKELY(idle->engine.closed)) rb_raise(rsb_eClosed, "these idle streams are closed");
    *machine = rsb_machine_of(idle->machine);
    return idle;
}

static VALUE idle_new(VALUE class) {
    rsb_machine *machine = rsb_current();
    idle_streams *idle;
    VALUE self = TypedData_Make_Struct(class, idle_streams, &idle_type, idle);
    idle->machine = machine->self;
    rs_branches_open(machine->engine, &idle->engine);
    return self;
}

/* --- the heap --- */

static void put(idle_streams *idle, uint32_t at, due due) {
    idle->dues[at] = due;
    rs_branch_set_item(due.branch, (uint64_t)UINT2NUM(at));
}

static uint32_t place_of(const rs_branch *branch) { return NUM2UINT((VALUE)branch->watch.item); }

static void raise_up(idle_streams *idle, uint32_t at) {
    due moved = idle->dues[at];
    for (; at > 0 && idle->dues[(at - 1) / 2].deadline_ns > moved.deadline_ns; at = (at - 1) / 2) put(idle, at, idle->dues[(at - 1) / 2]);
    put(idle, at, moved);
}

static void sink(idle_streams *idle, uint32_t at) {
    due moved = idle->dues[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= idle->len) break;
        if (child + 1 < idle->len && idle->dues[child + 1].deadline_ns < idle->dues[child].deadline_ns) child++;
        if (idle->dues[child].deadline_ns >= moved.deadline_ns) break;
        put(idle, at, idle->dues[child]);
        at = child;
    }
    put(idle, at, moved);
}

static bool make_room(idle_streams *idle) {
    if (idle->len < idle->capacity) return true;
    uint32_t capacity = idle->capacity ? idle->capacity * 2 : 64;
    due *dues = rs_try_realloc(idle->dues, sizeof(*dues) * capacity);
    if (!dues) return false;
    idle->dues = dues;
    idle->capacity = capacity;
    return true;
}

static void leave_heap(idle_streams *idle, uint32_t at) {
    due last = idle->dues[--idle->len];
    if (at == idle->len) return;
    put(idle, at, last);
    raise_up(idle, at);
    sink(idle, place_of(last.branch));
}

/* --- what the server calls --- */

/* Seconds on the machine's clock. */
static int64_t deadline_of(VALUE seconds) {
    if (NIL_P(seconds)) return RS_NEVER;
    double ns = NUM2DBL(seconds) * 1e9;
    return ns < 9e18 ? (int64_t)ns : RS_NEVER;
}

static VALUE leave(idle_streams *idle, rs_branch *branch) {
    VALUE word = (VALUE)branch->block;
    leave_heap(idle, place_of(branch));
    rs_branches_remove(&idle->engine, branch);
    return word;
}

typedef struct {
    rsb_machine *machine;
    rs_branch *branch;
    rs_look answer;
} look_call;

static VALUE look_body(VALUE argument) {
    look_call *call = (look_call *)argument;
    int fd = -1;
    int64_t error = 0;
    bool is_ready = rsb_stream_look((VALUE)call->branch->source, &fd);
    call->answer = is_ready ? RS_LOOK_WON : rs_branch_look_at(call->machine->engine, call->branch, fd, POLLIN, &error);
    return Qnil;
}

/* NOTHING: its op is in flight. A stream that is closed, or whose descriptor is, is as good as ready: the strand that gets it meets
 * the error itself. `state` is for what is no error of a stream, as an interrupt or the end of the thread. */
static rs_look look(rsb_machine *machine, rs_branch *branch, int *state) {
    look_call call = {.machine = machine, .branch = branch, .answer = RS_LOOK_FAILED};
    VALUE before = rb_errinfo();
    rb_protect(look_body, (VALUE)&call, state);
    if (RS_UNLIKELY(*state) && rsb_is_exception(rb_errinfo()) && rb_obj_is_kind_of(rb_errinfo(), rb_eStandardError)) {
        rb_set_errinfo(rsb_is_exception(before) ? before : Qnil);
        *state = 0;
    }
    return call.answer;
}

/* @param stream [Stream]
 * @param word [Object] what {#take} is to return
 * @param deadline [Float, nil] on the machine's clock
 * @return [Boolean] false: there is no room for its wait */
static VALUE idle_add(VALUE self, VALUE stream, VALUE word, VALUE deadline) {
    rsb_machine *machine;
    idle_streams *idle = get(self, &machine);
    int64_t deadline_ns = deadline_of(deadline);
    rs_source *source = rsb_stream_source(stream);
    rs_branch given = {.kind = RS_BRANCH_STREAM, .source = stream, .block = word};
    rs_branch *branch = make_room(idle) ? rs_branches_add(&idle->engine, &given, source) : NULL;
    if (RS_UNLIKELY(!branch)) rsb_fail_memory();
    put(idle, idle->len++, (due){deadline_ns, branch});
    raise_up(idle, idle->len - 1);
    int state = 0;
    if (look(machine, branch, &state) != RS_LOOK_LIMIT && !state) return Qtrue;
    leave(idle, branch);
    if (state) rb_jump_tag(state);
    return Qfalse;
}

static rs_branch *next_ready(rsb_machine *machine, idle_streams *idle) {
    rs_look answer;
    uint64_t value = Qnil;
    for (rs_branch *branch; (branch = rs_branches_look(machine->engine, &idle->engine, &value, &answer)); value = Qnil) {
        int state = 0;
        if (look(machine, branch, &state) != RS_LOOK_NOTHING && !state) return branch;
        if (state) rb_jump_tag(state); /* the server closes all of them then */
    }
    return NULL;
}

static rs_branch *next_late(rsb_machine *machine, const idle_streams *idle) {
    return idle->len > 0 && idle->dues[0].deadline_ns <= rs_now(machine->engine) ? idle->dues[0].branch : NULL;
}

static const rsb_list_kind for_any = {.what = "any of its idle streams"};

/* Waits until one of them can be read, or is late, and lets it go. One strand at a time.
 *
 * May switch strands.
 *
 * @return [Object, nil] its word; nil: there is none left */
static VALUE idle_take(VALUE self) {
    rsb_machine *machine;
    idle_streams *idle = get(self, &machine);
    rsb_before_look(machine);
    while (!idle->engine.closed && idle->len > 0) {
        rs_branch *branch = next_ready(machine, idle);
        if (!branch) branch = next_late(machine, idle);
        if (branch) return leave(idle, branch);
        rs_wake_kind kind = rsb_wait(machine, RS_WAIT_LIST, 0, idle->dues[0].deadline_ns, &idle->engine.selector.waiters, &for_any, NULL);
        if (kind != RS_WAKE_VALUE && kind != RS_WAKE_TIMEOUT) rsb_raise_wake(machine, kind);
    }
    RB_GC_GUARD(self);
    return Qnil;
}

/* All that are due later are due then.
 *
 * @param deadline [Float] on the machine's clock */
static VALUE idle_hurry(VALUE self, VALUE deadline) {
    rsb_machine *machine;
    idle_streams *idle = get(self, &machine);
    int64_t latest_ns = deadline_of(deadline);
    for (uint32_t i = 0; i < idle->len; i++) { /* the order stays that of a heap */
        if (idle->dues[i].deadline_ns > latest_ns) idle->dues[i].deadline_ns = latest_ns;
    }
    rs_list_wake_first(machine->engine, &idle->engine.selector.waiters, 0);
    return Qnil;
}

/* @return [Array<Object>] their words */
static VALUE idle_words(VALUE self) {
    const idle_streams *idle = peek(self);
    VALUE words = rb_ary_new();
    for (uint32_t i = 0; !idle->engine.closed && i < idle->len; i++) rb_ary_push(words, (VALUE)idle->dues[i].branch->block);
    return words;
}

static VALUE idle_size_of(VALUE self) {
    const idle_streams *idle = peek(self);
    return UINT2NUM(idle->engine.closed ? 0 : idle->len);
}

/* Lets all of them go.
 *
 * @return [Array<Object>] their words */
static VALUE idle_clear(VALUE self) {
    idle_streams *idle = peek(self);
    VALUE words = idle_words(self);
    if (idle->engine.closed || !rsb_machine_any_thread(idle->machine)->open) return words;
    rsb_machine *machine = rsb_machine_of(idle->machine);
    idle->len = 0;
    rs_branches_clear(&idle->engine);
    rs_list_wake_first(machine->engine, &idle->engine.selector.waiters, 0);
    return words;
}

void rsb_init_idle_streams(void) {
    idle_class = rb_define_class_under(rsb_mRingspun, "IdleStreams", rb_cObject);
    rb_undef_alloc_func(idle_class);
    rb_define_singleton_method(idle_class, "new", idle_new, 0);
    rb_define_method(idle_class, "add", idle_add, 3);
    rb_define_method(idle_class, "take", idle_take, 0);
    rb_define_method(idle_class, "hurry", idle_hurry, 1);
    rb_define_method(idle_class, "words", idle_words, 0);
    rb_define_method(idle_class, "size", idle_size_of, 0);
    rb_define_method(idle_class, "clear", idle_clear, 0);
    rb_funcall(rsb_mRingspun, rb_intern("private_constant"), 1, ID2SYM(rb_intern("IdleStreams")));
}
