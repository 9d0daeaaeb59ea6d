/* framing: what follows from the fields of a head: where its body ends, and whether the connection goes on. Owns nothing, has no
 * state, and may be called from any thread. */
#ifndef RINGSPUN_HTTP_FRAMING_H
#define RINGSPUN_HTTP_FRAMING_H

#include "codec/head.h"

/* Each is called once the fields are whole, and sets all of the head that is about its body and its connection. */
rhttp_wrong rhttp_judge_request(rhttp_request *request, const uint8_t *bytes);
rhttp_wrong rhttp_judge_response(rhttp_response *response, const uint8_t *bytes);

/* A length as `content-length` has it: digits, and no more than an off_t has. False: it is none. */
bool rhttp_read_length(const uint8_t *digits, size_t len, uint64_t *length);

#endif
