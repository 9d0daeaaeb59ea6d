#include "kernel/paths.h"
#include "core/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int64_t answer(int64_t result) { return result < 0 ? -errno : result; }

int64_t rs_unlink(const rs_request *request) {
    RS_CHECK(request->path.path != NULL);
    return answer(unlink(request->path.path));
}

int64_t rs_rename(const rs_request *request) {
    RS_CHECK(request->path.path != NULL && request->path.to != NULL);
    return answer(rename(request->path.path, request->path.to));
}

int64_t rs_mkdir(const rs_request *request) {
    RS_CHECK(request->path.path != NULL);
    return answer(mkdir(request->path.path, request->path.mode));
}

int64_t rs_attempt_mkdir(rs_machine *machine, const rs_request *request) {
    return machine->options.offload_files ? -EAGAIN : rs_mkdir(request);
}

int64_t rs_ftruncate(const rs_request *request) {
    RS_CHECK(request->kind == RS_OP_FTRUNCATE);
    int64_t result;
    do result = answer(ftruncate(request->fd, request->truncate.size));
    while (result == -EINTR);
    return result;
}

int64_t rs_fallocate(const rs_request *request) {
    RS_CHECK(request->kind == RS_OP_FALLOCATE);
    int64_t result;
    do result = answer(fallocate(request->fd, request->room.mode, request->room.offset, (off_t)request->room.len));
    while (result == -EINTR);
    return result;
}
