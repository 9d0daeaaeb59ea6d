/* stock_mutex: finds out whether a fiber holds a Mutex of Ruby's. The fiber owns the mutexes that its strand left locked, so such
 * a fiber must end with the strand. Nor may it be collected before the mutex: when CRuby 3.3 frees a locked mutex, it reads the
 * thread in the owner's struct (mutex_free in thread_sync.c).
 *
 * CRuby keeps a list of locked mutexes in the thread (`keeping_mutexes`). Each mutex names its fiber, by a pointer (3.3, 3.4) or
 * by the fiber's serial number (4.0), and points to the next mutex. The offsets of all these are found once: two fibers lock one
 * mutex each, and the words that change show them. If the names are not found, no fiber is used again while any mutex is locked;
 * if the list is not found, no fiber is ever used again.
 */
#include "stock_mutex.h"
#include "words.h"

#include <malloc.h>

static ID id_owners;
static size_t list_at = RSB_NOT_FOUND;  /* in a thread's data: its last locked mutex */
static size_t owner_at = RSB_NOT_FOUND; /* in a mutex's data: the name of the fiber */
static size_t name_at = RSB_NOT_FOUND;  /* in a fiber's data: that name */
static size_t next_at = RSB_NOT_FOUND;  /* in a mutex's data: the mutex that was locked before it */

static rsb_block block_of(VALUE object) {
    void *data = RTYPEDDATA_GET_DATA(object);
    return (rsb_block){data, malloc_usable_size(data)};
}

static void *owner_in(VALUE mutex) { return rsb_word_at(RTYPEDDATA_GET_DATA(mutex), owner_at); }
static void *name_of(VALUE fiber) { return rsb_word_at(RTYPEDDATA_GET_DATA(fiber), name_at); }

/* Resumed once to lock, and again after the search. Answers whether the offsets found are also right while the fiber runs. */
static VALUE lock_one(RB_BLOCK_CALL_FUNC_ARGLIST(mutex, unused)) {
    rb_mutex_lock(mutex);
    rb_fiber_yield(0, NULL);
    bool named = owner_at != RSB_NOT_FOUND && owner_in(mutex) == name_of(rb_fiber_current());
    rb_mutex_unlock(mutex);
    return named && !owner_in(mutex) ? Qtrue : Qfalse;
}

static void find_names(const VALUE *fibers, const VALUE *mutexes) {
    rsb_owned pairs = {.things = {block_of(mutexes[0]), block_of(mutexes[1])}, .owners = {block_of(fibers[0]), block_of(fibers[1])},
                       .unowned = block_of(mutexes[2])};
    if (!rsb_find_names(&pairs, &owner_at, &name_at)) owner_at = name_at = RSB_NOT_FOUND;
}

/* Runs on a thread of its own, so that the list begins empty and its data is a block of malloc's. */
static VALUE find(void *unused) {
    VALUE thread = rb_thread_current();
    VALUE mutexes[3] = {rb_mutex_new(), rb_mutex_new(), rb_mutex_new()};
    VALUE fibers[2] = {rb_fiber_new(lock_one, Qnil), rb_fiber_new(lock_one, Qnil)};
    if (RTYPEDDATA_EMBEDDED_P(thread) || RTYPEDDATA_EMBEDDED_P(mutexes[0]) || RTYPEDDATA_EMBEDDED_P(fibers[0])) return Qnil;
    rsb_block mine = block_of(thread);
    char *before = ALLOCA_N(char, mine.size + 1);
    memcpy(before, mine.data, mine.size);
    void *first = RTYPEDDATA_GET_DATA(mutexes[0]), *second = RTYPEDDATA_GET_DATA(mutexes[1]);
    rb_fiber_resume(fibers[0], 1, &mutexes[0]);
    size_t list = rsb_find_word(mine.data, mine.size, first, before);
    rb_fiber_resume(fibers[1], 1, &mutexes[1]);
    if (list != RSB_NOT_FOUND && rsb_word_at(mine.data, list) == second) {
        next_at = rsb_find_word(second, block_of(mutexes[1]).size, first, NULL);
        find_names(fibers, mutexes);
    }
    bool named = RTEST(rb_fiber_resume(fibers[1], 0, NULL));
    if (!RTEST(rb_fiber_resume(fibers[0], 0, NULL)) || !named) owner_at = RSB_NOT_FOUND;
    if (list != RSB_NOT_FOUND && rsb_word_at(mine.data, list) == NULL) list_at = list;
    RB_GC_GUARD(mutexes[2]);
    return Qnil;
}

bool rsb_holds_stock_mutex(VALUE thread, VALUE fiber) {
    if (list_at == RSB_NOT_FOUND) return true;
    void *mutex = rsb_word_at(RTYPEDDATA_GET_DATA(thread), list_at);
    if (RB_LIKELY(!mutex) || owner_at == RSB_NOT_FOUND || next_at == RSB_NOT_FOUND) return mutex != NULL;
    for (void *name = name_of(fiber); mutex; mutex = rsb_word_at(mutex, next_at)) {
        if (rsb_word_at(mutex, owner_at) == name) return true;
    }
    return false;
}

/* Kept by the thread, at whose end CRuby unlocks its mutexes (rb_threadptr_unlock_all_locking_mutexes in thread.c). Fibers
 * that hold none any more are dropped from the list. */
void rsb_keep_with_stock_mutex(VALUE fiber) {
    if (list_at == RSB_NOT_FOUND) return;
    VALUE thread = rb_thread_current();
    VALUE before = rb_attr_get(thread, id_owners), owners = rb_ary_new_from_values(1, &fiber);
    for (long i = 0; !NIL_P(before) && i < RARRAY_LEN(before); i++) {
        VALUE owner = RARRAY_AREF(before, i);
        if (rsb_holds_stock_mutex(thread, owner)) rb_ary_push(owners, owner);
    }
    rb_ivar_set(thread, id_owners, owners);
}

void rsb_init_stock_mutex(void) {
    id_owners = rb_intern("ringspun_owners");
    rb_funcall(rb_thread_create(find, NULL), rb_intern("join"), 0);
}
