#include "ops/platform.h"
#include "core/machine.h"
#include "ops/op_life.h"

const rs_platform *rs_platform_of(const rs_machine *machine) { return machine->backend->platform; }

bool rs_tries_first(const rs_machine *machine) { return rs_platform_of(machine)->calls != NULL; }

void rs_descriptor_discard(rs_machine *machine, int fd) { rs_platform_of(machine)->discard(machine, fd); }
