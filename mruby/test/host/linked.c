/* The gem linked by hand into a host program, as where mruby comes ready built: its C, and its mrblib as bytecode. Runs the files
 * that it is given. */
#include <mruby.h>
#include <mruby/compile.h>
#include <mruby/irep.h>

#include <stdbool.h>
#include <stdio.h>

void mrb_mruby_ringspun_gem_init(mrb_state *mrb);
void mrb_mruby_ringspun_gem_final(mrb_state *mrb);

extern const uint8_t ringspun_mrblib[];

static bool has_failed(mrb_state *mrb) {
    if (!mrb->exc) return false;
    mrb_print_error(mrb);
    return true;
}

static bool run(mrb_state *mrb, const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) return false;
    mrb_ccontext *context = mrb_ccontext_new(mrb);
    mrb_ccontext_filename(mrb, context, path);
    mrb_load_file_cxt(mrb, file, context);
    mrb_ccontext_free(mrb, context);
    fclose(file);
    return !has_failed(mrb);
}

int main(int argc, char **argv) {
    mrb_state *mrb = mrb_open();
    if (!mrb) return 1;
    mrb_mruby_ringspun_gem_init(mrb);
    mrb_load_irep(mrb, ringspun_mrblib);
    bool well = !has_failed(mrb);
    for (int i = 1; i < argc && well; i++) well = run(mrb, argv[i]);
    mrb_mruby_ringspun_gem_final(mrb);
    mrb_close(mrb);
    return well ? 0 : 1;
}
