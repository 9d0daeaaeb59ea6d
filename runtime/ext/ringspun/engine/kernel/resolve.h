/* resolve: a name look-up as plain data, which an op can own and a worker thread can do. */
#ifndef RINGSPUN_RESOLVE_H
#define RINGSPUN_RESOLVE_H

#include "ops/op.h"

#define RS_ADDRESSES_MAX 64
/* Of the longest address in digits, with the name of its interface. */
#define RS_ADDRESS_SIZE 64
#define RS_HOST_SIZE 1025

typedef struct rs_lookup {
    int error;                  /* of getaddrinfo(3); 0: none */
    uint32_t count;
    char host[RS_HOST_SIZE];
    char addresses[RS_ADDRESSES_MAX][RS_ADDRESS_SIZE]; /* in the order in which the resolver prefers them */
} rs_lookup;

/* Fills in the request's rs_lookup; answers how many addresses there are. */
int64_t rs_resolve(const rs_request *request);

#endif
