// SPDX-License-Identifier: MIT
// Files: descriptors that are nobody's standard streams, and whole reads and writes.
#ifndef CORE_BASE_FILE_H
#define CORE_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Gives `fd` back, or in its place a duplicate above 2, closed on exec: a program may have
// closed its standard streams, and what it prints would land in a file that took their
// number. Takes fd; -1 (with errno) stays -1.
int file_above_standard(int fd);

// As openat, with O_CLOEXEC; the descriptor is above 2. -1 with errno.
int file_open(int at, const char *name, int flags, mode_t mode);

// All of `size` bytes; false with errno.
bool file_write(int fd, const void *buffer, size_t size);

// Reads from `offset` until `size` bytes or the end; the bytes read, or -1 with errno.
ssize_t file_read_at(int fd, void *buffer, size_t size, uint64_t offset);

#endif // CORE_BASE_FILE_H
