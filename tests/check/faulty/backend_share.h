// SPDX-License-Identifier: MIT
// Memory that others use, too, of the small backend of backend.c: a file in memory.
#ifndef BACKEND_SHARE_H
#define BACKEND_SHARE_H

#include "backend_device.h"
#include "backend_run.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHARE_KIND 7

static void share_destroy(const tn_host *host, tn_buffer *buffer)
{
    munmap(buffer->bytes, buffer->size);
    close(buffer->fd - 1);
    host->free(host, buffer);
}

static tn_status give_fd(const tn_host *host, int fd, uint64_t size, uint64_t offset,
                         tn_buffer_fd *out)
{
    if (fd < 0)
        return host->fail(host, TN_ERR_MEMORY, "no file descriptor");
#ifdef FAULT_SHARE_FD_EXEC
    fcntl(fd, F_SETFD, 0);
#endif
#ifdef FAULT_SHARE_FD_OFFSET
    offset = 0;
#endif
    out->fd = fd;
    out->kind = SHARE_KIND;
    out->size = size;
    out->offset = offset;
    return TN_OK;
}

static tn_status buffer_export_fd(tn_device *device, tn_buffer *buffer, uint64_t offset,
                                  uint64_t size, tn_buffer_fd *out)
{
    const tn_host *host = device->host;
    if (check_lost(device) != TN_OK)
        return check_lost(device);
#ifndef FAULT_SHARE_FD_AGAIN // an import is exported as a copy
    if (buffer->fd)
        return give_fd(host, fcntl(buffer->fd - 1, F_DUPFD_CLOEXEC, 3), buffer->size,
                       offset, out);
#endif
    int fd = memfd_create("acme", MFD_CLOEXEC);
#ifdef FAULT_SHARE_FD
    offset = 0;
#endif
    if (fd >= 0 && pwrite(fd, buffer->bytes + offset, size, 0) != (ssize_t)size) {
        close(fd);
        fd = -1;
    }
    return give_fd(host, fd, size, 0, out);
}

static tn_status refuse(const tn_host *host, const tn_buffer_fd *memory)
{
#ifdef FAULT_SHARE_BAD_WORDS
    (void)host, (void)memory;
    return TN_ERR_ARGUMENT;
#else
    return host->fail(host, TN_ERR_ARGUMENT,
                      "file descriptor %d is no memory of %llu bytes", memory->fd,
                      (unsigned long long)memory->size);
#endif
}

#ifdef FAULT_SHARE_FD_SLOT // not in the table
__attribute__((unused))
#endif
static tn_status
buffer_import_fd(tn_device *device, const tn_buffer_fd *memory, tn_buffer **out_buffer)
{
    const tn_host *host = device->host;
    struct stat file;
    if (check_lost(device) != TN_OK)
        return check_lost(device);
    if (fstat(memory->fd, &file) || !S_ISREG(file.st_mode) || memory->size == 0 ||
#ifndef FAULT_SHARE_BAD
        memory->size != (uint64_t)file.st_size ||
#endif
        (memory->kind != SHARE_KIND && memory->kind != 0))
        return refuse(host, memory);
    tn_buffer *buffer = host->alloc(host, sizeof(*buffer), 0);
    if (!buffer)
        return TN_ERR_MEMORY;
#ifdef FAULT_SHARE_MEMORY
    void *second = host->alloc(host, 16, 0);
    if (!second)
        return TN_ERR_MEMORY; // and the buffer is lost
    host->free(host, second);
#endif
#ifdef FAULT_SHARE_FD_PRIVATE
    int flags = MAP_PRIVATE;
#else
    int flags = MAP_SHARED;
#endif
    void *bytes = mmap(NULL, memory->size, PROT_READ | PROT_WRITE, flags, memory->fd, 0);
    if (bytes == MAP_FAILED) {
        host->free(host, buffer);
        return refuse(host, memory);
    }
    *buffer = (tn_buffer){.size = memory->size,
                          .bytes = bytes,
                          .fd = fcntl(memory->fd, F_DUPFD_CLOEXEC, 3) + 1};
#ifdef FAULT_SHARE_FD_CLOSES
    close(memory->fd);
#endif
#ifdef FAULT_SHARE_FD_LEAVES
    fcntl(memory->fd, F_DUPFD_CLOEXEC, 3);
#endif
    *out_buffer = buffer;
    return TN_OK;
}

// Moves a buffer into a file in memory, unless it is in one.
static bool share_move(tn_device *device, tn_buffer *buffer)
{
    if (buffer->fd || buffer->is_imported)
        return buffer->fd;
    int fd = memfd_create("acme", MFD_CLOEXEC);
    void *bytes = MAP_FAILED;
    if (fd >= 0 && pwrite(fd, buffer->bytes, buffer->size, 0) == (ssize_t)buffer->size)
        bytes = mmap(NULL, buffer->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED) {
        close(fd);
        return false;
    }
    device->host->free(device->host, buffer->bytes);
    atomic_fetch_sub(&device->used, buffer->size);
    buffer->bytes = bytes;
    buffer->fd = fd + 1;
    return true;
}

static tn_status buffer_export(tn_device *device, tn_buffer *buffer, uint32_t wants,
                               tn_buffer_export *out)
{
    const tn_host *host = device->host;
    struct stat file;
    if (check_lost(device) != TN_OK)
        return check_lost(device);
    if (!share_move(device, buffer) || fstat(buffer->fd - 1, &file))
        return host->fail(host, TN_ERR_UNSUPPORTED, "no memory that others can use");
    out->fd = wants & TN_EXPORT_MEMORY_FD ? fcntl(buffer->fd - 1, F_DUPFD_CLOEXEC, 3) : -1;
    out->memory = (uint64_t)file.st_ino;
    out->size = buffer->size;
    out->offset = 0;
#ifdef FAULT_SHARE_EXPORT // of all memory
    out->memory = 1;
#endif
#ifdef FAULT_SHARE_EXPORT_OFFSET
    out->offset = 1;
#endif
#ifdef FAULT_SHARE_EXPORT_EXEC
    fcntl(out->fd, F_SETFD, 0);
#endif
    return TN_OK;
}

static tn_status buffer_copy(tn_device *device, tn_buffer *from, uint64_t from_offset,
                             tn_buffer *to, uint64_t to_offset, uint64_t size)
{
    if (check_lost(device) != TN_OK)
        return check_lost(device);
#ifdef FAULT_SHARE_COPY
    size = (size + 3) / 4 * 4 <= to->size - to_offset ? (size + 3) / 4 * 4 : size;
#endif
    if (from_offset + size > from->size)
        size = from->size - from_offset;
    memmove(to->bytes + to_offset, from->bytes + from_offset, size);
    return TN_OK;
}

#endif // BACKEND_SHARE_H
