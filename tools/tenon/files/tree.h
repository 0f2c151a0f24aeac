// SPDX-License-Identifier: MIT
// Trees of files in a plugin's folder: checking names, listing, copying and synchronising.
#ifndef TOOLS_TENON_FILES_TREE_H
#define TOOLS_TENON_FILES_TREE_H

#include "folder.h"

#define TREE_MAX_DEPTH 8
#define TREE_MAX_FILES 4096

// Returns what is wrong with `name` as the name of a file below a plugin's folder, or NULL.
// A name has parts of printable ASCII between single slashes, none hidden, at most 255
// bytes, and is at most TREE_MAX_DEPTH folders deep.
const char *name_fault(const char *name);

struct tree_file {
    char *name; // below the folder
    uint64_t size;
    bool is_folder, is_program; // is_program: it may be executed
};

// All files and folders below one folder, in byte order of their names. Zero is empty.
struct file_tree {
    struct tree_file *files;
    size_t *order; // indices of `files` by name, ignoring letter case; used by tree_add()
    size_t count, capacity;
};

// Fails on links, devices, hidden files, and names that differ in letter case only.
int tree_list(const struct folder *folder, struct file_tree *out);
// Adds the next entry of a list, of an archive for example. Fails as tree_list does, and on
// a name that was there. Borrows `file`.
int tree_add(struct file_tree *tree, const char *source, const struct tree_file *file);
void tree_finish(struct file_tree *tree);

// Make the folder or file `name` of a new tree below `target`; *out_fd is the open file.
int tree_make_folder(const struct folder *target, const char *name);
int tree_make_file(const struct folder *target, const char *name, bool is_program,
                   int *out_fd);
// Writes all `size` bytes to `fd`; `path` is for messages.
int write_whole(int fd, const void *data, size_t size, const char *path);

// Copies `source` to the folder <at>/<name>, which must not exist.
int tree_copy(const struct folder *source, const struct folder *at, const char *name);
// Returns once the whole tree is on the disk; folder_sync() covers the entries of one
// folder only.
int tree_sync(const struct folder *folder);
int folder_sync(const struct folder *folder);

#endif // TOOLS_TENON_FILES_TREE_H
