// SPDX-License-Identifier: MIT
// Folders held open by descriptor. Names are looked up from a descriptor of their folder
// and never through a symbolic link, so that nobody who changes a name meanwhile can
// redirect the command. Only files of this program's user are changed or removed.
#ifndef TOOLS_TENON_FILES_FOLDER_H
#define TOOLS_TENON_FILES_FOLDER_H

#include <sys/stat.h>
#include "base/tool.h"

struct folder {
    int fd;     // -1: not open
    char *path; // for messages; owned
};

// "directory/name"; NULL when out of memory. Free it.
char *path_join(const char *directory, const char *name);

// Opens the folder at a path that the user gave, and follows links.
int folder_open(const char *path, struct folder *out);
// The same for a folder that will be changed: refuses a link of another user on the way.
// With `make`, makes missing folders.
int folder_reach(const char *path, bool make, struct folder *out);
// folder_reach() with `make`, without keeping it open.
int folder_make(const char *path);
// Opens the folder `name` ("a", "a/b") below `at`.
int folder_enter(const struct folder *at, const char *name, struct folder *out);
void folder_close(struct folder *folder);

// Fails when another user may change the folder's entries, and says what to do.
int folder_check_private(const struct folder *folder);
// True when this program's user owns the file.
bool is_own(const struct stat *info);

// Opens the file `name` ("a", "a/b") below `at`. -1: errno is the reason.
int open_below(int at, const char *name, int flags, mode_t mode);

// Makes a folder <at>/<prefix>XXXXXX for this user alone, locked until it is closed.
// Removes such folders of killed processes first.
int folder_stage(const struct folder *at, const char *prefix, struct folder *out);
// Removes staged folders that no process has locked.
void folder_sweep(const struct folder *at, const char *prefix);
// Removes <at>/<name>, a file or a folder with all entries, as far as this user owns them.
void folder_remove(const struct folder *at, const char *name);
// Removes a folder of folder_stage() and closes it. May be called for one that is not open.
void folder_discard(struct folder *folder);

// Replaces the folder's path by `instead` in the recorded failure: oops_about().
void folder_about(const struct folder *folder, const char *instead);

// Calls visit for each name in the folder, in order, until one fails.
typedef int folder_visitor(const struct folder *at, const char *name, void *context);
int folder_each(const struct folder *at, folder_visitor *visit, void *context);

#endif // TOOLS_TENON_FILES_FOLDER_H
