#include "ringspun/backend/sim/sim.h"
#include "backend/sim/world.h"
#include "core/machine.h"
#include "ops/descriptors.h"
#include "ops/op_life.h"
#include "ops/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Not 0: a clock that has gone on for a while, as a real one has, so that a time before now is positive too. */
#define CLOCK_START_NS 1000000000
/* However likely a fault is: an op meets this many, then the kernel is kind to it, so every run ends. */
#define FAULTS_PER_OP 4
#define LATE_WAKES_IN_A_ROW 3
#define RETRY_SOON_NS 1000
#define RETRY_LATER_NS 100000
#define SCRIBBLE_MAX 32

enum { PHASE_TRY, PHASE_WAITING, PHASE_DONE };

enum {
    FAULT_SHORT_TRANSFER = 1, FAULT_INTERRUPTED, FAULT_DELAY, FAULT_LATE_CANCEL, FAULT_SUBMISSION_FULL,
    FAULT_NO_BUFFERS, FAULT_LATE_WAKE, FAULT_SCRIBBLE, FAULT_OFFLOAD, FAULT_OPEN_FAILURE, FAULT_RESET
};

/* An op under way. It holds a reference to its object, so that a descriptor closed meanwhile changes nothing for it. */
typedef struct sim_life {
    rs_timer timer;
    rs_op *op;
    sim_object *object;
    rs_link link;               /* of all */
    rs_link of_object;          /* of those that wait for it to change */
    int64_t result;             /* DONE */
    uint8_t phase;
    uint8_t faults;
    bool waiting;               /* in its object's list */
    bool cancelled;             /* and it will, unless something else comes first */
    bool left;                  /* its strand has been sent on: nobody takes the result */
} sim_life;

typedef struct {
    sim_world world;
    rs_timers events;
    rs_links lives;
    rs_sim_faults faults;
    int64_t now_ns;
    uint64_t random;
    uint32_t late_wakes;
    uint32_t left;              /* lives of ops that their strands left */
    pthread_mutex_t lock;
    pthread_cond_t woken_up;
    bool woken;
} sim_state;

static sim_state *state_of(const rs_machine *machine) { return machine->backend_state; }

rs_sim_faults rs_sim_faults_default(void) {
    return (rs_sim_faults){
        .short_transfer = 150, .interrupted = 50, .delay = 300, .late_cancel = 500, .submission_full = 50,
        .no_buffers = 20, .late_wake = 50, .scribble = 300, .offload = 300, .delay_max_ns = 2000000,
    };
}

rs_sim_faults rs_sim_faults_none(void) { return (rs_sim_faults){0}; }

#define FAULT(name) {#name, offsetof(rs_sim_faults, name)}

static const struct {
    const char *name;
    size_t offset;
} faults_by_name[] = {
    FAULT(short_transfer), FAULT(interrupted), FAULT(delay), FAULT(late_cancel), FAULT(submission_full), FAULT(no_buffers),
    FAULT(late_wake), FAULT(scribble), FAULT(offload), FAULT(open_failure), FAULT(reset),
};

#define FAULTS (sizeof(faults_by_name) / sizeof(faults_by_name[0]))

const char *rs_sim_fault_name(size_t index) { return index < FAULTS ? faults_by_name[index].name : NULL; }

bool rs_sim_set_fault(rs_sim_faults *faults, const char *name, uint16_t per_mille) {
    RS_CHECK(per_mille <= 1000);
    for (size_t i = 0; i < FAULTS; i++) {
        if (strcmp(name, faults_by_name[i].name) != 0) continue;
        *(uint16_t *)((char *)faults + faults_by_name[i].offset) = per_mille;
        return true;
    }
    return false;
}

int64_t rs_sim_now(const rs_machine *machine) { return state_of(machine)->now_ns; }

void rs_sim_advance(rs_machine *machine, int64_t delay_ns) {
    sim_state *state = state_of(machine);
    RS_CHECK(delay_ns >= 0);
    state->now_ns = rs_deadline_after(state->now_ns, delay_ns);
}

/* splitmix64: each output is a hash of a counter, so no seed is a bad one. */
uint64_t rs_sim_random(rs_machine *machine) {
    uint64_t word = state_of(machine)->random += 0x9E3779B97F4A7C15u;
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
    return word ^ (word >> 31);
}

