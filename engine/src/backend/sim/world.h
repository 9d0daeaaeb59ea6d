/* world: what a simulated machine sees of a kernel: descriptors, pipes, stream sockets and files, all in memory. Owned
 * by the backend `sim`, on the machine's thread.
 *
 * It knows neither time nor ops nor chance, and it never waits: -EAGAIN says that a request would. An object lives while a
 * descriptor or an op in flight refers to it, as in Linux. When an object with waiters changes it is put into the list of
 * changed objects, and whoever keeps the waiters asks for those (sim_world_next_changed).
 */
#ifndef RINGSPUN_SIM_WORLD_H
#define RINGSPUN_SIM_WORLD_H

#include "ops/op.h"

/* Above the numbers that the process itself has as a rule, so that a simulated one that gets to the kernel means nothing there. */
#define SIM_DESCRIPTOR_FIRST 1000
#define SIM_DESCRIPTORS_MAX 65536u
/* What Linux gives a pipe, and how much it writes there in one piece: pipe(7). */
#define SIM_STREAM_CAPACITY 65536u
#define SIM_PIPE_ATOMIC 4096u
#define SIM_FILE_MAX ((int64_t)1 << 30)

typedef enum { SIM_PIPE_READER, SIM_PIPE_WRITER, SIM_SOCKET, SIM_FILE } sim_object_kind;
typedef enum { SIM_FRESH, SIM_LISTENING, SIM_CONNECTING, SIM_CONNECTED } sim_socket_state;

/* A ring of bytes on their way to the object that holds it. */
typedef struct {
    uint8_t *bytes;
    uint32_t start;
    uint32_t len;
    uint32_t capacity;
    bool ended;                 /* nobody will add to it */
} sim_stream;

typedef struct sim_file {
    struct sim_file *next;
    uint32_t opened;            /* objects over it */
    bool unlinked;              /* in no list any more: it goes with the last of those */
    char *path;
    uint8_t *bytes;
    int64_t size;
    int64_t capacity;
} sim_file;

struct sim_world;
struct sim_object;

/* Nobody refers to the object any more: what its kind has in it goes. NULL: nothing but bytes. */
typedef void (*sim_object_gone)(struct sim_world *world, struct sim_object *object);

typedef struct sim_object {
    uint8_t kind;
    uint8_t state;              /* of a socket */
    bool read_shut;
    bool write_shut;
    int32_t error;              /* the next read ends with it, once */
    uint32_t refs;
    sim_object_gone gone;
    sim_stream in;
    struct sim_object *peer;    /* where writes go; NULL: nobody reads there */

    int32_t family;
    void *address;              /* bound to */
    uint32_t address_len;
    struct sim_object *pending_first;   /* connected, not yet accepted */
    struct sim_object *pending_last;
    struct sim_object *pending_next;
    uint32_t pending_len;
    uint32_t pending_max;

    sim_file *file;
    int64_t position;
    uint32_t open_flags;

    rs_links waiters;           /* in order of arrival */
    struct sim_object *changed_next;
    bool changed;
} sim_object;

typedef struct sim_world {
    sim_object **table;         /* by descriptor - SIM_DESCRIPTOR_FIRST */
    uint32_t table_len;
    uint32_t table_capacity;
    uint32_t lowest_free;       /* no entry below it is free */
    uint32_t open;
    uint32_t connecting;
    uint32_t ports_chosen;
    sim_file *files;
    sim_object *changed_first;
    sim_object *changed_last;
} sim_world;

void sim_world_free(sim_world *world);

/* The object under a descriptor, or NULL. */
sim_object *sim_world_find(const sim_world *world, int fd);
void sim_object_hold(sim_object *object);
void sim_object_release(sim_world *world, sim_object *object);

/* Does what the request asks, as far as it goes without waiting, with at most `limit` bytes. `object` is what the
 * request's descriptor meant when it was made; NULL when it has none. */
int64_t sim_world_attempt(sim_world *world, sim_object *object, const rs_request *request, uint64_t limit);

/* The memory that it transfers to or from; `single` is for one that has a plain buffer. */
const struct iovec *sim_parts_of(const rs_request *request, struct iovec *single, uint64_t *count);

/* The bytes that it is to move. */
uint64_t sim_len_of(const rs_request *request);

/* The requests that never wait. */
int64_t sim_world_perform(sim_world *world, const rs_request *request);
int64_t sim_world_close(sim_world *world, int fd);

/* The connection breaks: what is under way is lost, and both ends see it. */
void sim_world_reset(sim_world *world, sim_object *socket);

/* A changed object with a reference for the caller, or NULL. */
sim_object *sim_world_next_changed(sim_world *world);

/* For sim_world's own files. */
void sim_world_changed(sim_world *world, sim_object *object);
/* NULL: there is no memory. */
sim_object *sim_world_new_object(sim_object_kind kind, sim_object_gone gone);
/* Makes room for `count` more descriptors, one or two, which are installed at once. False: there is no memory. */
bool sim_world_reserve(sim_world *world, uint32_t count);
int64_t sim_world_install(sim_world *world, sim_object *object);
int64_t sim_socket_connect(sim_world *world, sim_object *socket, const rs_request *request);
int64_t sim_socket_accept(sim_world *world, sim_object *listener);
int64_t sim_socket_perform(sim_world *world, const rs_request *request);
int64_t sim_file_open(sim_world *world, const rs_request *request);
int64_t sim_file_statx(const sim_world *world, const sim_object *object, const rs_request *request);
int64_t sim_file_read(sim_object *object, int64_t offset, void *bytes, uint64_t len);
int64_t sim_file_write(sim_object *object, int64_t offset, const void *bytes, uint64_t len);
int64_t sim_file_unlink(sim_world *world, const char *path);
int64_t sim_file_rename(sim_world *world, const char *from, const char *to);
int64_t sim_file_resize(sim_object *object, int64_t size);
int64_t sim_file_allocate(sim_object *object, const rs_request *request);
void sim_files_free(sim_world *world);

#endif
