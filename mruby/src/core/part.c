#include "part.h"

#include <stddef.h>

const rsm_part *rsm_parts;
const rsm_work *rsm_the_work;
size_t rsm_machine_bytes = sizeof(rsm_machine);

/* States begin in several threads at once. Each registers all parts before it makes a machine: so nobody changes these any more once
 * there is one. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void append(rsm_part *part) {
    size_t alignment = _Alignof(max_align_t);
    part->data_at = (rsm_machine_bytes + alignment - 1) / alignment * alignment;
    rsm_machine_bytes = part->data_at + part->data_size;
    part->next = rsm_parts;
    rsm_parts = part;
}

void rsm_register_part(rsm_part *part) {
    pthread_mutex_lock(&lock);
    if (part->data_at == 0) append(part);
    pthread_mutex_unlock(&lock);
}

void rsm_register_work(const rsm_work *work) {
    pthread_mutex_lock(&lock);
    if (!rsm_the_work) rsm_the_work = work;
    pthread_mutex_unlock(&lock);
}
