// SPDX-License-Identifier: MIT
// POSIX access control lists: who beside owner, group and others may write.
#ifndef CORE_PLUGIN_ACL_H
#define CORE_PLUGIN_ACL_H

#include <stddef.h>
#include <stdint.h>

// The list of the file open as `fd`: its bytes, as the kernel gives them, and their number;
// 0: it has none. -1 with errno: it cannot be read.
#define ACL_MAX_SIZE 8192
int acl_read(int fd, unsigned char list[ACL_MAX_SIZE]);

enum acl_grant {
    ACL_NOBODY, // the mode says it all
    ACL_USER,   // *out_id: a user beside the owner may write
    ACL_GROUP,  // *out_id: a named group
    ACL_WRONG,  // no list in the format that is known
};

// The first named user or group that the list lets write, its mask applied. `user` and
// `group` do not count: they are this process' own.
enum acl_grant acl_writer(const unsigned char *list, size_t size, uint32_t user,
                          uint32_t group, uint32_t *out_id);

#endif // CORE_PLUGIN_ACL_H
