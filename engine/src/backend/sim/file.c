/* file: files in memory, by path. There are no folders. */
#include "backend/sim/world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* From this size on a file grows by a quarter, as a buffer does (RS_BUFFER_LARGE). */
#define LARGE 1048576

static void free_file(sim_file *file) {
    RS_CHECK(file->size <= file->capacity);
    free(file->path);
    free(file->bytes);
    free(file);
}

void sim_files_free(sim_world *world) {
    while (world->files) {
        sim_file *file = world->files;
        RS_CHECK(file->opened == 0 && !file->unlinked);
        world->files = file->next;
        free_file(file);
    }
}

/* The last of an object over a file. */
static void gone(sim_world *world, sim_object *object) {
    (void)world;
    sim_file *file = object->file;
    RS_ASSERT(file->opened > 0);
    if (--file->opened == 0 && file->unlinked) free_file(file);
}

static sim_file *find(const sim_world *world, const char *path) {
    for (sim_file *file = world->files; file; file = file->next) {
        RS_CHECK(!file->unlinked && file->size <= file->capacity);
        if (strcmp(file->path, path) == 0) return file;
    }
    return NULL;
}

static sim_file *create(sim_world *world, const char *path) {
    RS_CHECK(!find(world, path));
    char *name = rs_try_alloc(strlen(path) + 1);
    sim_file *file = name ? rs_try_alloc(sizeof(*file)) : NULL;
    if (!file) {
        free(name);
        return NULL;
    }
    file->path = strcpy(name, path);
    file->next = world->files;
    world->files = file;
    return file;
}

int64_t sim_file_open(sim_world *world, const rs_request *request) {
    RS_CHECK(request->kind == RS_OP_OPEN);
    const char *path = request->open.path;
    uint32_t flags = request->open.flags;
    sim_file *file = find(world, path);
    if (file && (flags & O_CREAT) && (flags & O_EXCL)) return -EEXIST;
    if (!file && (!(flags & O_CREAT) || *path == '\0')) return -ENOENT;
    if (flags & O_DIRECTORY) return file ? -ENOTDIR : -ENOENT;
    if (world->open >= SIM_DESCRIPTORS_MAX) return -EMFILE;
    sim_object *object = sim_world_reserve(world, 1) ? sim_world_new_object(SIM_FILE, NULL) : NULL;
    if (object && !file) file = create(world, path);
    if (!file || !object) {
        if (object) sim_object_release(world, object);
        return -ENOMEM;
    }
    if ((flags & O_TRUNC) && (flags & O_ACCMODE) != O_RDONLY) file->size = 0;
    object->gone = gone;
    object->file = file;
    file->opened++;
    object->open_flags = flags;
    return sim_world_install(world, object);
}

int64_t sim_file_statx(const sim_world *world, const sim_object *object, const rs_request *request) {
    RS_CHECK(request->statx.answer != NULL);
    const sim_file *file = object ? object->file : find(world, request->statx.path);
    if (!file && !object) return -ENOENT;
    struct statx *answer = request->statx.answer;
    memset(answer, 0, sizeof(*answer));
    answer->stx_mask = STATX_TYPE | STATX_MODE | STATX_SIZE;
    answer->stx_nlink = 1;
    answer->stx_blksize = 4096;
    if (file) {
        answer->stx_mode = S_IFREG | 0644;
        answer->stx_size = (uint64_t)file->size;
        answer->stx_blocks = ((uint64_t)file->size + 511) / 512;
    } else {
        answer->stx_mode = (object->kind == SIM_SOCKET ? S_IFSOCK : S_IFIFO) | 0600;
    }
    return 0;
}

/* An offset of -1 is the descriptor's own position, which then moves. */
int64_t sim_file_read(sim_object *object, int64_t offset, void *bytes, uint64_t len) {
    RS_CHECK(object->kind == SIM_FILE && object->file->opened > 0);
    if ((object->open_flags & O_ACCMODE) == O_WRONLY) return -EBADF;
    const sim_file *file = object->file;
    int64_t from = offset >= 0 ? offset : object->position;
    if (from >= file->size) return 0;
    int64_t count = file->size - from;
    if ((uint64_t)count > len) count = (int64_t)len;
    if (count > 0) memcpy(bytes, file->bytes + from, (size_t)count);
    if (offset < 0) object->position += count;
    return count;
}

