/* part: what another room, or another file, keeps for each machine behind it, and the hooks by which `core` calls rooms above it.
 *
 * A part is registered when the gem begins in a state, by whichever state is first; later nobody changes it. The part registered last
 * is called first. All hooks are optional, and run on the thread that has the state.
 */
#ifndef RINGSPUN_MRUBY_PART_H
#define RINGSPUN_MRUBY_PART_H

#include "machine.h"

typedef struct rsm_part {
    const struct rsm_part *next;
    size_t data_size;           /* bytes that it keeps for each machine, zero at first: rsm_part_data */
    size_t data_at;             /* their offset; set when it is registered */
    void (*made)(mrb_state *mrb, rsm_machine *machine);     /* its object; all classes are defined */
    void (*opened)(mrb_state *mrb, rsm_machine *machine);   /* the engine's machine; mrblib has run */
    void (*ends)(rsm_machine *machine);                     /* before the engine's machine is closed */
    void (*closed)(rsm_machine *machine);                   /* that one was */
    void (*free)(mrb_state *mrb, rsm_machine *machine);     /* its memory will be free */
} rsm_part;

extern const rsm_part *rsm_parts;

void rsm_register_part(rsm_part *part);

/* The size of a machine together with the data of all parts, which lies behind it. */
extern size_t rsm_machine_bytes;
static inline void *rsm_part_data(const rsm_machine *machine, const rsm_part *part) {
    RS_CHECK(part->data_at >= sizeof(*machine));
    return (char *)machine + part->data_at;
}

#define RSM_EACH_PART(hook, ...)                                                                                      \
    do {                                                                                                              \
        for (const rsm_part *part = rsm_parts; part; part = part->next) {                                             \
            if (part->hook) part->hook(__VA_ARGS__);                                                                  \
        }                                                                                                             \
    } while (0)

/* What strands without a handle do: the work of one room, which registers it once. A strand with a batch does one work after another. */
typedef struct {
    /* What the strand calls when it begins. */
    mrb_value (*first)(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand);
    /* It has a batch and has done a work: what it calls next; nil: nothing more. */
    mrb_value (*next)(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand);
    /* It has a batch and begins to wait: another strand takes the rest. */
    void (*hand_over)(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand);
    /* A work has ended with that value or that error. */
    void (*ended)(mrb_state *mrb, rsm_machine *machine, rsm_strand *strand, mrb_value value, mrb_value error);
    /* The strand has ended, and its memory is nobody's. */
    void (*gone)(rsm_machine *machine, rsm_strand *strand);
} rsm_work;

extern const rsm_work *rsm_the_work;

void rsm_register_work(const rsm_work *work);

#endif
