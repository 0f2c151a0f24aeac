// SPDX-License-Identifier: MIT
// Depthwise convolutions in f64: see depthwise.h.
#define REAL double
#define TABLE V(cpu_depthwise_f64)
#include "depthwise.inc.h"
