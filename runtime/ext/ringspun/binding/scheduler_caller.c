/* scheduler_caller: who has called a hook. CRuby calls the same one for several things, and does not say for which. */
#include "scheduler.h"

#include <ruby/debug.h>
#include <string.h>

static bool is(VALUE string, const char *text) {
    return RB_TYPE_P(string, T_STRING) && (size_t)RSTRING_LEN(string) == strlen(text) && memcmp(RSTRING_PTR(string), text, strlen(text)) == 0;
}

/* Not its name: to make that takes a deeper stack than anything else here, and a strand that waits would keep a page for it. */
bool rsb_called_from_c(void) {
    VALUE frames[2];
    int lines[2];
    return rb_profile_frames(0, 2, frames, lines) == 2 && is(rb_profile_frame_absolute_path(frames[1]), "<cfunc>");
}

/* As far as the way of an override to its `super` may go. */
#define FRAMES_MAX 64

bool rsb_called_by(const char *class_path, const char *method) {
    VALUE frames[FRAMES_MAX];
    int lines[FRAMES_MAX];
    /* Most often there are no overrides, and the stack may be deep. */
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
