// SPDX-License-Identifier: MIT
#include "copy.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../base/file.h"
#include "../base/memory.h"
#include "cache.h"

#define BLOCK 65536
#define MAX_MEMORY_NAME 249 // the kernel's limit
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

// --- reading ---------------------------------------------------------------------------

// Hashes the first `max` bytes that `fd` holds, and writes them to `copy` unless that is
// -1. `block` has BLOCK bytes. False with errno.
static bool stream(int fd, int copy, uint64_t max, void *block, struct content *out)
{
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    uint64_t size = 0;
    ssize_t got = 0;
    while (size < max) {
        size_t wanted = max - size < BLOCK ? (size_t)(max - size) : BLOCK;
        got = file_read_at(fd, block, wanted, size);
        if (got <= 0)
            break;
        crypto_hash_sha256_update(&state, block, (size_t)got);
        if (copy >= 0 && !file_write(copy, block, (size_t)got))
            return false;
        size += (uint64_t)got;
    }
    crypto_hash_sha256_final(&state, out->sha256);
    out->size = size;
    return got >= 0;
}

static tn_status cannot_read(void)
{
    return fail(TN_ERR_IO, "reading: %s", strerror(errno));
}

tn_status content_hash(int fd, struct content *out)
{
    struct content made = {.fd = -1};
    void *block = mem_alloc(BLOCK);
    if (!block)
        return TN_ERR_MEMORY;
    tn_status status = stream(fd, -1, UINT64_MAX, block, &made) ? TN_OK : cannot_read();
    mem_free(block);
    if (status == TN_OK)
        *out = made;
    return status;
}

// --- places for a copy -----------------------------------------------------------------

// Writing past the process' limit on file sizes would send it a signal.
static bool has_room(uint64_t size)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && size <= limit.rlim_cur;
}

// -1 where there are no memory files, or none that may be executed.
static int memory_file(const char *path)
{
    size_t size = strlen(path);
    const char *name = size > MAX_MEMORY_NAME ? path + size - MAX_MEMORY_NAME : path;
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = memfd_create(name, flags | MFD_EXEC);
    if (fd < 0 && errno == EINVAL) // before Linux 6.3
        fd = memfd_create(name, flags);
    return file_above_standard(fd);
}

static bool seal_memory(int *fd)
{
    return fcntl(*fd, F_ADD_SEALS,
                 F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

// Nobody can open what has no name: the descriptor that writes is exchanged for one that
// reads.
static bool seal_nameless(int *fd)
{
    char name[32];
    snprintf(name, sizeof(name), "/proc/self/fd/%d", *fd);
    int reader = file_open(AT_FDCWD, name, O_RDONLY, 0);
    if (reader < 0)
        return false;
    close(*fd);
    *fd = reader;
    return true;
}

// Copies into the open file `into`, which it takes. `size` is that of the file when it was
// opened: what is appended meanwhile stays out, and the limit on file sizes holds.
static bool fill(int fd, uint64_t size, void *block, int into, bool (*seal)(int *),
                 struct content *out)
{
    struct content made = {.fd = into};
    if (into < 0)
        return false;
    if (!stream(fd, into, size, block, &made) || !seal(&made.fd)) {
        close(made.fd);
        return false;
    }
    *out = made;
    return true;
}

// --- the whole -------------------------------------------------------------------------

// Only root can change it, and this process is not root. (Nobody else's write grant passed
// the check of the owner.)
static bool is_out_of_reach(const struct stat *info)
{
    return info->st_uid == 0 && geteuid() != 0 && !(info->st_mode & (S_IWGRP | S_IWOTH));
}

static tn_status keep(int fd, bool may_change, struct content *out)
{
    struct content made;
    tn_status status = content_hash(fd, &made);
    if (status != TN_OK)
        return status;
    made.fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (made.fd < 0)
        return cannot_read();
    made.may_change = may_change;
    *out = made;
    return TN_OK;
}

tn_status content_keep(int fd, struct content *out)
{
    return keep(fd, false, out);
}

tn_status content_copy(int fd, const char *path, const struct config *config,
                       struct content *out)
{
    struct stat info;
    if (fstat(fd, &info))
        return cannot_read();
    if (is_out_of_reach(&info))
        return keep(fd, false, out);
    uint64_t size = (uint64_t)info.st_size;
    if (!has_room(size))
        return keep(fd, true, out);
    void *block = mem_alloc(BLOCK);
    if (!block)
        return TN_ERR_MEMORY;
    bool copied =
        fill(fd, size, block, memory_file(path), seal_memory, out) ||
        (config && fill(fd, size, block, cache_nameless_file(config), seal_nameless, out));
    mem_free(block);
    return copied ? TN_OK : keep(fd, true, out);
}

// --- several ---------------------------------------------------------------------------

void objects_sha256(const struct objects *objects, unsigned char out[32])
{
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    for (uint32_t i = 0; i < objects->count; i++)
        crypto_hash_sha256_update(&state, objects->contents[i].sha256, 32);
    if (objects->count == 1)
        memcpy(out, objects->contents[0].sha256, 32);
    else
        crypto_hash_sha256_final(&state, out);
}

void objects_close(struct objects *objects)
{
    for (uint32_t i = 0; i < objects->count; i++)
        close(objects->contents[i].fd);
    objects->count = 0;
}
