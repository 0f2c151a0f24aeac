// SPDX-License-Identifier: MIT
// File descriptors above the standard streams, and reads and writes of whole buffers, which
// go on after EINTR and short transfers.
#ifndef CORE_BASE_FILE_H
#define CORE_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Returns `fd`, or a duplicate of it above 2 (close-on-exec) when `fd` is 0, 1 or 2. In a
// program that closed its standard streams, a file opened by the core could get their
// number, and the program's output would land in that file. Takes fd; -1 (with errno) stays
// -1.
int file_above_standard(int fd);

// openat with O_CLOEXEC; the descriptor is above 2. -1 with errno.
int file_open(int at, const char *name, int flags, mode_t mode);

// Writes all of `size` bytes. False, with errno, when some are not written.
bool file_write(int fd, const void *buffer, size_t size);

// Reads `size` bytes from `offset`, fewer at the end of the file. The bytes read, or -1
// with errno.
ssize_t file_read_at(int fd, void *buffer, size_t size, uint64_t offset);

#endif // CORE_BASE_FILE_H
