// SPDX-License-Identifier: MIT
// Replaces a file: the bytes go to a file without a name (O_TMPFILE) in the same folder, or
// to a file with a temporary name where the file system lacks these. The new file is synced
// to the disk, and takes the name by one rename.
//
// A file is locked (flock) as long as it has a temporary name. The kernel takes the lock
// from a process that ends, so a temporary file that can be locked was left behind, and the
// next writer to the folder removes it.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../base/fail.h"
#include "../base/file.h"
#include "../base/memory.h"
#include "../primitive/registry.h"
#include "file.h"

#define PREFIX ".tenon-save-"

struct replacement {
    tn_new_file file; // first: it is cast back
    char *path;       // for messages
    char *target;     // without links, of realpath(); NULL: there is no file yet
    char *name;       // of the file in `directory`
    uint32_t flags;   // TN_NEW_FILE_...
    int directory;    // -1: a pipe or device, which is written to directly
    char temporary[32];
};

static tn_status replace_cannot_write(const struct replacement *r)
{
    return fail(TN_ERR_IO, "cannot write %s: %s%s", r->path, strerror(errno),
                r->directory < 0 ? "" : "; what was there before is unchanged");
}

// --- temporary names ---------------------------------------------------------------------

static void replace_sweep_one(int directory, const char *name)
{
    struct stat info = {0};
    int fd = file_open(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(directory, name, 0);
    close(fd);
}

static void replace_sweep(int directory)
{
    int copy = file_open(directory, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;
    while (stream && (entry = readdir(stream)))
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0)
            replace_sweep_one(directory, entry->d_name);
    if (stream)
        closedir(stream);
    else if (copy >= 0)
        close(copy);
}

static bool replace_make_name(char name[32])
{
    uint64_t number;
    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        return false;
    snprintf(name, 32, PREFIX "%016" PRIx64, number);
    return true;
}

// Opens a file that vanishes with this process unless link_file() names it. -1: the file
// system has none, or link_file() cannot.
static int open_nameless(int directory, mode_t mode)
{
    return access("/proc/self/fd", X_OK)
               ? -1
               : file_open(directory, ".", O_TMPFILE | O_RDWR, mode);
}

// False when another process has locked or removed the new file as left behind. A file
// system without locks has no such process.
static bool replace_hold(int fd)
{
    struct stat info = {0};
    if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return false;
    return fstat(fd, &info) == 0 && info.st_nlink > 0;
}

static int open_named(int directory, mode_t mode, char name[32])
{
    for (int tries = 0; tries < 100; tries++) {
        int fd =
            replace_make_name(name)
                ? file_open(directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode)
                : -1;
        if (fd < 0 && errno == EEXIST)
            continue;
        if (fd < 0 || replace_hold(fd))
            return fd;
        close(fd);
    }
    errno = EEXIST;
    return -1;
}

// --- opening -----------------------------------------------------------------------------

// Gives the new file owner, group and mode of the one that it replaces, as far as this
// process may; where it may not give the group, the group gets no more than the others.
static void take_over(int fd, const struct stat *old)
{
    mode_t mode = old->st_mode & 0777;
    if (fchown(fd, old->st_uid, old->st_gid) && fchown(fd, (uid_t)-1, old->st_gid))
        mode &= ~(mode_t)070 | (mode & 07) << 3;
    (void)fchmod(fd, mode); // a file system without modes
}

static tn_status open_temporary(struct replacement *r, mode_t asked)
{
    struct stat old = {0};
    bool replaces = !asked &&
                    fstatat(r->directory, r->name, &old, AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISREG(old.st_mode);
    mode_t mode = asked || replaces ? 0600 : 0666; // nobody reads it before it has its mode
    replace_sweep(r->directory);
    int fd = open_nameless(r->directory, mode);
    if (fd < 0 && (fd = open_named(r->directory, mode, r->temporary)) < 0)
        r->temporary[0] = 0;
    r->file.descriptor = fd;
    if (fd < 0 || (asked && fchmod(fd, asked)))
        return replace_cannot_write(r);
    if (replaces)
        take_over(fd, &old);
    return TN_OK;
}

// Opens the folder of the file; `target` and `name` are set.
static tn_status replace_open_folder(struct replacement *r)
{
    r->target = realpath(r->path, NULL); // a link stays, and its target is replaced
    const char *path = r->target ? r->target : r->path;
    const char *slash = strrchr(path, '/');
    char *folder = file_folder(path);
    r->name = mem_strdup(slash ? slash + 1 : path);
    if (folder && r->name)
        r->directory = file_open(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY, 0);
    tn_status status = !folder || !r->name ? TN_ERR_MEMORY
                       : r->directory < 0  ? replace_cannot_write(r)
                                           : TN_OK;
    mem_free(folder);
    return status;
}

static tn_status open_given_folder(struct replacement *r, const tn_new_file_options *o)
{
    r->name = mem_strdup(o->name);
    if (!r->name)
        return TN_ERR_MEMORY;
    r->directory = file_open(o->directory, ".", O_RDONLY | O_DIRECTORY, 0);
    return r->directory < 0 ? replace_cannot_write(r) : TN_OK;
}

static tn_status open_replacement(struct replacement *r, const tn_new_file_options *o)
{
    struct stat info = {0};
    if (!o->name && stat(r->path, &info) == 0 && !S_ISREG(info.st_mode) &&
        !(o->flags & TN_NEW_FILE_ONLY)) {
        r->file.descriptor = file_open(AT_FDCWD, r->path, O_WRONLY, 0);
        return r->file.descriptor < 0 ? replace_cannot_write(r) : TN_OK;
    }
    tn_status status = o->name ? open_given_folder(r, o) : replace_open_folder(r);
    return status == TN_OK ? open_temporary(r, o->mode) : status;
}

static tn_status replace_read_options(const tn_new_file_options *given,
                                      tn_new_file_options *mine)
{
    uint32_t size =
        given && given->struct_size ? given->struct_size : TN_END_OF(mine, mode);
    *mine = (tn_new_file_options){0};
    tn_status status = given
                           ? abi_struct_read(mine, sizeof(*mine), given, size,
                                             TN_END_OF(mine, flags), "tn_new_file_options")
                           : TN_OK;
    if (status == TN_OK && mine->flags & ~(uint32_t)TN_NEW_FILE_ONLY)
        return fail(TN_ERR_ARGUMENT, "tn_new_file_options: flags 0x%x are unknown",
                    mine->flags);
    if (status == TN_OK && mine->mode & ~0777U)
        return fail(TN_ERR_ARGUMENT, "tn_new_file_options: mode 0%o, expected at most 0777",
                    mine->mode);
    return status;
}

tn_status tn_new_file_open(const char *path, const tn_new_file_options *options,
                           tn_new_file **out_file)
{
    tn_new_file_options mine;
    tn_status status = fail_if_null("new_file_open", "the path", path);
    if (status == TN_OK)
        status = fail_if_null("new_file_open", "the output pointer", out_file);
    if (status == TN_OK)
        status = replace_read_options(options, &mine);
    struct replacement *r = status == TN_OK ? mem_zalloc(sizeof(*r)) : NULL;
    if (!r)
        return status == TN_OK ? TN_ERR_MEMORY : status;
    r->file = (tn_new_file){.struct_size = sizeof(r->file), .descriptor = -1};
    r->directory = -1;
    r->flags = mine.flags;
    r->path = mem_strdup(path);
    status = r->path ? open_replacement(r, &mine) : TN_ERR_MEMORY;
    if (status == TN_OK)
        *out_file = &r->file;
    else
        tn_new_file_close(&r->file);
    return status;
}

// --- writing -----------------------------------------------------------------------------

tn_status new_file_write(tn_new_file *file, const void *data, uint64_t size)
{
    return file_write(file->descriptor, data, size)
               ? TN_OK
               : replace_cannot_write((const struct replacement *)(const void *)file);
}

static int link_file(const struct replacement *r, const char *name)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", r->file.descriptor);
    return linkat(AT_FDCWD, path, r->directory, name, AT_SYMLINK_FOLLOW);
}

// Gives the temporary name to the file unless there is one of the name. Some file systems
// have no hard links, others no RENAME_NOREPLACE, so both are tried.
static bool name_anew(const struct replacement *r)
{
    int at = r->directory;
    return linkat(at, r->temporary, at, r->name, 0) == 0 ||
           (errno != EEXIST &&
            renameat2(at, r->temporary, at, r->name, RENAME_NOREPLACE) == 0);
}

// Gives the written file its name. False: errno is the reason.
static bool replace_put_in_place(struct replacement *r)
{
    bool only = r->flags & TN_NEW_FILE_ONLY;
    if (!r->temporary[0]) {
        char name[32];
        if (link_file(r, r->name) == 0)
            return true;
        // There is a file of the name: only a rename replaces it at once.
        if (only || errno != EEXIST || !replace_make_name(name))
            return false;
        flock(r->file.descriptor, LOCK_EX | LOCK_NB);
        if (link_file(r, name))
            return false;
        memcpy(r->temporary, name, sizeof(name));
    }
    if (only)
        return name_anew(r); // tn_new_file_close removes the temporary name
    if (renameat(r->directory, r->temporary, r->directory, r->name))
        return false;
    r->temporary[0] = 0;
    return true;
}

tn_status tn_new_file_commit(tn_new_file *file)
{
    struct replacement *r = (struct replacement *)(void *)file;
    tn_status status = fail_if_null("new_file_commit", "the file", file);
    if (status != TN_OK || r->directory < 0)
        return status;
    if (fsync(file->descriptor) || !replace_put_in_place(r))
        return replace_cannot_write(r);
    fsync(r->directory); // the name is durable once the folder is on the disk
    return TN_OK;
}

void tn_new_file_close(tn_new_file *file)
{
    struct replacement *r = (struct replacement *)(void *)file;
    if (!r)
        return;
    if (r->temporary[0])
        unlinkat(r->directory, r->temporary, 0); // while it is still held
    if (file->descriptor >= 0)
        close(file->descriptor);
    if (r->directory >= 0)
        close(r->directory);
    free(r->target);
    mem_free(r->name);
    mem_free(r->path);
    mem_free(r);
}
