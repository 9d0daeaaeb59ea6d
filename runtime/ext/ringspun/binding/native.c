#include "binding.h"

#include <pthread.h>

VALUE rsb_mRingspun;
uint32_t rsb_forks;

static void count_fork(void) { rsb_forks++; }

__attribute__((visibility("default"))) void Init_native(void);

void Init_native(void) {
    rsb_mRingspun = rb_define_module("Ringspun");
    rsb_init_errors();
    rsb_init_machine();
    rsb_init_schedule();
    rsb_init_strand();
    rsb_init_scope();
    rsb_init_switch();
    rsb_init_fiber_reset();
    rsb_init_fiber_chain();
    rsb_init_sync();
    rsb_init_queue();
    rsb_init_io();
    rsb_init_socket();
    rsb_init_simulation();
    rsb_init_api();
    pthread_atfork(NULL, NULL, count_fork);
}
