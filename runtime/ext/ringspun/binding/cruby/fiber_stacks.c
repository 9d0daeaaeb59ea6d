/* fiber_stacks: strands of several ractors take stacks one after the other.
 *
 * CRuby keeps the stacks of all fibers in one list. A fiber takes its own at the first switch to it; a collection gives it back
 * when it sweeps. Before 4.0 (ruby/ruby#13466) ractors do so without a lock, and two fibers may get the same stack. So ours are
 * taken under a lock, and not while a sweep goes on: none can begin, because a collection first stops all ractors, and between
 * the lock and the switch there is nothing where this one would stop. Fibers that a program makes by itself have no such help.
 */
#include "cruby.h"

#include <sched.h>

static _Atomic bool shared;
static pthread_mutex_t taking = PTHREAD_MUTEX_INITIALIZER;
static VALUE state_key, sweeping;

void rsb_share_stacks(void) { shared = true; }

bool rsb_stacks_are_shared(void) { return shared; }

static void *give_way(void *unused) {
    sched_yield();
    return NULL;
}

/* Whoever has the lock may wait for us, because of a collection: to intern something is to take part in it, and raises nothing. */
static void take_lock(void) {
    while (pthread_mutex_trylock(&taking) != 0) {
        rb_nogvl(give_way, NULL, NULL, NULL, RB_NOGVL_INTR_FAIL);
        rb_intern2("state", 5);
    }
}

void rsb_stacks_lock(rsb_machine *machine) {
    if (RS_LIKELY(!shared)) return;
    take_lock();
    while (rb_gc_latest_gc_info(state_key) == sweeping) {
        pthread_mutex_unlock(&taking);
        rb_gc_start();
        take_lock();
    }
    machine->takes_stack = true;
}

void rsb_stacks_unlock(rsb_machine *machine) {
    if (RS_LIKELY(!machine->takes_stack)) return;
    machine->takes_stack = false;
    pthread_mutex_unlock(&taking);
}

void rsb_stacks_forked(void) { pthread_mutex_init(&taking, NULL); }

void rsb_init_fiber_stacks(void) {
    state_key = ID2SYM(rb_intern("state"));
    sweeping = ID2SYM(rb_intern("sweeping"));
}
