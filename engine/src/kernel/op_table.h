/* op_table: the system calls behind every kind of op. No state of its own. */
#ifndef RINGSPUN_OP_TABLE_H
#define RINGSPUN_OP_TABLE_H

#include "ops/platform.h"

extern const rs_op_call rs_op_calls[RS_OP_KINDS];

#endif
