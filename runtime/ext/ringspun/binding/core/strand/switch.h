/* switch: how the running strand waits, and lets others run. Called by the machine's thread, in a strand. */
#ifndef RINGSPUN_BINDING_CORE_SWITCH_H
#define RINGSPUN_BINDING_CORE_SWITCH_H

#include "list_kind.h"

rs_wake_kind rsb_wait(rsb_machine *machine, rs_wait_kind wait, uint32_t flags, int64_t deadline_ns, rs_list *list,
                      const rsb_list_kind *kind, int64_t *result);
/* The same in two steps, for a caller that must clean up after the wait: only rsb_check_stack raises. */
void rsb_check_stack(void);
rs_wake_kind rsb_wait_checked(rsb_machine *machine, rs_wait_kind wait, uint32_t flags, int64_t deadline_ns, rs_list *list,
                              const rsb_list_kind *kind, int64_t *result);
/* The wait of rs_await_begin, after which rs_await_end says what to do. */
rs_wake_kind rsb_await(rsb_machine *machine, int64_t deadline_ns, rs_list *list);
void rsb_yield(rsb_machine *machine);
/* The same where a turn ends (engine/core/turn.h), which is no wait: a strand that has met its cancellation goes on afterwards. */
void rsb_end_turn(rsb_machine *machine);
/* Waits for a lock once more, after a wait that was cancelled: see rs_patience_begin. */
rs_wake_kind rsb_wait_on_the_way_out(rsb_machine *machine, rs_wait_kind wait, int64_t deadline_ns, rs_list *list,
                                     const rsb_list_kind *kind);
/* The same as a wait that Evaluation#resume! may end; the strand runs no sooner for that. */
void rsb_yield_resumable(rsb_machine *machine);
/* A yield that a cancelled scope does not refuse. It raises no cancellation, only what was raised for the strand itself, after
 * the others have had their turn. */
void rsb_give_way(rsb_machine *machine);
/* Ends that strand's wait by an unblock and runs it at once; when it waits again the caller goes on, ahead of all others. Raises as
 * rsb_give_way does. If the unblock ends no wait, nothing else happens. */
void rsb_resume_first(rsb_machine *machine, rs_strand *strand);

/* After rs_spawn_first: runs that strand until it waits. */
void rsb_run_first(rsb_machine *machine, rs_strand *caller, rs_strand *first);

/* No errno, for a connection may have timed out by itself (ETIMEDOUT). */
#define RSB_TIME_IS_UP INT64_MIN

/* How a strand waits for its op. Zeroed: without a deadline, and it keeps no object alive. */
typedef struct {
    VALUE keep;                 /* what the kernel may touch */
    VALUE io;                   /* instead of `keep`: the object whose descriptor it is. An op on a stock IO goes to the kernel
                                 * at the next look, and ends with -EBADF if the IO was closed before that */
    uint32_t flags;             /* RS_PARK_ */
    bool takes_bytes_first;     /* its caller takes what was read before it raises what came as well (rsb_raise_pending) */
    bool answers_close;         /* the answer is -EBADF when the descriptor is closed meanwhile; else that raises */
    int64_t deadline_ns;        /* the answer is RSB_TIME_IS_UP when it passes */
    void (*take)(const rs_op *op, void *argument); /* sees the completed op before its memory is freed; must not raise */
    void *argument;
    void *answer;               /* gets a copy of the first `answer_size` bytes of what the op owns */
    size_t answer_size;
} rsb_op_wait;

/* Parks until the request has been done, after a try in vain (rs_try). Raises what cancels or interrupts the strand. */
int64_t rsb_perform(rsb_machine *machine, rs_request *request, const rsb_op_wait *wait);
/* Counts one more op of this turn; the others run if the turn ends with it (engine/core/turn.h). */
static inline void rsb_after_inline(rsb_machine *machine) {
    if (RS_UNLIKELY(rs_turn_ends(machine->engine))) rsb_end_turn(machine);
}
static inline void rsb_before_look(rsb_machine *machine) {
    if (RS_UNLIKELY(rs_turn_ends_at_look(machine->engine))) rsb_end_turn(machine);
}
static inline void rsb_before_lock(rsb_machine *machine) {
    if (RS_UNLIKELY(rs_turn_ends_at_lock(machine->engine))) rsb_end_turn(machine);
}

#endif
