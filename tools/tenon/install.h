// SPDX-License-Identifier: MIT
// Installing, for commands that make plugins.
#ifndef TOOLS_TENON_INSTALL_H
#define TOOLS_TENON_INSTALL_H

#include "seal.h"

// Installs a plugin, as `tenon plugin install` does, from a folder, an archive or a shared
// object into the folder of plugins `prefix`; NULL is the user's. Says so.
int plugin_install(const char *source, const char *prefix);

// What a plugin is made of.
enum source_kind { SOURCE_FOLDER, SOURCE_ARCHIVE, SOURCE_OBJECT };
int source_kind(const char *source, enum source_kind *out);

// Unpacks an archive as FOLDER/ID and checks that.
int plugin_of_archive(const char *file, const struct folder *folder, char id[ID_SIZE]);
// Makes FOLDER/ID, the plugin whose shared object `file` is: that, and the manifest, which
// it is loaded for in a child.
int plugin_of_object(const char *file, const struct folder *folder, char id[ID_SIZE]);

#endif // TOOLS_TENON_INSTALL_H
