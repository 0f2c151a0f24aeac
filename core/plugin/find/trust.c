// SPDX-License-Identifier: MIT
// Provenance: who could have changed a plugin's files, and whether somebody did.
//
// A file is opened once, relative to the descriptor of its directory, and checked and read
// through its own descriptor, so renaming files meanwhile changes nothing.
#include "trust.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../../base/file.h"
#include "../../base/sha256.h"
#include "acl.h"

// The user's private group: it has the user's number and no other member, by the convention
// of distributions with such groups.
static bool is_own_group(gid_t group)
{
    return group == getegid() && group == geteuid();
}

// Called only with S_IWGRP: in a file with an access control list these bits of the mode
// are the list's mask, and without them the list lets nobody write.
static tn_status trust_check_list(int fd, const char *path, struct reason *reason)
{
    unsigned char list[ACL_MAX_SIZE];
    static const char *const whom[] = {[ACL_USER] = "user", [ACL_GROUP] = "group"};
    gid_t group = getegid();
    uint32_t id = 0;
    int size = acl_read(fd, list);
    if (size < 0)
        return reason_record(reason, TN_ERR_REFUSED, REASON_ACL, path,
                             "%s: its access control list cannot be read: %s", path,
                             strerror(errno));
    enum acl_grant grant =
        acl_writer(list, (size_t)size, geteuid(), is_own_group(group) ? group : 0, &id);
    if (grant == ACL_NOBODY)
        return TN_OK;
    if (grant == ACL_WRONG)
        return reason_record(reason, TN_ERR_REFUSED, REASON_ACL, path,
                             "%s has an access control list of an unknown format", path);
    return reason_record(reason, TN_ERR_REFUSED, REASON_ACL, path,
                         "%s can be changed by %s %" PRIu32 ", by its access control list",
                         path, whom[grant], id);
}

static tn_status check_owner(int fd, const struct stat *info, const char *path,
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
    return info->st_mode & S_IWGRP ? trust_check_list(fd, path, reason) : TN_OK;
}

static tn_status cannot_open(const char *path, struct reason *reason)
{
    if (errno == ENOMEM) // temporary: no reason to refuse the file
        return fail(TN_ERR_MEMORY, "%s: %s", path, strerror(errno));
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
        fstat(fd, &info) ? cannot_open(path, reason) : check_owner(fd, &info, path, reason);
    if (status != TN_OK) {
        close(fd);
        return status;
    }
    *out_fd = fd;
    return TN_OK;
}

// Opens the first component of `name` in `directory`: a file when `name` has no slash, else
// a directory, which is checked. Closes `directory` unless it is `keep`.
static int trust_open_below(int directory, const char *name, const char *path, int keep,
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
    char full[TRUST_MAX_PATH];
    snprintf(full, sizeof(full), "%s/%s", path, name);
    tn_status status = TN_OK;
    int fd = trust_open_below(directory, name, full, directory, reason, &status);
    for (name = strchr(name, '/'); status == TN_OK && name; name = strchr(name, '/'))
        fd = trust_open_below(fd, ++name, full, directory, reason, &status);
    if (status != TN_OK)
        return status;
    struct stat info;
    if (fstat(fd, &info))
        status = cannot_open(full, reason);
    else if (!S_ISREG(info.st_mode))
        status = reason_record(reason, TN_ERR_REFUSED, REASON_LINK, full,
                               "%s is no regular file", full);
    else
        status = check_owner(fd, &info, full, reason);
    if (status != TN_OK) {
        close(fd);
        return status;
    }
    *out_fd = fd;
    return TN_OK;
}

// --- presence --------------------------------------------------------------------------

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
    // Reads one byte more than allowed: the caller refuses the file by its size.
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

static tn_status wrong_size(const char *path, const struct manifest_file *file,
                            uint64_t size, struct reason *reason)
{
    return reason_record(reason, TN_ERR_REFUSED, REASON_HASH, file->name,
                         "%s/%s has %" PRIu64 " bytes, the manifest says %" PRIu64, path,
                         file->name, size, file->size);
}

// Fast path: whether one fstatat shows a regular file of the listed size that other users
// cannot change. All other files are opened, for the full check and its message.
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

// --- content ---------------------------------------------------------------------------

tn_status trust_check_content(const char *path, const struct manifest_file *file,
                              uint64_t size, const unsigned char sha256[32],
                              struct reason *reason)
{
    if (size != file->size)
        return wrong_size(path, file, size, reason);
    if (memcmp(sha256, file->sha256, 32) == 0)
        return TN_OK;
    char hex[17], wanted[17];
    sodium_bin2hex(hex, sizeof(hex), sha256, 8);
    sodium_bin2hex(wanted, sizeof(wanted), file->sha256, 8);
    return reason_record(reason, TN_ERR_REFUSED, REASON_HASH, file->name,
                         "%s/%s has SHA-256 %s..., the manifest says %s...", path,
                         file->name, hex, wanted);
}

tn_status trust_read_listed(const struct trust *trust, int directory, const char *path,
                            const struct manifest_file *file, char **out_text,
                            size_t *out_size, struct reason *reason)
{
    unsigned char sha256[32];
    char *text = NULL;
    size_t size = 0;
    uint64_t max = INT64_MAX - 2;
    if (trust->level != TRUST_ANY && file->size < max)
        max = file->size;
    tn_status status =
        trust_read_file(directory, file->name, max, path, &text, &size, reason);
    if (status == TN_ERR_NOT_FOUND)
        return reason_record(reason, TN_ERR_REFUSED, REASON_READ, path, "%s/%s is missing",
                             path, file->name);
    if (status != TN_OK)
        return status;
    sha256_of(text, size, sha256);
    if (trust->level != TRUST_ANY)
        status = trust_check_content(path, file, size, sha256, reason);
    if (status != TN_OK) {
        mem_free(text);
        return status;
    }
    *out_text = text;
    *out_size = size;
    return TN_OK;
}
