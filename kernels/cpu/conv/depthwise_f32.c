// SPDX-License-Identifier: MIT
// Depthwise convolutions in f32: see depthwise.h.
#define REAL float
#define TABLE V(cpu_depthwise_f32)
#include "depthwise.inc.h"
