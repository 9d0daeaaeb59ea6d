/* fiber_chain: which fiber resumed which. A scope applies only to what runs inside its block: not while the fiber that opened it
 * is suspended, as the fiber of an Enumerator is between two items.
 *
 * Ruby has no method for that. CRuby keeps in each fiber's struct a pointer to that of the fiber that resumed it, and clears it
 * when the fiber yields (`prev` of rb_fiber_struct, cont.c). Its offset is found once, by experiment. A fiber that was entered by
 * Fiber#transfer has no resumer and counts as the strand's first. If the offset is not found, every fiber counts so, and an open
 * scope applies to all fibers of its strand.
 */
#include "cruby.h"
#include "words.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/auxv.h>

static size_t resumer_at = RSB_NOT_FOUND;

const void *rsb_outer_stack(const void *fiber_data) {
    return RS_LIKELY(resumer_at != RSB_NOT_FOUND) ? rsb_word_at(fiber_data, resumer_at) : NULL;
}

const void *rsb_stack(rs_machine *engine) {
    VALUE fiber = rb_fiber_current();
    if (RS_LIKELY(fiber == ((rsb_strand *)rs_strand_user(rs_running(engine)))->home)) return NULL;
    const void *data = RTYPEDDATA_GET_DATA(fiber);
    return rsb_outer_stack(data) ? data : NULL;
}

/* --- the first fiber of a thread --- */

/* So much below the top of a program's first stack there is nothing else, whatever its limit: the kernel maps no other memory, as
 * that of fibers, within its guard gap of 1 MB. https://docs.kernel.org/admin-guide/kernel-parameters.html (stack_guard_gap) */
#define FIRST_STACK_ALONE (1ul << 20)

/* The top, where the kernel has written the program's name: https://man7.org/linux/man-pages/man3/getauxval.3.html */
static bool is_on_first_stack(const char *place) {
    return getauxval(AT_EXECFN) - (uintptr_t)place < FIRST_STACK_ALONE;
}

/* To be asked for the bounds of the first stack, the C library reads a file. */
bool rsb_on_thread_stack(void) {
    if (is_on_first_stack(__builtin_frame_address(0))) return true;
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
    const void *outer;          /* the data of the fiber that resumes it */
    bool known;                 /* `resumer_at` has been chosen already */
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

/* Resumes that fiber; false if what it finds contradicts `resumer_at`. */
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

/* Runs on a thread of its own. Two fibers resume the same fiber, one after the other: the word must point to the first, be NULL
 * after the yield, point to the second, and be NULL again. */
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
