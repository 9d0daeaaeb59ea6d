/* fiber_reset: a fiber that ran one strand is made as new for the next: no storage, no fiber-locals, no $! and $~.
 *
 * A stock Mutex that the strand left locked is owned by the fiber. CRuby frees the mutex of a dead fiber and only of a
 * dead one, so such a fiber must end. Ruby has no call that tells; the list of locked mutexes hangs in the thread's data.
 * Where it hangs is found once, by locking a mutex and looking which word of that data changes to it; where that is not
 * found, no fiber is ever used again.
 */
#include "binding.h"

#include <malloc.h>
#include <string.h>

static VALUE fiber_class;
static ID id_storage, id_keys, id_aset;
static size_t locks_offset;
static bool locks_known;

static void *lock_list(void) {
    char *thread = RTYPEDDATA_GET_DATA(rb_thread_current());
    void *first;
    memcpy(&first, thread + locks_offset, sizeof(first));
    return first;
}

/* Runs on a thread made for it, whose data is known to be a block of its own. Finds the word that is the mutex's data while
 * the mutex is locked, and is not before. */
static VALUE find_locks(void *unused) {
    VALUE thread = rb_thread_current();
    if (RTYPEDDATA_EMBEDDED_P(thread)) return Qnil;
    VALUE mutex = rb_mutex_new();
    void *wanted = RTYPEDDATA_GET_DATA(mutex);
    char *data = RTYPEDDATA_GET_DATA(thread);
    size_t size = malloc_usable_size(data);
    char *before = ALLOCA_N(char, size + 1);
    memcpy(before, data, size);
    rb_mutex_lock(mutex);
    for (size_t offset = 0; !locks_known && offset + sizeof(void *) <= size; offset += sizeof(void *)) {
        locks_known = memcmp(data + offset, &wanted, sizeof(wanted)) == 0 && memcmp(before + offset, &wanted, sizeof(wanted));
        if (locks_known) locks_offset = offset;
    }
    rb_mutex_unlock(mutex);
    if (locks_known && lock_list() == wanted) locks_known = false;
    return Qnil;
}

VALUE rsb_fiber_storage(void) { return rb_funcallv(rb_fiber_current(), id_storage, 0, NULL); }

static int set_storage(VALUE key, VALUE value, VALUE unused) {
    VALUE arguments[2] = {key, value};
    rb_funcallv(fiber_class, id_aset, 2, arguments);
    return ST_CONTINUE;
}

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

bool rsb_fiber_reset(void) {
    if (!locks_known || lock_list() != NULL) return false;
    int state = 0;
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
    rb_funcall(rb_thread_create(find_locks, NULL), rb_intern("join"), 0);
}
