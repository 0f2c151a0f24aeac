// SPDX-License-Identifier: MIT
// Installing, for commands that make plugins.
#ifndef TOOLS_TENON_PLUGINS_INSTALL_H
#define TOOLS_TENON_PLUGINS_INSTALL_H

#include "seal.h"

// Installs a plugin, as `tenon plugin install` does, from a folder, an archive or a shared
// object into the folder of plugins `prefix` (NULL: the user's), and prints where.
int plugin_install(const char *source, const char *prefix);

// The forms of a plugin that can be installed.
enum source_kind { SOURCE_FOLDER, SOURCE_ARCHIVE, SOURCE_OBJECT };
int source_kind(const char *source, enum source_kind *out);

// Unpacks an archive as FOLDER/ID, and checks the plugin.
int plugin_of_archive(const char *file, const struct folder *folder, char id[ID_SIZE]);
// Makes FOLDER/ID from a shared object: a copy of `file`, and the manifest, for which a
// child process loads `file`.
int plugin_of_object(const char *file, const struct folder *folder, char id[ID_SIZE]);

#endif // TOOLS_TENON_PLUGINS_INSTALL_H