/* False: there is no room for it, as on a disk. */
static bool grow(sim_file *file, int64_t size) {
    RS_CHECK(size <= SIM_FILE_MAX);
    if (size <= file->capacity) return true;
    int64_t capacity = file->capacity ? file->capacity : 512;
    while (capacity < size) capacity += capacity < LARGE ? capacity : capacity / 4;
    void *bytes = rs_try_realloc(file->bytes, (size_t)capacity);
    if (!bytes) return false;
    file->bytes = bytes;
    file->capacity = capacity;
    return true;
}

int64_t sim_file_write(sim_object *object, int64_t offset, const void *bytes, uint64_t len) {
    RS_CHECK(object->kind == SIM_FILE && object->file->opened > 0);
    if ((object->open_flags & O_ACCMODE) == O_RDONLY) return -EBADF;
    sim_file *file = object->file;
    int64_t from = offset >= 0 ? offset : object->position;
    /* As Linux does it, even for a pwrite: https://man7.org/linux/man-pages/man2/pwrite.2.html (BUGS) */
    if (object->open_flags & O_APPEND) from = file->size;
    if (len == 0) return 0;
    if (from >= SIM_FILE_MAX) return -EFBIG;
    int64_t count = SIM_FILE_MAX - from;
    if ((uint64_t)count > len) count = (int64_t)len;
    if (!grow(file, from + count)) return -ENOSPC;
    if (from > file->size) memset(file->bytes + file->size, 0, (size_t)(from - file->size));
    memcpy(file->bytes + from, bytes, (size_t)count);
    if (from + count > file->size) file->size = from + count;
    if (offset < 0) object->position = from + count;
    return count;
}

int64_t sim_file_unlink(sim_world *world, const char *path) {
    for (sim_file **link = &world->files; *link; link = &(*link)->next) {
        sim_file *file = *link;
        if (strcmp(file->path, path) != 0) continue;
        *link = file->next;
        RS_CHECK(!file->unlinked);
        file->unlinked = true;
        if (file->opened == 0) free_file(file);
        return 0;
    }
    return -ENOENT;
}

int64_t sim_file_rename(sim_world *world, const char *from, const char *to) {
    sim_file *file = find(world, from);
    if (!file || *to == '\0') return -ENOENT;
    RS_CHECK(!file->unlinked);
    if (strcmp(from, to) == 0) return 0;
    char *name = rs_try_alloc(strlen(to) + 1);
    if (!name) return -ENOMEM;
    sim_file_unlink(world, to);
    free(file->path);
    file->path = strcpy(name, to);
    return 0;
}

static int64_t refuse_change(const sim_object *object) {
    if (object->kind != SIM_FILE) return -EINVAL;
    RS_CHECK(object->file->opened > 0);
    return (object->open_flags & O_ACCMODE) == O_RDONLY ? -EBADF : 0;
}

int64_t sim_file_resize(sim_object *object, int64_t size) {
    RS_CHECK(size >= 0);
    int64_t error = refuse_change(object);
    if (error) return error == -EBADF ? -EINVAL : error; /* as ftruncate(2) says it */
    if (size > SIM_FILE_MAX) return -EFBIG;
    sim_file *file = object->file;
    if (!grow(file, size)) return -ENOSPC;
    if (size > file->size) memset(file->bytes + file->size, 0, (size_t)(size - file->size));
    RS_ASSERT(size <= file->capacity);
    file->size = size;
    return 0;
}

int64_t sim_file_allocate(sim_object *object, const rs_request *request) {
    RS_CHECK(request->kind == RS_OP_FALLOCATE);
    int64_t error = refuse_change(object);
    if (error) return object->kind == SIM_FILE ? error : -ENODEV;
    const rs_room_request *room = &request->room;
    if (room->mode != 0) return -EOPNOTSUPP;
    if (room->len == 0) return -EINVAL;
    if (room->len > SIM_FILE_MAX || room->offset > SIM_FILE_MAX - (int64_t)room->len) return -EFBIG;
    RS_CHECK(room->offset >= 0);
    int64_t end = room->offset + (int64_t)room->len;
    return end > object->file->size ? sim_file_resize(object, end) : 0;
}
