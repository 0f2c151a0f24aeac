// SPDX-License-Identifier: MIT
// The plugin's identity in the ELF note of its shared object, read without executing a byte
// of the object.
#ifndef CORE_PLUGIN_LOAD_NOTE_H
#define CORE_PLUGIN_LOAD_NOTE_H

#include <tenon/plugin.h>
#include "../find/manifest.h"
#include "../find/reason.h"

// Reads the note. Its texts end with NUL, and its id, version and ABI range are valid.
// `path` is for messages.
tn_status note_read(int fd, const char *path, tn_note *out, struct reason *reason);

// TN_ERR_REFUSED unless the note and the manifest agree.
tn_status note_check(const tn_note *note, const struct manifest *manifest, const char *path,
                     struct reason *reason);

#endif // CORE_PLUGIN_LOAD_NOTE_H
