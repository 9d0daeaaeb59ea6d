/* A resolver of the tests' own, in front of the C library's: what `NAME.ringspun.test` means is other at every look-up. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int resolver(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static resolver *real(void) { return (resolver *)dlsym(RTLD_NEXT, "getaddrinfo"); }

/* In this order, which is none. */
static int answer(const char *const *addresses, size_t count, const char *service, const struct addrinfo *hints,
                  struct addrinfo **found) {
    *found = NULL;
    while (count-- > 0) {
        struct addrinfo *first = NULL;
        int error = real()(addresses[count], service, hints, &first);
        if (error) return error;
        first->ai_next = *found;
        *found = first;
    }
    return 0;
}

/* Until somebody has written to that pipe. */
static void hold(void) {
    struct pollfd pipe = {.fd = atoi(getenv("HELD_BY")), .events = POLLIN};
    poll(&pipe, 1, -1);
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    static atomic_int asked;
    static const char *const many[] = {"192.0.2.9", "2001:db8::7", "192.0.2.1", "192.0.2.200", "2001:db8::1"};
    static const char *const both[] = {"1.2.3.4", "1234::1"};
    if (!host || !strstr(host, ".ringspun.test")) return real()(host, service, hints, found);
    if (strncmp(host, "many.", 5) == 0) return answer(many, sizeof(many) / sizeof(*many), service, hints, found);
    if (strncmp(host, "both.", 5) == 0) return answer(both, sizeof(both) / sizeof(*both), service, hints, found);
    if (strncmp(host, "held.", 5) == 0) hold();
    if (strstr(host, ".local.")) return answer((const char *const[]){"127.0.0.1"}, 1, service, hints, found);
    char address[32];
    snprintf(address, sizeof(address), "192.0.2.%d", ++asked);
    return answer((const char *const[]){address}, 1, service, hints, found);
}
