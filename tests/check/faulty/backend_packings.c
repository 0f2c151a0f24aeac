// SPDX-License-Identifier: MIT
// The small backend, which also lists a packing of quantised weights.
#define PACKINGS
#include "backend.c"