/* Made for a strand that has left the op: closed when that ends. */
static bool has_nobodys_descriptor(const sim_life *life) {
    return life->left && life->result >= 0 && rs_op_kinds[life->op->request.kind].effect == RS_EFFECT_DESCRIPTOR;
}

uint32_t rs_sim_open_descriptors(const rs_machine *machine) {
    const sim_state *state = state_of(machine);
    uint32_t open = state->world.open;
    RS_EACH_LINKED(&state->lives, const sim_life, link, life) {
        open -= life->phase == PHASE_DONE && has_nobodys_descriptor(life);
    }
    RS_CHECK(open <= state->world.open);
    return open;
}

int rs_sim_mode(const rs_machine *machine, int fd) {
    const sim_object *object = sim_world_find(&state_of(machine)->world, fd);
    if (!object) return -1;
    if (object->kind == SIM_FILE) return (int)object->open_flags;
    return object->kind == SIM_PIPE_READER ? O_RDONLY : object->kind == SIM_PIPE_WRITER ? O_WRONLY : O_RDWR;
}

bool rs_sim_is_socket(const rs_machine *machine, int fd) {
    const sim_object *object = sim_world_find(&state_of(machine)->world, fd);
    return object && object->kind == SIM_SOCKET;
}

const void *rs_sim_address(const rs_machine *machine, int fd, uint32_t *len) {
    const sim_object *object = sim_world_find(&state_of(machine)->world, fd);
    if (!object || object->kind != SIM_SOCKET || !object->address) return NULL;
    *len = object->address_len;
    return object->address;
}

static int64_t sim_clock(rs_machine *machine) { return rs_sim_now(machine); }

static bool strikes(rs_machine *machine, uint16_t per_mille, int fault, uint64_t subject) {
    RS_CHECK(per_mille <= 1000);
    if (per_mille == 0 || rs_sim_random(machine) % 1000 >= per_mille) return false;
    rs_trace_if(machine, RS_TRACE_FAULT, subject, fault);
    return true;
}

static int64_t some_ns(rs_machine *machine, int64_t max_ns) {
    RS_CHECK(max_ns >= 0);
    return max_ns > 0 ? 1 + (int64_t)(rs_sim_random(machine) % (uint64_t)max_ns) : 1;
}

/* --- the lives of ops --- */

static void schedule(rs_machine *machine, sim_life *life, int phase, int64_t delay_ns) {
    RS_CHECK(delay_ns >= 0 && phase >= PHASE_TRY && phase <= PHASE_DONE);
    sim_state *state = state_of(machine);
    life->phase = (uint8_t)phase;
    rs_timer_set(&state->events, &life->timer, rs_deadline_after(state->now_ns, delay_ns));
}

static void enter_list(sim_life *life) {
    if (life->waiting) return;
    RS_CHECK(life->object != NULL && life->phase == PHASE_WAITING);
    life->waiting = true;
    rs_links_append(&life->object->waiters, &life->of_object);
}

static void leave_list(sim_life *life) {
    if (!life->waiting) return;
    RS_CHECK(life->object != NULL);
    life->waiting = false;
    rs_links_remove(&life->object->waiters, &life->of_object);
}

/* What this backend has of an op. */
static sim_life **sim_of(rs_op *op) { return (void *)op->of_backend; }

_Static_assert(sizeof(sim_life *) <= sizeof(((rs_op *)0)->of_backend), "a pointer fits");

static sim_life *new_life(sim_state *state, rs_op *op) {
    RS_CHECK(*sim_of(op) == NULL);
    sim_life *life = rs_try_alloc(sizeof(*life));
    if (!life) return NULL;
    rs_timer_init(&life->timer, RS_TIMER_PARK);
    life->op = op;
    life->object = sim_world_find(&state->world, op->request.fd);
    if (life->object) sim_object_hold(life->object);
    rs_links_prepend(&state->lives, &life->link);
    *sim_of(op) = life;
    return life;
}

static void free_life(sim_state *state, sim_life *life) {
    RS_CHECK(life->object != NULL || !life->waiting);
    rs_timer_clear(&state->events, &life->timer);
    if (life->object) {
        leave_list(life);
        /* Those behind it may have waited only for its end. */
        sim_world_changed(&state->world, life->object);
        sim_object_release(&state->world, life->object);
    }
    rs_links_remove(&state->lives, &life->link);
    free(life);
}

