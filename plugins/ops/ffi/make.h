// SPDX-License-Identifier: MIT
// Packs as files: this plugin's own shared object under another identity, with a manifest
// behind its last byte. docs/decisions has why.
//
//   | the ELF file, its note changed | manifest | uint64_t size of it | "TNFFI/1\n" |
#ifndef FFI_MAKE_H
#define FFI_MAKE_H

#include "arena.h"

// Reads and checks the manifest in file `manifest`, and writes its pack, made from the
// shared object `engine`, to `output` in one step. NULL `output`: only checks, the
// libraries and symbols too with `tries`. `out_id` has room for 64 bytes.
tn_status pack_write(const char *manifest, const char *engine, const char *output,
                     bool tries, char *out_id, struct problem *problem);

// The manifest in the shared object `file`; *out_text NULL when there is none. free() it.
tn_status pack_find(const char *file, char **out_text, size_t *out_size,
                    struct problem *problem);

// A whole file of at most `max` bytes. free() it.
tn_status file_read(const char *path, size_t max, char **out_data, size_t *out_size,
                    struct problem *problem);

#endif // FFI_MAKE_H
