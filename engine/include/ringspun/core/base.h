/* base: what every module of the engine shares. Owns nothing; may be used from any thread.
 *
 * Names: a strand is named by a 64-bit id (generation above, index below), never by pointer, so a name that outlives its
 * strand differs from that of a fresh one. Times are int64_t nanoseconds on the machine's own clock.
 */
#ifndef RINGSPUN_BASE_H
#define RINGSPUN_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t rs_id;

#define RS_NO_ID ((rs_id)0)
#define RS_NO_INDEX UINT32_MAX
#define RS_NEVER INT64_MAX

static inline rs_id rs_id_make(uint32_t index, uint32_t generation) {
    return ((rs_id)generation << 32) | index;
}
static inline uint32_t rs_id_index(rs_id id) { return (uint32_t)id; }
static inline uint32_t rs_id_generation(rs_id id) { return (uint32_t)(id >> 32); }

#define RS_LIKELY(x) __builtin_expect(!!(x), 1)
#define RS_UNLIKELY(x) __builtin_expect(!!(x), 0)

_Noreturn void rs_panic(const char *file, int line, const char *what);

/* Stays in release builds, and ends the process: only where going on would corrupt memory, or somebody else's data. Nothing that
 * a peer sends, a user passes or a kernel answers may reach it: those are errors, for the caller. */
#define RS_ASSERT(x) ((void)(RS_LIKELY(x) || (rs_panic(__FILE__, __LINE__, #x), 0)))

/* For all others. Only builds for tests and with a sanitizer compile it (-DRS_CHECKED). It is not evaluated otherwise, so it has
 * no effect of its own. */
#ifdef RS_CHECKED
#define RS_CHECK(x) RS_ASSERT(x)
#else
#define RS_CHECK(x) ((void)sizeof(!(x)))
#endif

/* What an op, or what it is for, ends with where the engine itself had no memory for it; the kernel has its ENOMEM. No errno. */
#define RS_NO_MEMORY (-4096)

/* And where the kernel will never say how it ends (lost.h). */
#define RS_LOST (-4097)

/* All memory of the engine. NULL: there is none, and what was there stays. Callers tell it to whoever asked, or end what asked for
 * it with RS_NO_MEMORY; what cannot be told is reserved before. */
void *rs_try_alloc(size_t size);
void *rs_try_alloc_uncleared(size_t size);
void *rs_try_realloc(void *old, size_t size);

/* For tests: the number of this thread's calls of these that succeed, and of those after them that are refused. A negative first
 * number: all succeed for which there is memory, as again after the last refusal. */
extern _Thread_local int64_t rs_tries_left;
extern _Thread_local uint64_t rs_refusals_left;

int64_t rs_clock_ns(void);

/* deadline = now + delay, saturating: an absurd delay means never, not the past. */
static inline int64_t rs_deadline_after(int64_t now_ns, int64_t delay_ns) {
    RS_CHECK(now_ns >= 0);
    if (delay_ns <= 0) return now_ns;
    if (delay_ns >= RS_NEVER - now_ns) return RS_NEVER;
    return now_ns + delay_ns;
}

#endif
