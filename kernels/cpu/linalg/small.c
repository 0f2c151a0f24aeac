// SPDX-License-Identifier: MIT
// The loops of small.inc.h and small_one.inc.h for f32 and f64, once for each instruction
// set.
#include "small.h"

#include <math.h>
#include <string.h>

#define NUMBER float
#define BITS int32_t
#define ROOT sqrtf
#define OF(name) name##_f32
#define KERNELS SMALL_NAME(f32, CPU_VARIANT)
#define ONE SMALL_NAME(f32_one, CPU_VARIANT)
#include "small.inc.h"
#include "small_one.inc.h"
#undef NUMBER
#undef BITS
#undef ROOT
#undef OF
#undef KERNELS
#undef ONE

#define NUMBER double
#define BITS int64_t
#define ROOT sqrt
#define OF(name) name##_f64
#define KERNELS SMALL_NAME(f64, CPU_VARIANT)
#define ONE SMALL_NAME(f64_one, CPU_VARIANT)
#include "small.inc.h"
#include "small_one.inc.h"
