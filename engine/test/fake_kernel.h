/* fake_kernel: the three system calls of io_uring, answered from a seed by a kernel that does everything which a kernel
 * may do and seldom does. The ring is real memory, and so are the pipes and sockets that its entries name; only the time
 * is its own. There is one at a time, owned by the thread that uses it.
 *
 * What it draws: rings of a few entries, a thread that watches them or sleeps, entries left in the submission ring, enters that
 * fail (EINTR, EAGAIN, EBUSY), completions held back for want of room, late ones, and some told again after their op has ended,
 * short transfers, buffers of its own choice, some chosen before anything has come, results of EAGAIN, EINTR and ENOBUFS, a
 * lasting op that ends, cancellations that come too late, take long, or are missed, opcodes and cancellations that it refuses from
 * some moment on, and transfers that fail by themselves with the same error (EACCES).
 */
#ifndef RINGSPUN_FAKE_KERNEL_H
#define RINGSPUN_FAKE_KERNEL_H

#include "backend/uring/ring.h"

extern const uring_system fake_kernel_system;

/* A fresh one. `on_sleep` is called when nothing is left to complete and the caller would sleep; it may make something
 * happen, as another thread would. `lives` knows which names still stand for an op; no other is told twice. */
void fake_kernel_begin(uint64_t seed, void (*on_sleep)(void), bool (*lives)(uint64_t name));

/* From here on it misbehaves. */
void fake_kernel_misbehave(void);

uint64_t fake_kernel_draw(uint64_t below);
int64_t fake_kernel_now(void);

/* Entries it has taken and not answered, but for the lasting poll. */
uint32_t fake_kernel_pending(void);

/* What went wrong below the ring, or NULL. */
const char *fake_kernel_failure(void);

void fake_kernel_end(void);

#endif
