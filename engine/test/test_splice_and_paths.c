/* Bytes from one descriptor to another, and what changes names and sizes of files. */
#include "test.h"

#include "ringspun/engine.h"
#include "subjects.h"
#include "backend/uring/state.h"

#include <errno.h>
#include <fcntl.h>

static rs_request request_move(uint8_t kind, int from, int to, uint64_t len) {
    return (rs_request){.kind = kind, .fd = from, .splice = {.to_fd = to, .len = len}};
}

static rs_request request_path(uint8_t kind, const char *path) {
    char *copy = strcpy(calloc(1, strlen(path) + 1), path);
    return (rs_request){.kind = kind, .fd = -1, .owned = copy, .path = {.path = copy, .mode = 0700}};
}

static rs_request request_rename(const char *from, const char *to) {
    size_t len = strlen(from) + 1;
    char *both = calloc(1, len + strlen(to) + 1);
    strcpy(both, from);
    strcpy(both + len, to);
    return (rs_request){.kind = RS_OP_RENAME, .fd = -1, .owned = both, .path = {.path = both, .to = both + len}};
}

OVER_BACKENDS(a_splice_moves_what_is_there_and_says_when_it_would_wait) {
    driver d;
    int one[2], other[2];
    char bytes[8] = {0};
    subject_open(&d, subject);
    scene_ask(&d, request_pipe(one));
    scene_ask(&d, request_pipe(other));
    CHECK_EQUAL(-EAGAIN, scene_ask(&d, request_move(RS_OP_SPLICE, one[0], other[1], 100)));
    CHECK_EQUAL(5, scene_ask(&d, request_write(one[1], "hello", 5)));
    CHECK_EQUAL(2, scene_ask(&d, request_move(RS_OP_SPLICE, one[0], other[1], 2)));
    CHECK_EQUAL(3, scene_ask(&d, request_move(RS_OP_SPLICE, one[0], other[1], 100)));
    CHECK_EQUAL(5, scene_ask(&d, request_read(other[0], bytes, 8)));
    CHECK(memcmp(bytes, "hello", 5) == 0);
    CHECK_EQUAL(-EBADF, scene_ask(&d, request_move(RS_OP_SPLICE, one[1], other[1], 1)));
    CHECK_EQUAL(-EBADF, scene_ask(&d, request_move(RS_OP_SPLICE, one[0], 1 << 20, 1)));
    CHECK_EQUAL(-EBADF, scene_ask(&d, request_move(RS_OP_SPLICE, one[0], -1, 1)));
    close_all(&d, &one[1], 1);
    CHECK_EQUAL(0, scene_ask(&d, request_move(RS_OP_SPLICE, one[0], other[1], 100)));
    close_all(&d, &one[0], 1);
    close_all(&d, other, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

OVER_BACKENDS(a_tee_leaves_it_there) {
    driver d;
    int one[2], other[2];
    char bytes[8] = {0};
    subject_open(&d, subject);
    scene_ask(&d, request_pipe(one));
    scene_ask(&d, request_pipe(other));
    CHECK_EQUAL(-EAGAIN, scene_ask(&d, request_move(RS_OP_TEE, one[0], other[1], 100)));
    CHECK_EQUAL(3, scene_ask(&d, request_write(one[1], "abc", 3)));
    CHECK_EQUAL(3, scene_ask(&d, request_move(RS_OP_TEE, one[0], other[1], 100)));
    CHECK_EQUAL(3, scene_ask(&d, request_read(other[0], bytes, 8)));
    CHECK_EQUAL(3, scene_ask(&d, request_read(one[0], bytes + 3, 5)));
    CHECK(memcmp(bytes, "abcabc", 6) == 0);
    close_all(&d, one, 2);
    close_all(&d, other, 2);
    CHECK_EQUAL(0, scene_end(&d));
}

static int64_t size_of(driver *d, int fd) {
    char byte;
    int64_t low = 0;
    rs_request read = {.kind = RS_OP_PREAD, .fd = fd, .transfer = {.address = &byte, .len = 1}};
    for (; scene_ask(d, read) == 1; low++) read.transfer.offset = low + 1;
    return low;
}

static void change_names_and_sizes(driver *d, const char *folder) {
    const char *path = subject_path(folder, "one"), *other = subject_path(folder, "other");
    int fd = (int)scene_ask(d, request_open(path, O_RDWR | O_CREAT));
    CHECK_EQUAL(0, scene_ask(d, (rs_request){.kind = RS_OP_FTRUNCATE, .fd = fd, .truncate.size = 10}));
    CHECK_EQUAL(10, size_of(d, fd));
    CHECK_EQUAL(0, scene_ask(d, (rs_request){.kind = RS_OP_FALLOCATE, .fd = fd, .room = {.offset = 5, .len = 15}}));
    CHECK_EQUAL(20, size_of(d, fd));
    CHECK_EQUAL(0, scene_ask(d, request_rename(path, other)));
    CHECK_EQUAL(-ENOENT, scene_ask(d, request_rename(path, other)));
    CHECK_EQUAL(0, scene_ask(d, request_path(RS_OP_UNLINK, other)));
    CHECK_EQUAL(-ENOENT, scene_ask(d, request_path(RS_OP_UNLINK, other)));
    CHECK_EQUAL(20, size_of(d, fd));
    close_all(d, &fd, 1);
    CHECK_EQUAL(-EBADF, scene_ask(d, (rs_request){.kind = RS_OP_FTRUNCATE, .fd = fd, .truncate.size = 10}));
}

OVER_BACKENDS(names_and_sizes) {
    driver d;
    const char *folder = subject_folder();
    subject_open(&d, subject);
    change_names_and_sizes(&d, folder);
    const char *inner = subject_path(folder, "inner");
    CHECK_EQUAL(is_sim(subject) ? -EOPNOTSUPP : 0, scene_ask(&d, request_path(RS_OP_MKDIR, inner)));
    rmdir(inner);
    CHECK_EQUAL(0, scene_end(&d));
    rmdir(folder);
}

/* As kernels before 5.11 do, and before 6.9 for one of them. */
OVER_KERNELS(what_the_ring_cannot_do_workers_do) {
    driver d;
    const char *folder = subject_folder();
    subject_open(&d, subject);
    if (is_uring(subject)) memset(uring_state_of(d.machine)->supported + URING_OP_FALLOCATE, 0, 1);
    for (int opcode = URING_OP_SPLICE; is_uring(subject) && opcode <= URING_OP_LAST; opcode++) {
        if (opcode != URING_OP_SOCKET && opcode != URING_OP_WAITID) uring_state_of(d.machine)->supported[opcode] = false;
    }
    change_names_and_sizes(&d, folder);
    int one[2];
    scene_ask(&d, request_pipe(one));
    const char *path = subject_path(folder, "file");
    int fd = (int)scene_ask(&d, request_open(path, O_RDWR | O_CREAT));
    CHECK_EQUAL(4, scene_ask(&d, request_write(fd, "text", 4)));
    int again = (int)scene_ask(&d, request_open(path, O_RDONLY));
    CHECK_EQUAL(4, scene_ask(&d, request_move(RS_OP_SPLICE, again, one[1], 100)));
    CHECK_EQUAL(0, scene_ask(&d, request_move(RS_OP_COPY_RANGE, again, fd, 100)));
    int all[4] = {fd, again, one[0], one[1]};
    close_all(&d, all, 4);
    CHECK_EQUAL(0, scene_end(&d));
    unlink(path);
    rmdir(folder);
}

/* Of an op that hangs at the first descriptor, and is about the second as well. */
TEST(closing_the_target_ends_the_op) {
    driver d;
    int one[2], other[2];
    rs_sim_faults faults = {.delay = 1000, .delay_max_ns = 1000000000};
    rs_options options = rs_default_options();
    options.faults = &faults;
    options.seed = 3;
    scene_begin();
    CHECK_EQUAL(0, driver_open(&d, &rs_backend_sim, &options));
    scene_ask(&d, request_pipe(one));
    scene_ask(&d, request_pipe(other));
    CHECK_EQUAL(5, scene_ask(&d, request_write(one[1], "hello", 5)));
    caller mover = {0};
    closer closer = {0};
    scene_call(&d, &mover, request_move(RS_OP_SPLICE, one[0], other[1], 100), 0, 0);
    scene_close(&d, &closer, other[1], 1);
    driver_run(&d);
    CHECK_EQUAL(-EBADF, mover.result);
    CHECK_EQUAL(0, closer.result);
    CHECK_EQUAL(0, rs_descriptors_in(d.machine)->table[other[1]].targeted);
    close_all(&d, one, 2);
    close_all(&d, other, 1);
    CHECK_EQUAL(0, scene_end(&d));
}

int main(int argc, char **argv) { return test_main(argc, argv); }
