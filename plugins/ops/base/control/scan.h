// SPDX-License-Identifier: MIT
// The parts of an application of scan; shared by scan.c and scan_rules.c.
#ifndef BASE_SCAN_H
#define BASE_SCAN_H

#include "control.h"

// Inputs: `carries` carried values, `slices` arrays, `constants`. Outputs: `carries` last
// values, `stacked` stacks of other outputs, and `carries` stacks of the values before each
// position.
struct scan {
    const tn_scan_attrs *attrs;
    uint32_t carries, slices, constants, stacked;
    int64_t length;
};

// Splits an application whose input types infer has accepted.
static inline struct scan scan_of(const tn_scan_attrs *attrs, const tn_type *first_slices,
                                  uint32_t num_inputs)
{
    struct scan s = {.attrs = attrs,
                     .carries = (uint32_t)attrs->carries,
                     .slices = (uint32_t)attrs->slices,
                     .length = attrs->length};
    s.constants = num_inputs - s.carries - s.slices;
    s.stacked = attrs->body->num_outputs - s.carries;
    if (s.length < 0 && s.slices > 0 && first_slices)
        s.length = first_slices->extent[0];
    return s;
}

static inline struct scan scan_of_rule(const tn_build *build, const tn_rule *rule)
{
    const tn_scan_attrs *attrs = rule->attrs;
    const tn_type *type =
        attrs->slices > 0 ? build->type(rule->inputs[attrs->carries]) : NULL;
    return scan_of(attrs, type, rule->num_inputs);
}

tn_status scan_vjp(const tn_build *build, const tn_rule *rule, tn_array *const *cotangents,
                   const uint64_t *wanted, tn_array **gradients);
tn_status scan_jvp(const tn_build *build, const tn_rule *rule, tn_array *const *tangents,
                   tn_array **out_tangents);

#endif // BASE_SCAN_H
