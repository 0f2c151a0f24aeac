// SPDX-License-Identifier: MIT
// Files: reading with sizes checked, and writing that never damages what was there.
#ifndef TOOLS_TENON_FILE_H
#define TOOLS_TENON_FILE_H

#include <stdio.h>
#include "tool.h"

// A file that appears at `path` complete or not at all: written beside it under another
// name, synchronised, renamed. What is no regular file (a pipe, /dev/stdout) is written
// directly.
struct new_file {
    FILE *stream;    // to write to; NULL when not open
    char *path;      // owned
    char *temporary; // owned; NULL when written directly
};

int new_file_open(struct new_file *file, const char *path);
// Finishes writing; on failure the old file is still there, and the new one is gone.
int new_file_commit(struct new_file *file);
// Gives up: the old file is still there. Fine after commit.
void new_file_abandon(struct new_file *file);

// Writes `size` bytes to a new file at `path`; "-" is standard output.
int file_write(const char *path, const void *data, size_t size);

// Opens `path` for reading. *out_size is its size when it is a regular file, else -1.
int file_open(const char *path, FILE **out_stream, int64_t *out_size);

// Reads a whole file of at most `limit` bytes, with a NUL added behind. Free *out_data.
int file_read(const char *path, uint64_t limit, char **out_data, uint64_t *out_size);

#endif // TOOLS_TENON_FILE_H
