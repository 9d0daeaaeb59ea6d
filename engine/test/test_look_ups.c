/* Name look-ups: which begin, beside those that are never answered. The resolver is the tests' own: it answers for `good.` at
 * once, and for all others when it is let go. */
#include "test.h"

#include "backend/zones.h"
#include "ringspun/kernel/resolve.h"
#include "subjects.h"

#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t let_go;
    bool holds;
    int asked, inside, inside_most; /* those that it holds */
} resolver = {.lock = PTHREAD_MUTEX_INITIALIZER, .let_go = PTHREAD_COND_INITIALIZER};

/* In the place of the C library's. */
int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    (void)service, (void)hints;
    *found = NULL;
    if (strncmp(host, "good.", 5) == 0 || strcmp(host, "localhost") == 0) return EAI_NONAME;
    pthread_mutex_lock(&resolver.lock);
    resolver.asked++;
    resolver.inside++;
    if (resolver.inside > resolver.inside_most) resolver.inside_most = resolver.inside;
    while (resolver.holds) pthread_cond_wait(&resolver.let_go, &resolver.lock);
    resolver.inside--;
    pthread_mutex_unlock(&resolver.lock);
    return EAI_NONAME;
}

static int asked(void) {
    pthread_mutex_lock(&resolver.lock);
    int count = resolver.asked;
    pthread_mutex_unlock(&resolver.lock);
    return count;
}

static void let_go(void) {
    pthread_mutex_lock(&resolver.lock);
    resolver.holds = false;
    pthread_cond_broadcast(&resolver.let_go);
    pthread_mutex_unlock(&resolver.lock);
}

static void open_machine(driver *d, const subject *subject) {
    resolver.holds = true;
    resolver.asked = resolver.inside_most = 0;
    subject_open(d, subject);
}

static rs_request request_look_up(const char *form, int number) {
    rs_lookup *lookup = calloc(1, sizeof(*lookup));
    snprintf(lookup->host, sizeof(lookup->host), form, number);
    return (rs_request){.kind = RS_OP_RESOLVE, .fd = -1, .owned = lookup, .resolve.lookup = lookup};
}

enum { MANY = 100, HALF = RS_LOOK_UPS_MAX / 2 };

static caller held[MANY];

static void look_up_many(driver *d, const char *form) {
    memset(held, 0, sizeof(held));
    for (int i = 0; i < MANY; i++) scene_call(d, &held[i], request_look_up(form, i), 0, 0);
}

static int answered(void) {
    int count = 0;
    for (int i = 0; i < MANY; i++) count += held[i].order != 0;
    return count;
}

/* When the resolver holds as many, looks up a name and tells how things are; cancels some; and lets the resolver go. */
typedef struct {
    task task;
    int when_asked;
    const char *name;           /* NULL: none */
    rs_request request;
    int answered;
    uint32_t waiting;
    int cancelled[2];           /* from the first of `held` up to the second */
    uint32_t waiting_then;
    int asked_then;
} witness;

static void witness_step(task *task) {
    witness *self = (witness *)task;
    rs_machine *machine = task->driver->machine;
    TASK_BEGIN(task);
    while (asked() < self->when_asked) TASK_WAIT(task, task_sleep(task, MS));
    if (self->name) {
        self->request = request_look_up(self->name, 0);
        TASK_WAIT(task, task_request(task, &self->request, RS_NEVER));
        CHECK_EQUAL(RS_WAKE_VALUE, task->wake);
    }
    self->answered = answered();
    self->waiting = machine->look_ups_waiting;
    for (int i = self->cancelled[0]; i < self->cancelled[1]; i++) {
        rs_scope_cancel(machine, &held[i].task.strand->own, RS_CANCELLED_BY_CALL);
        CHECK_EQUAL(RS_STRAND_READY, held[i].task.strand->state);
    }
    TASK_WAIT(task, task_yield(task));
    self->waiting_then = machine->look_ups_waiting;
    self->asked_then = asked();
    for (int i = self->cancelled[0]; i < self->cancelled[1]; i++) CHECK_EQUAL(RS_WAKE_CANCEL, held[i].wake);
    let_go();
    TASK_END(task);
}

