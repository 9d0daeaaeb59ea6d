/* platform: what the descriptors of a machine belong to, and what may be asked about them: this system (kernel/platform.c), or a
 * simulated one (backend/sim). A backend names its own. Constant; its functions are for the machine's thread.
 */
#ifndef RINGSPUN_PLATFORM_H
#define RINGSPUN_PLATFORM_H

#include "ringspun/core/machine.h"
#include "ops/op.h"

typedef struct {
    /* One try that does not wait: result, -EAGAIN when it would wait, or another -errno. Of the machine's thread alone. */
    int64_t (*attempt)(rs_machine *machine, const rs_request *request);
    /* The same as a plain system call that may block; only workers call it. NULL: never handed to a worker. */
    int64_t (*execute)(const rs_request *request);
} rs_op_call;

typedef struct rs_platform {
    const rs_op_call *calls;    /* by kind; NULL: nothing is tried, all goes to the backend, but for `at_once` */
    /* Where nothing is tried: a try for a strand that may not wait. The result as of `attempt`. */
    int64_t (*at_once)(rs_machine *machine, const rs_request *request);

    /* A request has made that descriptor, which is the machine's own: notes what is known of it. */
    void (*note_made)(rs_machine *machine, const rs_request *request, int fd);
    /* Closes what a request has made and nobody takes. */
    void (*discard)(rs_machine *machine, int fd);

    /* What a system call costs that does nothing; not for the decision whether to make one. NULL: there are none. */
    int64_t (*call_ns)(void);

    bool (*is_open)(const rs_machine *machine, int fd);
    bool (*is_socket)(const rs_machine *machine, int fd);
    bool (*is_file)(const rs_machine *machine, int fd);
    /* Tells two files, pipes or sockets apart that one number means one after the other; 0: it means none. */
    uint64_t (*identity)(const rs_machine *machine, int fd);
} rs_platform;

const rs_platform *rs_platform_of(const rs_machine *machine);

#endif
