// SPDX-License-Identifier: MIT
// Applies primitives to samples: by calling the C reference, or as graphs on a runtime.
#ifndef CONFORMANCE_PACK_APPLY_H
#define CONFORMANCE_PACK_APPLY_H

#include "graph_data.h"
#include "outputs.h"

// One call of a cpu.c/1 function; members of tn_cpu_call not named here are 0.
struct cpu_call {
    tn_status (*launch)(const tn_cpu_call *call);
    const struct sample *sample;
    const struct array *in, *out;
    void *scratch, *state;
    uint64_t scratch_size;
    uint32_t cpu_features, num_threads;
};

// Calls the function. Its parallel_for splits the range at random, and with num_threads > 1
// runs the pieces on several threads, in random order.
tn_status apply_cpu(struct sample_maker *maker, const struct cpu_call *call);
// Calls the primitive's reference, with the scratch memory that it asks for.
tn_status apply_reference(struct sample_maker *maker, const struct sample *s,
                          const struct array *in, const struct array *out);
// Calls the kernel's prepare for this call: the operands have layouts and no memory.
tn_status apply_prepare(struct sample_maker *maker, const tn_cpu_kernel *kernel,
                        const struct cpu_call *call, void **out_state);
// Flags of tn_cpu_call.cpu_features for this processor.
uint32_t cpu_features_here(void);

// Ways in which a primitive can define its result, in order of preference. BY_RUNTIME is
// the plan that the runtime makes.
enum meaning { BY_REFERENCE, BY_EXPR, BY_DECOMPOSE, BY_RUNTIME };
bool has_meaning(const tn_primitive *primitive, enum meaning meaning);
const char *apply_meaning(struct sample_maker *maker, const struct sample *s,
                          enum meaning meaning, struct array out[MAX_OUT]);

// Computes the expected outputs by the first meaning that the primitive has; expression and
// decomposition run on the maker's runtime. Returns NULL, or why the outputs are unknown.
// Gives `out` on success.
const char *apply_definition(struct sample_maker *maker, const struct sample *s,
                             struct array out[MAX_OUT]);

// False when a primitive with TN_PRIM_EFFECT (a counter, a clock) gives different results
// in two runs, so that its results cannot be compared with anything.
bool apply_repeats(struct sample_maker *maker, const struct sample *s);

// False when the definition does not repeat, or when reference and decomposition disagree.
// Random inputs may break a relation that a primitive requires between its inputs (a
// maximum and its index), so a mismatch elsewhere on such a sample proves nothing.
bool apply_is_sound(struct sample_maker *maker, const struct sample *s,
                    const struct array want[MAX_OUT], double tolerance);

// Returns NULL when the outputs agree with those of one of the definitions to within
// `tolerance`, or each element differs by no more than some times what it moves by when the
// inputs move by a rounding (condition.c); else a message.
const char *apply_compare(struct sample_maker *maker, const struct sample *s,
                          const struct array *got, const struct array *want,
                          double tolerance);
const char *apply_compare_output(struct sample_maker *maker, const struct sample *s,
                                 uint32_t output, const struct array *got,
                                 const struct array *want, double tolerance);

// --- graphs ----------------------------------------------------------------------------

// Uploads the inputs of a sample; an input that is not given is NULL in `in`. Returns the
// number of inputs up to the last one given. Behind all inputs, `in` gets the scalars of
// runtime attributes, for calls of rules: an application is given these as attributes.
uint32_t graph_inputs(tn_scope *scope, const struct sample *s, tn_array *in[MAX_IN]);
// Apply the primitive, its expression (one output only), or its decomposition.
tn_status graph_op(tn_scope *scope, const struct sample *s, tn_array *const *in,
                   tn_array *out[MAX_OUT]);
tn_status graph_expr(tn_scope *scope, const struct sample *s, tn_array *const *in,
                     tn_array *out[MAX_OUT]);
tn_status graph_decompose(tn_scope *scope, const struct sample *s, tn_array *const *in,
                          tn_array *out[MAX_OUT]);
// Evaluates `array` and copies the result to the host. Gives *out on success.
tn_status graph_read(tn_scope *scope, tn_array *array, struct array *out);
// Reads all outputs; fails with the scope's error if building them failed. Gives `out` on
// success.
tn_status graph_read_all(tn_scope *scope, const struct sample *s, tn_array *const *results,
                         struct array out[MAX_OUT]);
// Gives the tn_build table for rules that build in `scope`.
tn_build graph_build(tn_scope *scope, const tn_host *host);

#endif // CONFORMANCE_PACK_APPLY_H