static void finish(rs_machine *machine, sim_life *life, int64_t result) {
    rs_op *op = life->op;
    sim_state *state = state_of(machine);
    RS_CHECK(op->state == RS_OP_SUBMITTED && *sim_of(op) == life && state->left >= life->left);
    if (life->left) state->left--;
    life->result = result;
    free_life(state, life);
    *sim_of(op) = NULL;
    rs_op_complete(machine, op, result);
}

/* The kernel may write to a read buffer as long as the op lasts, beyond what it answers too. Whoever gave the memory away
 * early shall notice. The first `filled` bytes are an answer already. */
static void scribble(rs_machine *machine, const sim_life *life, uint64_t filled) {
    RS_CHECK(life->op->state == RS_OP_SUBMITTED);
    const rs_request *request = &life->op->request;
    const rs_op_traits *traits = rs_request_traits(request);
    if (traits->side != RS_SIDE_READ || traits->effect != RS_EFFECT_DATA) return;
    uint16_t per_mille = state_of(machine)->faults.scribble;
    if (!strikes(machine, per_mille, FAULT_SCRIBBLE, rs_op_id(life->op))) return;
    struct iovec single;
    uint64_t count;
    const struct iovec *parts = sim_parts_of(request, &single, &count);
    if (count == 0) return;
    uint8_t *bytes = parts[0].iov_base;
    uint64_t len = parts[0].iov_len;
    if (filled >= len) return;
    uint64_t draw = rs_sim_random(machine);
    uint64_t from = filled + draw % (len - filled);
    for (uint64_t i = from; i < len && i < from + SCRIBBLE_MAX; i++) bytes[i] = (uint8_t)(draw >> (i % 8 * 8));
}

/* As often as it takes for RS_REQUEST_ALL, and with no limit as rs_op_go_on has it: nobody fills or empties an object meanwhile. */
static int64_t transfer(rs_machine *machine, sim_life *life, uint64_t *last) {
    sim_state *state = state_of(machine);
    rs_request *request = &life->op->request;
    for (;;) {
        uint64_t limit = UINT64_MAX, len = sim_len_of(request);
        if (len > 1 && strikes(machine, state->faults.short_transfer, FAULT_SHORT_TRANSFER, rs_op_id(life->op))) {
            limit = 1 + rs_sim_random(machine) % len;
        }
        int64_t result = sim_world_attempt(&state->world, life->object, request, limit);
        *last = result > 0 ? (uint64_t)result : 0;
        RS_CHECK(result <= 0 || rs_request_traits(request)->effect != RS_EFFECT_DATA || *last <= len);
        if (!rs_request_goes_on(request, result)) return result;
    }
}

static bool may_be_reset(const sim_object *object, const rs_request *request) {
    return object && object->kind == SIM_SOCKET && object->state == SIM_CONNECTED &&
           rs_request_traits(request)->effect == RS_EFFECT_DATA;
}

/* True: a fault took the place of the try; the op has another event, or its end. */
static bool struck(rs_machine *machine, sim_life *life) {
    const rs_sim_faults *faults = &state_of(machine)->faults;
    uint64_t subject = rs_op_id(life->op);
    RS_CHECK(life->faults <= FAULTS_PER_OP);
    if (life->faults >= FAULTS_PER_OP) return false;
    life->faults++;
    if (strikes(machine, faults->interrupted, FAULT_INTERRUPTED, subject)) {
        leave_list(life);
        schedule(machine, life, PHASE_TRY, some_ns(machine, RETRY_SOON_NS));
    } else if (strikes(machine, faults->no_buffers, FAULT_NO_BUFFERS, subject)) {
        leave_list(life);
        schedule(machine, life, PHASE_TRY, some_ns(machine, RETRY_LATER_NS));
    } else if (rs_op_kinds[life->op->request.kind].effect == RS_EFFECT_DESCRIPTOR &&
               strikes(machine, faults->open_failure, FAULT_OPEN_FAILURE, subject)) {
        finish(machine, life, rs_sim_random(machine) % 2 ? -EMFILE : -ENFILE);
    } else if (may_be_reset(life->object, &life->op->request) && strikes(machine, faults->reset, FAULT_RESET, subject)) {
        sim_world_reset(&state_of(machine)->world, life->object);
        finish(machine, life, -ECONNRESET);
    } else {
        life->faults--;
        return false;
    }
    return true;
}

