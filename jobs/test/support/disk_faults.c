/* A disk on which the n-th write, sync or cut of a file of SQLite fails, or the n-th read. It stands between SQLite and the file
 * system that SQLite has by itself: https://www.sqlite.org/vfs.html */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "sqlite3.h"

/* What goes wrong: that one call; all calls from then on; the disk is full from then on; half of it is written, and an error is
 * returned; half of it is written, and the process is killed; that one read, for which reads are counted alone. */
enum { ONCE, LASTING, FULL, TORN, KILLED, UNREAD };

typedef struct {
    sqlite3_file base;
    int counts; /* the file may be lost if its calls fail */
    int unused;
} shim_file; /* behind it lies the file of the system below */

static sqlite3_vfs shim, *below;
static sqlite3_io_methods methods;
static long left = -1, counted;
static volatile long synced;
static volatile int gate = -1;
static int kind;
static const char *while_there; /* all calls fail while there is a file of this name */

static sqlite3_file *real(sqlite3_file *file) { return (sqlite3_file *)((shim_file *)file + 1); }

static int fails(sqlite3_file *file, int reads) {
    if (!((shim_file *)file)->counts || reads != (kind == UNREAD)) return 0;
    counted++;
    if (while_there && !access(while_there, F_OK)) return 1;
    if (left < 0) return 0;
    if (left > 0) {
        left--;
        return 0;
    }
    if (kind == ONCE || kind == TORN || kind == UNREAD) left = -1;
    if (kind == KILLED) kill(getpid(), SIGKILL);
    return 1;
}

static int shim_close(sqlite3_file *file) { return real(file)->pMethods->xClose(real(file)); }

static int shim_read(sqlite3_file *file, void *bytes, int size, sqlite3_int64 at) {
    if (fails(file, 1)) return SQLITE_IOERR_READ;
    return real(file)->pMethods->xRead(real(file), bytes, size, at);
}

static int shim_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 at) {
    int half = left == 0 && (kind == TORN || kind == KILLED) && ((shim_file *)file)->counts;
    if (half) real(file)->pMethods->xWrite(real(file), bytes, size / 2, at);
    if (fails(file, 0)) return kind == FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    return real(file)->pMethods->xWrite(real(file), bytes, size, at);
}

static int shim_truncate(sqlite3_file *file, sqlite3_int64 size) {
    if (kind != FULL && fails(file, 0)) return SQLITE_IOERR_TRUNCATE;
    return real(file)->pMethods->xTruncate(real(file), size);
}

/* Waits for a byte, if there is a gate. */
static int shim_sync(sqlite3_file *file, int flags) {
    char byte;
    if (((shim_file *)file)->counts) {
        synced++;
        if (gate >= 0 && read(gate, &byte, 1) != 1) return SQLITE_IOERR_FSYNC;
    }
    if (kind != FULL && fails(file, 0)) return SQLITE_IOERR_FSYNC;
    return real(file)->pMethods->xSync(real(file), flags);
}

static int shim_size(sqlite3_file *file, sqlite3_int64 *size) { return real(file)->pMethods->xFileSize(real(file), size); }
static int shim_lock(sqlite3_file *file, int lock) { return real(file)->pMethods->xLock(real(file), lock); }
static int shim_unlock(sqlite3_file *file, int lock) { return real(file)->pMethods->xUnlock(real(file), lock); }
static int shim_check(sqlite3_file *file, int *out) { return real(file)->pMethods->xCheckReservedLock(real(file), out); }
static int shim_control(sqlite3_file *file, int op, void *out) { return real(file)->pMethods->xFileControl(real(file), op, out); }
static int shim_sector(sqlite3_file *file) { return real(file)->pMethods->xSectorSize(real(file)); }
static int shim_device(sqlite3_file *file) { return real(file)->pMethods->xDeviceCharacteristics(real(file)); }

static int shim_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **out) {
    return real(file)->pMethods->xShmMap(real(file), page, size, extend, out);
}

static int shim_shm_lock(sqlite3_file *file, int offset, int n, int flags) {
    return real(file)->pMethods->xShmLock(real(file), offset, n, flags);
}

static void shim_shm_barrier(sqlite3_file *file) { real(file)->pMethods->xShmBarrier(real(file)); }
static int shim_shm_unmap(sqlite3_file *file, int remove) { return real(file)->pMethods->xShmUnmap(real(file), remove); }

static int shim_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags, int *out) {
    (void)vfs;
    memset(file, 0, (size_t)shim.szOsFile);
    int result = below->xOpen(below, name, real(file), flags, out);
    if (real(file)->pMethods) file->pMethods = &methods;
    ((shim_file *)file)->counts = !!(flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL));
    return result;
}

/* Called once in a process, with two functions of its SQLite. */
int faults_install(sqlite3_vfs *(*find)(const char *), int (*add)(sqlite3_vfs *, int)) {
    while_there = getenv("DISK_FAULTS_WHILE");
    below = find(NULL);
    shim = *below;
    shim.zName = "faults";
    shim.szOsFile = (int)sizeof(shim_file) + below->szOsFile;
    shim.xOpen = shim_open;
    methods = (sqlite3_io_methods){ 2, shim_close, shim_read, shim_write, shim_truncate, shim_sync, shim_size, shim_lock,
                                    shim_unlock, shim_check, shim_control, shim_sector, shim_device, shim_shm_map, shim_shm_lock,
                                    shim_shm_barrier, shim_shm_unmap, NULL, NULL };
    return add(&shim, 1);
}

/* Plans a fault after `calls` that do well; below 0 there is none. */
void faults_plan(long calls, int what) {
    kind = what;
    left = calls;
}

long faults_count(void) { return counted; }

/* How often a file was to be on the disk. */
long faults_synced(void) { return synced; }

/* Lets each of these wait for a byte from a descriptor; below 0 none waits. */
void faults_gate(int descriptor) { gate = descriptor; }
