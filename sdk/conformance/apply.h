// SPDX-License-Identifier: MIT
// Primitives applied: by calling their reference, and as graphs of a runtime.
#ifndef CONFORMANCE_APPLY_H
#define CONFORMANCE_APPLY_H

#include "sample.h"

// One call of a cpu.c/1 function; fields not named here are 0.
struct cpu_call {
    tn_status (*launch)(const tn_cpu_call *call);
    const struct sample *sample;
    const struct array *in, *out;
    void *scratch;
    uint64_t scratch_size;
    uint32_t cpu_features, num_threads;
};

// Calls it with parallel_for cut at random: in pieces, on several threads, in any order.
tn_status apply_cpu(struct sample_maker *maker, const struct cpu_call *call);
// What a host with this processor says.
uint32_t cpu_features_here(void);

// New arrays for the outputs of `s`, filled with `poison`.
void outputs_new(const struct sample *s, enum layout_kind kind, unsigned char poison,
                 struct array out[MAX_OUT]);
void outputs_free(struct array out[MAX_OUT]);

// The ways in which a primitive says what it means, the plainest first; at last, whatever
// the runtime makes of it.
enum meaning { BY_REFERENCE, BY_EXPR, BY_DECOMPOSE, BY_RUNTIME };
bool has_meaning(const tn_primitive *primitive, enum meaning meaning);
const char *apply_meaning(struct sample_maker *maker, const struct sample *s,
                          enum meaning meaning, struct array out[MAX_OUT]);

// What the outputs must be: by the reference, else by the expression or decomposition on
// the maker's runtime. NULL, or why they are not known. Gives `out` on success.
const char *apply_definition(struct sample_maker *maker, const struct sample *s,
                             struct array out[MAX_OUT]);

// False when the primitive has an effect (TN_PRIM_EFFECT) and its definition gives
// something else the next time: a counter, a clock. Nothing can be compared with its
// results then.
bool apply_repeats(struct sample_maker *maker, const struct sample *s);

// False when the definition does not repeat, or when the reference and the decomposition
// differ: a primitive may want inputs that belong together (a maximum and where it was),
// which random ones do not. What something else makes of such a sample says nothing.
bool apply_is_sound(struct sample_maker *maker, const struct sample *s,
                    const struct array want[MAX_OUT], double tolerance);

// --- graphs ----------------------------------------------------------------------------

// The inputs of a sample as arrays of a scope; NULL where not given. Returns how many are
// given, counted to the last.
uint32_t graph_inputs(tn_scope *scope, const struct sample *s, tn_array *in[MAX_IN]);
// The primitive, its expression (one output only), its decomposition.
tn_status graph_op(tn_scope *scope, const struct sample *s, tn_array *const *in,
                   tn_array *out[MAX_OUT]);
tn_status graph_expr(tn_scope *scope, const struct sample *s, tn_array *const *in,
                     tn_array *out[MAX_OUT]);
tn_status graph_decompose(tn_scope *scope, const struct sample *s, tn_array *const *in,
                          tn_array *out[MAX_OUT]);
// Evaluates and copies. Gives *out on success.
tn_status graph_read(tn_scope *scope, tn_array *array, struct array *out);
// The outputs of a sample, where building them did not fail. Gives `out` on success.
tn_status graph_read_all(tn_scope *scope, const struct sample *s, tn_array *const *results,
                         struct array out[MAX_OUT]);
tn_array *graph_data(tn_scope *scope, const struct array *array);
// The same, as a view of memory of another layout; REPEATED: only row 0 is kept, and
// repeated. Needs the pack `base` (apply_layout.c).
tn_array *graph_laid_out(tn_scope *scope, const struct array *array, enum layout_kind kind);

// A table for rules that builds in `scope`.
tn_build graph_build(tn_scope *scope, const tn_host *host);

#endif // CONFORMANCE_APPLY_H
