/* fiber_chain: which fiber resumed which, because a scope governs what runs inside its block and nothing else: while the
 * fiber that opened it is suspended in the middle, as the fiber of an Enumerator is between two items, it has no say.
 *
 * Ruby has no call that tells. A fiber's data holds a pointer to that of the fiber that resumed it, and goes back to when it
 * yields; where, is found once, by trying. A fiber that was switched to by Fiber#transfer was resumed by none and counts as
 * the strand's first. Should the place not be found, all of them do, and an open scope governs all of its strand.
 */
#include "cruby.h"
#include "words.h"

#include <malloc.h>
#include <pthread.h>

static size_t resumer_at = RSB_NOT_FOUND;

const void *rsb_outer_stack(const void *fiber_data) {
    return RS_LIKELY(resumer_at != RSB_NOT_FOUND) ? rsb_word_at(fiber_data, resumer_at) : NULL;
}

const void *rsb_stack(rs_machine *engine) {
    VALUE fiber = rb_fiber_current();
    if (RS_LIKELY(fiber == ((rsb_strand *)rs_running(engine)->user)->home)) return NULL;
    const void *data = RTYPEDDATA_GET_DATA(fiber);
    return rsb_outer_stack(data) ? data : NULL;
}

/* --- the first fiber of a thread --- */

bool rsb_on_thread_stack(void) {
    pthread_attr_t attributes;
    void *lowest = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
    pthread_attr_getstack(&attributes, &lowest, &size);
    pthread_attr_destroy(&attributes);
    return (size_t)((const char *)__builtin_frame_address(0) - (const char *)lowest) < size;
}

/* --- finding it --- */

typedef struct {
    const void *outer;          /* who resumes it */
    bool known;                 /* the candidate has been chosen already */
    bool found;
} trial;

static VALUE look(RB_BLOCK_CALL_FUNC_ARGLIST(first, argument)) {
    trial *one = (trial *)argument;
    const void *data = RTYPEDDATA_GET_DATA(rb_fiber_current());
    size_t size = malloc_usable_size((void *)data);
    for (int round = 0; round < 2; round++) {
        size_t place = RSB_NOT_FOUND, places = 0;
        for (size_t offset = 0; offset + sizeof(void *) <= size; offset += sizeof(void *)) {
            if (rsb_word_at(data, offset) != one->outer) continue;
            place = offset;
            places++;
        }
        one->found = places == 1 && (!one->known || place == resumer_at);
        if (!one->known) resumer_at = place;
        if (!one->found) break;
        one->known = true;
        rb_fiber_yield(0, NULL);
    }
    return Qnil;
}

/* Resumes that fiber; false when what it saw contradicts what is known. */
static bool resume_and_ask(VALUE fiber, trial *one) {
    VALUE here = rb_fiber_current();
    one->outer = RTYPEDDATA_GET_DATA(here);
    one->found = false;
    rb_fiber_resume(fiber, 0, NULL);
    return one->found && rsb_word_at(RTYPEDDATA_GET_DATA(fiber), resumer_at) == NULL;
}

static VALUE resume_from_inside(RB_BLOCK_CALL_FUNC_ARGLIST(fiber, argument)) {
    return resume_and_ask(fiber, (trial *)argument) ? Qtrue : Qfalse;
}

/* Runs on a thread made for it. One fiber is resumed twice, by different fibers: the word must name the one, then nobody,
 * then the other, then nobody. */
static VALUE find_resumer(void *unused) {
    trial one = {0};
    VALUE fiber = rb_fiber_new(look, (VALUE)&one);
    VALUE other = rb_fiber_new(resume_from_inside, (VALUE)&one);
    if (RTYPEDDATA_EMBEDDED_P(fiber)) return Qnil;
    bool sure = resume_and_ask(fiber, &one) && RTEST(rb_fiber_resume(other, 1, &fiber));
    if (!sure || rsb_word_at(RTYPEDDATA_GET_DATA(rb_fiber_current()), resumer_at)) resumer_at = RSB_NOT_FOUND;
    return Qnil;
}

void rsb_init_fiber_chain(void) {
    rb_funcall(rb_thread_create(find_resumer, NULL), rb_intern("join"), 0);
}
