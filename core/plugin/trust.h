// SPDX-License-Identifier: MIT
// What may be loaded: directories and files that only root or the user can change, whose
// content is what the manifest describes.
#ifndef CORE_PLUGIN_TRUST_H
#define CORE_PLUGIN_TRUST_H

#include <stddef.h>
#include <stdint.h>
#include "manifest.h"
#include "reason.h"

// Opens a plugin's directory, which is no symbolic link and nobody else's to change. `at`
// is a directory's descriptor for a relative `name`, or AT_FDCWD; `path` is for messages.
tn_status trust_open_directory(int at, const char *name, const char *path, int *out_fd,
                               struct reason *reason);

// Opens a regular file below it, walking no symbolic link.
tn_status trust_open_file(int directory, const char *name, const char *path, int *out_fd,
                          struct reason *reason);

// Reads the manifest's text; mem_free it. TN_ERR_NOT_FOUND without a reason: there is none.
tn_status trust_read_manifest(int directory, const char *path, char **out_text,
                              size_t *out_size, struct reason *reason);

// The listed files are there, have their size, and are nobody else's to change.
tn_status trust_check_files(int directory, const char *path,
                            const struct manifest *manifest, struct reason *reason);

// The same with their content. Gives the descriptor of the shared object, whose content is
// the one that was hashed.
tn_status trust_hash_files(int directory, const char *path, const struct manifest *manifest,
                           int *out_object, struct reason *reason);

// SHA-256 of an open file from its start.
tn_status trust_hash(int fd, unsigned char out_sha256[32], uint64_t *out_size);

#endif // CORE_PLUGIN_TRUST_H
