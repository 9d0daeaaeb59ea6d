/* fiber_reset: a fiber that ran one strand is made as new for the next: no storage, no fiber-locals, no $! and $~. One with
 * instance variables ends with its strand: they are how libraries keep state of their own for a fiber.
 *
 * A stock Mutex that the strand left locked is owned by the fiber, so such a fiber must end. It must not be collected before
 * the mutex, either: CRuby frees a locked mutex by what the fiber's memory says (seen on 3.3), whatever that holds by then.
 * Ruby has no call that tells of locked mutexes; the list of locked mutexes hangs in the thread's data.
 * Where it hangs, and where a mutex names its fiber and the next one, is found once, by locking two of them and looking
 * which words change. Without the latter no fiber is used again while any mutex is locked; without the former, none at all.
 */
#include "binding.h"

#include <malloc.h>
#include <string.h>

#define NOT_FOUND SIZE_MAX

static VALUE fiber_class;
static ID id_storage, id_keys, id_aset, id_owners;
static size_t list_at = NOT_FOUND;      /* in a thread's data: its last locked mutex */
static size_t owner_at = NOT_FOUND;     /* in a mutex's data: the fiber */
static size_t next_at = NOT_FOUND;      /* in a mutex's data: the one that was locked before */

static void *word_at(const void *data, size_t offset) {
    void *word;
    memcpy(&word, (const char *)data + offset, sizeof(word));
    return word;
}

/* Where the block holds that word, and did not in `before`. */
static size_t find_word(const void *data, size_t size, const void *wanted, const void *before) {
    for (size_t offset = 0; offset + sizeof(void *) <= size; offset += sizeof(void *)) {
        if (word_at(data, offset) == wanted && (!before || word_at(before, offset) != wanted)) return offset;
    }
    return NOT_FOUND;
}

/* Runs on a thread made for it, whose data is known to be a block of its own. */
static VALUE find_locks(void *unused) {
    VALUE thread = rb_thread_current();
    VALUE mutexes[2] = {rb_mutex_new(), rb_mutex_new()};
    if (RTYPEDDATA_EMBEDDED_P(thread) || RTYPEDDATA_EMBEDDED_P(mutexes[0])) return Qnil;
    void *first = RTYPEDDATA_GET_DATA(mutexes[0]);
    void *second = RTYPEDDATA_GET_DATA(mutexes[1]);
    char *data = RTYPEDDATA_GET_DATA(thread);
    size_t size = malloc_usable_size(data);
    char *before = ALLOCA_N(char, size + 1);
    memcpy(before, data, size);
    rb_mutex_lock(mutexes[0]);
    size_t list = find_word(data, size, first, before);
    rb_mutex_lock(mutexes[1]);
    if (list != NOT_FOUND && word_at(data, list) == second) {
        size_t mutex_size = malloc_usable_size(second);
        owner_at = find_word(second, mutex_size, RTYPEDDATA_GET_DATA(rb_fiber_current()), NULL);
        next_at = find_word(second, mutex_size, first, NULL);
    }
    rb_mutex_unlock(mutexes[1]);
    rb_mutex_unlock(mutexes[0]);
    if (list != NOT_FOUND && word_at(data, list) == NULL) list_at = list;
    return Qnil;
}

static bool holds_stock_mutex(VALUE thread, VALUE fiber) {
    if (list_at == NOT_FOUND) return true;
    void *mutex = word_at(RTYPEDDATA_GET_DATA(thread), list_at);
    if (RB_LIKELY(!mutex) || owner_at == NOT_FOUND || next_at == NOT_FOUND) return mutex != NULL;
    for (void *owner = RTYPEDDATA_GET_DATA(fiber); mutex; mutex = word_at(mutex, next_at)) {
        if (word_at(mutex, owner_at) == owner) return true;
    }
    return false;
}

