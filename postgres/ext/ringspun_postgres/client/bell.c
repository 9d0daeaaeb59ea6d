#include "client/bell.h"

typedef struct {
    rpg_lane *first;            /* of those that have something to do */
    ringspun_waker waker;
    bool waits;                 /* the strand, and the waker is its */
} rpg_bell;

static void bell_mark(void *data) {
    for (const rpg_lane *each = ((rpg_bell *)data)->first; each; each = each->threads.next) rb_gc_mark(each->self);
}

static const rb_data_type_t bell_type = {
    .wrap_struct_name = "Ringspun::Postgres::Bell",
    .function = {.dmark = bell_mark, .dfree = RUBY_DEFAULT_FREE},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE bell_new(VALUE class) {
    rpg_bell *bell;
    return TypedData_Make_Struct(class, rpg_bell, &bell_type, bell);
}

static rpg_bell *bell_get(VALUE self) { return rb_check_typeddata(self, &bell_type); }

/* Exactly once for each wait. */
static void wake(rpg_bell *bell) {
    if (!bell->waits) return;
    bell->waits = false;
    ringspun->wake(bell->waker, 0);
}

void rpg_bell_ring(rpg_lane *lane) {
    if (lane->threads.called) return;
    rpg_bell *bell = RTYPEDDATA_GET_DATA(lane->threads.bell);
    lane->threads.called = true;
    lane->threads.next = bell->first;
    bell->first = lane;
    wake(bell);
}

static void keep_waker(ringspun_waker waker, void *data) {
    rpg_bell *bell = data;
    bell->waker = waker;
    bell->waits = true;
}

static VALUE park(VALUE argument) {
    ringspun->park(RINGSPUN_NEVER, keep_waker, (rpg_bell *)argument, NULL);
    return Qnil;
}

static VALUE end_wait(VALUE argument) {
    wake((rpg_bell *)argument);
    return Qnil;
}

/* Waits until lanes have something to do. May switch strands.
 *
 * @return [Array<Lane>] the lanes to be roused: Lane#rouse */
static VALUE bell_wait(VALUE self) {
    rpg_bell *bell = bell_get(self);
    while (!bell->first) rb_ensure(park, (VALUE)bell, end_wait, (VALUE)bell);
    VALUE lanes = rb_ary_new();
    for (const rpg_lane *each = bell->first; each; each = each->threads.next) rb_ary_push(lanes, each->self);
    for (rpg_lane *each = bell->first; each; each = each->threads.next) each->threads.called = false;
    bell->first = NULL;
    RB_GC_GUARD(self);
    return lanes;
}

void rpg_init_bell(void) {
    VALUE cBell = rb_define_class_under(rpg_mPostgres, "Bell", rb_cObject);
    rb_undef_alloc_func(cBell);
    rb_define_singleton_method(cBell, "new", bell_new, 0);
    rb_define_method(cBell, "wait", bell_wait, 0);
}
