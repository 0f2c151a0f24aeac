// SPDX-License-Identifier: MIT
// Files: reading with sizes checked, and writing that never damages an existing file.
#ifndef TOOLS_TENON_BASE_FILE_H
#define TOOLS_TENON_BASE_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>
#include <tenon/file.h>
#include "tool.h"

// A file of tn_new_file_open() as a stream: it appears at its path complete or not at all.
// A pipe or device (/dev/stdout) is written directly.
struct new_file {
    FILE *stream; // to write to; NULL when not open
    char *path;   // for messages; owned
    tn_new_file *file;
};

int new_file_open(struct new_file *file, const char *path);
// Finishes writing. On failure the old file is unchanged, and the new one is gone.
int new_file_commit(struct new_file *file);
// Drops the new file; the old one is unchanged. May be called after commit.
void new_file_abandon(struct new_file *file);

// Writes `size` bytes to a new file at `path`; "-" is standard output.
int file_write(const char *path, const void *data, size_t size);
// The same for <directory>/<name>; `path` is for messages.
int file_write_at(int directory, const char *name, const char *path, const void *data,
                  size_t size);

// Like file_write() for a file that must not exist yet. The file gets this mode, and no
// copy of the bytes stays in memory.
int file_write_new(const char *path, mode_t mode, const void *data, size_t size);

// Opens `path` for reading. *out_size is its size when it is a regular file, else -1.
int file_open(const char *path, FILE **out_stream, int64_t *out_size);

// Reads a whole file of at most `limit` bytes, and adds a NUL. Free *out_data.
int file_read(const char *path, uint64_t limit, char **out_data, uint64_t *out_size);
// The same from a descriptor, which is closed. -1: fails, with errno as the reason.
int file_read_from(int fd, const char *path, uint64_t limit, char **out_data,
                   uint64_t *out_size);

#endif // TOOLS_TENON_BASE_FILE_H
