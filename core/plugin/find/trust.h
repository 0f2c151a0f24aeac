// SPDX-License-Identifier: MIT
// Provenance: a plugin's directory and files may be changed by root and this user only, and
// have the content that the manifest describes.
#ifndef CORE_PLUGIN_FIND_TRUST_H
#define CORE_PLUGIN_FIND_TRUST_H

#include <stddef.h>
#include <stdint.h>
#include "manifest.h"
#include "reason.h"
#include "signature.h"

#define TRUST_MAX_PATH 4096 // bytes, longest path of a listed file

// Opens a plugin's directory; refuses a symbolic link, and a directory that other users can
// change. `name` is relative to the directory `at`, or AT_FDCWD; `path` is for messages.
tn_status trust_open_directory(int at, const char *name, const char *path, int *out_fd,
                               struct reason *reason);

// Opens a regular file of `directory` without following symbolic links, and checks its
// owner and mode.
tn_status trust_open_file(int directory, const char *name, const char *path, int *out_fd,
                          struct reason *reason);

// Reads a file of `directory`, at most `max_size` + 1 bytes, so that the caller sees when
// the file is too large. Gives text ended by NUL (mem_free). TN_ERR_NOT_FOUND when there is
// no such file; then *reason does not count.
tn_status trust_read_file(int directory, const char *name, uint64_t max_size,
                          const char *path, char **out_text, size_t *out_size,
                          struct reason *reason);

// As trust_read_file for a file that the manifest lists. Refuses content that differs from
// the manifest, but for TRUST_ANY.
tn_status trust_read_listed(const struct trust *trust, int directory, const char *path,
                            const struct manifest_file *file, char **out_text,
                            size_t *out_size, struct reason *reason);

// Refuses the plugin unless the listed files exist, have the listed sizes (but for
// TRUST_ANY), and cannot be changed by other users.
tn_status trust_check_files(const struct trust *trust, int directory, const char *path,
                            const struct manifest *manifest, struct reason *reason);

// Refuses content of this size and hash unless they are those that the manifest lists.
tn_status trust_check_content(const char *path, const struct manifest_file *file,
                              uint64_t size, const unsigned char sha256[32],
                              struct reason *reason);

#endif // CORE_PLUGIN_FIND_TRUST_H
