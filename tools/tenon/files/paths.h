// SPDX-License-Identifier: MIT
// Paths: folders that the environment names, temporary folders, and files beside this
// program.
#ifndef TOOLS_TENON_FILES_PATHS_H
#define TOOLS_TENON_FILES_PATHS_H

#include <limits.h>
#include "folder.h"

// Gives <value of `xdg`>/NAME, else <HOME>/BELOW/NAME; a relative value counts as unset.
// False when neither is set. Free *out_path; NULL when out of memory.
bool user_folder(const char *xdg, const char *below, const char *name, char **out_path);
// The same for the user's data.
bool user_data(const char *name, char **out_path);

// Gives the folder of the disk cache, as the library finds it.
bool user_cache(char **out_path);

// Makes an empty folder in TMPDIR, or in /tmp; its path is absolute. folder_discard()
// removes it.
int temporary_folder(struct folder *out);

// The path of this program's file. False: unknown.
bool own_path(char path[PATH_MAX]);
// The first FOLDER/NAME that exists. `folders` are relative to the folder of this program:
// "../libexec/tenon".
bool find_beside(const char *const *folders, size_t num_folders, const char *name,
                 char path[PATH_MAX]);

#endif // TOOLS_TENON_FILES_PATHS_H
