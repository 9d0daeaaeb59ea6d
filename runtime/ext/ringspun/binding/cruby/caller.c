#include "cruby.h"

#include <ruby/debug.h>
#include <string.h>

static bool is(VALUE string, const char *text) {
    return RB_TYPE_P(string, T_STRING) && (size_t)RSTRING_LEN(string) == strlen(text) &&
           memcmp(RSTRING_PTR(string), text, strlen(text)) == 0;
}

/* Frames between an override and its `super`: more than that are not looked at. */
#define FRAMES_MAX 64

static bool is_c(VALUE frame) { return is(rb_profile_frame_absolute_path(frame), "<cfunc>"); }

static bool is_of(VALUE frame, VALUE method) {
    VALUE name = rb_profile_frame_base_label(frame);
    return !NIL_P(name) && rb_str_equal(name, method);
}

/* Each override may call `super` from a block, and any method may call that block. A frame of a block has the name of its method
 * here. So the caller wanted is that of the outermost frame with the name of the hook, or the first of them that an IO called. */
RSB_APART static bool overrides_are_called_from_c(void) {
    VALUE frames[FRAMES_MAX];
    int lines[FRAMES_MAX];
    int count = rb_profile_frames(0, FRAMES_MAX, frames, lines);
    VALUE hook = rb_profile_frame_method_name(frames[0]);
    bool by_c = false;
    for (int i = 1; i + 1 < count; i++) {
        if (!is_of(frames[i], hook)) continue;
        VALUE caller = frames[i + 1];
        by_c = is_c(caller);
        if (by_c ? is(rb_profile_frame_classpath(caller), "IO") : is(rb_profile_frame_path(caller), "<internal:io>")) break;
    }
    return by_c;
}

static bool may_be_override(VALUE frame) {
    VALUE name = rb_profile_frame_base_label(frame);
    return !NIL_P(name) && RSTRING_LEN(name) > 3 && memcmp(RSTRING_PTR(name), "io_", 3) == 0;
}

/* Most often without the name of a method: to make one takes a deeper stack than anything else here, and a strand that waits
 * would keep a page for it. */
bool rsb_called_from_c(void) {
    VALUE frames[2];
    int lines[2];
    if (rb_profile_frames(0, 2, frames, lines) != 2) return false;
    return is_c(frames[1]) || (RS_UNLIKELY(may_be_override(frames[1])) && overrides_are_called_from_c());
}

bool rsb_called_by(const char *class_path, const char *method) {
    VALUE frames[FRAMES_MAX];
    int lines[FRAMES_MAX];
    /* First just two frames: most often there are no overrides, and the backtrace may be long. */
    for (int most = 2, seen = 1; seen < FRAMES_MAX; seen = most, most = FRAMES_MAX) {
        int count = rb_profile_frames(0, most, frames, lines);
        for (int i = seen; i < count; i++) {
            bool same_method = is(rb_profile_frame_method_name(frames[i]), method);
            bool same_class = is(rb_profile_frame_classpath(frames[i]), class_path);
            if (same_method || same_class) return same_method && same_class;
        }
    }
    return false;
}

/* CRuby has unwound the stack by then (thread_start_func_2 in thread.c, rb_ec_fiber_scheduler_finalize in eval.c). Blocks have the
 * name of their method as a base label, and methods in C have none. */
bool rsb_called_by_nobody(const char *method) {
    VALUE frames[FRAMES_MAX];
    int lines[FRAMES_MAX];
    int count = rb_profile_frames(0, FRAMES_MAX, frames, lines);
    if (count == FRAMES_MAX) return false;
    VALUE outermost = count > 0 ? frames[count - 1] : Qnil;
    return NIL_P(outermost) || is(rb_profile_frame_base_label(outermost), method) || is(rb_profile_frame_method_name(outermost), method);
}

bool rsb_called_from_io_close(void) {
    return rsb_called_by("IO", "close") || rsb_called_by("IO", "close_read") || rsb_called_by("IO", "close_write");
}

/* While a hook writes the buffer of an IO, others may add to that buffer, and CRuby would take what they add for written. If
 * CRuby waits by itself, it looks at the buffer again afterwards (io_fflush in io.c). syswrite never does: it raises instead of
 * waiting (rb_io_syswrite). */
bool rsb_waits_itself(VALUE io) { return !(rb_io_mode(io) & FMODE_SYNC) && !rsb_called_by("IO", "syswrite"); }

/* The frame that called the hook, if no override is between; nil: there is none. */
static VALUE direct_caller(void) {
    VALUE frames[2];
    int lines[2];
    return rb_profile_frames(0, 2, frames, lines) == 2 ? frames[1] : Qnil;
}

bool rsb_called_for_system_call(void) {
    static const char *const classes[] = {"File", "IO", "Dir", "Kernel", "FileTest", "File::Stat", "Process"};
    VALUE caller = direct_caller();
    if (NIL_P(caller)) return false;
    VALUE class_path = rb_profile_frame_classpath(caller);
    for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++) {
        if (is(class_path, classes[i])) return true;
    }
    return false;
}

bool rsb_called_from_copy(void) {
    VALUE caller = direct_caller();
    return !NIL_P(caller) && is(rb_profile_frame_classpath(caller), "IO") &&
           is(rb_profile_frame_method_name(caller), "copy_stream");
}
