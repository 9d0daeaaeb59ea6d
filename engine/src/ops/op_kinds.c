#include "ringspun/ops/op_kinds.h"

#define IN .side = RS_SIDE_READ, .effect = RS_EFFECT_DATA
#define OUT .side = RS_SIDE_WRITE, .effect = RS_EFFECT_DATA
#define BUFFER .memory = RS_MEMORY_BUFFER
#define VECTOR .memory = RS_MEMORY_VECTOR
#define HEADER .memory = RS_MEMORY_HEADER
#define ANY .moves = RS_MOVES_MEMORY
#define MESSAGE .moves = RS_MOVES_MESSAGE
#define BETWEEN .effect = RS_EFFECT_DATA, .moves = RS_MOVES_BETWEEN
#define DESCRIPTOR .effect = RS_EFFECT_DESCRIPTOR

const rs_op_traits rs_op_kinds[RS_OP_KINDS] = {
    [RS_OP_READ] = {"read", IN, ANY, BUFFER, .takes_stream = true},
    [RS_OP_WRITE] = {"write", OUT, ANY, BUFFER},
    [RS_OP_PREAD] = {"pread", IN, ANY, BUFFER},
    [RS_OP_PWRITE] = {"pwrite", OUT, ANY, BUFFER},
    [RS_OP_READV] = {"readv", IN, ANY, VECTOR},
    [RS_OP_WRITEV] = {"writev", OUT, ANY, VECTOR},
    [RS_OP_RECV] = {"recv", IN, MESSAGE, BUFFER, .takes_stream = true},
    [RS_OP_SEND] = {"send", OUT, MESSAGE, BUFFER},
    [RS_OP_RECVMSG] = {"recvmsg", IN, MESSAGE, HEADER},
    [RS_OP_SENDMSG] = {"sendmsg", OUT, MESSAGE, HEADER},
    [RS_OP_ACCEPT] = {"accept", RS_SIDE_READ, DESCRIPTOR, .makes = RS_MAKES_ACCEPTED},
    [RS_OP_CONNECT] = {"connect", RS_SIDE_WRITE},
    [RS_OP_POLL] = {"poll", RS_SIDE_MASK, .takes_nothing = true},
    [RS_OP_OPEN] = {"open", DESCRIPTOR, .makes = RS_MAKES_FILE, .of_others = true},
    [RS_OP_CLOSE] = {"close", .never_waits = true},
    [RS_OP_FSYNC] = {"fsync", .of_file = true},
    [RS_OP_STATX] = {"statx", .of_file = true},
    [RS_OP_WAITID] = {"waitid", .of_others = true},
    [RS_OP_SOCKET] = {"socket", DESCRIPTOR, .makes = RS_MAKES_SOCKET, .never_waits = true},
    [RS_OP_BIND] = {"bind", .never_waits = true},
    [RS_OP_LISTEN] = {"listen", .never_waits = true},
    [RS_OP_SHUTDOWN] = {"shutdown", .never_waits = true},
    [RS_OP_SETSOCKOPT] = {"setsockopt", .never_waits = true},
    [RS_OP_GETSOCKOPT] = {"getsockopt", .never_waits = true},
    [RS_OP_PIPE] = {"pipe", .makes = RS_MAKES_PAIR, .never_waits = true},
    [RS_OP_SOCKETPAIR] = {"socketpair", .makes = RS_MAKES_PAIR, .never_waits = true},
    [RS_OP_RESOLVE] = {"getaddrinfo"},
    [RS_OP_SPLICE] = {"splice", BETWEEN},
    [RS_OP_TEE] = {"tee", BETWEEN},
    [RS_OP_COPY_RANGE] = {"copy_file_range", BETWEEN, .of_file = true},
    /* What these have changed is changed, so a cancelled one is waited for as well. */
    [RS_OP_UNLINK] = {"unlink", .effect = RS_EFFECT_DATA, .of_file = true},
    [RS_OP_RENAME] = {"rename", .effect = RS_EFFECT_DATA, .of_file = true},
    [RS_OP_MKDIR] = {"mkdir", .effect = RS_EFFECT_DATA, .of_file = true},
    [RS_OP_FTRUNCATE] = {"ftruncate", .effect = RS_EFFECT_DATA, .of_file = true},
    [RS_OP_FALLOCATE] = {"fallocate", .effect = RS_EFFECT_DATA, .of_file = true},
};
