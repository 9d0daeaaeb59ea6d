/* memory: malloc for the binding. If there is no memory these raise a NoMemoryError, as CRuby's own functions do. */
#include "machine.h"

#include <stdlib.h>

void rsb_fail_memory(void) { rb_memerror(); }

void rsb_collect_for(size_t size) { ruby_xfree(ruby_xmalloc(size)); }

void *rsb_alloc(size_t size) {
    void *memory = rs_try_alloc(size);
    if (RS_LIKELY(memory != NULL)) return memory;
    rsb_collect_for(size);
    memory = rs_try_alloc(size);
    if (!memory) rsb_fail_memory();
    return memory;
}

void *rsb_realloc(void *old, size_t size) {
    void *memory = rs_try_realloc(old, size);
    if (RS_LIKELY(memory != NULL)) return memory;
    rsb_collect_for(size);
    memory = rs_try_realloc(old, size);
    if (!memory) rsb_fail_memory();
    return memory;
}
