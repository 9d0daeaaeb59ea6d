/* pinned: machines that are gone while a worker in a system call, or the kernel, still uses memory of objects. Only the machine's ops
 * know of these, so it stays as well: until the last of its workers is done, and where the kernel never says how an op has ended,
 * for as long as the process lives.
 */
#include "inner.h"

/* A thread of another ractor may end at the same time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rs_links all;

void rsb_pin_if_used(rsb_machine *machine) {
    if (RS_LIKELY(!rs_ops_use_memory(machine->engine))) return;
    pthread_mutex_lock(&lock);
    RS_CHECK(!machine->is_pinned);
    machine->is_pinned = true;
    rs_links_prepend(&all, &machine->pinned);
    pthread_mutex_unlock(&lock);
}

void rsb_unpin(rsb_machine *machine) {
    if (RS_LIKELY(!machine->is_pinned)) return;
    pthread_mutex_lock(&lock);
    rs_links_remove(&all, &machine->pinned);
    pthread_mutex_unlock(&lock);
    machine->is_pinned = false;
}

static rsb_machine *behind(const rsb_machine *machine) {
    pthread_mutex_lock(&lock);
    rsb_machine *next = RS_LINKED(machine ? machine->pinned.next : all.first, rsb_machine, pinned);
    pthread_mutex_unlock(&lock);
    return next;
}

/* Without the lock around rb_gc_mark: where it calls somebody who counts objects (objspace), there may be a collection in it, which
 * frees others of the list. */
static void mark(void *unused) {
    for (rsb_machine *machine = NULL; (machine = behind(machine));) {
        volatile VALUE self = machine->self;
        if (rs_ops_use_memory(machine->engine)) rb_gc_mark(self);
    }
}

static const rb_data_type_t type = {.wrap_struct_name = "Ringspun pinned machines", .function = {.dmark = mark}};

static void take_lock(void) { pthread_mutex_lock(&lock); }
static void give_lock(void) { pthread_mutex_unlock(&lock); }

void rsb_init_pinned(void) {
    rb_gc_register_mark_object(TypedData_Wrap_Struct(0, &type, &all));
    pthread_atfork(take_lock, give_lock, give_lock);
}
