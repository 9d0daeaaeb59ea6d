/* list: the one wait list under every mutex, queue, condition, semaphore, barrier, join and scope. Owned by the machine's
 * thread. First in, first out.
 *
 * A list holds parked strands by index; a strand is in at most one. A wake takes its strand out of the list first, so a
 * list never names a strand that does not wait. Whoever embeds a list keeps its address stable while strands wait in it.
 */
#ifndef RINGSPUN_LIST_H
#define RINGSPUN_LIST_H

#include "ringspun/core/base.h"

struct rs_machine;
struct rs_strand;

/* Links hold index + 1, so a zeroed list is an empty one. */
typedef struct rs_list {
    uint32_t head;
    uint32_t tail;
    uint32_t len;
} rs_list;

typedef struct rs_waiter {
    rs_list *list;
    uint32_t next;
    uint32_t previous;
    uint64_t tag;               /* the driver's: it stays when the wait is over */
} rs_waiter;

/* Nobody waits in it any more, in a child whose parent has those who did. */
static inline void rs_list_forget(rs_list *list) { *list = (rs_list){0}; }

void rs_list_append(struct rs_machine *machine, rs_list *list, struct rs_strand *strand, uint64_t tag);
void rs_list_remove(struct rs_machine *machine, struct rs_strand *strand);

/* The strand that has waited longest, or NULL. */
struct rs_strand *rs_list_first(const struct rs_machine *machine, const rs_list *list);

/* Wakes the first waiter with that result and returns its name; RS_NO_ID when nobody waits. */
rs_id rs_list_wake_first(struct rs_machine *machine, rs_list *list, int64_t result);
uint32_t rs_list_wake_all(struct rs_machine *machine, rs_list *list, int64_t result);

#endif
