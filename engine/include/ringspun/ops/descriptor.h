/* descriptor: what the machine knows of a descriptor number, and which ops wait on it. Owned by the machine's thread.
 *
 * The kind is known of descriptors that the machine made itself, and of one that was looked up and whose number is known to mean
 * the same still (rs_descriptor_restore). For any other number it is UNKNOWN and looked up when it matters, because the program
 * may close and reuse the number behind our back. It may do so with one of ours as well: then what we do there still does not
 * wait, with one exception. Reads and writes on a pipe are plain ones, because those that never wait (RWF_NOWAIT) cost 100 ns more,
 * so a blocking pipe that got the number of a pipe of ours makes the thread wait.
 * Ops in flight hang in a list per descriptor, so that closing one is as fast with a hundred thousand ops elsewhere as with none.
 *
 * What works on a descriptor in several steps, between which other strands run, takes the generation before the first and
 * compares before each later one: where it has changed the number was closed, and may mean somebody else's descriptor.
 */
#ifndef RINGSPUN_DESCRIPTOR_H
#define RINGSPUN_DESCRIPTOR_H

#include "ringspun/core/machine.h"

typedef enum {
    RS_FD_UNKNOWN,
    RS_FD_STREAM,               /* pipe or socket of ours: O_NONBLOCK is set */
    RS_FD_FILE_LOCAL,           /* regular file where a small write does not wait for a network */
    RS_FD_FILE_REMOTE,
    RS_FD_MEMORY,               /* a device that is: no write to it waits */
    RS_FD_BLOCKING              /* terminal, device, or a stream that others keep blocking */
} rs_fd_kind;

typedef struct rs_descriptors rs_descriptors;

rs_descriptors *rs_descriptors_of(const struct rs_machine *machine);

/* A larger number is taken for a mistake: without a limit, one would make the table as large as itself. */
#define RS_DESCRIPTORS_MAX (1 << 22)

/* Sees to it that there is an entry for that number. False: there is no memory for it. */
bool rs_descriptors_reserve(rs_descriptors *descriptors, int fd);

rs_fd_kind rs_descriptor_kind(const rs_descriptors *descriptors, int fd);
bool rs_descriptor_is_closing(const rs_descriptors *descriptors, int fd);
bool rs_descriptor_has_ops(const rs_descriptors *descriptors, int fd);

/* Counts up when the number is closed through the machine. */
uint32_t rs_descriptor_generation(const rs_descriptors *descriptors, int fd);

/* One that the machine has just made, or has just looked up. Without memory for an entry it is looked up every time. */
void rs_descriptor_note(rs_descriptors *descriptors, int fd, rs_fd_kind kind, bool socket);

/* What is noted of a number, for rs_descriptor_restore. */
void rs_descriptor_noted(const rs_descriptors *descriptors, int fd, bool *bytes, bool *reports_more);

/* What was noted before of the number, and of what it means again. There is an entry for it. */
void rs_descriptor_restore(rs_descriptors *descriptors, int fd, rs_fd_kind kind, bool socket, bool bytes, bool reports_more);

/* For a number that may have come to mean something else. */
void rs_descriptor_forget(rs_descriptors *descriptors, int fd);

/* Nothing was left when it was last read, so that the next try would be in vain; and that try is made all the same. */
bool rs_descriptor_is_drained(const rs_descriptors *descriptors, int fd);
void rs_descriptor_may_have(rs_descriptors *descriptors, int fd);

/* The strands that wait for the last op on a descriptor they close. */
rs_list *rs_descriptor_closers(rs_descriptors *descriptors);

#endif
