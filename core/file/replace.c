// SPDX-License-Identifier: MIT
// Replaces a file: the bytes go to a temporary name in the same folder, are brought to the
// disk, and take the name by one rename.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../base/fail.h"
#include "../base/file.h"
#include "../base/memory.h"
#include "file.h"

static tn_status cannot_write(const struct replacement *r)
{
    return fail(TN_ERR_IO, "cannot write %s: %s%s", r->path, strerror(errno),
                r->directory < 0 ? "" : "; what was there before is unchanged");
}

static tn_status open_temporary(struct replacement *r)
{
    for (int tries = 0; tries < 100; tries++) {
        uint64_t number;
        if (getrandom(&number, sizeof(number), 0) != sizeof(number))
            break;
        snprintf(r->temporary, sizeof(r->temporary), ".tenon-save-%016" PRIx64, number);
        r->fd = file_open(r->directory, r->temporary,
                          O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
        if (r->fd >= 0)
            return TN_OK;
        if (errno != EEXIST)
            break;
    }
    r->temporary[0] = 0;
    return cannot_write(r);
}

static tn_status open_beside(struct replacement *r)
{
    r->target = realpath(r->path, NULL); // a link stays, and what it names is replaced
    const char *path = r->target ? r->target : r->path;
    const char *slash = strrchr(path, '/');
    char *folder = file_folder(path);
    if (!folder)
        return TN_ERR_MEMORY;
    r->name = slash ? slash + 1 : path;
    r->directory = file_open(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY, 0);
    mem_free(folder);
    return r->directory < 0 ? cannot_write(r) : open_temporary(r);
}

tn_status replacement_open(struct replacement *r, const char *path)
{
    struct stat info;
    *r = (struct replacement){.path = path, .fd = -1, .directory = -1};
    if (stat(path, &info) || S_ISREG(info.st_mode))
        return open_beside(r);
    r->fd = file_open(AT_FDCWD, path, O_WRONLY, 0);
    return r->fd < 0 ? cannot_write(r) : TN_OK;
}

tn_status replacement_write(struct replacement *r, const void *data, uint64_t size)
{
    return file_write(r->fd, data, size) ? TN_OK : cannot_write(r);
}

tn_status replacement_commit(struct replacement *r)
{
    if (r->directory >= 0 && fsync(r->fd))
        return cannot_write(r);
    int failed = close(r->fd);
    r->fd = -1;
    if (failed || r->directory < 0)
        return failed ? cannot_write(r) : TN_OK;
    if (renameat(r->directory, r->temporary, r->directory, r->name))
        return cannot_write(r);
    r->temporary[0] = 0;
    fsync(r->directory); // the name is durable once the folder is on the disk
    return TN_OK;
}

void replacement_finish(struct replacement *r)
{
    if (r->fd >= 0)
        close(r->fd);
    if (r->temporary[0])
        unlinkat(r->directory, r->temporary, 0);
    if (r->directory >= 0)
        close(r->directory);
    free(r->target);
    *r = (struct replacement){.fd = -1, .directory = -1};
}
