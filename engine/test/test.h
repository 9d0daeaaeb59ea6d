/* test: a harness of one page. TEST(name) { ... CHECK(x); ... } registers itself; test_main runs all, or those whose name
 * contains an argument, and its last line is "N passed, N failed". A build with -DTEST_EMULATED runs on a user-mode emulator, which
 * lacks system calls (io_uring, pwritev2): it leaves out what needs them, and the line before the last is "N left out". */
#ifndef RINGSPUN_TEST_H
#define RINGSPUN_TEST_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define TESTS_MAX 512

typedef struct {
    const char *name;
    const char *variant;        /* what it runs over, or NULL */
    void (*run)(void);
    void (*run_over)(const void *subject);
    const void *subject;
    bool not_emulated;          /* needs what an emulator lacks */
} test_case;

#ifdef TEST_EMULATED
enum { test_emulated = true };
#else
enum { test_emulated = false };
#endif

static test_case test_cases[TESTS_MAX];
static int test_count;
static int test_left_out;
static int test_failures;       /* of the test that runs */

static inline void test_register(test_case one) {
    if (one.not_emulated && test_emulated) test_left_out++;
    else if (test_count < TESTS_MAX) test_cases[test_count++] = one;
}

#define TEST_REGISTERED(title, ...)                                                                                   \
    static void test_##title(void);                                                                                   \
    __attribute__((constructor)) static void register_##title(void) {                                                 \
        test_register((test_case){.name = #title, .run = test_##title, __VA_ARGS__});                                 \
    }                                                                                                                 \
    static void test_##title(void)

#define TEST(title) TEST_REGISTERED(title, .not_emulated = false)
#define TEST_NOT_EMULATED(title) TEST_REGISTERED(title, .not_emulated = true)

#define CHECK(x)                                                                                                      \
    do {                                                                                                              \
        if (!(x)) {                                                                                                   \
            test_failures++;                                                                                          \
            printf("  %s:%d: not so: %s\n", __FILE__, __LINE__, #x);                                                  \
        }                                                                                                             \
    } while (0)

#define CHECK_EQUAL(expected, actual)                                                                                 \
    do {                                                                                                              \
        int64_t test_expected = (int64_t)(expected), test_actual = (int64_t)(actual);                                 \
        if (test_expected != test_actual) {                                                                           \
            test_failures++;                                                                                          \
            printf("  %s:%d: %s is %" PRId64 ", not %s = %" PRId64 "\n", __FILE__, __LINE__, #actual, test_actual,    \
                   #expected, test_expected);                                                                         \
        }                                                                                                             \
    } while (0)

static inline int test_main(int argc, char **argv) {
    int passed = 0, failed = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; i < test_count; i++) {
        const test_case *one = &test_cases[i];
        if (argc > 1 && !strstr(one->name, argv[1])) continue;
        test_failures = 0;
        if (one->run) one->run();
        else one->run_over(one->subject);
        if (test_failures == 0) passed++;
        else failed++;
        if (test_failures > 0) {
            printf("FAILED: %s%s%s\n", one->name, one->variant ? " over " : "", one->variant ? one->variant : "");
        }
    }
    if (test_left_out > 0) printf("%d left out\n", test_left_out);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}

#endif
