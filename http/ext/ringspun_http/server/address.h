/* address: who is at the two ends of a connection. Owns nothing. */
#ifndef RINGSPUN_HTTP_ADDRESS_H
#define RINGSPUN_HTTP_ADDRESS_H

#include "server/http.h"

void rhs_init_address(VALUE class);

#endif
