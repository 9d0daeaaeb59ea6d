/* descriptor_kinds: what a number refers to right now, as Linux has it, and what the kind of a new socket lets expect. No state of its
 * own. */
#ifndef RINGSPUN_DESCRIPTOR_KINDS_H
#define RINGSPUN_DESCRIPTOR_KINDS_H

#include "ringspun/core/machine.h"
#include "ringspun/ops/descriptor.h"

static inline bool rs_fd_is_file(rs_fd_kind kind) { return kind == RS_FD_FILE_LOCAL || kind == RS_FD_FILE_REMOTE; }

rs_fd_kind rs_descriptor_classify(int fd);
bool rs_descriptor_is_socket(int fd);

/* True for a file that lies on no disk: reading it is a copy, whether the kernel can be asked not to wait or not. */
bool rs_descriptor_is_virtual(int fd);

/* Tells two files, pipes or sockets apart that one number means one after the other; 0: it means none. */
uint64_t rs_descriptor_identity(int fd);

/* Whether a part is as good as the whole: a message goes out whole, or not at all. No system call where it is known. */
bool rs_descriptor_carries_bytes(const rs_descriptors *descriptors, int fd);

/* Notes the sort of a socket of the machine's own, by the words of socket(2). */
void rs_socket_made(rs_machine *machine, int fd, int family, int type);

#endif
