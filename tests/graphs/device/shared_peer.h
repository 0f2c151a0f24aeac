// SPDX-License-Identifier: MIT
// What shared.c and its other process say to each other.
#ifndef TESTS_GRAPHS_SHARED_PEER_H
#define TESTS_GRAPHS_SHARED_PEER_H

#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <tenon/share.h>

#define PEER_COUNT 1000 // elements of f32

struct peer_answer {
    double number;
    int32_t status, reserved;
};

union peer_control {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr aligned;
};

// Sends a record, and its file descriptor by SCM_RIGHTS.
static inline bool peer_send(int socket, const tn_shared_memory *memory)
{
    union peer_control control = {{0}};
    struct iovec data = {(void *)(uintptr_t)memory, sizeof(*memory)};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &memory->fd, sizeof(int));
    return sendmsg(socket, &message, 0) == (ssize_t)sizeof(*memory);
}

static inline bool peer_receive(int socket, tn_shared_memory *memory)
{
    union peer_control control = {{0}};
    struct iovec data = {memory, sizeof(*memory)};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    if (recvmsg(socket, &message, 0) != (ssize_t)sizeof(*memory))
        return false;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (!header || header->cmsg_type != SCM_RIGHTS)
        return false;
    memcpy(&memory->fd, CMSG_DATA(header), sizeof(int));
    return true;
}

#endif // TESTS_GRAPHS_SHARED_PEER_H
