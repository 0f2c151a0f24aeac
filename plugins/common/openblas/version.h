// SPDX-License-Identifier: MIT
// The version of the OpenBLAS that dlopen() would load, without loading it: the version is
// part of the file name that the symbolic links lead to, "libopenblasp-r0.3.21.so".
//
// Threads. Any function from any thread.
#ifndef OPENBLAS_VERSION_H
#define OPENBLAS_VERSION_H

#include <stddef.h>
#include <stdint.h>

// A version as a number that can be compared; 0: unknown.
#define BLAS_VERSION(major, minor, patch)                                                  \
    ((uint32_t)(major) << 16 | (uint32_t)(minor) << 8 | (uint32_t)(patch))

// The version in a file's name. "0.3.21.dev" counts as 0.3.21.
uint32_t blas_version_of(const char *path);

// The next path of library `name` in the bytes of an ld.so.cache, borrowed from them; NULL:
// no more. *position starts at 0.
const char *blas_path_in_cache(const void *cache, size_t size, const char *name,
                               uint32_t *position);

// The version of the file that dlopen(name) would open from this object. Where several
// files are possible, the oldest.
uint32_t blas_version_find(const char *name);

#endif // OPENBLAS_VERSION_H
