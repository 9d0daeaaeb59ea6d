/* platform: Linux, as rs_platform has it. */
#ifndef RINGSPUN_KERNEL_PLATFORM_H
#define RINGSPUN_KERNEL_PLATFORM_H

#include "ops/platform.h"

extern const rs_platform rs_platform_linux;

/* Notes the sort of a socket of the machine's own, by the words of socket(2). */
void rs_socket_made(rs_machine *machine, int fd, int family, int type);

#endif
