/* fiber_stacks: a lock under which strands of several ractors take their stacks.
 *
 * CRuby keeps the free stacks of all fibers in one list (fiber_pool in cont.c). A fiber takes its stack at the first switch to
 * it. The garbage collector puts it back while it sweeps. Before 4.0 (ruby/ruby#13466) ractors do both without a lock, and two
 * fibers may get the same stack. So a strand's fiber takes its stack under this lock, and not during a sweep. No sweep can begin
 * meanwhile: a collection first stops all ractors, and this one does not stop between the lock and the switch. Fibers that the
 * program makes itself are not protected.
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

/* The owner of the lock may wait in a collection for this ractor to stop. To intern a name takes the VM lock, where a ractor
 * stops for a collection (vm_sync.c), and raises nothing. */
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

/* A thread of the parent may have held it at the fork. */
static void renew_lock(void) { pthread_mutex_init(&taking, NULL); }

void rsb_init_fiber_stacks(void) {
    pthread_atfork(NULL, NULL, renew_lock);
    state_key = ID2SYM(rb_intern("state"));
    sweeping = ID2SYM(rb_intern("sweeping"));
}
