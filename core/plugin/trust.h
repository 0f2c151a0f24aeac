// SPDX-License-Identifier: MIT
// What may be loaded: directories and files that only root or the user can change, whose
// content is what the manifest describes.
#ifndef CORE_PLUGIN_TRUST_H
#define CORE_PLUGIN_TRUST_H

#include <stddef.h>
#include <stdint.h>
#include "copy.h"
#include "manifest.h"
#include "reason.h"
#include "signature.h"

// Opens a plugin's directory, which is no symbolic link and nobody else's to change. `at`
// is a directory's descriptor for a relative `name`, or AT_FDCWD; `path` is for messages.
tn_status trust_open_directory(int at, const char *name, const char *path, int *out_fd,
                               struct reason *reason);

// Opens a regular file below it, walking no symbolic link.
tn_status trust_open_file(int directory, const char *name, const char *path, int *out_fd,
                          struct reason *reason);

// Reads a file of it, of which at most `max_size` + 1 bytes, with a NUL behind; mem_free
// it. TN_ERR_NOT_FOUND without a reason: there is none.
tn_status trust_read_file(int directory, const char *name, uint64_t max_size,
                          const char *path, char **out_text, size_t *out_size,
                          struct reason *reason);

// Reads a listed file, whose content is the one that the manifest describes (unless
// anything is trusted); as trust_read_file.
tn_status trust_read_listed(const struct trust *trust, int directory, const char *path,
                            const struct manifest_file *file, char **out_text,
                            size_t *out_size, struct reason *reason);

// The listed files are there, have their size (unless anything is trusted), and are nobody
// else's to change.
tn_status trust_check_files(const struct trust *trust, int directory, const char *path,
                            const struct manifest *manifest, struct reason *reason);

// The same with their content. Gives the plugin's shared object and those of its files that
// it needs, as private copies.
tn_status trust_hash_files(const struct trust *trust, int directory, const char *path,
                           const struct manifest *manifest, struct objects *out,
                           struct reason *reason);

#endif // CORE_PLUGIN_TRUST_H
