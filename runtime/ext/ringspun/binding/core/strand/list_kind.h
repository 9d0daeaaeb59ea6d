/* list_kind: what the lists are in which strands wait, in words: a strand in one bears the list's kind as its tag. */
#ifndef RINGSPUN_BINDING_CORE_LIST_KIND_H
#define RINGSPUN_BINDING_CORE_LIST_KIND_H

#include "binding/binding.h"

/* A kind of list in which strands wait (RS_WAIT_LIST, RS_WAIT_MUTEX). Each room has those of its own lists. */
typedef struct rsb_list_kind {
    const char *what;           /* a strand in it waits for, in words */
    VALUE (*in_words)(const rs_list *list); /* the same where it depends on the list; else NULL */
    bool for_ractors;           /* another ractor may have what it waits for */
} rsb_list_kind;

/* The kind of the list in which the strand waits; NULL: it waits in none of a kind. */
static inline const rsb_list_kind *rsb_list_kind_of(const rs_strand *strand) {
    if (!rs_strand_is(strand, RS_STRAND_PARKED) || rs_strand_list(strand) == NULL) return NULL;
    return (const rsb_list_kind *)(uintptr_t)rs_strand_tag(strand);
}

#endif
