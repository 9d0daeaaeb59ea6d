/* fiber_new: makes fibers that run a C function.
 *
 * Not by rb_fiber_new: it makes a Proc of the function, and that Proc keeps a pointer to the Ruby frame of its caller, as the
 * place of $~ and $_ (`svar_lep` of vm_ifunc, vm.c). CRuby follows that pointer when the function makes a fiber itself, and the
 * frame and its stack may be gone by then. So the Proc is made once, on a thread that has no Ruby frame, and used for all fibers.
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
