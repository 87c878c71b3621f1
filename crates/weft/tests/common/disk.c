// Owns: a disk that fails or takes its time, for a server that is started with this library before the others
// (LD_PRELOAD). While a file of one of these names stands in the folder that WEFT_DISK names, it happens:
// `write-fails`, `sync-fails`: an error of the device (EIO); `sync-waits`: until the file goes; `read-waits`: the same for
// what stands behind a file's head; `no-room-for-snapshots`: the disk is full (ENOSPC) for those that are being written;
// `writes-are-short`: of what is to be written the system takes a part, as it may. The clock of the wall is another one
// too while there is `clock-an-hour-ahead`, `clock-an-hour-back` or `clock-two-hours-back`.

#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static int is(const char *what) {
    const char *folder = getenv("WEFT_DISK");
    char path[4096];
    if (folder == NULL || snprintf(path, sizeof path, "%s/%s", folder, what) >= (int)sizeof path) {
        return 0;
    }
    int before = errno, is_there = access(path, F_OK) == 0;
    errno = before;
    return is_there;
}

static int is_unfinished_snapshot(int file) {
    static const char end[] = ".snapshot.tmp";
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t len = readlink(link, path, sizeof path);
    size_t end_len = sizeof end - 1;
    return len >= (ssize_t)end_len && memcmp(path + len - end_len, end, end_len) == 0;
}

int fdatasync(int file) {
    while (is("sync-waits")) {
        usleep(500);
    }
    if (is("sync-fails")) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, file);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
    if (is("write-fails")) {
        errno = EIO;
        return -1;
    }
    if (is("no-room-for-snapshots") && is_unfinished_snapshot(file)) {
        errno = ENOSPC;
        return -1;
    }
    if (count > 1 && is("writes-are-short")) {
        count = (count + 1) / 2;
    }
    return syscall(SYS_pwrite64, file, bytes, count, at);
}

ssize_t pread64(int file, void *bytes, size_t count, off64_t at) {
    while (at > 0 && is("read-waits")) {
        usleep(500);
    }
    return syscall(SYS_pread64, file, bytes, count, at);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int failed = (int)syscall(SYS_clock_gettime, clock, time);
    if (!failed && clock == CLOCK_REALTIME) {
        time->tv_sec += is("clock-an-hour-ahead") ? 3600 : is("clock-an-hour-back") ? -3600 : is("clock-two-hours-back") ? -7200 : 0;
    }
    return failed;
}
