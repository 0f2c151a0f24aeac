// SPDX-License-Identifier: MIT
// Lines over a connection.
#include "wire.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

int64_t wire_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool wire_send(int fd, const char *format, ...)
{
    char line[WIRE_LINE];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof(line) - 1, format, arguments);
    va_end(arguments);
    size = size < (int)sizeof(line) - 2 ? size : (int)sizeof(line) - 2;
    line[size++] = '\n';
    // A line is far smaller than the socket's buffer: it goes whole or not at all.
    return fd >= 0 && send(fd, line, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT) == size;
}

bool wire_read(struct wire *wire)
{
    size_t room = sizeof(wire->text) - wire->size;
    ssize_t got = room ? recv(wire->fd, wire->text + wire->size, room, MSG_DONTWAIT) : 0;
    if (got < 0)
        return errno == EINTR || errno == EAGAIN;
    wire->size += (size_t)got;
    return got > 0;
}

bool wire_take(struct wire *wire, char line[WIRE_LINE])
{
    char *end = memchr(wire->text, '\n', wire->size);
    if (!end)
        return false;
    size_t size = (size_t)(end - wire->text);
    memcpy(line, wire->text, size);
    line[size] = 0;
    wire->size -= size + 1;
    memmove(wire->text, end + 1, wire->size);
    return true;
}
