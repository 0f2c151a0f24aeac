// SPDX-License-Identifier: MIT
// A folder of installed plugins, changed by one process at a time and never in halves.
//
// A new version is made in <store>/.install-XXXXXXXXXXXX/ID, written to the disk, and
// exchanged with <store>/ID by one rename: at each moment a whole version is in place. What
// a process that was killed left behind is removed by the next one.
//
// The folder has to be this user's or root's, and nobody else may change it. Everything is
// looked up from its descriptor without following links, and only folders that this user
// made are moved or removed: what somebody planted stays where it is.
#ifndef TOOLS_TENON_STORE_H
#define TOOLS_TENON_STORE_H

#include "folder.h"

struct store {
    struct folder at;      // locked
    struct folder staging; // a folder in it for the new plugin; closed until store_stage
};

// Where plugins are: `prefix`, the system's with `system`, else the user's. Free it.
int store_place(const char *prefix, bool system, bool user, char **out_path);

// Locks the folder, which is made when it is not there, waiting for others; removes what
// they left behind.
int store_open(struct store *store, const char *path, bool make);
// Makes an empty folder for a new plugin.
int store_stage(struct store *store);
// Removes the staging folder and unlocks.
void store_close(struct store *store);

// Puts <staging>/ID in the place of the plugin of this id.
int store_put(struct store *store, const char *id);
// Takes the plugin out of sight, whole, then deletes it.
int store_remove(struct store *store, const char *id);
// Whether a plugin of this id is there.
bool store_has(const struct store *store, const char *id);

#endif // TOOLS_TENON_STORE_H
