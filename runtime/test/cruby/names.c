/* Made-up mutexes and fibers: how the binding finds what a mutex calls its fiber, whatever a Ruby has chosen for that. */
#include "binding/cruby/words.h"

#include <stdio.h>

typedef struct {
    uint64_t a_pointer, a_number, self;
} fiber;

typedef struct {
    uint64_t owner, thread, next, queue[2];
} mutex;

static int failures;

static void expect(const char *what, bool found, size_t in_mutex, size_t in_fiber, bool wanted, size_t wanted_in_fiber) {
    bool right = found == wanted && (!wanted || (in_mutex == offsetof(mutex, owner) && in_fiber == wanted_in_fiber));
    if (right) return;
    printf("%s: %d, %zu in the mutex, %zu in the fiber\n", what, found, in_mutex, in_fiber);
    failures++;
}

static void try(const char *what, const fiber *fibers, const uint64_t *owners, bool wanted, size_t wanted_in_fiber) {
    mutex mutexes[3] = {{owners[0], 7, 0, {1, 1}}, {owners[1], 7, 11, {2, 2}}, {owners[2], 0, 0, {3, 3}}};
    rsb_owned pairs = {.things = {{&mutexes[0], sizeof(mutex)}, {&mutexes[1], sizeof(mutex)}},
                       .owners = {{&fibers[0], sizeof(fiber)}, {&fibers[1], sizeof(fiber)}}, .unowned = {&mutexes[2], sizeof(mutex)}};
    size_t in_mutex = RSB_NOT_FOUND, in_fiber = RSB_NOT_FOUND;
    bool found = rsb_find_names(&pairs, &in_mutex, &in_fiber);
    expect(what, found, in_mutex, in_fiber, wanted, wanted_in_fiber);
}

int main(void) {
    fiber fibers[2] = {{.a_pointer = 5, .a_number = 41}, {.a_pointer = 5, .a_number = 42}};
    for (int i = 0; i < 2; i++) fibers[i].self = (uint64_t)(uintptr_t)&fibers[i];
    try("a pointer", fibers, (uint64_t[]){fibers[0].self, fibers[1].self, 0}, true, offsetof(fiber, self));
    try("a number", fibers, (uint64_t[]){41, 42, 0}, true, offsetof(fiber, a_number));
    try("a number that is in no fiber", fibers, (uint64_t[]){43, 44, 0}, false, 0);
    try("a number of one fiber only", fibers, (uint64_t[]){41, 44, 0}, false, 0);
    try("the same of both", fibers, (uint64_t[]){5, 5, 0}, false, 0);
    try("the other one's", fibers, (uint64_t[]){42, 41, 0}, false, 0);
    try("a number that is there without an owner, too", fibers, (uint64_t[]){41, 42, 9}, false, 0);
    return failures > 0;
}
