// SPDX-License-Identifier: MIT
// A folder of installed plugins, changed by one process at a time and atomically.
//
// A new version is made in <store>/.install-XXXXXXXXXXXX/ID, written to the disk, and
// exchanged with <store>/ID by one rename: at each moment a whole version is in place. The
// next process removes what a killed process left behind.
//
// The folder has to be this user's or root's, and nobody else may change it. Names are
// looked up from its descriptor without following links, and only folders that this user
// owns are moved or removed: other entries stay.
#ifndef TOOLS_TENON_PLUGINS_STORE_H
#define TOOLS_TENON_PLUGINS_STORE_H

#include "files/folder.h"

struct store {
    struct folder at;      // locked
    struct folder staging; // holds the new plugin; closed until store_stage
};

// Gives the path of the plugins: `prefix`, the system's with `system`, else the user's.
// Free it.
int store_path(const char *prefix, bool system, bool user, char **out_path);

// Locks the folder, waiting for other processes, and removes what killed processes left
// behind. With `make`, makes a missing folder.
int store_open(struct store *store, const char *path, bool make);
// Makes an empty staging folder.
int store_stage(struct store *store);
// Removes the staging folder and unlocks.
void store_close(struct store *store);

// Puts <staging>/ID in the place of the plugin of this id.
int store_put(struct store *store, const char *id);
// Moves the plugin, whole, to the staging folder, which store_close() removes.
int store_remove(struct store *store, const char *id);
// True when a plugin of this id is installed.
bool store_has(const struct store *store, const char *id);

#endif // TOOLS_TENON_PLUGINS_STORE_H
