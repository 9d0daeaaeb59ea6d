#include "kernel/resolve.h"

#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

int64_t rs_resolve(const rs_request *request) {
    rs_lookup *lookup = request->resolve.lookup;
    RS_CHECK(lookup != NULL && memchr(lookup->host, 0, RS_HOST_SIZE) != NULL);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
    lookup->count = 0;
    lookup->error = getaddrinfo(lookup->host, NULL, &hints, &found);
    if (lookup->error) return 0;
    for (struct addrinfo *info = found; info && lookup->count < RS_ADDRESSES_MAX; info = info->ai_next) {
        char *address = lookup->addresses[lookup->count];
        if (getnameinfo(info->ai_addr, info->ai_addrlen, address, RS_ADDRESS_SIZE, NULL, 0, NI_NUMERICHOST) == 0) lookup->count++;
    }
    freeaddrinfo(found);
    return lookup->count;
}
