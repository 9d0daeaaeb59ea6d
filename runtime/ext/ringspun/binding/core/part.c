#include "core.h"

const rsb_part *rsb_parts;
size_t rsb_machine_bytes = sizeof(rsb_machine);

void rsb_register_part(rsb_part *part) {
    size_t alignment = _Alignof(max_align_t);
    part->data_at = (rsb_machine_bytes + alignment - 1) / alignment * alignment;
    rsb_machine_bytes = part->data_at + part->data_size;
    part->next = rsb_parts;
    rsb_parts = part;
}
