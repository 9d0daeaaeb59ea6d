#include "server/counters.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

/* Twice the number of workers that a cluster may have, for in a reload each has a successor. */
#define SLOTS 2048

/* More than the server has, and with the pid one line of the cache. */
#define GAUGES 7

/* Far more than the server has. */
#define TOTALS_MAX 4096

typedef struct {
    _Atomic int64_t pid;        /* 0: free */
    _Atomic int64_t gauges[GAUGES];
} process_slot;

typedef struct {
    process_slot slots[SLOTS];
    _Atomic uint64_t totals[];
} shared_numbers;

typedef struct {
    shared_numbers *shared;
    size_t size;                /* bytes of them */
    long totals;
    process_slot *own;          /* of this process; NULL: none is claimed */
} counter_set;

static void counters_free(void *data) {
    counter_set *counters = data;
    if (counters->shared) munmap(counters->shared, counters->size);
    xfree(counters);
}

static size_t counters_size(const void *data) { return sizeof(counter_set); }

static const rb_data_type_t type = {
    .wrap_struct_name = "Ringspun::HTTP::Counters",
    .function = {.dfree = counters_free, .dsize = counters_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static counter_set *get(VALUE self) { return rb_check_typeddata(self, &type); }

static long number_below(VALUE number, long count) {
    long at = NUM2LONG(number);
    if (at < 0 || at >= count) rb_raise(rb_eIndexError, "there are %ld of these, and no number %ld", count, at);
    return at;
}

/* @param totals [Integer] how many there are */
static VALUE counters_new(VALUE class, VALUE totals) {
    counter_set *counters;
    VALUE self = TypedData_Make_Struct(class, counter_set, &type, counters);
    counters->totals = number_below(totals, TOTALS_MAX);
    counters->size = sizeof(shared_numbers) + (size_t)counters->totals * sizeof(uint64_t);
    void *memory = mmap(NULL, counters->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) rb_sys_fail("mmap");
    counters->shared = memory;
    return self;
}

/* --- totals --- */

/* @param number [Integer] of the total
 * @param more [Integer] */
static VALUE counters_add(VALUE self, VALUE number, VALUE more) {
    counter_set *counters = get(self);
    atomic_fetch_add_explicit(&counters->shared->totals[number_below(number, counters->totals)], NUM2ULL(more), memory_order_relaxed);
    return Qnil;
}

/* @return [Integer] the sum of all that was added, by all processes */
static VALUE counters_total(VALUE self, VALUE number) {
    counter_set *counters = get(self);
    return ULL2NUM(atomic_load_explicit(&counters->shared->totals[number_below(number, counters->totals)], memory_order_relaxed));
}

/* --- gauges --- */

/* A process that is not ours has the pid of a dead one at most by accident. */
static bool is_alive(int64_t pid) { return kill((pid_t)pid, 0) == 0 || errno != ESRCH; }

static bool take(process_slot *slot, int64_t self) {
    int64_t pid = atomic_load(&slot->pid);
    if (pid != 0 && pid != self && is_alive(pid)) return false;
    return atomic_compare_exchange_strong(&slot->pid, &pid, self);
}

/* Takes a slot for the gauges of this process, which begin at 0. Without it, or where none is free, they are not counted.
 * @return [Boolean] */
static VALUE counters_claim(VALUE self) {
    counter_set *counters = get(self);
    int64_t pid = getpid();
    counters->own = NULL;
    for (int i = 0; i < SLOTS; i++) {
        process_slot *slot = &counters->shared->slots[i];
        if (!take(slot, pid)) continue;
        for (int k = 0; k < GAUGES; k++) atomic_store(&slot->gauges[k], 0);
        counters->own = slot;
        return Qtrue;
    }
    return Qfalse;
}

/* @param number [Integer] of the gauge
 * @param by [Integer] also below 0 */
static VALUE counters_move(VALUE self, VALUE number, VALUE by) {
    process_slot *own = get(self)->own;
    if (own) atomic_fetch_add_explicit(&own->gauges[number_below(number, GAUGES)], NUM2LL(by), memory_order_relaxed);
    return Qnil;
}

/* @return [Integer] the sum of those of the processes that live */
static VALUE counters_gauge(VALUE self, VALUE number) {
    const counter_set *counters = get(self);
    long at = number_below(number, GAUGES);
    int64_t sum = 0;
    for (int i = 0; i < SLOTS; i++) {
        process_slot *slot = &counters->shared->slots[i];
        int64_t pid = atomic_load(&slot->pid);
        if (pid == 0) continue;
        int64_t value = atomic_load_explicit(&slot->gauges[at], memory_order_relaxed);
        if (value != 0 && is_alive(pid)) sum += value;
    }
    return LL2NUM(sum);
}

VALUE rhs_init_counters(void) {
    VALUE class = rb_define_class_under(rhs_mHTTP, "Counters", rb_cObject);
    rb_undef_alloc_func(class);
    rb_define_singleton_method(class, "new", counters_new, 1);
    rb_define_method(class, "add", counters_add, 2);
    rb_define_method(class, "total", counters_total, 1);
    rb_define_method(class, "claim", counters_claim, 0);
    rb_define_method(class, "move", counters_move, 2);
    rb_define_method(class, "gauge", counters_gauge, 1);
    return class;
}
