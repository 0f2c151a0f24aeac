// SPDX-License-Identifier: MIT
// Makes private copies of plugin files and hashes them on the way. A finished copy is
// sealed: it can no longer be written.
#include "copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../../base/file.h"
#include "../../base/memory.h"
#include "../../base/sha256.h"
#include "../cache/cache.h"

#define BLOCK 65536
#define MAX_MEMORY_NAME 249 // the kernel's limit
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

// --- reading ---------------------------------------------------------------------------

// Hashes the first `max` bytes of the file `fd` and appends them to the file `copy` (-1: no
// copy). `block` is a buffer of BLOCK bytes. False with errno.
static bool module_copy_stream(int fd, int copy, uint64_t max, void *block,
                               struct content *out)
{
    struct sha256_ctx state;
    sha256_init(&state);
    uint64_t size = 0;
    ssize_t got = 0;
    while (size < max) {
        size_t wanted = max - size < BLOCK ? (size_t)(max - size) : BLOCK;
        got = file_read_at(fd, block, wanted, size);
        if (got <= 0)
            break;
        sha256_update(&state, (size_t)got, block);
        if (copy >= 0 && !file_write(copy, block, (size_t)got))
            return false;
        size += (uint64_t)got;
    }
    sha256_digest(&state, 32, out->sha256);
    out->size = size;
    return got >= 0;
}

struct file_version file_version(int fd)
{
    struct stat info;
    struct timespec now;
    if (fstat(fd, &info) || clock_gettime(CLOCK_REALTIME, &now) ||
        info.st_ctim.tv_sec + 2 > now.tv_sec)
        return (struct file_version){0};
    return (struct file_version){.device = info.st_dev,
                                 .inode = info.st_ino,
                                 .size = info.st_size,
                                 .modified = info.st_mtim,
                                 .changed = info.st_ctim};
}

static bool time_equal(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool file_version_equal(const struct file_version *a, const struct file_version *b)
{
    return a->inode != 0 && a->device == b->device && a->inode == b->inode &&
           a->size == b->size && time_equal(a->modified, b->modified) &&
           time_equal(a->changed, b->changed);
}

static tn_status module_copy_cannot_read(void)
{
    return fail(TN_ERR_IO, "reading: %s", strerror(errno));
}

tn_status content_hash(int fd, struct content *out)
{
    struct content made = {.fd = -1};
    void *block = mem_alloc(BLOCK);
    if (!block)
        return TN_ERR_MEMORY;
    tn_status status = module_copy_stream(fd, -1, UINT64_MAX, block, &made)
                           ? TN_OK
                           : module_copy_cannot_read();
    mem_free(block);
    if (status == TN_OK)
        *out = made;
    return status;
}

// --- files for a copy ------------------------------------------------------------------

// Writing past RLIMIT_FSIZE would raise SIGXFSZ, which ends the process.
static bool module_copy_has_room(uint64_t size)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && size <= limit.rlim_cur;
}

// Opens a memfd; -1 where the kernel has none, or forbids executable ones
// (vm.memfd_noexec).
static int memory_file(const char *path)
{
    size_t size = strlen(path);
    const char *name = size > MAX_MEMORY_NAME ? path + size - MAX_MEMORY_NAME : path;
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = memfd_create(name, flags | MFD_EXEC);
    if (fd < 0 && errno == EINVAL) // before Linux 6.3, which added MFD_EXEC
        fd = memfd_create(name, flags);
    return file_above_standard(fd);
}

static bool seal_memory(int *fd)
{
    return fcntl(*fd, F_ADD_SEALS,
                 F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

// An unnamed file has no path to open, so exchanging its writable descriptor for a
// read-only one ends all writing.
static bool seal_nameless(int *fd)
{
    char name[32];
    snprintf(name, sizeof(name), "/proc/self/fd/%d", *fd);
    int read_only = file_open(AT_FDCWD, name, O_RDONLY, 0);
    if (read_only < 0)
        return false;
    close(*fd);
    *fd = read_only;
    return true;
}

// Copies the file `fd` to the open file `into`, which it takes, and seals the copy. `size`
// is the file's size when the file was opened: bytes appended meanwhile are not copied, so
// that RLIMIT_FSIZE, which was checked against `size`, holds.
static bool module_copy_fill(int fd, uint64_t size, void *block, int into,
                             bool (*seal)(int *), struct content *out)
{
    struct content made = {.fd = into};
    if (into < 0)
        return false;
    if (!module_copy_stream(fd, into, size, block, &made) || !seal(&made.fd)) {
        close(made.fd);
        return false;
    }
    *out = made;
    return true;
}

// --- content ---------------------------------------------------------------------------

// Only root can change the file, and this process is not root. An access control list
// cannot grant writing here: without S_IWGRP its mask denies it.
static bool is_out_of_reach(const struct stat *info)
{
    return info->st_uid == 0 && geteuid() != 0 && !(info->st_mode & (S_IWGRP | S_IWOTH));
}

// Hashes the file itself, without a copy.
static tn_status module_copy_keep(int fd, bool may_change, struct content *out)
{
    struct content made;
    tn_status status = content_hash(fd, &made);
    if (status != TN_OK)
        return status;
    made.fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (made.fd < 0)
        return module_copy_cannot_read();
    made.may_change = may_change;
    *out = made;
    return TN_OK;
}

tn_status content_keep(int fd, struct content *out)
{
    return module_copy_keep(fd, false, out);
}

static tn_status copy_or_keep(int fd, const char *path, const struct config *config,
                              struct content *out)
{
    struct stat info;
    if (fstat(fd, &info))
        return module_copy_cannot_read();
    if (is_out_of_reach(&info))
        return module_copy_keep(fd, false, out);
    uint64_t size = (uint64_t)info.st_size;
    if (!module_copy_has_room(size))
        return module_copy_keep(fd, true, out);
    void *block = mem_alloc(BLOCK);
    if (!block)
        return TN_ERR_MEMORY;
    bool copied = module_copy_fill(fd, size, block, memory_file(path), seal_memory, out) ||
                  (config && module_copy_fill(fd, size, block, cache_nameless_file(config),
                                              seal_nameless, out));
    mem_free(block);
    return copied ? TN_OK : module_copy_keep(fd, true, out);
}

tn_status content_copy(int fd, const char *path, const struct config *config,
                       struct content *out)
{
    struct file_version before = file_version(fd);
    tn_status status = copy_or_keep(fd, path, config, out);
    struct file_version after = file_version(fd);
    if (status == TN_OK && !out->may_change && file_version_equal(&before, &after))
        out->version = after;
    return status;
}

// --- objects ---------------------------------------------------------------------------

void objects_sha256(const struct objects *objects, unsigned char out[32])
{
    struct sha256_ctx state;
    sha256_init(&state);
    for (uint32_t i = 0; i < objects->count; i++)
        sha256_update(&state, 32, objects->contents[i].sha256);
    if (objects->count == 1)
        memcpy(out, objects->contents[0].sha256, 32);
    else
        sha256_digest(&state, 32, out);
}

void objects_close(struct objects *objects)
{
    for (uint32_t i = 0; i < objects->count; i++)
        close(objects->contents[i].fd);
    objects->count = 0;
}
