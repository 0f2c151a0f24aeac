// SPDX-License-Identifier: MIT
// Preloaded: ends the process before its KILL_AT-th call that changes files, with
// KILL_SIGNAL by that signal. With KILL_EXCHANGE=0 the file system cannot exchange two
// names, with KILL_NAMELESS=0 it has no files without names.
#undef _FILE_OFFSET_BITS // which gives one name to openat and openat64
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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
    if (left > 0 && --left == 0) {
        const char *number = getenv("KILL_SIGNAL");
        if (number)
            raise(atoi(number));
        _exit(77);
    }
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

EXPORT int mkdirat(int at, const char *path, mode_t mode)
{
    step();
    return NEXT(mkdirat)(at, path, mode);
}

EXPORT int fchmod(int fd, mode_t mode)
{
    step();
    return NEXT(fchmod)(fd, mode);
}

EXPORT int unlinkat(int at, const char *path, int flags)
{
    step();
    return NEXT(unlinkat)(at, path, flags);
}

EXPORT int linkat(int from, const char *old, int to, const char *path, int flags)
{
    step();
    return NEXT(linkat)(from, old, to, path, flags);
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

// O_TMPFILE contains O_DIRECTORY.
static int open_at(__typeof__(&openat) next, int at, const char *path, int flags,
                   mode_t mode)
{
    const char *nameless = getenv("KILL_NAMELESS");
    if ((flags & O_TMPFILE) == O_TMPFILE && nameless && *nameless == '0') {
        errno = EOPNOTSUPP;
        return -1;
    }
    return next(at, path, flags, mode);
}

static mode_t mode_of(int flags, va_list list)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(list, mode_t) : 0;
}

EXPORT int openat(int at, const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = mode_of(flags, list);
    va_end(list);
    return open_at(NEXT(openat), at, path, flags, mode);
}

int openat64(int at, const char *path, int flags, ...);
EXPORT int openat64(int at, const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = mode_of(flags, list);
    va_end(list);
    return open_at(NEXT(openat64), at, path, flags, mode);
}
