// SPDX-License-Identifier: MIT
// Files: reading with sizes checked, and writing that never damages what was there.
#ifndef TOOLS_TENON_FILE_H
#define TOOLS_TENON_FILE_H

#include <stdio.h>
#include "tool.h"

// A file that appears at its path complete or not at all. It has no name while it is
// written, where the file system can do that, and else a temporary one, so that a process
// that is killed leaves nothing that the next one does not remove. What is no regular file
// (a pipe, /dev/stdout) is written directly.
struct new_file {
    FILE *stream;       // to write to; NULL when not open
    char *path;         // for messages; owned
    char *name;         // in `directory`; owned; NULL when written directly
    int directory, fd;  // -1: none
    char temporary[32]; // "": the file has no name
};

int new_file_open(struct new_file *file, const char *path);
// The same for <directory>/<name>, and never through a link or to what is no file.
int new_file_open_at(struct new_file *file, int directory, const char *name,
                     const char *path);
// Finishes writing; on failure the old file is still there, and the new one is gone.
int new_file_commit(struct new_file *file);
// Gives up: the old file is still there. Fine after commit.
void new_file_abandon(struct new_file *file);

// Writes `size` bytes to a new file at `path`; "-" is standard output.
int file_write(const char *path, const void *data, size_t size);
int file_write_at(int directory, const char *name, const char *path, const void *data,
                  size_t size);

// Opens `path` for reading. *out_size is its size when it is a regular file, else -1.
int file_open(const char *path, FILE **out_stream, int64_t *out_size);

// Reads a whole file of at most `limit` bytes, with a NUL added behind. Free *out_data.
int file_read(const char *path, uint64_t limit, char **out_data, uint64_t *out_size);
// The same from a descriptor, which it closes; -1 and errno tell why there is none.
int file_read_from(int fd, const char *path, uint64_t limit, char **out_data,
                   uint64_t *out_size);

#endif // TOOLS_TENON_FILE_H
