// SPDX-License-Identifier: MIT
// The small backend, which also runs kernels that plan their launches.
#define PLANS
#include "backend.c"
