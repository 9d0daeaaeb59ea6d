/* part: what a room after core keeps for a machine, and must hear of. Core calls what is here and names none of them; engine.c has
 * the list. Every function may be NULL, and runs on the machine's thread.
 */
#ifndef RINGSPUN_ENGINE_PART_H
#define RINGSPUN_ENGINE_PART_H

#include "ringspun/core/message.h"
#include "core/strand.h"

struct rs_machine;

typedef struct rs_part {
    /* Before the backend opens, in the order of the list. */
    void (*open)(struct rs_machine *machine);

    /* Nothing can run: whether the end of an op that is counted in rs_machine.unawaited would wake somebody after all. */
    bool (*may_wake)(const struct rs_machine *machine);

    /* Messages of that kind, which no other part takes. */
    rs_message_kind message;
    void (*on_message)(struct rs_machine *machine, const rs_message *message);
    /* In a child process, before anything is forgotten: one that came before the fork, and that the parent takes. */
    void (*forget_message)(struct rs_machine *machine, const rs_message *message);

    /* Waits of that kind, which nothing ends at once: asks for the end, which wakes the strand. And whether it takes nothing: a strand
     * that has just been woken from one may get an interrupt in the place of its result. */
    rs_wait_kind wait;
    void (*interrupt)(struct rs_machine *machine, rs_strand *strand, rs_wake_kind kind);
    bool (*takes_nothing)(const struct rs_machine *machine, const rs_strand *strand);

    /* A strand ends that holds locks (rs_strand.locks). */
    void (*holder_ends)(struct rs_machine *machine, const rs_strand *strand);

    /* In a child process, in the order of the list: the strands but one have been forgotten, and the backend is the child's own. */
    void (*forked)(struct rs_machine *machine, const rs_strand *survivor);

    /* The machine, or its thread, ends, in the order of the list: no other thread says anything to it any more. May come twice. */
    void (*ends)(struct rs_machine *machine);
    /* Its thread has ended, and the backend has left: descriptors of its own are closed, in the order of the list. */
    void (*left)(struct rs_machine *machine);
    /* Behind all of these, and the backend, from the last of the list to the first: memory goes. */
    void (*close)(struct rs_machine *machine);
} rs_part;

#define RS_EACH_PART(machine, part)                                                                                   \
    for (const rs_part *const *part##_at = (machine)->parts, *part; (part = *part##_at) != NULL; part##_at++)

#endif