static void await_threads(int most) {
    for (int i = 0; i < 20000 && scene_threads() > most; i++) usleep(1000);
    CHECK(scene_threads() <= most);
}

static void end(driver *d) {
    subject_rest(d);
    CHECK_EQUAL(0, d->machine->look_ups_waiting);
    CHECK_EQUAL(0, scene_end(d));
}

OVER_KERNELS(a_name_is_looked_up_beside_many_of_a_zone_that_is_never_answered) {
    driver d;
    open_machine(&d, subject);
    witness witness = {.when_asked = HALF, .name = "good.example.org"};
    look_up_many(&d, "n%d.dead.test");
    driver_spawn(&d, NULL, &witness.task, witness_step);
    driver_run(&d);
    CHECK_EQUAL(0, witness.answered);
    CHECK_EQUAL(MANY - HALF, witness.waiting);
    CHECK_EQUAL(MANY, answered());
    CHECK_EQUAL(MANY, asked());
    CHECK_EQUAL(RS_WAKE_VALUE, held[MANY - 1].wake);
    end(&d);
}

/* A zone by itself holds up nobody else's names: half of the places, then half of what is left, and so on. */
OVER_KERNELS(a_name_is_looked_up_beside_several_zones_that_are_never_answered) {
    driver d;
    open_machine(&d, subject);
    enum { BEGIN = 20 + 20 + 12 + 6 + 3 };
    witness witness = {.when_asked = BEGIN, .name = "good.example.org"};
    memset(held, 0, sizeof(held));
    for (int i = 0; i < MANY; i++) scene_call(&d, &held[i], request_look_up("n.dead%d.test", i / 20), 0, 0);
    driver_spawn(&d, NULL, &witness.task, witness_step);
    driver_run(&d);
    CHECK_EQUAL(0, witness.answered);
    CHECK_EQUAL(MANY - BEGIN, witness.waiting);
    CHECK_EQUAL(MANY, answered());
    end(&d);
}

OVER_KERNELS(no_more_names_are_looked_up_at_a_time_than_there_may_be_threads) {
    driver d;
    int threads = scene_threads();
    open_machine(&d, subject);
    witness witness = {.when_asked = RS_LOOK_UPS_MAX};
    look_up_many(&d, "n.dead%d.test");
    driver_spawn(&d, NULL, &witness.task, witness_step);
    driver_run(&d);
    CHECK_EQUAL(MANY - RS_LOOK_UPS_MAX, witness.waiting);
    CHECK_EQUAL(RS_LOOK_UPS_MAX, resolver.inside_most);
    CHECK_EQUAL(MANY, answered());
    /* And they end when there is nothing to do. A ring has a thread of its own where one was asked for. */
    await_threads(threads + (subject->sqpoll ? 1 : 0));
    end(&d);
}

/* Which a file answers, whatever servers do. */
OVER_KERNELS(a_name_of_this_computer_waits_for_no_place) {
    driver d;
    open_machine(&d, subject);
    witness witness = {.when_asked = RS_LOOK_UPS_MAX, .name = "localhost"};
    look_up_many(&d, "n.dead%d.test");
    driver_spawn(&d, NULL, &witness.task, witness_step);
    driver_run(&d);
    CHECK_EQUAL(0, witness.answered);
    CHECK_EQUAL(MANY - RS_LOOK_UPS_MAX, witness.waiting);
    CHECK_EQUAL(MANY, answered());
    end(&d);
}

