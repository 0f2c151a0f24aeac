// SPDX-License-Identifier: MIT
// POSIX access control lists: which users and groups may write a file, beside those of its
// mode.
#ifndef CORE_PLUGIN_FIND_ACL_H
#define CORE_PLUGIN_FIND_ACL_H

#include <stddef.h>
#include <stdint.h>

// Reads the access control list of the file open as `fd`, as the kernel's raw bytes.
// Returns their number, 0 when the file has no list, or -1 with errno when the list cannot
// be read.
#define ACL_MAX_SIZE 8192
int acl_read(int fd, unsigned char list[ACL_MAX_SIZE]);

enum acl_grant {
    ACL_NOBODY, // the list lets no other user or group write
    ACL_USER,   // *out_id: a named user who may write
    ACL_GROUP,  // *out_id: a named group that may write
    ACL_WRONG,  // not a list in the known format
};

// Finds the first named user or group that the list lets write, with the list's mask
// applied. `user` and `group`, the ids of this process, and id 0 (root) are trusted and
// skipped.
enum acl_grant acl_writer(const unsigned char *list, size_t size, uint32_t user,
                          uint32_t group, uint32_t *out_id);

#endif // CORE_PLUGIN_FIND_ACL_H
