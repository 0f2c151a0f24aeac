// SPDX-License-Identifier: MIT
// Trees of files: what a plugin's folder holds, copying, synchronising and removing it.
#ifndef TOOLS_TENON_TREE_H
#define TOOLS_TENON_TREE_H

#include <sys/types.h>
#include "tool.h"

#define TREE_MAX_DEPTH 8
#define TREE_MAX_FILES 4096

// "directory/name"; NULL when out of memory. Free it.
char *path_join(const char *directory, const char *name);

// What is wrong with `name` as a file's name below a plugin's folder, or NULL: plain parts
// of printable ASCII between single slashes, none hidden, at most 255 bytes.
const char *name_fault(const char *name);

struct tree_file {
    char *name; // below the folder
    uint64_t size;
    bool is_folder, is_program; // it may be executed
};

// Every file and folder below one folder, in byte order of their names. Zero is empty.
struct tree {
    struct tree_file *files;
    size_t count, capacity;
};

// Fails on links, devices, hidden files, and names that differ in letter case only.
int tree_list(const char *folder, struct tree *out);
// Adds what a list (from an archive, say) has next; fails as tree_list does, and on a name
// that was there. Takes nothing.
int tree_add(struct tree *tree, const char *source, const struct tree_file *file);
void tree_finish(struct tree *tree);

// Makes a folder and those above it.
int folder_make(const char *path);
// Makes the folder or file `name` of a new tree below `target`; gives the file open.
int tree_make_folder(const char *target, const char *name);
int tree_make_file(const char *target, const char *name, bool is_program, int *out_fd);
int write_whole(int fd, const void *data, size_t size, const char *path);

// Copies to `target`, which must not exist.
int tree_copy(const char *source, const char *target);
// All of it, and the folder's own entry, is on the disk when this returns.
int tree_sync(const char *folder);
int folder_sync(const char *folder);
// Removes what can be removed, whatever it is.
void tree_remove(const char *path);

#endif // TOOLS_TENON_TREE_H
