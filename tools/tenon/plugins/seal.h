// SPDX-License-Identifier: MIT
// Sealing: a plugin's plugin.json lists every file of its folder with size and SHA-256, so
// that a check or a signature of plugin.json covers all files.
#ifndef TOOLS_TENON_PLUGINS_SEAL_H
#define TOOLS_TENON_PLUGINS_SEAL_H

#include "files/folder.h"

#define ID_SIZE 64

enum seal_mode {
    SEAL_CHECK, // every file has to be listed
    SEAL_ADD,   // files that are not listed are added to plugin.json
    SEAL_RENEW, // the list is made anew
};

// True for an id such as "com.acme.axpby".
bool is_plugin_id(const char *id);

struct identity {
    char id[ID_SIZE], version[ID_SIZE];
};

#define MANIFEST "plugin.json"
#define SIGNATURE "plugin.json.minisig"

// Reads plugin.json in `folder`, up to a limit of its size. Free *out_text.
int manifest_read(const struct folder *folder, char **out_text, uint64_t *out_size);

// Reads id and version from plugin.json in `folder`.
int manifest_identity(const struct folder *folder, struct identity *out);

// Lists a file with this content in the text of a plugin.json, in new memory: free
// *out_manifest.
int seal_text(const char *manifest, const char *name, const char *content,
              char **out_manifest);

// Compares a plugin's files with plugin.json, and writes the list anew if `mode` adds to
// it. Fails when a file differs or is missing, or is not listed (with SEAL_CHECK; with
// SEAL_ADD when the plugin is signed).
int seal(const struct folder *folder, enum seal_mode mode);

#endif // TOOLS_TENON_PLUGINS_SEAL_H
