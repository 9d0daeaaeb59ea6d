#include "server/scratch.h"

#include <string.h>

/* What is kept between two answers. A larger one is an exception. */
#define KEPT_MAX ((size_t)256 << 10)

static uint8_t *memory;
static size_t filled, capacity;

void rhs_scratch_begin(void) {
    filled = 0;
    if (capacity <= KEPT_MAX) return;
    xfree(memory);
    memory = NULL;
    capacity = 0;
}

uint8_t *rhs_scratch_room(size_t len) {
    if (RB_UNLIKELY(capacity - filled < len)) {
        size_t wanted = (filled + len) * 2;
        REALLOC_N(memory, uint8_t, wanted);
        capacity = wanted;
    }
    return memory + filled;
}

void rhs_scratch_filled(const uint8_t *end) { filled = (size_t)(end - memory); }

void rhs_scratch_put(const void *bytes, size_t len) {
    if (len > 0) memcpy(rhs_scratch_room(len), bytes, len);
    filled += len;
}

VALUE rhs_scratch_string(void) { return rb_str_new((const char *)memory, (long)filled); }

void rhs_scratch_send(VALUE stream) {
    if (!ringspun->stream_put(stream, memory, filled)) rhs_raise_gone();
}
