/* platform: Linux, as rs_platform has it. */
#ifndef RINGSPUN_KERNEL_PLATFORM_H
#define RINGSPUN_KERNEL_PLATFORM_H

#include "ops/platform.h"

extern const rs_platform rs_platform_linux;

#endif
