/* Stands in for the mrbgem mruby-poll, which does not run on mruby 3.3: what the gem concurrently calls of it, on poll(2). */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include <mruby.h>
#include <mruby/array.h>
#include <mruby/class.h>
#include <mruby/data.h>
#include <mruby/error.h>

typedef struct {
    struct pollfd *fds;
    size_t count, room;
} poll_set;

static void set_free(mrb_state *mrb, void *pointer)
{
    poll_set *set = pointer;
    if (set) mrb_free(mrb, set->fds);
    mrb_free(mrb, set);
}

static const mrb_data_type set_type = {"Poll", set_free};

static mrb_value set_initialize(mrb_state *mrb, mrb_value self)
{
    mrb_data_init(self, mrb_calloc(mrb, 1, sizeof(poll_set)), &set_type);
    return self;
}

/* Takes an IO and what to wait for. Returns the token that `wait` and `remove` have for it: its place. */
static mrb_value set_add(mrb_state *mrb, mrb_value self)
{
    poll_set *set = DATA_GET_PTR(mrb, self, &set_type, poll_set);
    mrb_value io;
    mrb_int events;
    mrb_get_args(mrb, "oi", &io, &events);
    mrb_value fd = mrb_funcall(mrb, io, "fileno", 0);
    size_t place = 0;
    while (place < set->count && set->fds[place].fd >= 0) place++;
    if (place == set->room) {
        set->room = set->room ? 2 * set->room : 16;
        set->fds = mrb_realloc(mrb, set->fds, set->room * sizeof *set->fds);
    }
    if (place == set->count) set->count++;
    set->fds[place] = (struct pollfd){.fd = (int)mrb_integer(fd), .events = (short)events};
    return mrb_fixnum_value((mrb_int)place);
}

/* poll(2) overlooks an entry with a negative descriptor. */
static mrb_value set_remove(mrb_state *mrb, mrb_value self)
{
    poll_set *set = DATA_GET_PTR(mrb, self, &set_type, poll_set);
    mrb_int place;
    mrb_get_args(mrb, "i", &place);
    set->fds[place].fd = -1;
    while (set->count && set->fds[set->count - 1].fd < 0) set->count--;
    return self;
}

/* Waits so many seconds, without end below zero; returns the tokens of those that are ready. */
static mrb_value set_wait(mrb_state *mrb, mrb_value self)
{
    poll_set *set = DATA_GET_PTR(mrb, self, &set_type, poll_set);
    mrb_float seconds;
    mrb_get_args(mrb, "f", &seconds);
    mrb_value ready = mrb_ary_new(mrb);
    if (poll(set->fds, set->count, seconds < 0 ? -1 : (int)(seconds * 1000 + 0.999)) < 0) {
        if (errno != EINTR) mrb_sys_fail(mrb, "poll");
        return ready;
    }
    for (size_t place = 0; place < set->count; place++) {
        if (set->fds[place].fd >= 0 && set->fds[place].revents) mrb_ary_push(mrb, ready, mrb_fixnum_value((mrb_int)place));
    }
    return ready;
}

void mrb_mruby_concurrently_gem_init(mrb_state *mrb)
{
    struct RClass *set = mrb_define_class(mrb, "Poll", mrb->object_class);
    MRB_SET_INSTANCE_TT(set, MRB_TT_CDATA);
    mrb_define_const(mrb, set, "In", mrb_fixnum_value(POLLIN));
    mrb_define_const(mrb, set, "Out", mrb_fixnum_value(POLLOUT));
    mrb_define_method(mrb, set, "initialize", set_initialize, MRB_ARGS_NONE());
    mrb_define_method(mrb, set, "add", set_add, MRB_ARGS_REQ(2));
    mrb_define_method(mrb, set, "remove", set_remove, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, set, "wait", set_wait, MRB_ARGS_REQ(1));
}

void mrb_mruby_concurrently_gem_final(mrb_state *mrb)
{
    (void)mrb;
}
