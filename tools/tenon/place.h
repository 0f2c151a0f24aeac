// SPDX-License-Identifier: MIT
// Folders that the environment names, and what lies beside this program.
#ifndef TOOLS_TENON_PLACE_H
#define TOOLS_TENON_PLACE_H

#include <limits.h>
#include "folder.h"

// <value of `xdg`>/NAME, else <HOME>/BELOW/NAME; relative values do not count. False when
// there is neither. Free *out_path; NULL when out of memory.
bool user_folder(const char *xdg, const char *below, const char *name, char **out_path);
// The same for data.
bool user_data(const char *name, char **out_path);

// Makes an empty folder in TMPDIR, or in /tmp, with an absolute path: folder_discard()
// removes it.
int temporary_folder(struct folder *out);

// This program's own file.
bool own_path(char path[PATH_MAX]);
// The first PLACE/NAME that there is. `places` are seen from the folder of this program:
// "../libexec/tenon".
bool find_beside(const char *const *places, size_t num_places, const char *name,
                 char path[PATH_MAX]);

#endif // TOOLS_TENON_PLACE_H
