#include "machine.h"

const rsb_part *rsb_parts;
size_t rsb_machine_bytes = sizeof(rsb_machine);

const rsb_part *rsb_parts_of_strands;
size_t rsb_strand_bytes = sizeof(rsb_strand);

/* A strand's handle has little room, so each piece is aligned as its size says, and at most as a pointer, as CRuby aligns it. */
static void register_for_strands(rsb_part *part) {
    size_t alignment = part->strand_size & -part->strand_size;
    if (alignment > _Alignof(void *)) alignment = _Alignof(void *);
    part->strand_at = (rsb_strand_bytes + alignment - 1) / alignment * alignment;
    rsb_strand_bytes = part->strand_at + part->strand_size;
    part->next_of_strands = rsb_parts_of_strands;
    rsb_parts_of_strands = part;
}

void rsb_register_part(rsb_part *part) {
    size_t alignment = _Alignof(max_align_t);
    part->data_at = (rsb_machine_bytes + alignment - 1) / alignment * alignment;
    rsb_machine_bytes = part->data_at + part->data_size;
    part->next = rsb_parts;
    rsb_parts = part;
    if (part->strand_size > 0) register_for_strands(part);
}
