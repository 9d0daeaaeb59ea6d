/* selectors: those of a machine. */
#ifndef RINGSPUN_SELECTORS_H
#define RINGSPUN_SELECTORS_H

#include "core/machine.h"
#include "ringspun/core/gathered.h"
#include "ringspun/flow/select.h"

typedef struct rs_selectors {
    rs_links all;
    uint64_t random;
    rs_gathered unseen;         /* some of these went unseen: they are asked to end at the next look */
} rs_selectors;

extern const rs_part rs_selectors_part;

/* Where it lies, from the machine on (engine.c). */
extern const size_t rs_selectors_at;

static inline rs_selectors *rs_selectors_in(const rs_machine *machine) {
    return (rs_selectors *)((char *)machine + rs_selectors_at);
}

#endif
