/* io: what the files that make requests share. */
#ifndef RINGSPUN_IO_H
#define RINGSPUN_IO_H

#include "binding.h"

#include <limits.h>
#include <sys/uio.h>

typedef enum { RSB_IN, RSB_OUT } rsb_direction;

/* Where a read puts its bytes. */
typedef struct {
    VALUE buffer;
    void *address;
    size_t length;
    size_t offset;
    bool string;
} rsb_target;

rsb_target rsb_target_of(VALUE buffer, VALUE length, VALUE at);
void rsb_target_filled(const rsb_target *target, int64_t bytes);
void rsb_source_of(VALUE buffer, rs_request *request);

/* Does the request, waiting if need be, and raises what fails. `buffer` is what its address lies in, or nil. */
int64_t rsb_request(rsb_machine *machine, rs_request *request, VALUE buffer, rsb_direction direction, const char *what);
int64_t rsb_request_all(rsb_machine *machine, rs_request *request, VALUE buffer, const char *what);
int64_t rsb_wait_for(rsb_machine *machine, rs_request *request, VALUE buffer, rsb_direction direction);

/* The same for a request whose answer comes in its `extra`; an outgoing String must be frozen. */
int64_t rsb_message_wait(rsb_machine *machine, rs_request *request, VALUE buffer, void *answer, size_t answer_size,
                         rsb_direction direction);

/* The request's `extra` belongs to the caller until it waits: this frees it where it did not. */
int64_t rsb_request_extra(rsb_machine *machine, rs_request *request, const char *what);

/* An op that makes two descriptors. */
VALUE rsb_make_pair(rsb_machine *machine, rs_request *request, const char *what);

void rsb_init_file(void);

#endif
