#include "ringspun/ops/request.h"

#include <sys/uio.h>

uint64_t rs_vector_len(const rs_vector *vector) {
    RS_CHECK(vector->parts != NULL || vector->count == 0);
    uint64_t len = 0;
    for (uint64_t i = 0; i < vector->count; i++) len += vector->parts[i].iov_len;
    return len;
}

void rs_vector_advance(rs_vector *vector, uint64_t bytes) {
    RS_CHECK(bytes <= rs_vector_len(vector));
    if (vector->offset >= 0) vector->offset += (int64_t)bytes;
    for (; bytes > 0; vector->parts++, vector->count--) {
        struct iovec *part = vector->parts;
        RS_CHECK(vector->count > 0);
        if (bytes < part->iov_len) {
            part->iov_base = (char *)part->iov_base + bytes;
            part->iov_len -= bytes;
            return;
        }
        bytes -= part->iov_len;
    }
}
