/* machine: strands, timers, ops, scopes and a backend, put together; the seam to whoever drives it.
 *
 * The engine never switches stacks and never calls a virtual machine. Its driver does:
 *
 *     rs_park_begin(...)            records why the running strand waits; 0 when it must not wait now (rs_refusal)
 *     rs_next(...)                  says what to do: run strand S | sleep until D (rs_sleep) | deadlock
 *     rs_park_end(...)              the epilogue, once the strand runs again with its ticket woken
 *
 * Everything here belongs to one thread, except rs_send and rs_wake_up, which any thread may call.
 */
#ifndef RINGSPUN_MACHINE_H
#define RINGSPUN_MACHINE_H

#include "ringspun/core/message.h"
#include "ringspun/core/sleep.h"
#include "ringspun/core/strand.h"
#include "ringspun/core/turn.h"

typedef struct rs_machine rs_machine;
struct rs_op;

/* How requests about streams are done: those of many strands in one system call where calls are dear, each by a call of its own at
 * first, or all by the ring. */
typedef enum { RS_STREAM_IO_AUTO, RS_STREAM_IO_INLINE, RS_STREAM_IO_RING } rs_stream_io;

typedef struct {
    uint32_t strands_max;
    uint32_t workers_max;
    bool offload_files;         /* every file op goes to a worker */
    bool trace;
    int64_t busy_poll_ns;       /* so long it looks for something to come, where that pays, before it sleeps */
    bool whole_ticks;           /* see rs_machine_run_in_whole_ticks */
    bool threads_move;          /* the machine's thread may go on as another one of the kernel's */
    bool sqpoll;                /* uring: a thread of the kernel's watches the ring; so long in vain, 0: its default; on that one */
    uint32_t sqpoll_idle_ms;
    int32_t sqpoll_cpu;         /* negative: on any processor */
    uint8_t stream_io;          /* rs_stream_io */
    uint32_t ring_entries;      /* uring: ops that may be handed over in one go */
    const struct uring_system *uring_system; /* uring: the system calls of a kernel other than this one; NULL: this one's */
    uint64_t seed;              /* sim: where every draw comes from */
    const struct rs_sim_faults *faults;
} rs_options;

/* What the driver wants to hear, and what only it knows. Each may be NULL. */
typedef struct rs_driver {
    /* A RS_MESSAGE_USER has come. */
    void (*on_message)(struct rs_machine *machine, const rs_message *message);
    /* The reminder is due. */
    void (*on_reminder)(struct rs_machine *machine);
    /* For ops of RS_REQUEST_OF_OBJECT: false when the object is closed, or has another number. Called with nothing between it and
     * the system call that hands the op over. */
    bool (*is_open)(const struct rs_op *op);
    /* Where programs have stacks of their own inside a strand: the one that the running strand is on, and the one from which
     * another was resumed; NULL: the strand's first. */
    const void *(*stack)(struct rs_machine *machine);
    const void *(*outer_stack)(const void *stack);
    /* Somebody whom the engine does not know, such as another thread, may still wake a strand or send something. */
    bool (*others_may_wake)(struct rs_machine *machine);
    /* Nobody will wake any (deadlock.h): to be raised in the root, which waits. */
    void (*on_deadlock)(struct rs_machine *machine, rs_strand *root);
    /* A sleep lets a lock go that somebody else may want. NULL: nobody does. */
    bool (*lock_is_wanted)(struct rs_machine *machine);
    /* False when all that interrupts the running strand was for code that it has left. */
    bool (*interrupts_here)(struct rs_machine *machine);
} rs_driver;

typedef enum { RS_RUN, RS_SLEEP, RS_DEADLOCK } rs_verdict;

typedef struct {
    rs_verdict verdict;
    rs_strand *strand;          /* RUN */
    int64_t deadline_ns;        /* SLEEP */
} rs_decision;

/* Whose machine it is, and `user` for its root strand. */
void rs_machine_drive(rs_machine *machine, const rs_driver *driver, void *user, void *root_user);

