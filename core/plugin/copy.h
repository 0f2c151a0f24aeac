// SPDX-License-Identifier: MIT
// Private copies: what is hashed is what is loaded, though the file is rewritten meanwhile.
#ifndef CORE_PLUGIN_COPY_H
#define CORE_PLUGIN_COPY_H

#include <stdbool.h>
#include <stdint.h>
#include "../base/config.h"
#include "reason.h"

// Content that was hashed.
struct content {
    int fd; // gives it: close it. -1: none was asked for
    unsigned char sha256[32];
    uint64_t size;
    bool may_change; // `fd` is the file itself, and this user could rewrite it
};

// Hashes the file open as `fd`.
tn_status content_hash(int fd, struct content *out);

// The same; `out->fd` is the file itself.
tn_status content_keep(int fd, struct content *out);

// The same of a copy, which `out->fd` is: a sealed memory file, or without them a nameless
// file in the cache (`config` says where; NULL: none). `fd` again where only root, and not
// this process, could change the file; and where nothing can be copied. `path` names the
// copy in /proc/PID/maps.
tn_status content_copy(int fd, const char *path, const struct config *config,
                       struct content *out);

#define MAX_OBJECTS 16

// The code of a plugin: its shared object, then those in its folder that are needed.
struct objects {
    struct content contents[MAX_OBJECTS]; // each with a descriptor
    const char *names[MAX_OBJECTS];       // without folders; borrowed
    uint32_t count;
};

// SHA-256 of one object, or of the hashes of all.
void objects_sha256(const struct objects *objects, unsigned char out[32]);
void objects_close(struct objects *objects);

#endif // CORE_PLUGIN_COPY_H
