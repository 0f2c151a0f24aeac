// SPDX-License-Identifier: MIT
// Provenance: who could have changed a plugin's files, and whether somebody did.
//
// Each file is opened once, below the descriptor of its directory, and judged by that
// descriptor: what is checked is what is loaded, whatever happens to the names meanwhile.
#include "trust.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../base/file.h"

#define HASH_BLOCK 65536
#define MAX_PATH 4096

// A private group of the user alone (number equal to the user's, as distributions with such
// groups give it) is nobody else.
static bool is_own_group(gid_t group)
{
    return group == getegid() && group == geteuid();
}

static tn_status check_owner(const struct stat *info, const char *path,
                             struct reason *reason)
{
    if (info->st_uid != 0 && info->st_uid != geteuid())
        return reason_record(reason, TN_ERR_REFUSED, REASON_OWNER, path,
                             "%s belongs to user %u, neither root nor this user (%u)", path,
                             (unsigned)info->st_uid, (unsigned)geteuid());
    bool by_others = info->st_mode & S_IWOTH;
    bool by_group = info->st_mode & S_IWGRP && !is_own_group(info->st_gid);
    if (by_others || by_group)
        return reason_record(reason, TN_ERR_REFUSED, REASON_WRITABLE, path,
                             "%s can be changed by %s (mode %04o)", path,
                             by_others ? "everybody" : "its group",
                             (unsigned)info->st_mode & 07777);
    return TN_OK;
}

static tn_status cannot_open(const char *path, struct reason *reason)
{
    if (errno == ELOOP || errno == EMLINK)
        return reason_record(reason, TN_ERR_REFUSED, REASON_LINK, path,
                             "%s is a symbolic link", path);
    return reason_record(reason, TN_ERR_REFUSED, REASON_READ, path, "%s: %s", path,
                         strerror(errno));
}