/* Whether strands note from now on when they park (rs_strand_parked_at), which costs a look at the clock each time. */
void rs_machine_note_parks(rs_machine *machine, bool notes);

/* From now on the machine runs in whole ticks. In a tick those go first that the backend or another thread has woken. Then all go
 * that are ready by then, in the order in which they have become ready, and then those whose time has come, by time. What becomes
 * ready meanwhile goes in the next tick. If nobody but those from outside was ready, the next tick begins after them. There is no
 * look within a tick, so this order depends on no clock except for timers; and a tick lasts as long as all its turns together. */
void rs_machine_run_in_whole_ticks(rs_machine *machine);

/* The machine's thread ends without having closed it, in whatever state the machine is: closes its own descriptors and the
 * connections that it has accepted ahead. Afterwards no op in flight touches memory, but for those in doubt, and only
 * rs_machine_close may be called, on any thread. */
void rs_machine_leave(rs_machine *machine);

/* No op is in flight but those that their strands have left (rs_ops_are_over). */
void rs_machine_close(rs_machine *machine);
int rs_machine_forked(rs_machine *machine);

/* The process was forked while the loop ran on the stack of a parked strand, in a signal handler: that strand is the survivor, and
 * runs; and after rs_machine_forked its wait ends by an interrupt, for what it waited for is the parent's. */
void rs_survive_fork(rs_machine *machine, rs_strand *survivor);
void rs_end_wait_of_survivor(rs_machine *machine);

/* For what is done without rs_try. */
void rs_count_inline(rs_machine *machine);
void rs_count_spliced(rs_machine *machine, uint64_t bytes);

/* Nothing is real: neither its clock nor its descriptors. */
bool rs_is_simulated(const rs_machine *machine);

/* By the machine's own clock. */
int64_t rs_now(rs_machine *machine);

/* There is one. */
rs_strand *rs_running(const rs_machine *machine);

bool rs_is_root(const rs_machine *machine, const rs_strand *strand);

/* NULL: it has ended, which only a forked child's does before its machine. */
rs_strand *rs_root(const rs_machine *machine);

/* The driver's timer, by which on_reminder is called: at that time or sooner. Nobody waits for it, so a machine that has no other
 * is in a deadlock. */
void rs_remind(rs_machine *machine, int64_t at_ns);
void rs_forget_reminder(rs_machine *machine);

/* What is called once when the tick ends, that is when the machine is about to ask the backend, and before what was written is handed
 * over; for whoever gathers what several strands want in one tick. It is called between strands: it may write and wake, and neither
 * wait nor raise. What it asks to be called later is called when the next tick ends. False: no memory. */
bool rs_call_at_tick_end(rs_machine *machine, void (*call)(uintptr_t data), uintptr_t data);
/* The data of all that are to be called, for the driver, who keeps it alive. */
void rs_tick_ends_each(const rs_machine *machine, void (*visit)(uintptr_t data));

/* Hands over to the backend now what has gathered for its next look. */
void rs_flush(rs_machine *machine);

/* Memory for the timers of one more strand or open scope. False: there is none. */
bool rs_reserve_timer(rs_machine *machine);

/* A strand in state NEW at the end of the run queue, inside that scope (NULL: none); NULL at the limit, or
 * without memory for it. */
rs_strand *rs_spawn(rs_machine *machine, rs_scope *scope, void *user);

/* The same, and it runs now; the running strand is at the head of the run queue. */
rs_strand *rs_spawn_first(rs_machine *machine, rs_scope *scope, void *user);

/* The same at the head of the run queue, beside whatever the running strand does. */
rs_strand *rs_spawn_next(rs_machine *machine, rs_scope *scope, void *user);

/* The same behind those to whom the running strand has given way, or sent something that they are to get at once. */
rs_strand *rs_spawn_behind_front(rs_machine *machine, rs_scope *scope, void *user);

/* The same for one that goes on with what the running strand has begun: before all but those that are woken. */
rs_strand *rs_spawn_in_place(rs_machine *machine, rs_scope *scope, void *user);

