// SPDX-License-Identifier: MIT
// Folders held open. Names are looked up from a descriptor of their folder and never
// through a symbolic link, so that nobody who may change a name meanwhile leads the command
// elsewhere; only what this program's user made is changed or removed.
#ifndef TOOLS_TENON_FOLDER_H
#define TOOLS_TENON_FOLDER_H

#include <sys/stat.h>
#include "tool.h"

struct folder {
    int fd;     // -1: not open
    char *path; // for messages; owned
};

// "directory/name"; NULL when out of memory. Free it.
char *path_join(const char *directory, const char *name);

// Opens the folder at a path that the user gave, links included.
int folder_open(const char *path, struct folder *out);
// The same for a folder that will be changed: a link of another user on the way is refused.
// With `make`, what is missing on the way is made.
int folder_reach(const char *path, bool make, struct folder *out);
// folder_reach() with `make`, without keeping it open.
int folder_make(const char *path);
// Opens the folder `name` ("a", "a/b") below `at`.
int folder_enter(const struct folder *at, const char *name, struct folder *out);
void folder_close(struct folder *folder);

// Fails when somebody else may change what the folder holds, and says what to do.
int folder_check_private(const struct folder *folder);
// Whether this program's user made it.
bool is_own(const struct stat *info);

// Opens the file `name` ("a", "a/b") below `at`; -1 and errno.
int open_below(int at, const char *name, int flags, mode_t mode);

// Makes a folder <at>/<prefix>XXXXXX for this user alone, locked until it is closed, and
// removes those of processes that were killed.
int folder_stage(const struct folder *at, const char *prefix, struct folder *out);
// Removes those that no process holds.
void folder_sweep(const struct folder *at, const char *prefix);
// Removes <at>/<name>, whatever it is, as far as this user made it.
void folder_remove(const struct folder *at, const char *name);
// Removes a folder of folder_stage() and closes it. Fine for one that is not open.
void folder_discard(struct folder *folder);

// Writes `instead` for the folder's path in the recorded failure: oops_about().
void folder_about(const struct folder *folder, const char *instead);

// Calls visit for each name in the folder, in order, until one fails.
typedef int folder_visitor(const struct folder *at, const char *name, void *context);
int folder_each(const struct folder *at, folder_visitor *visit, void *context);

#endif // TOOLS_TENON_FOLDER_H