/* With the thread, at whose end CRuby unlocks what it holds. Those that hold none any more are let go. */
static VALUE keep_owner(VALUE fiber) {
    VALUE thread = rb_thread_current();
    VALUE before = rb_attr_get(thread, id_owners), owners = rb_ary_new_from_values(1, &fiber);
    for (long i = 0; !NIL_P(before) && i < RARRAY_LEN(before); i++) {
        VALUE owner = RARRAY_AREF(before, i);
        if (holds_stock_mutex(thread, owner)) rb_ary_push(owners, owner);
    }
    return rb_ivar_set(thread, id_owners, owners);
}

/* --- what a fiber keeps for the code that it runs --- */

static int set_storage(VALUE key, VALUE value, VALUE unused) {
    VALUE arguments[2] = {key, value};
    rb_funcallv(fiber_class, id_aset, 2, arguments);
    return ST_CONTINUE;
}

static size_t storage_at = NOT_FOUND;   /* in a fiber's data: the Hash of its storage, nil or 0 */
static size_t locals_at = NOT_FOUND;    /* in a fiber's data: the table of its fiber-locals, or NULL */

typedef struct {
    const char *data;
    size_t size;
    char *before;
    bool storage;
} changes;

/* The one word that was nothing and is something now; NOT_FOUND where there are none or several. */
static size_t find_change(const changes *c) {
    size_t found = NOT_FOUND;
    for (size_t offset = 0; offset + sizeof(VALUE) <= c->size; offset += sizeof(VALUE)) {
        VALUE was = (VALUE)word_at(c->before, offset), is = (VALUE)word_at(c->data, offset);
        bool set = c->storage ? (was == Qnil || was == 0) && !RB_SPECIAL_CONST_P(is) && is % sizeof(VALUE) == 0 && RB_TYPE_P(is, T_HASH)
                              : was == 0 && is != 0;
        if (!set) continue;
        if (found != NOT_FOUND) return NOT_FOUND;
        found = offset;
    }
    return found;
}

/* In a fiber made for it, twice: what changes by chance is not at the same place again. */
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
    size_t found[2][2] = {{NOT_FOUND, NOT_FOUND}, {NOT_FOUND, NOT_FOUND}};
    for (int i = 0; i < 2; i++) rb_fiber_resume(rb_fiber_new_storage(find_keeps, (VALUE)found[i], Qnil), 0, NULL);
    if (found[0][0] == found[1][0]) storage_at = found[0][0];
    if (found[0][1] == found[1][1]) locals_at = found[0][1];
}

static bool is_nothing(VALUE storage) { return storage == Qnil || storage == 0; }

/* Nothing to reset. */
static bool keeps_nothing(VALUE fiber) {
    if (storage_at == NOT_FOUND || locals_at == NOT_FOUND) return false;
    const void *data = RTYPEDDATA_GET_DATA(fiber);
    VALUE storage = (VALUE)word_at(data, storage_at);
    return (is_nothing(storage) || RHASH_SIZE(storage) == 0) && !word_at(data, locals_at);
}

VALUE rsb_fiber_storage_if_any(void) {
    VALUE fiber = rb_fiber_current();
    if (storage_at != NOT_FOUND && is_nothing((VALUE)word_at(RTYPEDDATA_GET_DATA(fiber), storage_at))) return Qnil;
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
    /* Not $~ and $_: they belong to Ruby frames, and this fiber has none left. To set them here would write through the
     * frame that was running when the fiber was made, which is long gone. */
    rb_set_errinfo(Qnil);
    return Qnil;
}

bool rsb_fiber_reset(rsb_machine *machine, VALUE fiber, bool usable) {
    bool owns = holds_stock_mutex(machine->thread, fiber);
    int state = 0;
    if (RB_UNLIKELY(owns) && list_at != NOT_FOUND) {
        rb_protect(keep_owner, fiber, &state);
        if (state) rb_set_errinfo(Qnil);
    }
    if (owns || !usable || (FL_TEST_RAW(fiber, FL_EXIVAR) && rb_ivar_count(fiber) > 0)) return false;
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
    id_owners = rb_intern("ringspun_owners");
    look_for_keeps();
    rb_funcall(rb_thread_create(find_locks, NULL), rb_intern("join"), 0);
}
