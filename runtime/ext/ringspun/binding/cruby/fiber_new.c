/* fiber_new: fibers that run a function of ours, with the machine of their thread.
 *
 * Not by rb_fiber_new: what it wraps the function in remembers the Ruby frame from which it was called, as the place of $~ and
 * $_, and CRuby looks there again when the function makes a fiber in its turn, though the frame may be long gone by then, with
 * the stack that it was on. So the wrapping is done once, on a thread that has no Ruby frame, and used for every fiber.
 */
#include "cruby.h"

static VALUE fiber_class, no_storage;
static ID id_new;

static VALUE wrap(void *main) { return rb_proc_new(*(rb_block_call_func_t *)main, Qnil); }

VALUE rsb_fiber_body(rb_block_call_func_t main) {
    VALUE body = rb_funcall(rb_thread_create(wrap, &main), rb_intern("value"), 0);
    rb_gc_register_mark_object(body);
    return body;
}

VALUE rsb_fiber_new(VALUE body) { return rb_funcall_with_block_kw(fiber_class, id_new, 1, &no_storage, body, RB_PASS_KEYWORDS); }

void rsb_init_fiber_new(void) {
    id_new = rb_intern("new");
    fiber_class = rb_path2class("Fiber");
    rb_gc_register_mark_object(fiber_class);
    no_storage = rb_hash_new();
    rb_gc_register_mark_object(no_storage);
    rb_hash_aset(no_storage, ID2SYM(rb_intern("storage")), Qnil);
    rb_obj_freeze(no_storage);
}
