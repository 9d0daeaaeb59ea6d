/* scratch: memory in which an answer is put together before it goes to the stream in one piece. There is one, for no Ruby code runs
 * between its beginning and its end, and so no other strand or thread. */
#ifndef RINGSPUN_HTTP_SCRATCH_H
#define RINGSPUN_HTTP_SCRATCH_H

#include "server/http.h"

/* Forgets what was there. */
void rhs_scratch_begin(void);

/* Where the next `len` bytes are to be put. Raises NoMemoryError. */
uint8_t *rhs_scratch_room(size_t len);

/* How far it was filled: up to `end`. */
void rhs_scratch_filled(const uint8_t *end);

void rhs_scratch_put(const void *bytes, size_t len);

/* A copy of all of it. */
VALUE rhs_scratch_string(void);

/* Writes all of it to the stream. Raises GoneError. */
void rhs_scratch_send(VALUE stream);

#endif
