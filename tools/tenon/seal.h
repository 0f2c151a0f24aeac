// SPDX-License-Identifier: MIT
// Sealing: a plugin's plugin.json lists every file of its folder with size and SHA-256, so
// that whoever checks or signs plugin.json has checked or signed them all.
#ifndef TOOLS_TENON_SEAL_H
#define TOOLS_TENON_SEAL_H

#include "folder.h"

#define ID_SIZE 64

enum seal_mode {
    SEAL_CHECK, // every file has to be listed
    SEAL_ADD,   // files that are not listed are added to plugin.json
    SEAL_RENEW, // the list is made anew
};

// "com.acme.axpby"
bool is_plugin_id(const char *id);

struct identity {
    char id[ID_SIZE], version[ID_SIZE];
};

#define MANIFEST "plugin.json"
#define SIGNATURE "plugin.json.minisig"

// Reads a file of `folder` of at most a manifest's size. Free *out_text.
int manifest_read(const struct folder *folder, char **out_text, uint64_t *out_size);

// What the manifest in `folder` states.
int manifest_identity(const struct folder *folder, struct identity *out);

// Fails when a file is not what plugin.json says of it, is missing, or (SEAL_CHECK, and
// whenever the plugin is signed) is not listed.
int seal(const struct folder *folder, enum seal_mode mode);

#endif // TOOLS_TENON_SEAL_H
