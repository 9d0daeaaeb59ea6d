#include "core/machine.h"

/* Inline successes, and the bytes that they move, before a strand lets others run: who moves more runs ahead of whom it is for,
 * whose bytes have left the processor's cache by then. More with a lock, and of writes to files: see docs/decisions/03. */
#define INLINE_STREAK_MAX 8
#define INLINE_BYTES_MAX 65536
#define LOCKED_STREAK_MAX 512
#define FILE_STREAK_MAX 1024
#define FILE_STREAK_NS 100000

static bool is_enough(rs_turn *turn) {
    RS_CHECK(turn->ops > 0);
    bool quiet = turn->quiet_writes >= turn->ops - 1;
    if (!quiet || turn->ops > FILE_STREAK_MAX) return true;
    if (turn->timed_from_ns == 0) turn->timed_from_ns = rs_clock_ns();
    return turn->ops % 8 == 0 && rs_clock_ns() - turn->timed_from_ns > FILE_STREAK_NS;
}

/* It has computed for long, and keeps others waiting that may be due by time. */
static bool computes_long(rs_machine *machine) { return RS_UNLIKELY(rs_turn_is_long(machine)); }

/* Of those ops whose turn did not end yet, so many to one that looks at the clock; the first is one that does. */
#define INLINE_PER_CLOCK 4

bool rs_turn_ends(rs_machine *machine) {
    rs_turn *turn = &machine->turn;
    RS_CHECK(machine->running != RS_NO_INDEX);
    if (++turn->ops == 1) {
        turn->bytes = turn->quiet_writes = 0;
        turn->timed_from_ns = 0;
    }
    if (turn->ops % INLINE_PER_CLOCK == 1 && computes_long(machine)) return true;
    if (RS_LIKELY(turn->ops <= INLINE_STREAK_MAX && turn->bytes < INLINE_BYTES_MAX)) return false;
    if (!turn->over && !is_enough(turn)) return false;
    turn->over = true;
    RS_CHECK(turn->quiet_writes <= turn->ops);
    return rs_runs(machine)->locks == 0 || turn->ops > LOCKED_STREAK_MAX;
}

rs_wake_kind rs_turn_refusal(rs_machine *machine) {
    rs_wake_kind kind = rs_refusal(machine, 0);
    return RS_UNLIKELY(kind == RS_WAKE_CANCEL) && !rs_turn_meets_cancellation(machine) ? RS_WAKE_VALUE : kind;
}

bool rs_turn_ends_at_look(rs_machine *machine) { return computes_long(machine) || rs_turn_ends(machine); }

bool rs_turn_ends_at_lock(const rs_machine *machine) {
    RS_CHECK(!machine->turn.over || machine->turn.ops > 0);
    return RS_UNLIKELY(machine->turn.over) && rs_runs(machine)->locks == 0;
}

rs_turn rs_turn_pause(rs_machine *machine) {
    RS_CHECK(machine->running != RS_NO_INDEX);
    rs_turn paused = machine->turn;
    rs_turn_end(&machine->turn);
    return paused;
}

void rs_turn_go_on(rs_machine *machine, const rs_turn *paused) {
    RS_CHECK(machine->running != RS_NO_INDEX && (paused->ops > 0 || !paused->over));
    rs_turn *turn = &machine->turn;
    turn->ops += paused->ops;
    turn->over |= paused->over;
    turn->bytes = paused->ops > 0 ? paused->bytes : 0;
    turn->quiet_writes = paused->ops > 0 ? paused->quiet_writes : 0;
}