/* A splice says that it would wait, and whoever asked for it waits for what it lacks. */
static bool must_not_wait(const rs_request *request) {
    if (rs_request_has_target(request)) return true;
    return rs_request_message_flags(request) & MSG_DONTWAIT;
}

/* One try. False: it goes on waiting at its object. */
static bool proceed(rs_machine *machine, sim_life *life) {
    RS_CHECK(life->phase != PHASE_DONE);
    if (struck(machine, life)) return true;
    uint64_t last;
    int64_t result = transfer(machine, life, &last);
    if (result == -EAGAIN && !must_not_wait(&life->op->request)) {
        life->phase = PHASE_WAITING;
        enter_list(life);
        scribble(machine, life, 0);
        return false;
    }
    scribble(machine, life, last);
    const rs_sim_faults *faults = &state_of(machine)->faults;
    if (strikes(machine, faults->delay / 2, FAULT_DELAY, rs_op_id(life->op))) {
        if (life->object) leave_list(life);
        life->result = result;
        schedule(machine, life, PHASE_DONE, some_ns(machine, faults->delay_max_ns));
    } else {
        finish(machine, life, result);
    }
    return true;
}

/* Those who wait at an object that has changed try again, oldest first; where one of them still waits, those behind it
 * that want the same do too. */
static void serve(rs_machine *machine, sim_object *object) {
    uint32_t blocked = 0;
    RS_EACH_LINKED(&object->waiters, sim_life, of_object, life) {
        uint32_t side = rs_op_kinds[life->op->request.kind].side;
        RS_CHECK(life->object == object && life->waiting);
        if (!(blocked & (1u << side)) && !proceed(machine, life) && side != RS_SIDE_MASK) blocked |= 1u << side;
    }
}

/* Until nothing changes any more, and never deeper than one call: a chain of pipes may be long. */
static void settle(rs_machine *machine) {
    sim_state *state = state_of(machine);
    for (sim_object *object; (object = sim_world_next_changed(&state->world));) {
        serve(machine, object);
        sim_object_release(&state->world, object);
    }
    machine->backend_deadline_ns = rs_timers_earliest(&state->events);
}

/* Those behind what has changed are tried at the next poll, which is to come even if all strands wait and that poll is late. */
static void let_poll_settle(rs_machine *machine) {
    sim_state *state = state_of(machine);
    machine->backend_deadline_ns = state->world.changed_first ? state->now_ns : rs_timers_earliest(&state->events);
}

/* --- the verbs of a backend --- */

static int sim_open(rs_machine *machine) {
    RS_CHECK(machine->backend_state == NULL);
    sim_state *state = rs_try_alloc(sizeof(*state));
    if (!state) return RS_NO_MEMORY;
    const rs_sim_faults *faults = machine->options.faults;
    state->faults = faults ? *faults : rs_sim_faults_default();
    state->now_ns = CLOCK_START_NS;
    state->random = machine->options.seed;
    pthread_mutex_init(&state->lock, NULL);
    pthread_cond_init(&state->woken_up, NULL);
    machine->backend_state = state;
    machine->clock = sim_clock;
    return 0;
}

static void forget_lives(sim_state *state) {
    RS_EACH_LINKED(&state->lives, sim_life, link, life) free_life(state, life);
    RS_CHECK(state->events.len == 0); /* each was of a life */
    state->left = 0;
    for (sim_object *object; (object = sim_world_next_changed(&state->world));) {
        sim_object_release(&state->world, object);
    }
}

static void sim_close(rs_machine *machine) {
    sim_state *state = state_of(machine);
    forget_lives(state);
    sim_world_free(&state->world);
    rs_timers_free(&state->events);
    pthread_mutex_destroy(&state->lock);
    pthread_cond_destroy(&state->woken_up);
    free(state);
    machine->backend_state = NULL;
    machine->clock = NULL;
}

