// SPDX-License-Identifier: MIT
// The files that tenon-glslc reads and writes.
#ifndef KERNELS_COMPILER_TOOL_FILES_H
#define KERNELS_COMPILER_TOOL_FILES_H

#include <stdbool.h>
#include <stddef.h>

// A file that was read: the source is the first.
struct file {
    struct file *next;
    char *name; // as #include has it; of the source its path
    char *path;
    char *text;
    size_t size;
};

struct files {
    struct file *first, *last;
    const char *const *folders; // of -I
    size_t num_folders;
};

// Reads the source; "-": standard input. NULL: errno says why.
const struct file *files_read_source(struct files *files, const char *path);
// Finds a file for #include: a glsl_include_fn, with the files as its context. A file is
// looked for beside the one that includes it, then in the folders.
const char *files_include(void *files, const char *name, const char *from, size_t *size);
// The file that an error is in; NULL: none has the name.
const struct file *files_find(const struct files *files, const char *name);
void files_finish(struct files *files);

// Writes a file as a whole or not at all; "-": standard output. False: errno says why.
bool file_write(const char *path, const void *data, size_t size);
// Writes what `target` was made of, for make and ninja.
bool files_write_dependencies(const struct files *files, const char *path,
                              const char *target);

#endif // KERNELS_COMPILER_TOOL_FILES_H
