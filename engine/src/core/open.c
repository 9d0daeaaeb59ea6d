/* open: how a machine starts, and is left or closed, with its parts. */
#include "core/run.h"

static bool start_root(rs_machine *machine) {
    rs_strand *root = rs_strand_take(&machine->strands);
    if (!root || !rs_reserve_timer(machine)) return false;
    RS_CHECK(root->index == 0);
    rs_scope_attach(&root->own, NULL, root->index);
    root->scope = &root->own;
    rs_strand_become(root, RS_STRAND_RUNNING);
    machine->root = rs_strand_id(root);
    machine->running = root->index;
    machine->runs = root;
    return true;
}

/* Each kind of message and of wait is one part's. */
static void open_parts(rs_machine *machine) {
    RS_EACH_PART(machine, part) {
        RS_CHECK(!part->on_message || !machine->on_message[part->message]);
        RS_CHECK(!part->interrupt || (part->takes_nothing && !machine->ends_wait[part->wait]));
        if (part->on_message) machine->on_message[part->message] = part;
        if (part->interrupt) machine->ends_wait[part->wait] = part;
        if (part->open) part->open(machine);
    }
}

static void free_all(rs_machine *machine) {
    size_t len = 0;
    while (machine->parts[len]) len++;
    while (len-- > 0) {
        if (machine->parts[len]->close) machine->parts[len]->close(machine);
    }
    rs_timers_free(&machine->timers);
    rs_strands_free(&machine->strands);
}

int rs_machine_start(rs_machine *machine) {
    RS_CHECK(machine->parts != NULL && machine->backend != NULL && machine->options.strands_max > 0);
    machine->backend_deadline_ns = RS_NEVER;
    rs_timer_init(&machine->reminder, RS_TIMER_REMINDER);
    rs_strands_init(&machine->strands, machine->options.strands_max);
    open_parts(machine);
    bool has_memory = (!machine->options.trace || rs_trace_open(&machine->trace)) && start_root(machine);
    int error = has_memory ? machine->backend->open(machine) : RS_NO_MEMORY;
    if (error) {
        free_all(machine);
        return error;
    }
    machine->polled_at_ns = rs_now(machine);
    return 0;
}

static void end_parts(rs_machine *machine) {
    RS_EACH_PART(machine, part) {
        if (part->ends) part->ends(machine);
    }
}

void rs_machine_leave(rs_machine *machine) {
    RS_CHECK(machine->backend != NULL && machine->backend_state != NULL);
    end_parts(machine);
    if (machine->backend->leave) machine->backend->leave(machine);
    RS_EACH_PART(machine, part) {
        if (part->left) part->left(machine);
    }
}

void rs_machine_close(rs_machine *machine) {
    RS_CHECK(machine->backend != NULL && !atomic_load(&machine->sleeping));
    RS_CHECK(machine->taken == NULL);
    machine->backend->close(machine);
    end_parts(machine);
    rs_tick_ends_forget(&machine->tick_ends);
    /* The last answers of workers may be descriptors that nobody takes. */
    machine->driver.on_message = NULL;
    rs_take_messages(machine);
    free_all(machine);
    rs_timer_init(&machine->reminder, RS_TIMER_REMINDER);
    machine->in_flight = 0;
}