/* The running strand has ended: wakes those who join it and gives its slot back. */
void rs_finish(rs_machine *machine);

/* What the binding holds for the strand to raise: one less. */
void rs_take_interrupt(rs_strand *strand);

/* The ticket of the next park, for whoever needs it before. Where no park has taken it, it is made void. */
uint64_t rs_next_ticket(const rs_machine *machine);
void rs_void_ticket(rs_machine *machine, uint64_t ticket);

/* Another thread will send one RS_MESSAGE_WAKE; or will not after all. Until then the machine is not in a deadlock. */
void rs_expect_waker(rs_machine *machine);
void rs_drop_waker(rs_machine *machine);

uint64_t rs_park_begin(rs_machine *machine, rs_wait_kind wait, uint32_t flags, int64_t deadline_ns);
rs_decision rs_next(rs_machine *machine);
rs_wake_kind rs_park_end(rs_machine *machine, int64_t *result);

/* All that wait in the list, ahead of the others that are ready. */
void rs_list_wake_all_first(rs_machine *machine, rs_list *list);

/* True when the park with that ticket was still open and is now over. */
bool rs_wake(rs_machine *machine, rs_id id, uint64_t ticket, rs_wake_kind kind, int64_t result);

/* Puts the running strand behind all that are ready; follow with rs_next. */
void rs_yield(rs_machine *machine);
/* The same behind the strand that runs next, and ahead of all others. */
void rs_yield_to_first(rs_machine *machine);

/* The running strand has computed for more than some milliseconds, and a look may wake somebody. Costs a few nanoseconds. */
bool rs_turn_is_long(rs_machine *machine);

/* A switch that the engine did not order has displaced the running strand. It goes to the head of the run queue, so that it goes on
 * as soon as the strand that runs in its place parks. */
void rs_displaced(rs_machine *machine);

/* The driver holds something to raise in this strand: its park ends now if it may, else the next one is refused. */
void rs_interrupt(rs_machine *machine, rs_strand *strand);
/* The same for a strand that is to unwind at once: it runs next. If it was about to go on from a wait that takes nothing (a time,
 * its next turn, an evaluation, readiness), that wait ends by the interrupt instead. */
void rs_interrupt_first(rs_machine *machine, rs_strand *strand);
void rs_interrupt_park(rs_machine *machine, rs_strand *strand, rs_wake_kind kind);

/* Ends its park, shielded or not: in a deadlock nothing else will. */
void rs_break_park(rs_machine *machine, rs_strand *strand, rs_wake_kind kind);

/* What would end a park of the running strand before it begins; RS_WAKE_VALUE: nothing. (RS_WAKE_NO_MEMORY comes from
 * rs_op_start alone.) */
rs_wake_kind rs_refusal(rs_machine *machine, uint32_t flags);

/* For the running strand that finds a lock taken. If it is on its way out, for it has met its cancellation, it waits all the same,
 * shielded, for the holder may only have let others run: until the time that is returned; 0: not at all. All these waits together
 * take a second. */
int64_t rs_patience_begin(rs_machine *machine);
/* It waits no more. */
void rs_patience_end(rs_machine *machine);

/* The fiber scheduler's unblock, which carries no ticket. Returns true when it woke a strand. */
bool rs_unblock(rs_machine *machine, rs_strand *strand);
/* The same; the strand that is woken runs next. */
bool rs_unblock_first(rs_machine *machine, rs_strand *strand);

/* An unblock that came before its park, for the strand's next block-like one; and the end of it. */
void rs_permit(rs_strand *strand);
void rs_forget_permit(rs_machine *machine);

/* The same for one that comes late, from another thread: only for the wait of which it had seen the ticket. */
bool rs_unblock_late(rs_machine *machine, rs_id id, uint64_t ticket);

/* --- other threads --- */

void rs_send(rs_machine *machine, rs_message *message);
void rs_wake_up(rs_machine *machine);

#endif
