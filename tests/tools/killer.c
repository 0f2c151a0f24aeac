// SPDX-License-Identifier: MIT
// Preloaded: ends the process before its KILL_AT-th call that changes files. With
// KILL_EXCHANGE=0 the file system cannot exchange two names.
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void step(void)
{
    static long left = -1;
    const char *at = getenv("KILL_AT");
    if (left < 0)
        left = at ? atol(at) : 0;
    if (left > 0 && --left == 0)
        _exit(77);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define EXPORT __attribute__((visibility("default")))

EXPORT ssize_t write(int fd, const void *data, size_t size)
{
    step();
    return NEXT(write)(fd, data, size);
}

EXPORT int fsync(int fd)
{
    step();
    return NEXT(fsync)(fd);
}

EXPORT int mkdir(const char *path, mode_t mode)
{
    step();
    return NEXT(mkdir)(path, mode);
}

EXPORT char *mkdtemp(char *path)
{
    step();
    return NEXT(mkdtemp)(path);
}

EXPORT int fchmod(int fd, mode_t mode)
{
    step();
    return NEXT(fchmod)(fd, mode);
}

EXPORT int unlink(const char *path)
{
    step();
    return NEXT(unlink)(path);
}

EXPORT int rmdir(const char *path)
{
    step();
    return NEXT(rmdir)(path);
}

int renameat(int from, const char *old, int to, const char *path);
EXPORT int renameat(int from, const char *old, int to, const char *path)
{
    step();
    return NEXT(renameat)(from, old, to, path);
}

int renameat2(int from, const char *old, int to, const char *path, unsigned flags);
EXPORT int renameat2(int from, const char *old, int to, const char *path, unsigned flags)
{
    const char *exchange = getenv("KILL_EXCHANGE");
    step();
    if (flags && exchange && *exchange == '0') {
        errno = EINVAL;
        return -1;
    }
    return NEXT(renameat2)(from, old, to, path, flags);
}
