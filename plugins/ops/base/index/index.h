// SPDX-License-Identifier: MIT
// Shared by take and the scatters along one axis: index.c.
#ifndef BASE_INDEX_H
#define BASE_INDEX_H

#include "../pack.h"

extern const tn_attr_field take_fields[1];
extern const tn_in_place scatter_in_place[1];

// Types of a scatter of (x, indices, updates): the result has x's type.
tn_status scatter_infer(const tn_infer *infer, tn_type *types);

// Copies x, and applies `put` for each update in order: it changes element a of `to` by
// element b of `from`.
tn_status scatter_reference(const tn_cpu_call *call,
                            void (*put)(const tn_tensor *to, int64_t a,
                                        const tn_tensor *from, int64_t b));

// Maps a scatter: one application of `primitive` for all slices.
tn_status scatter_vmap(const tn_build *build, const tn_rule *rule, const char *primitive,
                       const int32_t *axes, int64_t size, tn_array **outputs,
                       int32_t *out_axes);

// Whether i64() would make the upper half of the indices negative.
int is_u64(const tn_build *build, const tn_array *indices);

// Takes g at the indices; 0 for indices out of range, which a scatter drops.
tn_array *take_kept(const tn_build *build, tn_array *g, tn_array *indices, const tn_type *x,
                    const tn_take_attrs *attrs);

#endif // BASE_INDEX_H
