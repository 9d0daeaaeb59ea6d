#include "inner.h"

/* Of entries. A power of two: the place of a fiber is its hash without the upper bits. */
#define CAPACITY_MIN 64u

typedef struct {
    VALUE fiber;                /* 0: the entry is free. Not kept alive, and only compared */
    rs_id strand;
} fiber_entry;

typedef struct rsb_fibers {
    uint32_t capacity;          /* a power of two */
    uint32_t len;
    uint32_t unasked;           /* how often a strand has entered a fiber since the last question */
    fiber_entry entries[];
} rsb_fibers;

void rsb_fibers_forget(rsb_machine *machine) {
    free(machine->fibers);
    machine->fibers = NULL;
}

/* The entry of that fiber, or a free one. There is one, because at most half of them are used. */
static fiber_entry *entry_of(rsb_fibers *fibers, VALUE fiber) {
    uint32_t at = (uint32_t)(((uint64_t)fiber >> 3) * UINT64_C(0x9E3779B97F4A7C15) >> 32);
    for (;; at++) {
        fiber_entry *entry = &fibers->entries[at & (fibers->capacity - 1)];
        if (entry->fiber == fiber || entry->fiber == 0) return entry;
    }
}

static void enter(rsb_fibers *fibers, const rsb_strand *strand, VALUE fiber) {
    fiber_entry *entry = entry_of(fibers, fiber);
    if (entry->fiber == 0) fibers->len++;
    *entry = (fiber_entry){fiber, strand->id};
    RS_CHECK(fibers->len <= fibers->capacity / 2);
}

/* Each strand has two fibers at most, and as many may come before a table is full. */
static rsb_fibers *make(rsb_machine *machine) {
    uint32_t needed = 8 * rs_strands_live(rs_strands_of(machine->engine)), capacity = CAPACITY_MIN;
    while (capacity < needed) capacity *= 2;
    rsb_fibers *fibers = rs_try_alloc(sizeof(*fibers) + sizeof(fiber_entry) * capacity);
    if (!fibers) return NULL;
    fibers->capacity = capacity;
    RS_EACH_STRAND(rs_strands_of(machine->engine), engine) {
        const rsb_strand *strand = rs_strand_user(engine);
        if (!strand) continue;
        if (!NIL_P(strand->home)) enter(fibers, strand, strand->home);
        if (!NIL_P(strand->fiber)) enter(fibers, strand, strand->fiber);
    }
    return fibers;
}

void rsb_fibers_enter(rsb_machine *machine, const rsb_strand *strand, VALUE fiber) {
    rsb_fibers *fibers = machine->fibers;
    bool is_full = 2 * (fibers->len + 1) > fibers->capacity;
    if (RS_UNLIKELY(is_full || ++fibers->unasked > fibers->capacity)) rsb_fibers_forget(machine);
    else enter(fibers, strand, fiber);
}

static rsb_strand *named_by(rsb_machine *machine, rs_id id, VALUE fiber) {
    rs_strand *engine = rs_strand_find(rs_strands_of(machine->engine), id);
    rsb_strand *strand = engine ? rs_strand_user(engine) : NULL;
    return strand && (strand->fiber == fiber || strand->home == fiber) ? strand : NULL;
}

static rsb_strand *search(rsb_machine *machine, VALUE fiber) {
    RS_EACH_STRAND(rs_strands_of(machine->engine), engine) {
        rsb_strand *strand = named_by(machine, rs_strand_id(engine), fiber);
        if (strand) return strand;
    }
    return NULL;
}

rsb_strand *rsb_strand_of_fiber(rsb_machine *machine, VALUE fiber) {
    if (!machine->fibers) machine->fibers = make(machine);
    if (RS_UNLIKELY(!machine->fibers)) return search(machine, fiber); /* no memory */
    machine->fibers->unasked = 0;
    const fiber_entry *entry = entry_of(machine->fibers, fiber);
    return entry->fiber == fiber ? named_by(machine, entry->strand, fiber) : NULL;
}
