// SPDX-License-Identifier: MIT
// Reads the messages of `tenon run`.
#include "watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

void watch_init(struct watch *watch, const tn_host *host, const char *text)
{
    unsigned long long inode;
    struct stat found;
    const char *at = text ? strstr(text, "watch=") : NULL;
    *watch = (struct watch){.fd = -1};
    if (!at)
        return;
    int fd = -1;
    // The inode tells the socket from another file under a descriptor that was reused.
    if (sscanf(at, "watch=%d:%llu", &fd, &inode) == 2 && fstat(fd, &found) == 0 &&
        S_ISSOCK(found.st_mode) && found.st_ino == inode)
        watch->fd = fd;
    else
        host->log(host, TN_LOG_WARN, "collective",
                  "TENON_RUN is '%s', but there is no such socket: nobody watches this "
                  "rank's group",
                  text);
}

void watch_finish(struct watch *watch)
{
    free(watch->failures);
    *watch = (struct watch){.fd = -1};
}

static void watch_add(struct watch *watch, const char *message)
{
    struct watch_failure failure;
    int begin = 0;
    if (sscanf(message, "failed %d %n", &failure.rank, &begin) != 1 || begin == 0)
        return;
    for (uint32_t i = 0; i < watch->num_failures; i++)
        if (watch->failures[i].rank == failure.rank)
            return;
    struct watch_failure *list =
        realloc(watch->failures, (watch->num_failures + 1) * sizeof(*list));
    if (!list)
        return;
    snprintf(failure.words, sizeof(failure.words), "%s", message + begin);
    failure.is_end = strcmp(failure.words, "ended (status 0)") == 0;
    list[watch->num_failures++] = failure;
    watch->failures = list;
}

static void read_messages(struct watch *watch)
{
    char message[256];
    while (watch->fd >= 0) {
        ssize_t size = recv(watch->fd, message, sizeof(message) - 1, MSG_DONTWAIT);
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            return;
        if (size == 0) { // `tenon run` has ended
            watch->fd = -1;
            return;
        }
        message[size] = 0;
        watch_add(watch, message);
    }
}

const struct watch_failure *watch_poll(struct watch *watch, const int32_t *members,
                                       int32_t count)
{
    read_messages(watch);
    if (!members && watch->num_failures > 0)
        return &watch->failures[0];
    for (uint32_t i = 0; i < watch->num_failures; i++)
        for (int32_t k = 0; k < count; k++)
            if (members[k] == watch->failures[i].rank)
                return &watch->failures[i];
    return NULL;
}

const struct watch_failure *watch_find_lost(const struct watch *watch)
{
    for (uint32_t i = 0; i < watch->num_failures; i++)
        if (!watch->failures[i].is_end)
            return &watch->failures[i];
    return NULL;
}
