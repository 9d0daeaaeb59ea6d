#include "ringspun/ops/platform.h"
#include "core/machine.h"

const rs_platform *rs_platform_of(const rs_machine *machine) { return machine->backend->platform; }

bool rs_tries_first(const rs_machine *machine) { return rs_platform_of(machine)->calls != NULL; }
