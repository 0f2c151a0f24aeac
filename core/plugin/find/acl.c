// SPDX-License-Identifier: MIT
// Parses the extended attribute system.posix_acl_access (linux/posix_acl_xattr.h): a
// version, then entries of tag, permissions and id, little-endian. Default lists are not
// read: they only give new files their lists, and each file is judged by its own list.
#include "acl.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/xattr.h>

#define VERSION 2
#define HEADER_SIZE 4
#define ENTRY_SIZE 8
#define MAY_WRITE 2

enum { TAG_USER = 0x02, TAG_GROUP = 0x08, TAG_MASK = 0x10 };

struct acl_entry {
    uint16_t tag, permissions;
    uint32_t id;
};

int acl_read(int fd, unsigned char list[ACL_MAX_SIZE])
{
    ssize_t size = fgetxattr(fd, "system.posix_acl_access", list, ACL_MAX_SIZE);
    if (size < 0 && (errno == ENODATA || errno == ENOTSUP))
        return 0;
    return (int)size;
}

static uint32_t acl_read_number(const unsigned char *bytes, int size)
{
    uint32_t number = 0;
    while (size-- > 0)
        number = number << 8 | bytes[size];
    return number;
}

static struct acl_entry entry_at(const unsigned char *list, size_t at)
{
    return (struct acl_entry){.tag = (uint16_t)acl_read_number(list + at, 2),
                              .permissions = (uint16_t)acl_read_number(list + at + 2, 2),
                              .id = acl_read_number(list + at + 4, 4)};
}

// The list's mask, which limits the permissions of named users and groups; all bits when
// the list has no mask.
static uint16_t mask_of(const unsigned char *list, size_t size)
{
    uint16_t mask = UINT16_MAX;
    for (size_t at = HEADER_SIZE; at < size; at += ENTRY_SIZE) {
        struct acl_entry entry = entry_at(list, at);
        if (entry.tag == TAG_MASK)
            mask = entry.permissions;
    }
    return mask;
}

enum acl_grant acl_writer(const unsigned char *list, size_t size, uint32_t user,
                          uint32_t group, uint32_t *out_id)
{
    if (size == 0)
        return ACL_NOBODY;
    if (size < HEADER_SIZE || (size - HEADER_SIZE) % ENTRY_SIZE != 0 ||
        acl_read_number(list, HEADER_SIZE) != VERSION)
        return ACL_WRONG;
    uint16_t mask = mask_of(list, size);
    for (size_t at = HEADER_SIZE; at < size; at += ENTRY_SIZE) {
        struct acl_entry entry = entry_at(list, at);
        bool writes = entry.permissions & mask & MAY_WRITE;
        *out_id = entry.id;
        if (writes && entry.tag == TAG_USER && entry.id != user && entry.id != 0)
            return ACL_USER;
        if (writes && entry.tag == TAG_GROUP && entry.id != group && entry.id != 0)
            return ACL_GROUP;
    }
    return ACL_NOBODY;
}
