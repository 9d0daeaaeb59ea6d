/* stock_mutex: a stock Mutex that a strand left locked is owned by its fiber, so such a fiber must end. It must not be collected
 * before the mutex, either: CRuby frees a locked mutex by what the fiber's memory says (seen on 3.3), whatever that holds by then.
 *
 * The list of locked mutexes hangs in the thread's data, and each names its fiber, by a pointer (3.3, 3.4) or by a number that the
 * fiber has (4.0), and the next one. Where all that is, is found once, by having two fibers lock one each and looking which words
 * change, and to what. Without the names no fiber is used again while any mutex is locked; without the list, none at all.
 */
#include "stock_mutex.h"
#include "words.h"

#include <malloc.h>

static ID id_owners;
static size_t list_at = RSB_NOT_FOUND;  /* in a thread's data: its last locked mutex */
static size_t owner_at = RSB_NOT_FOUND; /* in a mutex's data: the name of the fiber */
static size_t name_at = RSB_NOT_FOUND;  /* in a fiber's data: that name */
static size_t next_at = RSB_NOT_FOUND;  /* in a mutex's data: the one that was locked before */

static rsb_block block_of(VALUE object) {
    void *data = RTYPEDDATA_GET_DATA(object);
    return (rsb_block){data, malloc_usable_size(data)};
}

static void *owner_in(VALUE mutex) { return rsb_word_at(RTYPEDDATA_GET_DATA(mutex), owner_at); }
static void *name_of(VALUE fiber) { return rsb_word_at(RTYPEDDATA_GET_DATA(fiber), name_at); }

/* Resumed once to lock, and once more when it has been looked for. Answers whether what was found holds while it runs, too. */
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

/* Runs on a thread made for it, whose data is known to be a block of its own. */
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

/* With the thread, at whose end CRuby unlocks what it holds. Those that hold none any more are let go. */
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
