#include "ringspun/kernel/resolve.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
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

#define NAME_OF_ALL "localhost"

static bool is_name_of_all(const char *host, size_t len) {
    size_t own = strlen(NAME_OF_ALL);
    if (len < own || strncasecmp(host + len - own, NAME_OF_ALL, own) != 0) return false;
    return len == own || host[len - own - 1] == '.';
}

/* An address, and then names of it, up to a comment. */
static bool names_host(char *line, const char *host, size_t len) {
    char *rest = NULL;
    line[strcspn(line, "#\n")] = '\0';
    if (!strtok_r(line, " \t", &rest)) return false;
    for (char *name; (name = strtok_r(NULL, " \t", &rest));) {
        if (strlen(name) == len && strncasecmp(name, host, len) == 0) return true;
    }
    return false;
}

bool rs_host_is_known(const char *host) {
    size_t len = strlen(host);
    if (len > 0 && host[len - 1] == '.') len--;
    if (is_name_of_all(host, len)) return true;
    FILE *file = fopen("/etc/hosts", "re");
    if (!file) return false;
    char line[4096];
    bool found = false;
    while (!found && fgets(line, sizeof(line), file)) found = names_host(line, host, len);
    fclose(file);
    return found;
}
