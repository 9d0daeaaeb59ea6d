/* sim: the backend without a kernel, for tests and for users' simulations. Owned by the machine's thread.
 *
 * The clock is virtual: it stands still while strands run and jumps to the next event when none is ready. Pipes, sockets
 * and files live in memory (sim_world), under descriptor numbers of their own. Everything that a kernel decides is drawn
 * from options.seed, so one seed is one run: two machines of the same seed end with the same trace hash.
 *
 * An op goes through these phases, each with at most one event on the virtual clock:
 *
 *     TRY      it has not reached the kernel, or goes there again later
 *     WAITING  it would wait; it hangs at its object until that changes
 *     DONE     it has happened; its strand hears of it when the event is due
 *
 * A cancellation wins over TRY and WAITING and never over DONE; what has moved has moved.
 */
#ifndef RINGSPUN_SIM_H
#define RINGSPUN_SIM_H

#include "ringspun/ops/op_life.h"

/* How often things go wrong, in thousandths. Those of the first group change only when and in which order things happen:
 * every program must be right under them. Those of the second group a program sees, and must answer for itself. */
typedef struct rs_sim_faults {
    uint16_t short_transfer;    /* fewer bytes than there are */
    uint16_t interrupted;       /* EINTR, answered by another try a little later */
    uint16_t delay;             /* up to delay_max_ns before it reaches the kernel, or before its completion is heard */
    uint16_t late_cancel;       /* a cancellation takes its time, and the op may be faster */
    uint16_t submission_full;   /* the op waits in a queue until the next poll */
    uint16_t no_buffers;        /* ENOBUFS, answered by another try later */
    uint16_t late_wake;         /* a poll that finds nothing although there is something */
    uint16_t scribble;          /* memory that an op still owns is written to */
    uint16_t offload;           /* a file op runs as if on a worker: its strand may leave it behind */

    uint16_t open_failure;      /* EMFILE, ENFILE */
    uint16_t reset;             /* ECONNRESET */

    int64_t delay_max_ns;
} rs_sim_faults;

/* The first group often enough to matter in a short run, the second not at all. What options.faults == NULL means. */
rs_sim_faults rs_sim_faults_default(void);

/* A kernel that answers at once and never surprises. */
rs_sim_faults rs_sim_faults_none(void);

/* Their names, in the order above; NULL after the last. */
const char *rs_sim_fault_name(size_t index);

/* Sets the fault of that name to so many thousandths. False: there is none. */
bool rs_sim_set_fault(rs_sim_faults *faults, const char *name, uint16_t per_mille);

/* The virtual clock, and time that passes although strands run. */
int64_t rs_sim_now(const rs_machine *machine);
void rs_sim_advance(rs_machine *machine, int64_t delay_ns);

/* The next draw, for a program that wants its own chances to hang on the same seed. */
uint64_t rs_sim_random(rs_machine *machine);

uint32_t rs_sim_open_descriptors(const rs_machine *machine);

/* What fcntl(F_GETFL) would say of a simulated descriptor; -1: not open. */
int rs_sim_mode(const rs_machine *machine, int fd);
bool rs_sim_is_socket(const rs_machine *machine, int fd);
/* What a simulated socket is bound to, as getsockname(2) would say it; NULL: to nothing. */
const void *rs_sim_address(const rs_machine *machine, int fd, uint32_t *len);

#endif
