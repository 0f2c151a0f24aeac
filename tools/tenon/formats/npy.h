// SPDX-License-Identifier: MIT
// NumPy's .npy files, formats 1.0 to 3.0.
#ifndef TOOLS_TENON_FORMATS_NPY_H
#define TOOLS_TENON_FORMATS_NPY_H

#include "base/tool.h"

// Reads an array. Big-endian and column-major (Fortran) files are converted. On failure
// *out is unchanged.
int npy_read(const char *path, struct host_array *out);

// Writes format 1.0, little-endian, row-major, and replaces `path` atomically; "-" is
// standard output. Fails for bf16, which has no name in NumPy.
int npy_write(const char *path, const struct host_array *array);

#endif // TOOLS_TENON_FORMATS_NPY_H
