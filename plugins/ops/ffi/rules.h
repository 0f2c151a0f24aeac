// SPDX-License-Identifier: MIT
// The core's calls of functions. The core passes no context pointer to rules, so each
// function has entry points of its own, which add the function: in packs a compiled table
// (stub.c); for callbacks, whose number has no bound, closures of libffi (closures.c).
#ifndef FFI_RULES_H
#define FFI_RULES_H

#include "engine.h"
#include "pack.h"

extern const struct engine ffi_engine; // engine.c

// Functions that the entry points call.
tn_status function_launch(struct ffi_function *function, const tn_cpu_call *call);
tn_status function_infer(const struct ffi_function *function, const tn_infer *infer,
                         tn_type *types);

// For functions with a batch. (batch.c)
tn_status function_vmap(const struct ffi_function *function, const tn_build *build,
                        const tn_rule *rule, const int32_t *axes, tn_array **outputs,
                        int32_t *out_axes);

// Makes the entry points of a callback. The struct is in the pack's arena; the closures
// live until closures_free().
const struct rules *closures_make(struct ffi_function *function, struct problem *problem);
void closures_free(struct ffi_function *function);

#endif // FFI_RULES_H
