#include "core.h"

const rsb_part *rsb_parts;

void rsb_register_part(rsb_part *part) {
    part->next = rsb_parts;
    rsb_parts = part;
}
