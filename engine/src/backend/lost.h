/* lost: a machine whose kernel refuses it the call by which it waits, for good: a sandbox may do so at any time. What must wait for
 * the kernel ends with RS_LOST, and so does whatever else asks for that from then on; tries, workers, times and other threads'
 * wakes go on. Owned by the machine's thread.
 */
#ifndef RINGSPUN_LOST_H
#define RINGSPUN_LOST_H

#include "ops/op_life.h"

/* An answer (-errno) of that call which no later one will change. */
bool rs_is_lost(int64_t answer);

/* Answers in a row that mean later, or that a signal came. Real ones end; a sandbox may answer so for ever. */
typedef struct {
    uint32_t count;
    int64_t since_ns;           /* the first that meant later */
    int64_t at_ns;              /* the last */
} rs_fruitless;

/* The same for an answer that may be one of these: also when there has been no other for long. */
bool rs_is_lost_by_now(rs_fruitless *fruitless, int64_t answer);

/* After an answer of the call that is to wait: when it is one of many, waits for a moment in another way, so that the thread does not
 * spin. `wake` and `delay_ns` are as below. */
void rs_nap_if_fruitless(rs_fruitless *fruitless, int wake, int64_t delay_ns);

/* Says in the machine's refusal_text what was answered. */
void rs_note_lost(rs_machine *machine, const char *call, int64_t answer);

/* What of the ops no kernel is needed for. */
bool rs_op_does_without(rs_machine *machine, rs_op *op);

/* Sleeps so long (RS_NEVER: without end), or until somebody rings (kernel/wake.h). */
void rs_sleep_without(int wake, int64_t delay_ns);

#endif
