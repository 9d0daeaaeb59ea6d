/* fiber_reset: clears a fiber that has run one strand for the next one: its storage, its fiber-locals and $!. A fiber with
 * instance variables ends with its strand, because libraries keep state for a fiber in them.
 */
#include "cruby.h"
#include "stock_mutex.h"
#include "words.h"

#include <malloc.h>

static VALUE fiber_class;
static ID id_storage, id_keys, id_aset;

/* --- what a fiber keeps for the code that it runs --- */

static int set_storage(VALUE key, VALUE value, VALUE unused) {
    VALUE arguments[2] = {key, value};
    rb_funcallv(fiber_class, id_aset, 2, arguments);
    return ST_CONTINUE;
}

static size_t storage_at = RSB_NOT_FOUND;   /* in a fiber's data: the Hash of its storage, nil or 0 */
static size_t locals_at = RSB_NOT_FOUND;    /* in a fiber's data: the table of its fiber-locals, or NULL */

typedef struct {
    const char *data;
    size_t size;
    char *before;
    bool storage;
} changes;

/* The offset of the one word that was empty and is set now; RSB_NOT_FOUND: there is none, or several. */
static size_t find_change(const changes *c) {
    size_t found = RSB_NOT_FOUND;
    for (size_t offset = 0; offset + sizeof(VALUE) <= c->size; offset += sizeof(VALUE)) {
        VALUE was = (VALUE)rsb_word_at(c->before, offset), is = (VALUE)rsb_word_at(c->data, offset);
        bool is_object = !RB_SPECIAL_CONST_P(is) && is % sizeof(VALUE) == 0;
        bool set = c->storage ? (was == Qnil || was == 0) && is_object && RB_TYPE_P(is, T_HASH) : was == 0 && is != 0;
        if (!set) continue;
        if (found != RSB_NOT_FOUND) return RSB_NOT_FOUND;
        found = offset;
    }
    return found;
}

/* Runs in two new fibers, one after the other: a word that changes by chance is not at the same offset in both. */
static VALUE find_keeps(RB_BLOCK_CALL_FUNC_ARGLIST(first, found_pointer)) {
    size_t *found = (size_t *)found_pointer;
    VALUE thread = rb_thread_current(), fiber = rb_fiber_current();
    if (RTYPEDDATA_EMBEDDED_P(fiber)) return Qnil;
    changes c = {.data = RTYPEDDATA_GET_DATA(fiber), .storage = true};
    c.size = malloc_usable_size((void *)c.data);
    c.before = ALLOCA_N(char, c.size + 1);
    memcpy(c.before, c.data, c.size);
    set_storage(ID2SYM(rb_intern("ringspun")), Qtrue, Qnil);
    found[0] = find_change(&c);
    memcpy(c.before, c.data, c.size);
    c.storage = false;
    rb_thread_local_aset(thread, rb_intern("ringspun"), Qtrue);
    found[1] = find_change(&c);
    return Qnil;
}

static void look_for_keeps(void) {
    size_t found[2][2] = {{RSB_NOT_FOUND, RSB_NOT_FOUND}, {RSB_NOT_FOUND, RSB_NOT_FOUND}};
    for (int i = 0; i < 2; i++) rb_fiber_resume(rb_fiber_new_storage(find_keeps, (VALUE)found[i], Qnil), 0, NULL);
    if (found[0][0] == found[1][0]) storage_at = found[0][0];
    if (found[0][1] == found[1][1]) locals_at = found[0][1];
}

static bool is_nothing(VALUE storage) { return storage == Qnil || storage == 0; }

static bool keeps_nothing(VALUE fiber) {
    if (storage_at == RSB_NOT_FOUND || locals_at == RSB_NOT_FOUND) return false;
    const void *data = RTYPEDDATA_GET_DATA(fiber);
    VALUE storage = (VALUE)rsb_word_at(data, storage_at);
    return (is_nothing(storage) || RHASH_SIZE(storage) == 0) && !rsb_word_at(data, locals_at);
}

VALUE rsb_fiber_storage_if_any(void) {
    VALUE fiber = rb_fiber_current();
    if (storage_at != RSB_NOT_FOUND && is_nothing((VALUE)rsb_word_at(RTYPEDDATA_GET_DATA(fiber), storage_at))) return Qnil;
    return rsb_fiber_storage();
}

VALUE rsb_fiber_storage(void) { return rb_funcallv(rb_fiber_current(), id_storage, 0, NULL); }

void rsb_fiber_set_storage(VALUE storage) {
    if (!NIL_P(storage)) rb_hash_foreach(storage, set_storage, Qnil);
}

static VALUE reset(VALUE unused) {
    VALUE storage = rsb_fiber_storage();
    if (!NIL_P(storage)) {
        VALUE keys = rb_funcall(storage, id_keys, 0);
        for (long i = 0; i < RARRAY_LEN(keys); i++) set_storage(RARRAY_AREF(keys, i), Qnil, Qnil);
    }
    VALUE thread = rb_thread_current();
    VALUE locals = rb_funcallv(thread, id_keys, 0, NULL);
    for (long i = 0; i < RARRAY_LEN(locals); i++) {
        rb_thread_local_aset(thread, rb_sym2id(RARRAY_AREF(locals, i)), Qnil);
    }
    /* Not $~ and $_: they belong to Ruby frames, of which this fiber has none left. Setting them would write to the frame that
     * made the fiber, which may be gone. */
    rb_set_errinfo(Qnil);
    return Qnil;
}

static VALUE keep(VALUE fiber) {
    rsb_keep_with_stock_mutex(fiber);
    return Qnil;
}

static int is_set(ID name, VALUE value, st_data_t found) {
    if (!NIL_P(value)) *(bool *)found = true;
    return NIL_P(value) ? ST_CONTINUE : ST_STOP;
}

/* An instance variable that is not nil. The gem async gives one to every fiber, and leaves it nil in fibers that are not its own.
 * Their count is asked first: most fibers have none, and not every Ruby has a flag for that. */
static bool has_state_of_its_own(VALUE fiber) {
    bool found = false;
    if (RB_LIKELY(rb_ivar_count(fiber) == 0)) return false;
    rb_ivar_foreach(fiber, is_set, (st_data_t)&found);
    return found;
}

bool rsb_fiber_reset(rsb_machine *machine, VALUE fiber, bool usable) {
    bool owns = rsb_holds_stock_mutex(machine->thread, fiber);
    int state = 0;
    if (RB_UNLIKELY(owns)) {
        rb_protect(keep, fiber, &state);
        if (state) rb_set_errinfo(Qnil);
    }
    if (owns || !usable || has_state_of_its_own(fiber)) return false;
    if (RB_LIKELY(keeps_nothing(fiber))) {
        rb_set_errinfo(Qnil);
        return true;
    }
    rb_protect(reset, Qnil, &state);
    if (state) rb_set_errinfo(Qnil);
    return state == 0;
}

void rsb_init_fiber_reset(void) {
    fiber_class = rb_path2class("Fiber");
    rb_gc_register_address(&fiber_class);
    id_storage = rb_intern("storage");
    id_keys = rb_intern("keys");
    id_aset = rb_intern("[]=");
    look_for_keeps();
    rsb_init_stock_mutex();
}