TEST(names_that_are_known_here) {
    static const char *const known[] = {"localhost", "LOCALHOST.", "a.localhost"}, *const others[] = {"", ".", "notlocalhost", "n.dead.test"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) CHECK(rs_host_is_known(known[i]));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) CHECK(!rs_host_is_known(others[i]));
    FILE *file = fopen("/etc/hosts", "r");
    char line[4096], name[1025];
    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, " %*[0-9a-fA-F:.] %1024[^# \t\n]", name) == 1) CHECK(rs_host_is_known(name));
    }
    if (file) fclose(file);
}

/* A thread that is left counts, for it may be there for long; what has not begun is gone at once. */
OVER_KERNELS(look_ups_that_are_given_up_end_at_once_and_keep_their_places) {
    driver d;
    open_machine(&d, subject);
    witness witness = {.when_asked = RS_LOOK_UPS_MAX, .cancelled = {RS_LOOK_UPS_MAX - 10, RS_LOOK_UPS_MAX + 10}};
    look_up_many(&d, "n.dead%d.test");
    driver_spawn(&d, NULL, &witness.task, witness_step);
    driver_run(&d);
    CHECK_EQUAL(MANY - RS_LOOK_UPS_MAX, witness.waiting);
    CHECK_EQUAL(MANY - RS_LOOK_UPS_MAX - 10, witness.waiting_then);
    CHECK_EQUAL(RS_LOOK_UPS_MAX, witness.asked_then);
    CHECK_EQUAL(MANY, answered());
    end(&d);
    CHECK_EQUAL(RS_LOOK_UPS_MAX, resolver.inside_most);
}

/* All of them: a machine has as many ops as strands, and those that are left beside. */
OVER_KERNELS(all_are_given_up_and_as_many_begin_again) {
    driver d;
    open_machine(&d, subject);
    witness first = {.when_asked = HALF, .cancelled = {0, MANY}};
    look_up_many(&d, "n%d.dead.test");
    driver_spawn(&d, NULL, &first.task, witness_step);
    driver_run(&d);
    CHECK_EQUAL(0, first.waiting_then);
    witness second = {.when_asked = HALF, .name = "good.example.org"};
    resolver.holds = true;
    look_up_many(&d, "n%d.dead.test");
    driver_spawn(&d, NULL, &second.task, witness_step);
    driver_run(&d);
    CHECK_EQUAL(MANY, answered());
    end(&d);
}

/* The machine's thread ends while threads are at look-ups, and others wait for their turn. */
OVER_KERNELS(a_machine_ends_while_names_are_looked_up) {
    driver d;
    int threads = scene_threads();
    open_machine(&d, subject);
    look_up_many(&d, "n%d.dead.test");
    driver_park_root(&d);
    while (d.machine->strands.run_len > 0) driver_step(&d);
    while (asked() < HALF) usleep(100);
    rs_machine_leave(d.machine);
    CHECK_EQUAL(0, d.machine->look_ups_waiting);
    CHECK_EQUAL(HALF, d.machine->outside);
    let_go();
    while (d.machine->outside > 0) usleep(100);
    driver_close(&d);
    CHECK_EQUAL(HALF, asked());
    await_threads(threads);
}

OVER_KERNELS(a_look_up_ends_where_there_is_no_memory_for_it) {
    driver d;
    open_machine(&d, subject);
    resolver.holds = false;
    CHECK_EQUAL(0, scene_ask(&d, request_look_up("good.example.org", 0))); /* by which there is room for an op */
    int tries = 0;
    for (int64_t result = RS_NO_MEMORY; result == RS_NO_MEMORY && tries < 20; tries++) {
        caller self = {0};
        scene_call(&d, &self, request_look_up("good.example.org", 0), 0, 0);
        driver_park_root(&d);
        rs_tries_left = tries;
        while (self.order == 0) driver_step(&d);
        rs_tries_left = -1;
        driver_unpark_root(&d);
        result = self.result;
    }
    CHECK_EQUAL(4, tries); /* the job, its answer and its zone, and then all is there */
    end(&d);
}

/* --- zones --- */

static rs_link links[16];

