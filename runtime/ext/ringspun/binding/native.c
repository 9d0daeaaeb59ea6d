/* native: loads the extension, and defines its classes. */
#include "binding/procs/procs.h"
#include "binding/scheduler/scheduler.h"
#include "binding/stream/stream.h"
#include "binding/sync/sync.h"

#include <ruby/ractor.h>

/* Names of which functions make symbols at their first call. Two ractors that make one at the same time may get two different
 * symbols (seen on CRuby 3.3 and 3.4), so all are made before there is a second ractor. */
static const char *const symbols[] = {
    "accessed_at", "blockSpecial", "block_size", "busy_polls", "bytes_spliced", "cancel", "cancels", "changed_at",
    "characterSpecial", "complete", "concluded", "cpu", "created_at", "directory", "done", "entries", "epoll", "fault",
    "fiber_machine_stack_size", "fiber_vm_stack_size", "fifo", "file", "file_writes_inline", "finish", "idle", "idle_fibers",
    "inline", "inode", "link", "links", "look_ups_waiting", "modified_at", "new", "op", "ops_in_flight", "ops_inline",
    "ops_offloaded", "ops_started", "park", "parked", "polls", "readable", "ready", "resumed", "resumes", "run", "run_queue",
    "run_queue_max", "running", "sim", "sleeps", "socket", "spawn", "sqpoll", "strands_spawned", "stream_buffers", "system_calls",
    "timer", "timers", "timers_fired", "to_sockaddr", "traced_call", "unknown", "uring", "user", "wake", "wake dropped", "wakes",
    "wakes_dropped", "writable",
    /* stream/tls.c */
    "@rbuffer", "EarlyBytesError", "Socket", "TLSSessionError", "TruncatedStreamError", "flush", "for_fd", "to_io",
};

__attribute__((visibility("default"))) void Init_native(void);

void Init_native(void) {
    /* Ractors run these functions in parallel, without a common GVL. So all global variables of the binding are set here, before
     * there is a second ractor, and only read later. */
    rb_ext_ractor_safe(true);
    rsb_init_errors();
    rsb_init_values();
    rsb_init_pinned();
    rsb_init_machine();
    rsb_init_open();
    rsb_init_seconds();
    rsb_init_time();
    rsb_init_mailbox();
    rsb_init_strand();
    rsb_init_join();
    rsb_init_scheduled();
    rsb_init_outside();
    rsb_init_spin();
    rsb_init_unread();
    rsb_init_open_scope();
    rsb_init_run();
    rsb_init_scope();
    rsb_init_fiber_new();
    rsb_init_runners();
    rsb_init_switch();
    rsb_init_idle();
    rsb_init_fiber_reset();
    rsb_init_fiber_chain();
    rsb_init_fiber_stacks();
    rsb_init_unshared();
    rsb_init_sync();
    rsb_init_queue();
    rsb_init_io();
    rsb_init_socket();
    rsb_init_several(); /* beside the scheduler: what the two keep for a strand shares a word */
    rsb_init_scheduler();
    rsb_init_scheduler_close();
    rsb_init_scheduler_io();
    rsb_init_scheduler_sort();
    rsb_init_scheduler_select();
    rsb_init_scheduler_calls();
    rsb_init_simulation();
    rsb_init_inspector();
    rsb_init_evaluation();
    rsb_init_evaluation_data();
    rsb_init_frames();
    rsb_init_select_sources();
    rsb_init_concurrent_proc();
    rsb_init_current();
    rsb_init_await();
    rsb_init_conclude();
    rsb_init_start();
    rsb_init_call();
    rsb_init_scope_concurrently();
    rsb_init_readiness();
    rsb_init_stream();
    rsb_init_stream_tls();
    rsb_init_stream_read();
    rsb_init_stream_write();
    rsb_init_stream_copy();
    rsb_init_stream_open();
    rsb_init_inotify();
    rsb_init_selector();
    rsb_init_idle_streams();
    rsb_init_select();
    rsb_init_channel();
    rsb_init_api();
    rsb_check_strand_size();
    rsb_make_first_buffer();
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) rb_intern(symbols[i]);
}
