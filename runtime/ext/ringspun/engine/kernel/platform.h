/* platform: Linux, as rs_platform has it. */
#ifndef RINGSPUN_KERNEL_PLATFORM_H
#define RINGSPUN_KERNEL_PLATFORM_H

#include "ops/platform.h"

extern const rs_platform rs_platform_linux;

/* A request has made that socket: notes its sort, by the words of socket(2) that the request has. */
void rs_socket_made(rs_machine *machine, const rs_request *request, int fd);

#endif