tn_status trust_open_directory(int at, const char *name, const char *path, int *out_fd,
                               struct reason *reason)
{
    struct stat info;
    int fd = file_open(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (fd < 0 && errno == ENOTDIR && fstatat(at, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(info.st_mode))
        errno = ELOOP;
    if (fd < 0)
        return cannot_open(path, reason);
    tn_status status =
        fstat(fd, &info) ? cannot_open(path, reason) : check_owner(&info, path, reason);
    if (status != TN_OK) {
        close(fd);
        return status;
    }
    *out_fd = fd;
    return TN_OK;
}

// Opens the last part of `name` in `directory`, which it closes unless it is `keep`.
static int open_below(int directory, const char *name, const char *path, int keep,
                      struct reason *reason, tn_status *out_status)
{
    const char *slash = strchr(name, '/');
    char part[256];
    if (!slash) {
        int fd = file_open(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
        *out_status = fd < 0 ? cannot_open(path, reason) : TN_OK;
        if (directory != keep)
            close(directory);
        return fd;
    }
    snprintf(part, sizeof(part), "%.*s", (int)(slash - name), name);
    int next = -1;
    *out_status = trust_open_directory(directory, part, path, &next, reason);
    if (directory != keep)
        close(directory);
    return next;
}

tn_status trust_open_file(int directory, const char *name, const char *path, int *out_fd,
                          struct reason *reason)
{
    char full[MAX_PATH];
    snprintf(full, sizeof(full), "%s/%s", path, name);
    tn_status status = TN_OK;
    int fd = open_below(directory, name, full, directory, reason, &status);
    for (name = strchr(name, '/'); status == TN_OK && name; name = strchr(name, '/'))
        fd = open_below(fd, ++name, full, directory, reason, &status);
    if (status != TN_OK)
        return status;
    struct stat info;
    if (fstat(fd, &info))
        status = cannot_open(full, reason);
    else if (!S_ISREG(info.st_mode))
        status = reason_record(reason, TN_ERR_REFUSED, REASON_LINK, full,
                               "%s is no regular file", full);
    else
        status = check_owner(&info, full, reason);
    if (status != TN_OK) {
        close(fd);
        return status;
    }
    *out_fd = fd;
    return TN_OK;
}

// --- content ---------------------------------------------------------------------------

tn_status trust_read_file(int directory, const char *name, uint64_t max_size,
                          const char *path, char **out_text, size_t *out_size,
                          struct reason *reason)
{
    struct stat info;
    int fd = -1;
    tn_status status = trust_open_file(directory, name, path, &fd, reason);
    if (status != TN_OK && fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) &&
        errno == ENOENT)
        return TN_ERR_NOT_FOUND;
    if (status != TN_OK)
        return status;
    // One byte more than is allowed: a parser refuses it by its size.
    char *text = NULL;
    ssize_t got = -1;
    size_t room = max_size + 1;
    if (fstat(fd, &info) == 0 && info.st_size < (off_t)room)
        room = (size_t)info.st_size;
    text = mem_alloc(room + 1);
    if (!text)
        status = TN_ERR_MEMORY;
    else if ((got = file_read_at(fd, text, room, 0)) < 0)
        status = cannot_open(path, reason);
    close(fd);
    if (status != TN_OK) {
        mem_free(text);
        return status;
    }
    text[got] = 0;
    *out_text = text;
    *out_size = (size_t)got;
    return TN_OK;
}

tn_status trust_hash(int fd, unsigned char out_sha256[32], uint64_t *out_size)
{
    unsigned char *block = mem_alloc(HASH_BLOCK);
    if (!block)
        return TN_ERR_MEMORY;
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    uint64_t size = 0;
    ssize_t got;
    while ((got = file_read_at(fd, block, HASH_BLOCK, size)) > 0) {
        crypto_hash_sha256_update(&state, block, (size_t)got);
        size += (uint64_t)got;
    }
    mem_free(block);
    if (got < 0)
        return fail(TN_ERR_IO, "reading: %s", strerror(errno));
    crypto_hash_sha256_final(&state, out_sha256);
    *out_size = size;
    return TN_OK;
}

static tn_status wrong_size(const char *path, const struct manifest_file *file,
                            uint64_t size, struct reason *reason)
{
    return reason_record(reason, TN_ERR_REFUSED, REASON_HASH, file->name,
                         "%s/%s has %" PRIu64 " bytes, the manifest says %" PRIu64, path,
                         file->name, size, file->size);
}

// Whether one look is enough: a plain file of this size, which nobody else can change.
// Files are opened, and what is wrong with them is told, only where it is not.
static bool looks_good(int directory, const struct manifest_file *file)
{
    struct stat info;
    return !strchr(file->name, '/') &&
           fstatat(directory, file->name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(info.st_mode) && (uint64_t)info.st_size == file->size &&
           (info.st_uid == 0 || info.st_uid == geteuid()) &&
           (info.st_mode & (S_IWOTH | S_IWGRP)) == 0;
}

tn_status trust_check_files(const struct trust *trust, int directory, const char *path,
                            const struct manifest *manifest, struct reason *reason)
{
    for (uint32_t i = 0; i < manifest->num_files; i++) {
        const struct manifest_file *file = &manifest->files[i];
        int fd = -1;
        if (looks_good(directory, file))
            continue;
        tn_status status = trust_open_file(directory, file->name, path, &fd, reason);
        if (status != TN_OK)
            return status;
        struct stat info = {0};
        bool known = fstat(fd, &info) == 0;
        close(fd);
        bool is_same = known && (uint64_t)info.st_size == file->size;
        if (!is_same && trust->level != TRUST_ANY)
            return wrong_size(path, file, (uint64_t)info.st_size, reason);
    }
    return TN_OK;
}

static tn_status hash_file(const struct trust *trust, int fd, const char *path,
                           const struct manifest_file *file, unsigned char got[32],
                           struct reason *reason)
{
    uint64_t size = 0;
    tn_status status = trust_hash(fd, got, &size);
    if (status == TN_ERR_IO)
        return reason_record(reason, TN_ERR_REFUSED, REASON_READ, path, "%s/%s: %s", path,
                             file->name, strerror(errno));
    if (status != TN_OK)
        return status;
    if (trust->level == TRUST_ANY)
        return TN_OK;
    if (size != file->size)
        return wrong_size(path, file, size, reason);
    if (memcmp(got, file->sha256, 32) == 0)
        return TN_OK;
    char hex[17], wanted[17];
    sodium_bin2hex(hex, sizeof(hex), got, 8);
    sodium_bin2hex(wanted, sizeof(wanted), file->sha256, 8);
    return reason_record(reason, TN_ERR_REFUSED, REASON_HASH, file->name,
                         "%s/%s has SHA-256 %s..., the manifest says %s...", path,
                         file->name, hex, wanted);
}

tn_status trust_hash_files(const struct trust *trust, int directory, const char *path,
                           const struct manifest *manifest, int *out_object,
                           unsigned char out_sha256[32], struct reason *reason)
{
    int object = -1;
    const struct manifest_file *wanted = manifest_object(manifest);
    for (uint32_t i = 0; i < manifest->num_files; i++) {
        const struct manifest_file *file = &manifest->files[i];
        int fd = -1;
        unsigned char sha256[32];
        tn_status status = trust_open_file(directory, file->name, path, &fd, reason);
        if (status == TN_OK)
            status = hash_file(trust, fd, path, file, sha256, reason);
        if (status == TN_OK && file == wanted) {
            object = fd;
            memcpy(out_sha256, sha256, 32);
        } else if (fd >= 0) {
            close(fd);
        }
        if (status != TN_OK) {
            if (object >= 0)
                close(object);
            return status;
        }
    }
    *out_object = object;
    return TN_OK;
}
