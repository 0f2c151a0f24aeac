// SPDX-License-Identifier: MIT
// What the core calls. Its rules are given no pointer of the plugin's own, so each function
// has addresses of its own, which carry it along: in packs those of a table that is
// compiled (slots.c), for callbacks, whose number nobody knows, closures of libffi
// (closures.c).
#ifndef FFI_RULES_H
#define FFI_RULES_H

#include "pack.h"

struct rules {
    tn_status (*launch)(const tn_cpu_call *call);
    tn_status (*infer)(const tn_infer *infer, tn_type *types);
    uint64_t (*scratch_size)(const tn_kernel_query *query);
    tn_status (*vjp)(const tn_build *build, const tn_rule *rule,
                     tn_array *const *cotangents, const uint64_t *wanted,
                     tn_array **gradients);
    tn_status (*vmap)(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                      int64_t size, tn_array **outputs, int32_t *out_axes);
};

// What the addresses come to.
tn_status function_launch(struct function *function, const tn_cpu_call *call);
tn_status function_infer(const struct function *function, const tn_infer *infer,
                         tn_type *types);

// Of functions with a batch. (batch.c)
tn_status function_vmap(const struct function *function, const tn_build *build,
                        const tn_rule *rule, const int32_t *axes, tn_array **outputs,
                        int32_t *out_axes);

// The rules of function `number` of the pack that this code is, below MAX_FUNCTIONS. They
// may be called from slots_fill() on, which is given the functions once.
const struct rules *slot_rules(uint32_t number);
void slots_fill(struct function *const *functions);

// Rules of a callback, in its arena; the code behind them lives until closures_free().
const struct rules *closures_make(struct function *function, struct problem *problem);
void closures_free(struct function *function);

#endif // FFI_RULES_H
