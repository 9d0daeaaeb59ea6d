/* open: what makes descriptors, as streams: pipes, pairs of sockets and files; and names of files. */
#include "io.h"

#include <mruby/string.h>
#include <fcntl.h>
#include <string.h>

static mrb_value answer_pair(mrb_state *mrb, rsm_machine *machine, const rs_request *request, int64_t result) {
    const int *pair = request->owned;
    mrb_value first = rsm_stream_new(mrb, machine), second = rsm_stream_new(mrb, machine), both = mrb_assoc_new(mrb, first, second);
    rsm_stream_take(machine, first, pair[0]);
    rsm_stream_take(machine, second, pair[1]);
    return both;
}

static mrb_value machine_pipe(mrb_state *mrb, mrb_value self) {
    rsm_machine *machine = rsm_machine_for_op(mrb);
    int *pair = rsm_owned(mrb, 2 * sizeof(int));
    rs_request request = {.kind = RS_OP_PIPE, .fd = -1, .owned = pair, .pipe.pair = pair};
    return rsm_perform(mrb, machine, &request, answer_pair);
}

static mrb_value machine_socketpair(mrb_state *mrb, mrb_value self) {
    rsm_machine *machine = rsm_machine_for_op(mrb);
    int *pair = rsm_owned(mrb, 2 * sizeof(int));
    rs_request request = {.kind = RS_OP_SOCKETPAIR, .fd = -1, .owned = pair,
                          .socket = {.family = AF_UNIX, .type = SOCK_STREAM, .pair = pair}};
    return rsm_perform(mrb, machine, &request, answer_pair);
}

static const struct {
    const char *name;
    uint32_t flags;
} modes[] = {{"r", O_RDONLY}, {"r+", O_RDWR}, {"w", O_WRONLY | O_CREAT | O_TRUNC}, {"w+", O_RDWR | O_CREAT | O_TRUNC},
             {"a", O_WRONLY | O_CREAT | O_APPEND}, {"a+", O_RDWR | O_CREAT | O_APPEND}, {"wx", O_WRONLY | O_CREAT | O_EXCL}};

static uint32_t open_flags(mrb_state *mrb, mrb_value mode) {
    rsm_check_string(mrb, mode, "open: the mode");
    size_t len = (size_t)RSTRING_LEN(mode);
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (len == strlen(modes[i].name) && memcmp(RSTRING_PTR(mode), modes[i].name, len) == 0) return modes[i].flags;
    }
    mrb_raisef(mrb, rsm_class(mrb, "UsageError"), "open: unknown mode %v; use r, r+, w, w+, a, a+ or wx", mrb_inspect(mrb, mode));
    return 0;
}

static char *path_copy(mrb_state *mrb, mrb_value path) {
    size_t len = (size_t)RSTRING_LEN(path);
    char *copy = rsm_owned(mrb, len + 1);
    memcpy(copy, RSTRING_PTR(path), len);
    copy[len] = 0;
    return copy;
}

static void check_path(mrb_state *mrb, mrb_value path, const char *what) {
    rsm_check_string(mrb, path, what);
    if (memchr(RSTRING_PTR(path), 0, (size_t)RSTRING_LEN(path))) {
        mrb_raisef(mrb, rsm_class(mrb, "UsageError"), "%s: expected no NUL in it, got %v", what, mrb_inspect(mrb, path));
    }
}

static mrb_value machine_open(mrb_state *mrb, mrb_value self) {
    const mrb_value *arguments = mrb_get_argv(mrb);
    check_path(mrb, arguments[0], "open: the path");
    rs_open_request open = {.flags = open_flags(mrb, arguments[1]),
                            .mode = (uint32_t)rsm_int_arg(mrb, arguments[2], 0, 07777, "open: the permissions")};
    rsm_machine *machine = rsm_machine_for_op(mrb);
    char *path = path_copy(mrb, arguments[0]);
    open.path = path;
    return rsm_perform(mrb, machine, &(rs_request){.kind = RS_OP_OPEN, .fd = -1, .owned = path, .open = open}, rsm_answer_stream);
}

/* Removes the name of a file. */
static mrb_value machine_unlink(mrb_state *mrb, mrb_value self) {
    mrb_value name = mrb_get_arg1(mrb);
    check_path(mrb, name, "unlink: the path");
    rsm_machine *machine = rsm_machine_for_op(mrb);
    char *path = path_copy(mrb, name);
    return rsm_perform(mrb, machine, &(rs_request){.kind = RS_OP_UNLINK, .fd = -1, .owned = path, .path.path = path}, rsm_answer_nil);
}

void rsm_init_open(mrb_state *mrb, struct RClass *module, struct RClass *machine) {
    mrb_define_method(mrb, machine, "pipe", machine_pipe, MRB_ARGS_NONE());
    mrb_define_method(mrb, machine, "socketpair", machine_socketpair, MRB_ARGS_NONE());
    mrb_define_method(mrb, machine, "unlink", machine_unlink, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, machine, "__open", machine_open, MRB_ARGS_REQ(3));
}
