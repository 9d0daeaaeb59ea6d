#include "inner.h"

#include <string.h>

/* A kilobyte. It doubles. */
#define CAPACITY_FIRST 128
/* A pool of fewer is not worth shrinking. */
#define KEPT_MIN 128
#define COLLECTIONS_A_PERIOD 16
/* Each holds two memory mappings, of 65,530 by default (max_map_count in Documentation/admin-guide/sysctl/vm.rst of Linux). */
#define LET_GO_MAX 4096

static bool short_of_stacks;

static VALUE major_count = Qundef; /* the key of GC.stat for major collections; Qundef: this garbage collector has none */

bool rsb_runners_make_room(rsb_runners *runners) {
    uint32_t capacity = runners->capacity ? runners->capacity * 2 : CAPACITY_FIRST;
    VALUE *fibers = rs_try_realloc(runners->fibers, sizeof(*fibers) * capacity);
    if (!fibers) return false;
    runners->fibers = fibers;
    runners->capacity = capacity;
    return true;
}

void rsb_runners_remove(rsb_runners *runners, VALUE fiber) {
    for (uint32_t i = 0; i < runners->len; i++) {
        if (runners->fibers[i] != fiber) continue;
        runners->fibers[i] = runners->fibers[--runners->len];
        if (runners->len < runners->unneeded) runners->unneeded = runners->len;
        return;
    }
}

static bool period_is_over(rsb_runners *runners) {
    size_t collections = rb_gc_count(), major = major_count == Qundef ? 0 : rb_gc_stat(major_count);
    if (major == runners->major_collections && collections - runners->collections < COLLECTIONS_A_PERIOD) return false;
    runners->collections = collections;
    runners->major_collections = major;
    return true;
}

static void drop(rsb_runners *runners, uint32_t count) {
    runners->len -= count;
    if (count > 0) memmove(runners->fibers, runners->fibers + count, sizeof(*runners->fibers) * runners->len);
}

void rsb_runners_mark(rsb_runners *runners) {
    runners->let_go = 0;
    if (RS_UNLIKELY(short_of_stacks)) {
        runners->len = runners->unneeded = 0;
    } else if (period_is_over(runners)) {
        uint32_t above = runners->len > KEPT_MIN ? runners->len - KEPT_MIN : 0;
        drop(runners, runners->unneeded < above ? runners->unneeded : above);
        runners->unneeded = runners->len;
    }
    for (uint32_t i = 0; i < runners->len; i++) rb_gc_mark(runners->fibers[i]);
}

/* True if it was disabled; rb_gc_start does nothing then. */
static bool turn_collector_on(void) { return RTEST(rb_gc_enable()); }

/* If the collector is enabled, nothing is done here: it runs by itself, or when there is no stack left. */
void rsb_runners_let_go(rsb_runners *runners) {
    if (RS_LIKELY(++runners->let_go < LET_GO_MAX)) return;
    runners->let_go = 0;
    if (!turn_collector_on()) return;
    rb_gc_start();
    rb_gc_disable();
}

void rsb_runners_collect(void) {
    short_of_stacks = true;
    bool was_off = turn_collector_on();
    rb_gc_start();
    if (was_off) rb_gc_disable();
    short_of_stacks = false;
}

void rsb_runners_free(rsb_runners *runners) { free(runners->fibers); }

static VALUE count(VALUE name) { return SIZET2NUM(rb_gc_stat(name)); }

void rsb_init_runners(void) {
    VALUE name = ID2SYM(rb_intern("major_gc_count"));
    int state = 0;
    rb_protect(count, name, &state);
    if (state) rb_set_errinfo(Qnil);
    else major_count = name;
}
