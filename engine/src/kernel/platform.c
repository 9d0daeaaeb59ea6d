#include "kernel/platform.h"
#include "core/machine.h"
#include "kernel/op_table.h"
#include "kernel/processor.h"
#include "ops/descriptors.h"
#include "ringspun/kernel/descriptor_kinds.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

_Static_assert(RS_POLL_IN == POLLIN, "the engine's word is the kernel's");

static void note_made(rs_machine *machine, const rs_request *request, int fd) {
    uint8_t makes = rs_request_traits(request)->makes;
    RS_CHECK(makes != RS_MAKES_NOTHING && makes != RS_MAKES_PAIR);
    bool file = makes == RS_MAKES_FILE;
    rs_descriptor_note(rs_descriptors_in(machine), fd, file ? rs_descriptor_classify(fd) : RS_FD_STREAM, !file);
    if (makes == RS_MAKES_ACCEPTED) rs_descriptor_copy_sort(rs_descriptors_in(machine), fd, request->fd);
    if (makes == RS_MAKES_SOCKET) rs_socket_made(machine, fd, request->socket.family, request->socket.type);
}

static void discard(rs_machine *machine, int fd) {
    RS_CHECK(fd >= 0);
    (void)machine;
    close(fd);
}

static bool is_open(const rs_machine *machine, int fd) { return (void)machine, fcntl(fd, F_GETFD) >= 0; }
static bool is_socket(const rs_machine *machine, int fd) { return (void)machine, rs_descriptor_is_socket(fd); }
static bool is_file(const rs_machine *machine, int fd) { return (void)machine, rs_fd_is_file(rs_descriptor_classify(fd)); }
static uint64_t identity(const rs_machine *machine, int fd) { return (void)machine, rs_descriptor_identity(fd); }

const rs_platform rs_platform_linux = {
    .calls = rs_op_calls, .note_made = note_made, .discard = discard, .is_open = is_open, .is_socket = is_socket,
    .is_file = is_file, .identity = identity, .call_ns = rs_call_ns,
};
