/* scope: what Ringspun::Scope points to. Its method in mrblib opens, settles and closes it; the object owns it, also where its block was
 * dropped in the middle. */
#ifndef RINGSPUN_MRUBY_SCOPE_H
#define RINGSPUN_MRUBY_SCOPE_H

#include "core.h"

struct rsm_scope {
    rs_scope engine;            /* first: a rs_scope of the engine that has an object is one of these */
    struct RData *object;
    rsm_machine *machine;       /* NULL: it was never opened, or all is over */
    uint32_t children;          /* strands that point to it */
    bool cut_children;          /* one was cancelled before it had a value */
};

/* That of the object; a ClosedError unless it is open, on the machine that is the current one. */
rsm_scope *rsm_open_scope(mrb_state *mrb, mrb_value self);

/* A strand of that scope has ended, with that error or nil. */
void rsm_scope_child_ended(mrb_state *mrb, rsm_machine *machine, rsm_scope *scope, const rsm_strand *child, mrb_value error);

#endif
