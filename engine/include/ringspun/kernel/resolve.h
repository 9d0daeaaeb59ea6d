/* resolve: a name look-up as plain data, which an op can own and a worker thread can do. */
#ifndef RINGSPUN_RESOLVE_H
#define RINGSPUN_RESOLVE_H

#include "ringspun/ops/op.h"

/* A look-up owns room for as many addresses, 4 KB, and takes the first ones: those that the resolver prefers. */
#define RS_ADDRESSES_MAX 64
/* Of the longest address in digits, with the name of its interface. */
#define RS_ADDRESS_SIZE 64
/* NI_MAXHOST of getnameinfo(3). */
#define RS_HOST_SIZE 1025

typedef struct rs_lookup {
    int error;                  /* of getaddrinfo(3); 0: none */
    uint32_t count;
    bool is_known;              /* a file answers it, and no server is asked (rs_host_is_known) */
    char host[RS_HOST_SIZE];
    char addresses[RS_ADDRESSES_MAX][RS_ADDRESS_SIZE]; /* in the order in which the resolver prefers them */
} rs_lookup;

/* Fills in the request's rs_lookup; answers how many addresses there are. */
int64_t rs_resolve(const rs_request *request);

/* Whether the name is this computer's own, or stands in the file of those that are known here:
 * https://man7.org/linux/man-pages/man5/hosts.5.html */
bool rs_host_is_known(const char *host);

#endif
