/* strand: strands as objects; how they wait, and what runs meanwhile; what a wait raises; what others send to a strand. This is
 * what other rooms may use of it; what only core uses is in inner.h.
 *
 * Each file of this room calls only those before it here, and those of machine/:
 *   raise strand pending idle switch outside scheduled mailbox
 * What one of them needs of a later one, that one registers: for the engine (rsb_driver), or for strands that end
 * (rsb_supervision). */
#ifndef RINGSPUN_BINDING_CORE_STRAND_H
#define RINGSPUN_BINDING_CORE_STRAND_H

#include "binding/core/machine/machine.h"
#include "list_kind.h"
#include "outside.h"
#include "raise.h"
#include "scheduled.h"
#include "switch.h"

extern VALUE rsb_cStrand;

/* What strands without a block do. A room above puts it in when the extension is loaded. */
typedef struct rsb_work {
    /* True: it was killed, and `state` is that of rb_protect. */
    bool (*run)(rsb_machine *machine, rsb_strand *strand, int *state);
    /* No stack could be made for the strand: its work ends with that error. */
    void (*fail)(rsb_machine *machine, rs_strand *strand, VALUE error);
    /* The strand is about to wait and has a batch: another strand takes the rest of the batch. */
    void (*hand_over)(rsb_machine *machine, rs_strand *strand);
} rsb_work;

extern rsb_work rsb_without_block;

/* --- strand.c --- */

/* Before a strand is spun: since the last one the program may have loaded a gem that must know of strands. */
void rsb_notice_features(rsb_machine *machine);
rsb_strand *rsb_strand_get(VALUE object);
/* The same for an object that is known to be a Strand. */
static inline rsb_strand *rsb_strand_data(VALUE object) { return RTYPEDDATA_GET_DATA(object); }
/* A Strand object that no program has seen, for a strand that begins runs of concurrent procs. */
VALUE rsb_strand_handle(rsb_machine *machine);
NORETURN(void rsb_fail_strand_limit(rsb_machine *machine));
/* A kill has ended the strand. True for a Thread#kill: the fiber must end too. */
bool rsb_end_killed(rsb_strand *strand);

bool rsb_is_alive(rsb_strand *strand);
bool rsb_is_strand(VALUE object);

/* For the object that a strand waits for in the hook `block`, which may have no class: the locks of `require` have none. */
bool rsb_is_hidden(VALUE object);
bool rsb_is_thread(VALUE object);
/* What a strand waits for that has made the request. */
VALUE rsb_request_in_words(const rs_request *request);

/* --- mailbox.c --- */

/* From any thread: rsb_interrupt_hook for the scheduler hook that the strand is in now. Nothing happens if it has left that hook
 * when the message comes. */
void rsb_send_hook_interrupt(rsb_machine *machine, rsb_strand *strand, VALUE exception);
/* The same for an object that stands for the call of a hook; it has `alive?` and `raise`. */
void rsb_send_call_interrupt(rsb_machine *machine, VALUE call, VALUE exception);

/* --- idle.c --- */

extern ID rsb_id_only_looks; /* an instance variable of threads that will never wake a strand */

void rsb_init_strand(void);
/* When all parts are registered: a handle with more would take twice the memory. */
void rsb_check_strand_size(void);
void rsb_init_idle(void);
void rsb_init_switch(void);
void rsb_init_mailbox(void);

#endif
