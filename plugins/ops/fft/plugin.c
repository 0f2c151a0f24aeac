// SPDX-License-Identifier: MIT
// org.tenon.fft: discrete Fourier transforms, numpy.fft's functions.
//
// Three primitives along the last axis have references, and kernels in backends; all others
// are made of these three.
#include "pack.h"

#define POINTER(name) &fft_##name,
static const tn_primitive *const primitives[] = {FFT_PRIMITIVES(POINTER)};
#undef POINTER

static const tn_ops ops = {
    .struct_size = sizeof(ops),
    .primitives = primitives,
    .num_primitives = sizeof(primitives) / sizeof(primitives[0]),
};

static const void *fft_query(const char *id)
{
    return strcmp(id, TN_IFACE_OPS) == 0 ? &ops : NULL;
}

TN_PLUGIN("org.tenon.fft", "0.1.0", "Tenon", .query = fft_query);
