/* link: the doubly linked list of the engine. Who owns a list says from which thread it may be used.
 *
 * What is in a list has a link in it for each list that it may be in, so that it is put in and taken out without memory and without a
 * search. Zeroed memory is an empty list. A link says nothing about whether it is in a list: its owner knows.
 */
#ifndef RINGSPUN_LINK_H
#define RINGSPUN_LINK_H

#include "ringspun/core/base.h"

typedef struct rs_link { struct rs_link *next, *previous; } rs_link;

typedef struct { rs_link *first, *last; } rs_links;

static inline bool rs_links_empty(const rs_links *links) { return links->first == NULL; }

static inline void rs_links_append(rs_links *links, rs_link *link) {
    RS_CHECK(links->last != link && links->first != link);
    RS_CHECK((links->first == NULL) == (links->last == NULL));
    *link = (rs_link){.previous = links->last};
    if (links->last) links->last->next = link;
    else links->first = link;
    links->last = link;
}

static inline void rs_links_prepend(rs_links *links, rs_link *link) {
    RS_CHECK(links->last != link && links->first != link);
    RS_CHECK((links->first == NULL) == (links->last == NULL));
    *link = (rs_link){.next = links->first};
    if (links->first) links->first->previous = link;
    else links->last = link;
    links->first = link;
}

static inline void rs_links_remove(rs_links *links, rs_link *link) {
    RS_ASSERT(link->previous ? link->previous->next == link : links->first == link);
    RS_CHECK(link->next ? link->next->previous == link : links->last == link);
    if (link->previous) link->previous->next = link->next;
    else links->first = link->next;
    if (link->next) link->next->previous = link->previous;
    else links->last = link->previous;
    *link = (rs_link){0};
}

/* In a child whose parent has what was in it, and which may not even have that memory. */
static inline void rs_links_forget(rs_links *links) { *links = (rs_links){0}; }

static inline void *rs_linked(const rs_link *link, size_t offset) { return link ? (char *)link - offset : NULL; }

/* What has that link as its member; NULL where there is no link. */
#define RS_LINKED(link, type, member) ((type *)rs_linked((link), offsetof(type, member)))

/* Each that is in the list, from the first to the last. It may be taken out meanwhile, and no other. */
#define RS_EACH_LINKED(links, type, member, each)                                                                     \
    for (type *each = RS_LINKED((links)->first, type, member), *each##_next;                                          \
         each && (each##_next = RS_LINKED(each->member.next, type, member), true); each = each##_next)

#endif
