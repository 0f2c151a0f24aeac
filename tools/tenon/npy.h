// SPDX-License-Identifier: MIT
// NumPy's .npy files, formats 1.0 to 3.0.
#ifndef TOOLS_TENON_NPY_H
#define TOOLS_TENON_NPY_H

#include "tool.h"

// Reads an array: big-endian and Fortran-ordered files are turned round. On failure *out is
// unchanged.
int npy_read(const char *path, struct host_array *out);

// Writes format 1.0, little-endian, C order, replacing `path` at once; "-" is standard
// output. bf16 has no name in NumPy: an error that says to cast.
int npy_write(const char *path, const struct host_array *array);

#endif // TOOLS_TENON_NPY_H
