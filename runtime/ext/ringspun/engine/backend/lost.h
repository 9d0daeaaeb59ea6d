/* lost: a machine whose kernel refuses it the call by which it waits, for good: a sandbox may do so at any time. What must wait for
 * the kernel ends with RS_LOST, and so does whatever else asks for that from then on; tries, workers, times and other threads'
 * wakes go on. Owned by the machine's thread.
 */
#ifndef RINGSPUN_LOST_H
#define RINGSPUN_LOST_H

#include "ops/op_life.h"

/* An answer (-errno) of that call which no later one will change. */
bool rs_is_lost(int64_t answer);

/* Says in the machine's refusal_text what was answered. */
void rs_note_lost(rs_machine *machine, const char *call, int64_t answer);

/* What of the ops no kernel is needed for. */
bool rs_op_does_without(rs_machine *machine, rs_op *op);

/* Sleeps so long (RS_NEVER: without end), or until somebody writes to that eventfd. */
void rs_sleep_without(int wake, int64_t delay_ns);

#endif
