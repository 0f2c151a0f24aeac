// SPDX-License-Identifier: MIT
// Checks of the group `rules`, and what their files share.
#ifndef CONFORMANCE_RULES_RULES_H
#define CONFORMANCE_RULES_RULES_H

#include "../pack/pack.h"

// Compare derivatives with differences (derive.c).
void rules_vjp(struct kit *k, struct pack *pack, const tn_primitive *p);
void rules_jvp(struct kit *k, struct pack *pack, const tn_primitive *p);

// Compares second derivatives with differences of gradients (second.c).
void rules_second(struct kit *k, struct pack *pack, const tn_primitive *p);

// Compares transforms of transforms with a loop (nested.c).
void rules_nested(struct kit *k, struct pack *pack, const tn_primitive *p);

// Compares a batch with a loop (vmap.c).
void rules_vmap(struct kit *k, struct pack *pack, const tn_primitive *p);

// A type with a batch axis inserted at `axis` (-1: unchanged); and a view of slice `number`
// along such an axis (-1: the whole array) (vmap.c).
tn_type rules_with_axis(const tn_type *type, int32_t axis, int64_t extent);
struct array rules_slice(const struct array *array, int32_t axis, int64_t number);

// Call rules with NULL arguments, and with a builder that fails (calls.c).
void rules_partial(struct kit *k, struct pack *pack, const tn_primitive *p);
void rules_failure(struct kit *k, struct pack *pack, const tn_primitive *p);

// Fills the inputs so that the outputs are finite and all definitions agree (fill.c). Gives
// `out`. False: no such inputs were found; there is nothing to free.
bool rules_fill(struct kit *k, struct pack *pack, struct sample *s,
                struct array out[MAX_OUT]);

// True when derivatives flow through input `i`.
bool rules_flows(const struct sample *s, uint32_t i);

// --- derivatives by differences (derive.c) ---------------------------------------------

// A sample in which the primitive is smooth.
struct rule_derivation {
    struct kit *kit;
    struct pack *pack;
    struct sample *s;
    struct array weights[MAX_OUT]; // data NULL: the output is not floating-point
    double step, bound;
};

// A derivative by differences, and what roundings may add to it.
struct rule_slope {
    double value, noise;
};

// Re(conj(a) b).
static inline double rule_product(tn_complex128 a, tn_complex128 b)
{
    return a.re * b.re + a.im * b.im;
}

// Runs a check on at most `most` samples.
void rules_derive(struct kit *k, struct pack *pack, const tn_primitive *p,
                  const char *check, uint32_t most, void (*run)(struct rule_derivation *d));

// Builds the application. Gives its floating-point outputs with their weights; returns how
// many there are.
uint32_t rule_build(tn_scope *scope, const struct rule_derivation *d, tn_array *in[MAX_IN],
                    tn_array *out[MAX_OUT], tn_array *weights[MAX_OUT]);

// The sample with its inputs moved by `by` times `along`; data NULL in `along`: not moved.
// Borrows the other inputs.
struct sample rule_moved(const struct rule_derivation *d, const struct array *along,
                         double by);
void rule_moved_free(struct sample *moved, const struct array *along);

#endif // CONFORMANCE_RULES_RULES_H
