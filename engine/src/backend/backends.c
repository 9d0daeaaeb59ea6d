#include "ringspun/backend/backends.h"
#include "core/backend.h"

const char *rs_backend_name(const rs_backend *backend) { return backend->name; }
