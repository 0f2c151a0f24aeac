// SPDX-License-Identifier: MIT
// Trees of files: what a plugin's folder holds, copying, synchronising and removing it.
#ifndef TOOLS_TENON_TREE_H
#define TOOLS_TENON_TREE_H

#include "folder.h"

#define TREE_MAX_DEPTH 8
#define TREE_MAX_FILES 4096

// What is wrong with `name` as a file's name below a plugin's folder, or NULL: plain parts
// of printable ASCII between single slashes, none hidden, at most 255 bytes and
// TREE_MAX_DEPTH folders deep.
const char *name_fault(const char *name);

struct tree_file {
    char *name; // below the folder
    uint64_t size;
    bool is_folder, is_program; // it may be executed
};

// Every file and folder below one folder, in byte order of their names. Zero is empty.
struct tree {
    struct tree_file *files;
    size_t *order; // of files by name, letter case apart: while they are added
    size_t count, capacity;
};

// Fails on links, devices, hidden files, and names that differ in letter case only.
int tree_list(const struct folder *folder, struct tree *out);
// Adds what a list (from an archive, say) has next; fails as tree_list does, and on a name
// that was there. Takes nothing.
int tree_add(struct tree *tree, const char *source, const struct tree_file *file);
void tree_finish(struct tree *tree);

// Makes the folder or file `name` of a new tree below `target`; gives the file open.
int tree_make_folder(const struct folder *target, const char *name);
int tree_make_file(const struct folder *target, const char *name, bool is_program,
                   int *out_fd);
int write_whole(int fd, const void *data, size_t size, const char *path);

// Copies `source` to the folder <at>/<name>, which must not exist.
int tree_copy(const struct folder *source, const struct folder *at, const char *name);
// All of it is on the disk when this returns; folder_sync() does what one folder lists.
int tree_sync(const struct folder *folder);
int folder_sync(const struct folder *folder);

#endif // TOOLS_TENON_TREE_H
