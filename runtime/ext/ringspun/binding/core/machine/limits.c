/* limits: finds out which limit of the system has made something fail, by the system's present numbers. */
#include "inner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The number at the start of a file of proc(5); 0: it cannot be read. */
unsigned long long rsb_proc_number(const char *path) {
    char text[32] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t len = read(fd, text, sizeof(text) - 1);
    close(fd);
    return len > 0 ? strtoull(text, NULL, 10) : 0;
}

static unsigned long long count_mappings(void) {
    unsigned long long lines = 0;
    char text[8192];
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    for (ssize_t len; (len = read(fd, text, sizeof(text))) > 0;) {
        for (ssize_t i = 0; i < len; i++) lines += text[i] == '\n';
    }
    close(fd);
    return lines;
}

/* In bytes. */
#define MIB (1024ull * 1024ull)

static unsigned long long size_in(VALUE sizes, const char *name) {
    VALUE size = RB_TYPE_P(sizes, T_HASH) ? rb_hash_aref(sizes, ID2SYM(rb_intern(name))) : Qnil;
    return RB_INTEGER_TYPE_P(size) ? NUM2ULL(size) : MIB / 2;
}

/* Not every Ruby has RubyVM::DEFAULT_PARAMS. */
static unsigned long long stack_size(void) {
    VALUE vm = rb_path2class("RubyVM");
    ID name = rb_intern("DEFAULT_PARAMS");
    VALUE sizes = rb_const_defined(vm, name) ? rb_const_get(vm, name) : Qnil;
    return size_in(sizes, "fiber_machine_stack_size") + size_in(sizes, "fiber_vm_stack_size");
}

/* CRuby maps many stacks at once, and half as many whenever that fails, down to two or three (fiber_pool_allocate_memory in
 * cont.c). */
#define STACKS_AT_ONCE 3ull

/* If CRuby cannot make a guard page for one of them (fiber_pool_expand in cont.c), it unmaps all stacks that it has mapped at
 * once, with two mappings each. */
#define MAPPINGS_AT_ONCE (2 * 1024ull)

VALUE rsb_stack_limit(void) {
    struct rlimit space;
    unsigned long long size = rsb_proc_number("/proc/self/statm") * (unsigned long long)sysconf(_SC_PAGESIZE);
    bool limited = getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY;
    if (limited && size + STACKS_AT_ONCE * stack_size() + 4 * MIB > space.rlim_cur) {
        return rb_sprintf("the process has %llu MiB of address space, and RLIMIT_AS is %llu MiB: raise it (`ulimit -v`)",
                          size / MIB, (unsigned long long)space.rlim_cur / MIB);
    }
    unsigned long long most = rsb_proc_number("/proc/sys/vm/max_map_count"), mappings = count_mappings();
    if (most > 0 && mappings + MAPPINGS_AT_ONCE + most / 50 > most) {
        return rb_sprintf("the process has %llu memory mappings, and vm.max_map_count is %llu: raise it with "
                          "`sysctl vm.max_map_count=%llu`", mappings, most, 4 * most);
    }
    return rb_sprintf("neither RLIMIT_AS is met nor vm.max_map_count (%llu of %llu), so memory is short", mappings, most);
}

bool rsb_descriptors_left(void) {
    int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0) close(fd);
    return fd >= 0 || (errno != EMFILE && errno != ENFILE);
}