static bool begins(rs_zones *zones, const char *host, int index) {
    rs_zone *zone = rs_zones_enter(zones, host);
    if (rs_zone_begin(zones, zone)) return true;
    rs_zone_wait(zones, zone, &links[index]);
    return false;
}

static void is_over(rs_zones *zones, const char *host) { rs_zone_leave(zones, rs_zones_enter(zones, host)); }

static bool is_empty(const rs_zones *zones) {
    for (int i = 0; i < RS_ZONE_BUCKETS; i++) {
        if (!rs_links_empty(&zones->buckets[i])) return false;
    }
    return rs_links_empty(&zones->line) && zones->begun == 0;
}

TEST(a_zone_begins_while_it_has_fewer_than_are_free) {
    rs_zones zones = {.limit = 8};
    for (int i = 0; i < 4; i++) CHECK(begins(&zones, "a.one.test", 0));
    CHECK(!begins(&zones, "b.one.test", 0));
    for (int i = 0; i < 2; i++) CHECK(begins(&zones, "two.test", 0));
    CHECK(!begins(&zones, "two.test", 1));
    CHECK(begins(&zones, "localhost", 0));
    CHECK(!begins(&zones, "localhost", 2));
    CHECK(begins(&zones, "a.test", 0));
    CHECK(!begins(&zones, "free.test", 3));
    CHECK(rs_zones_next(&zones) == NULL);
    is_over(&zones, "one.test");
    CHECK(rs_zones_next(&zones) == &links[3]);
    CHECK(rs_zones_next(&zones) == NULL);
    for (int i = 0; i < 3; i++) is_over(&zones, "one.test");
    CHECK(rs_zones_next(&zones) == &links[0]);
    is_over(&zones, "one.test");
    CHECK(rs_zones_next(&zones) == &links[1]);
    rs_zone_give_up(&zones, rs_zones_enter(&zones, "localhost"), &links[2]);
    CHECK(rs_zones_waiting(&zones) == NULL);
    for (int i = 0; i < 3; i++) is_over(&zones, "two.test");
    is_over(&zones, "localhost");
    is_over(&zones, "a.test");
    is_over(&zones, "free.test");
    CHECK(is_empty(&zones));
}

/* Within a zone by when they came, and a zone with many is not before others again and again. */
TEST(zones_take_turns) {
    rs_zones zones = {.limit = 1};
    CHECK(begins(&zones, "x.test", 0));
    const char *hosts[] = {"1.a.test", "2.a.test", "3.a.test", "1.b.test", "1.c.test", "2.b.test"};
    const int order[] = {0, 3, 4, 1, 5, 2};
    for (int i = 0; i < 6; i++) CHECK(!begins(&zones, hosts[i], i));
    const char *under_way = "x.test";
    for (int i = 0; i < 6; i++) {
        is_over(&zones, under_way);
        CHECK(rs_zones_next(&zones) == &links[order[i]]);
        CHECK(rs_zones_next(&zones) == NULL);
        under_way = hosts[order[i]];
    }
    is_over(&zones, under_way);
    CHECK(is_empty(&zones));
}

TEST(names_of_one_zone) {
    static const char *const same[] = {"one.test", "one.test.", "a.one.test", "b.A.One.TEST", ".one.test", "a..one.test"};
    static const char *const others[] = {"", ".", "test", "test.", "aone.test", "one.test2", "a.one.test..", "one.tes",
                                         "two.test", "o.test"};
    rs_zones zones = {.limit = 100};
    rs_zone *zone = rs_zones_enter(&zones, same[0]);
    CHECK(rs_zone_begin(&zones, zone));
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) CHECK(rs_zones_enter(&zones, same[i]) == zone);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        rs_zone *other = rs_zones_enter(&zones, others[i]);
        CHECK(other != zone && rs_zone_begin(&zones, other));
        rs_zone_leave(&zones, other);
    }
    rs_zone_leave(&zones, zone);
    CHECK(is_empty(&zones));
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    return test_main(argc, argv);
}
