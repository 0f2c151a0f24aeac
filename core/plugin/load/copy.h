// SPDX-License-Identifier: MIT
// Private copies of plugin files: the bytes that are hashed are the bytes that are loaded,
// even when the file is rewritten meanwhile.
#ifndef CORE_PLUGIN_LOAD_COPY_H
#define CORE_PLUGIN_LOAD_COPY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>
#include "../../base/config.h"
#include "../find/reason.h"

// A state of a file's content, as fstat() tells it: two files of equal versions have the
// same content. Zero: unknown, equal to no other.
struct file_version {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified, changed;
};

// The version of the file open as `fd`. Unknown when the file changed within the last two
// seconds: a second change within the resolution of the file system's clock would not be
// seen.
struct file_version file_version(int fd);
bool file_version_equal(const struct file_version *a, const struct file_version *b);

// The hash and size of a file's content, and a descriptor to load the content from.
struct content {
    int fd; // owned by the caller, who closes it; -1 after content_hash()
    unsigned char sha256[32];
    uint64_t size;
    bool may_change; // `fd` is the file itself, not a copy, and this user could rewrite it
    struct file_version version; // of the file that content_copy() read; else unknown
};

// Hashes the file open as `fd`. Gives no descriptor.
tn_status content_hash(int fd, struct content *out);

// Hashes the file open as `fd`; out->fd is a duplicate of `fd`.
tn_status content_keep(int fd, struct content *out);

// Copies the file open as `fd` and hashes the copy; out->fd is the copy: a sealed memfd, or
// where executable memfds are not allowed an unnamed file in the cache (`config` gives its
// directory; NULL: none). Hashes the file itself, with a duplicate of `fd` as out->fd, when
// only root can change the file and this process is not root, and when no copy can be made.
// `path` names the copy in /proc/PID/maps.
tn_status content_copy(int fd, const char *path, const struct config *config,
                       struct content *out);

#define MAX_OBJECTS 16

// The code of a plugin: its shared object first, then the libraries in its directory that
// the shared object needs, directly or through each other.
struct objects {
    struct content contents[MAX_OBJECTS]; // each owns a descriptor
    const char *names[MAX_OBJECTS];       // file names without directories; borrowed
    uint32_t count;
};

// Gives the identity of the code: the SHA-256 of a single object, or of the hashes of
// several.
void objects_sha256(const struct objects *objects, unsigned char out[32]);
void objects_close(struct objects *objects);

#endif // CORE_PLUGIN_LOAD_COPY_H