static int64_t perform(rs_machine *machine, rs_op *op) {
    RS_CHECK(rs_request_traits(&op->request)->never_waits);
    sim_state *state = state_of(machine);
    bool makes = rs_request_traits(&op->request)->makes != RS_MAKES_NOTHING;
    if (makes && strikes(machine, state->faults.open_failure, FAULT_OPEN_FAILURE, rs_op_id(op))) return -EMFILE;
    return sim_world_perform(&state->world, &op->request);
}

static void sim_arm(rs_machine *machine, rs_op *op) {
    RS_CHECK(op->state == RS_OP_SUBMITTED && !op->offloaded);
    sim_state *state = state_of(machine);
    const rs_sim_faults *faults = &state->faults;
    if (!rs_op_lend(op)) {
        rs_op_complete(machine, op, RS_NO_MEMORY);
        return;
    }
    if (rs_request_traits(&op->request)->never_waits) {
        /* Whoever closes has seen to it before that no op waits there. */
        RS_CHECK(op->request.kind != RS_OP_CLOSE || (op->next == 0 && op->previous == 0));
        rs_op_complete(machine, op, perform(machine, op));
        settle(machine);
        return;
    }
    /* Each life may have an event. */
    sim_life *life = rs_timers_reserve(&state->events, machine->in_flight) ? new_life(state, op) : NULL;
    if (!life) {
        rs_op_complete(machine, op, RS_NO_MEMORY);
        return;
    }
    uint64_t subject = rs_op_id(op);
    if (rs_op_kinds[op->request.kind].side == RS_SIDE_NONE) {
        op->offloaded = strikes(machine, faults->offload, FAULT_OFFLOAD, subject);
    }
    if (strikes(machine, faults->submission_full, FAULT_SUBMISSION_FULL, subject)) {
        schedule(machine, life, PHASE_TRY, 0);
    } else if (strikes(machine, faults->delay, FAULT_DELAY, subject)) {
        schedule(machine, life, PHASE_TRY, some_ns(machine, faults->delay_max_ns));
    } else {
        proceed(machine, life);
    }
    settle(machine);
}

/* 0: no fault that a program sees takes the place of the try. */
static int64_t fails_at_once(rs_machine *machine, sim_object *object, const rs_request *request) {
    sim_state *state = state_of(machine);
    bool makes = rs_request_traits(request)->makes != RS_MAKES_NOTHING;
    if (makes && strikes(machine, state->faults.open_failure, FAULT_OPEN_FAILURE, 0)) return -EMFILE;
    if (!may_be_reset(object, request) || !strikes(machine, state->faults.reset, FAULT_RESET, 0)) return 0;
    sim_world_reset(&state->world, object);
    return -ECONNRESET;
}

/* Writes are not cut short: the strand could not wait for the rest, where a real kernel has room for it. */
static int64_t try_at_once(rs_machine *machine, sim_object *object, const rs_request *request) {
    sim_state *state = state_of(machine);
    if (rs_request_traits(request)->never_waits) return sim_world_perform(&state->world, request);
    uint64_t limit = UINT64_MAX, len = sim_len_of(request);
    bool reads = rs_request_traits(request)->side == RS_SIDE_READ && len > 1;
    if (reads && strikes(machine, state->faults.short_transfer, FAULT_SHORT_TRANSFER, 0)) limit = 1 + rs_sim_random(machine) % len;
    return sim_world_attempt(&state->world, object, request, limit);
}

static int64_t at_once(rs_machine *machine, const rs_request *request) {
    RS_CHECK(machine->running != RS_NO_INDEX);
    sim_object *object = sim_world_find(&state_of(machine)->world, request->fd);
    int64_t result = fails_at_once(machine, object, request);
    if (result == 0) result = try_at_once(machine, object, request);
    let_poll_settle(machine); /* others do not run before the strand parks */
    return result;
}

static void sim_cancel(rs_machine *machine, rs_op *op) {
    sim_life *life = *sim_of(op);
    const rs_sim_faults *faults = &state_of(machine)->faults;
    RS_CHECK(op->state == RS_OP_SUBMITTED && life != NULL && life->op == op && !life->left);
    if (state_of(machine)->left < RS_OPS_LEFT_MAX && rs_op_leave(machine, op)) {
        life->left = true;
        state_of(machine)->left++;
        return;
    }
    if (life->phase == PHASE_DONE) return;
    if (rs_op_kinds[op->request.kind].effect != RS_EFFECT_NOTHING &&
        strikes(machine, faults->late_cancel, FAULT_LATE_CANCEL, rs_op_id(op))) {
        life->cancelled = true;
        if (life->phase == PHASE_WAITING) {
            schedule(machine, life, PHASE_WAITING, some_ns(machine, faults->delay_max_ns));
        }
    } else {
        finish(machine, life, -ECANCELED);
    }
    let_poll_settle(machine); /* a cancellation ends no op but its own */
}

