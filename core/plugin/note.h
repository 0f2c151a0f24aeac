// SPDX-License-Identifier: MIT
// The identity in a shared object's ELF note, read without executing a byte of it.
#ifndef CORE_PLUGIN_NOTE_H
#define CORE_PLUGIN_NOTE_H

#include <tenon/plugin.h>
#include "manifest.h"
#include "reason.h"

// Reads the note; its texts are ended and valid. `path` is for messages.
tn_status note_read(int fd, const char *path, tn_note *out, struct reason *reason);

// Manifest and note say the same.
tn_status note_check(const tn_note *note, const struct manifest *manifest, const char *path,
                     struct reason *reason);

#endif // CORE_PLUGIN_NOTE_H
