/* paths: ops that change what names and sizes files have. System calls only; no state of its own. Any thread may call those
 * without a machine.
 *
 * That of a file goes, or one is cut, may take as long as the file is large, so these are for somebody who may wait. A folder is
 * made as fast as a file is opened.
 */
#ifndef RINGSPUN_PATHS_H
#define RINGSPUN_PATHS_H

#include "ops/op_life.h"

int64_t rs_unlink(const rs_request *request);
int64_t rs_rename(const rs_request *request);
int64_t rs_mkdir(const rs_request *request);
int64_t rs_attempt_mkdir(rs_machine *machine, const rs_request *request);
int64_t rs_ftruncate(const rs_request *request);
int64_t rs_fallocate(const rs_request *request);

#endif