static void fire(rs_machine *machine, sim_life *life) {
    RS_CHECK(life->phase != PHASE_WAITING || life->cancelled);
    if (life->phase == PHASE_DONE) {
        finish(machine, life, life->result);
    } else if (life->cancelled && (life->phase == PHASE_WAITING || rs_sim_random(machine) % 2)) {
        finish(machine, life, -ECANCELED);
    } else if (!proceed(machine, life) && life->cancelled) {
        finish(machine, life, -ECANCELED);
    }
}

static void sim_poll(rs_machine *machine) {
    sim_state *state = state_of(machine);
    if (state->late_wakes < LATE_WAKES_IN_A_ROW && strikes(machine, state->faults.late_wake, FAULT_LATE_WAKE, 0)) {
        state->late_wakes++;
        return;
    }
    RS_CHECK(state->late_wakes <= LATE_WAKES_IN_A_ROW);
    state->late_wakes = 0;
    rs_timer *timer;
    while ((timer = rs_timers_pop_due(&state->events, state->now_ns))) {
        fire(machine, (sim_life *)((char *)timer - offsetof(sim_life, timer)));
        settle(machine);
    }
    settle(machine);
}

/* With nothing to come by itself only another thread can go on: then this is a real wait. */
static void sim_wait(rs_machine *machine, int64_t deadline_ns) {
    sim_state *state = state_of(machine);
    int64_t until_ns = rs_timers_earliest(&state->events);
    if (deadline_ns < until_ns) until_ns = deadline_ns;
    pthread_mutex_lock(&state->lock);
    while (until_ns == RS_NEVER && !state->woken) pthread_cond_wait(&state->woken_up, &state->lock);
    state->woken = false;
    pthread_mutex_unlock(&state->lock);
    if (until_ns != RS_NEVER && until_ns > state->now_ns) state->now_ns = until_ns;
}

static void sim_wake(rs_machine *machine) {
    sim_state *state = state_of(machine);
    pthread_mutex_lock(&state->lock);
    state->woken = true;
    pthread_cond_signal(&state->woken_up);
    pthread_mutex_unlock(&state->lock);
}

static int sim_forked(rs_machine *machine) {
    RS_CHECK(machine->in_flight == 0);
    sim_state *state = state_of(machine);
    forget_lives(state);
    pthread_mutex_init(&state->lock, NULL);
    pthread_cond_init(&state->woken_up, NULL);
    state->woken = false;
    return 0;
}

/* --- the platform --- */

static void note_made(rs_machine *machine, const rs_request *request, int fd) { (void)machine, (void)request, (void)fd; }

static void discard(rs_machine *machine, int fd) {
    sim_world_close(&state_of(machine)->world, fd);
    let_poll_settle(machine);
}

static bool is_open(const rs_machine *machine, int fd) { return sim_world_find(&state_of(machine)->world, fd) != NULL; }

static bool is_file(const rs_machine *machine, int fd) {
    const sim_object *object = sim_world_find(&state_of(machine)->world, fd);
    return object && object->kind == SIM_FILE;
}

/* No number means something else behind the machine's back. */
static uint64_t identity(const rs_machine *machine, int fd) { return (void)machine, (void)fd, 1; }

static const rs_platform simulated_platform = {
    .at_once = at_once, .note_made = note_made, .discard = discard, .is_open = is_open, .is_socket = rs_sim_is_socket,
    .is_file = is_file, .identity = identity,
};

const rs_backend rs_backend_sim = {
    .name = "sim", .simulated = true, .platform = &simulated_platform, .coarse_clock = rs_clock_ns,
    .open = sim_open, .close = sim_close, .arm = sim_arm, .cancel = sim_cancel,
    .poll = sim_poll, .wait = sim_wait, .wake = sim_wake, .forked = sim_forked,
};
