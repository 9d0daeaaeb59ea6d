/*
 * Ringspun's engine at the work of the table `batch`, without Ruby: 32 strands which are C structs start a recv each, and
 * the backend on io_uring submits them together. What this costs above ring_batch.c is the engine's own: tickets, ops,
 * their lists, the run queue.
 *
 *   engine_batch ready|armed BATCHES      as ring_batch
 */
#include "ringspun/engine.h"
#include "measure.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { BATCH = 32 };

struct receiver {
    int reader;
    int writer;
    char byte;
    unsigned left;
    rs_op *op;
};

struct program {
    rs_machine *machine;
    struct receiver receivers[BATCH];
    bool armed;
    unsigned live;
    uint64_t received;
};

/* By the machine, because what it made itself it submits in batches; anything else at once. */
static void receiver_open(struct program *program, struct receiver *receiver)
{
    int ends[2];
    rs_request request = {.kind = RS_OP_SOCKETPAIR, .fd = -1,
                          .socket = {.family = AF_UNIX, .type = SOCK_STREAM, .pair = ends}};

    must(rs_try(program->machine, &request) == 0, "socketpair");
    receiver->reader = ends[0];
    receiver->writer = ends[1];
    must(program->armed || send(receiver->writer, "x", 1, 0) == 1, "send");
}

static void step(struct program *program, struct receiver *receiver)
{
    rs_request request = {.kind = RS_OP_RECV, .fd = receiver->reader,
                          .transfer = {.address = &receiver->byte, .len = 1, .flags = program->armed ? 0 : MSG_PEEK}};

    if (receiver->op) {
        int64_t result;

        must(rs_park_end(program->machine, &result) == RS_WAKE_VALUE && result == 1, "recv");
        rs_op_end(program->machine, receiver->op);
        program->received++;
    }
    if (receiver->left == 0) {
        rs_finish(program->machine);
        program->live--;
        return;
    }
    receiver->left--;
    receiver->op = rs_op_start(program->machine, &request, 0, RS_NEVER);
    must(receiver->op != NULL, "rs_op_start");
}

/* Nothing can run, so all that were started are in the kernel. */
static void send_batch(struct program *program)
{
    for (unsigned i = 0; i < BATCH; i++)
        must(send(program->receivers[i].writer, "x", 1, 0) == 1, "send");
}

static void loop(struct program *program)
{
    uint64_t sent = program->received;

    while (program->live > 0) {
        rs_decision decision = rs_next(program->machine);

        must(decision.verdict != RS_DEADLOCK, "deadlock");
        if (decision.verdict == RS_RUN) {
            step(program, rs_strand_user(decision.strand));
            continue;
        }
        if (program->armed && sent == program->received) {
            send_batch(program);
            sent += BATCH;
        }
        rs_sleep(program->machine, decision.deadline_ns);
    }
}

static void run(struct program *program, unsigned batches)
{
    rs_machine *machine = program->machine;
    rs_strand *root = rs_running(machine);
    rs_id id = rs_strand_id(root);
    uint64_t ticket;

    for (unsigned i = 0; i < BATCH; i++) {
        struct receiver *receiver = &program->receivers[i];

        receiver->left = batches;
        receiver->op = NULL;
        must(rs_spawn(machine, rs_strand_own(root), receiver) != NULL, "rs_spawn");
    }
    program->live = BATCH;
    ticket = rs_park_begin(machine, RS_WAIT_SUSPEND, RS_PARK_SHIELDED, RS_NEVER);
    must(ticket != 0, "rs_park_begin");
    loop(program);
    must(rs_wake(machine, id, ticket, RS_WAKE_VALUE, 0) && rs_next(machine).strand == root, "the root");
    rs_park_end(machine, NULL);
}

int main(int count, char **arguments)
{
    static struct program program;
    rs_options options = rs_default_options();
    struct measurement measurement;
    unsigned batches = argument(arguments, count, 2);

    program.armed = strcmp(arguments[1], "armed") == 0;
    program.machine = rs_machine_new();
    must(program.machine != NULL, "rs_machine_new");
    if (rs_machine_open(program.machine, &rs_backend_uring, &options) != 0)
        unavailable(rs_refusal_text(program.machine));
    for (unsigned i = 0; i < BATCH; i++)
        receiver_open(&program, &program.receivers[i]);
    run(&program, 1);
    program.received = 0;

    measure_begin(&measurement);
    run(&program, batches);
    measure_end(&measurement);
    measurement.operations = (uint64_t)batches * BATCH;
    measure_report(&measurement, 1, program.received, "received", program.received);
    rs_machine_close(program.machine);
    rs_machine_free(program.machine);
    return 0;
}
