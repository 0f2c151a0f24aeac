// SPDX-License-Identifier: MIT
// Packs as files: the shared object of stub.c with another identity in its note, and a
// manifest behind its last byte. docs/decisions/0008-ffi.md says why.
//
//   | the ELF file, its note changed | manifest | its size, uint64_t | "TNFFI/1\n" |
#ifndef FFI_MAKE_H
#define FFI_MAKE_H

#include "arena.h"

// Reads and checks the manifest in file `manifest`, and replaces file `output` with its
// pack atomically. A NULL `output` only checks; `finds_symbols` checks libraries and
// symbols as well. `out_id` has room for 64 bytes.
tn_status pack_write(const char *manifest, const char *output, bool finds_symbols,
                     char *out_id, struct problem *problem);

// The manifest in the shared object `file`; *out_text is NULL when there is none. The
// caller frees *out_text.
tn_status pack_find(const char *file, char **out_text, size_t *out_size,
                    struct problem *problem);

// A whole file of at most `max` bytes, with a NUL behind them. The caller frees *out_data.
tn_status file_read(const char *path, size_t max, char **out_data, size_t *out_size,
                    struct problem *problem);

#endif // FFI_MAKE_H
