/* part: what a file above machine.c keeps for each machine and for each strand, and the hooks by which files below call it. It
 * registers its part once, when the extension is loaded; later nobody changes it. The part registered last is called first. All
 * hooks are optional. They run on the machine's thread, except `mark`, `mark_strand` and `free`, which run wherever the garbage
 * collector does. */
#ifndef RINGSPUN_PART_H
#define RINGSPUN_PART_H

#include "binding/binding.h"

typedef struct rsb_part {
    const struct rsb_part *next;
    size_t data_size;           /* bytes that it keeps for each machine, zero at first: rsb_part_data */
    size_t data_at;             /* their offset; set when it is registered */
    size_t strand_size;         /* the same for each strand: rsb_strand_part. It is a multiple of its alignment */
    size_t strand_at;
    const struct rsb_part *next_of_strands; /* of those that keep something for strands */
    void (*mark)(rsb_machine *machine);
    void (*mark_strand)(rsb_strand *strand);    /* of parts that keep something for strands */
    /* In the child, before fork(2) returns, and because the child may never use its machine (NULL: the thread that has forked has
     * none). Another thread may have held any lock at the fork, so this calls neither Ruby nor malloc. */
    void (*child_began)(rsb_machine *machine);
    /* In a forked child, before the engine forgets the parent's other strands. May be called more than once. */
    void (*forked)(rsb_machine *machine, rsb_strand *survivor);
    /* The last strand of a forked child has ended. The first that has this hook ends the process. */
    void (*child_ends)(rsb_machine *machine);
    /* The strand ends, and some room has asked to be told of that (`tells_end`), whichever it was. */
    void (*strand_ends)(rsb_machine *machine, rsb_strand *strand);
    /* What the parked strand waits for, in words, if this room has said so; or NULL. */
    const char *(*strand_waits_for)(const rsb_strand *strand, const rs_strand *engine);
    /* In a simulation: whether a strand waits for something real; and wakes those for which it has come. True: it has woken one. */
    bool (*waits_for_real_things)(const rsb_machine *machine);
    bool (*wakes_by_real_things)(rsb_machine *machine);
    /* Whether a strand waits for the descriptor without an op on it; the second ends such waits, because it will be closed. */
    bool (*waits_for)(const rsb_machine *machine, int fd);
    void (*closing)(rsb_machine *machine, int fd);
    /* Raises if the root may not close the machine now. */
    void (*check_closable)(const rsb_machine *machine, const rsb_strand *root);
    void (*ends)(rsb_machine *machine);     /* before the machine closes; may wait */
    void (*free)(rsb_machine *machine);
} rsb_part;

extern const rsb_part *rsb_parts;

void rsb_register_part(rsb_part *part);

/* The size of a machine together with the data of all parts, which lies behind it. */
extern size_t rsb_machine_bytes;
static inline void *rsb_part_data(const rsb_machine *machine, const rsb_part *part) {
    RS_CHECK(part->data_at >= sizeof(*machine));
    return (char *)machine + part->data_at;
}

/* The size of a strand together with the data of all parts, which lies behind it. */
extern size_t rsb_strand_bytes;
extern const rsb_part *rsb_parts_of_strands;
static inline void *rsb_strand_part(const rsb_strand *strand, const rsb_part *part) {
    RS_CHECK(part->strand_at >= sizeof(*strand));
    return (char *)strand + part->strand_at;
}

#define RSB_EACH_PART(hook, ...)                                                                                      \
    do {                                                                                                              \
        for (const rsb_part *part = rsb_parts; part; part = part->next) {                                             \
            if (part->hook) part->hook(__VA_ARGS__);                                                                  \
        }                                                                                                             \
    } while (0)

#endif
