/* part: what a room above `core` has with every machine: memory to mark and to free, waits to end. A room registers it once, when
 * the extension is loaded, and from then on it only is read. What came last is asked first. All hooks are optional; they run on the
 * machine's thread, `mark` and `free` wherever the collector runs. */
#ifndef RINGSPUN_PART_H
#define RINGSPUN_PART_H

#include "binding/binding.h"

typedef struct rsb_part {
    const struct rsb_part *next;
    size_t data_size;           /* of what it keeps with each machine, zeroed at first: rsb_part_data */
    size_t data_at;             /* set when it is registered */
    void (*mark)(rsb_machine *machine);
    /* In a child, before the engine forgets the strands that have not come along; perhaps more than once. */
    void (*forked)(rsb_machine *machine, rsb_strand *survivor);
    /* The strand ends, and has left suspended frames or locks. */
    void (*strand_ends)(rsb_machine *machine, rsb_strand *strand);
    /* Whether a strand waits for the descriptor without an op on it, and the end of such waits. */
    bool (*waits_for)(const rsb_machine *machine, int fd);
    void (*closing)(rsb_machine *machine, int fd);
    /* Raises where the root may not close the machine now. */
    void (*check_closable)(const rsb_machine *machine, const rsb_strand *root);
    void (*ends)(rsb_machine *machine);     /* before it closes; may wait */
    void (*free)(rsb_machine *machine);
} rsb_part;

extern const rsb_part *rsb_parts;

void rsb_register_part(rsb_part *part);

/* Of a machine with what all parts keep, which lies behind it. */
extern size_t rsb_machine_bytes;
static inline void *rsb_part_data(const rsb_machine *machine, const rsb_part *part) {
    RS_ASSERT(part->data_at >= sizeof(*machine));
    return (char *)machine + part->data_at;
}

#define RSB_EACH_PART(hook, ...)                                                                                      \
    do {                                                                                                              \
        for (const rsb_part *part = rsb_parts; part; part = part->next) {                                             \
            if (part->hook) part->hook(__VA_ARGS__);                                                                  \
        }                                                                                                             \
    } while (0)

#endif
