/* reasons: the words behind a status. Owns nothing, has no state, and may be called from any thread. */
#ifndef RINGSPUN_HTTP_REASONS_H
#define RINGSPUN_HTTP_REASONS_H

#include <stdint.h>

/* Those that IANA has registered (https://www.iana.org/assignments/http-status-codes); empty for others. */
const char *rhttp_reason(uint16_t status);

#endif
