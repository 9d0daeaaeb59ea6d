#include "ops/untried.h"

/* One call for n in place of n calls saves each of them that part of a call: (n - 1) / n. */
uint32_t rs_untried_least(int64_t call_ns) {
    RS_CHECK(call_ns >= 0);
    int64_t left_ns = call_ns - RS_UNTRIED_EXTRA_NS;
    if (left_ns <= 0) return RS_UNTRIED_NEVER;
    int64_t least = call_ns / left_ns + (call_ns % left_ns != 0);
    return least > RS_UNTRIED_FEW ? (uint32_t)least : RS_UNTRIED_FEW;
}

rs_untried rs_untried_begin(int64_t (*measure)(void)) {
    RS_CHECK(measure != NULL);
    return (rs_untried){.measure = measure, .least = RS_UNTRIED_FEW, .before = RS_UNTRIED_BEFORE};
}

rs_untried rs_untried_always(void) { return (rs_untried){.least = 0}; }

static void learn(rs_untried *untried) {
    untried->least = rs_untried_least(untried->measure());
    untried->measure = NULL;
}

static void begin_tick(rs_untried *untried, uint64_t tick) {
    if (untried->given > 0 && untried->given < untried->least) untried->rest = RS_UNTRIED_REST;
    untried->given = 0;
    untried->tick = tick;
}

bool rs_untried_wants(rs_untried *untried, uint64_t tick, uint32_t ready) {
    RS_CHECK(tick >= untried->tick);
    if (tick != untried->tick) begin_tick(untried, tick);
    if (rs_untried_is_out(untried, ready)) return false;
    if (RS_UNLIKELY(untried->measure != NULL)) {
        if (--untried->before == 0) learn(untried);
        return false;
    }
    if (RS_UNLIKELY(untried->rest > 0)) {
        untried->rest--;
        return false;
    }
    return true;
}
