// SPDX-License-Identifier: MIT
// Shared by this pack's files: the list of its primitives, checks of keys, parameters and
// extents, and pieces of graph.
#ifndef RANDOM_PACK_H
#define RANDOM_PACK_H

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <tenon/checked.h>
#include <tenon/ops/base_attrs.h>
#include <tenon/ops/promote.h>
#include <tenon/ops/random_attrs.h>
#include <tenon/ops/rules.h>
#include <tenon/plugin.h>
#include <tenon/primitive.h>

// The primitives, random_<name>: X(name).
#define RANDOM_PRIMITIVES(X)                                                               \
    X(bits)                                                                                \
    X(random)                                                                              \
    X(standard_normal)                                                                     \
    X(key)                                                                                 \
    X(split)                                                                               \
    X(fold_in)                                                                             \
    X(uniform)                                                                             \
    X(normal)                                                                              \
    X(truncated_normal)                                                                    \
    X(gumbel)                                                                              \
    X(laplace)                                                                             \
    X(exponential)                                                                         \
    X(bernoulli)                                                                           \
    X(randint)                                                                             \
    X(permutation)                                                                         \
    X(choice)                                                                              \
    X(categorical)                                                                         \
    X(gamma)                                                                               \
    X(beta)                                                                                \
    X(dirichlet)                                                                           \
    X(poisson)                                                                             \
    X(multivariate_normal)
#define RANDOM_DECLARE(name) extern const tn_primitive random_##name;
RANDOM_PRIMITIVES(RANDOM_DECLARE)
#undef RANDOM_DECLARE

// The record of a composite. Further fields may follow.
#define COMPOSITE(name, sentence, ...)                                                     \
    const tn_primitive random_##name = {.struct_size = sizeof(tn_primitive),               \
                                        .id = "random." #name "/1",                        \
                                        .doc = sentence,                                   \
                                        .decompose = name##_decompose,                     \
                                        __VA_ARGS__}
#define DECOMPOSE(name)                                                                    \
    static tn_status name##_decompose(const tn_build *build, const tn_rule *rule,          \
                                      tn_array **outputs)

// --- inputs and attributes (check.c) ----------------------------------------------------

#define KEY_INPUT                                                                          \
    {                                                                                      \
        "key", "u32[2]", TN_INPUT_CONSTANT, TN_ALL_DTYPES                                  \
    }
extern const tn_input_info random_key_input[1];
extern const char *const random_layouts[]; // the names of TN_RANDOM_..., ended by NULL

#define LAYOUT_FIELD(type)                                                                 \
    TN_CHOICE_FIELD(type, layout, TN_RANDOM_COUNTERS, random_layouts,                      \
                    "which words an element gets: JAX's default or MLX's")
#define SHAPE_FIELD(type)                                                                  \
    TN_INTS_FIELD(type, shape, "extents; not given: what the parameters broadcast to")
#define FLOAT_FIELD(type)                                                                  \
    TN_DTYPE_FIELD(type, dtype, 0, "a float dtype; not given: the parameters', or f32")

// --- checks (check.c) -------------------------------------------------------------------

#define SHAPE_TEXT 200
// Writes "[256, 512]" to `buffer`, and returns `buffer`.
const char *random_shape_text(int32_t rank, const int64_t *extent, char buffer[SHAPE_TEXT]);

tn_status random_check_key(const tn_host *host, const tn_type *key);

// Fails when the shape is not given or has a negative extent.
tn_status random_check_shape(const tn_host *host, const tn_ints *shape);

tn_status random_check_axis(const tn_host *host, int64_t axis, int32_t rank,
                            int32_t *out_axis);

// Checked arguments of a sampler with parameters.
struct drawn {
    tn_array *key;
    tn_ints shape;
    tn_dtype dtype; // of the numbers: a float dtype
    int64_t layout;
    tn_array *in[4]; // the rule's inputs behind the key, in `dtype`; NULL: not given
};

// Checks the key and the float dtype, and that the rule's inputs from `first` on broadcast
// to attrs->shape, or finds the shape that they broadcast to.
tn_status read_sample(const tn_build *build, const tn_rule *rule,
                      const tn_random_bits_attrs *attrs, uint32_t first, struct drawn *out);

// --- graph building ---------------------------------------------------------------------

// Status of a rule that built `array`. The builder has recorded the failure behind a NULL.
static inline tn_status built(const tn_array *array)
{
    return array ? TN_OK : TN_ERR_ARGUMENT;
}

tn_array *random_cast(const tn_build *build, tn_array *x, tn_dtype dtype);
tn_array *random_with_shape(const tn_build *build, const char *primitive, const tn_array *x,
                            const tn_ints *shape);

// Draws numbers by `primitive`, "random.bits/1" or the like.
tn_array *draw_numbers(const tn_build *build, const char *primitive, tn_array *key,
                       const tn_ints *shape, tn_dtype dtype, int64_t layout);

// Draws numbers in [0, 1) for a sample.
tn_array *draw_floats(const tn_build *build, const struct drawn *s);

// Key `index` of `num` of split().
tn_array *split_key(const tn_build *build, tn_array *key, int64_t num, int64_t index,
                    int64_t layout);

// The least normal number of a float dtype, and the greatest number below 1.
double least_normal(tn_dtype dtype);
double below_one(tn_dtype dtype);

// Logarithms of gamma numbers with shape `a`, an array of s->shape (gamma.c).
tn_array *log_gamma_numbers(const tn_build *build, const struct drawn *s, tn_array *key,
                            tn_array *a);

// Loops while `is_left`, an expression, holds for any element of the first of `carried`.
// `body` gives new carried values; its `inputs` are these and the constants (gamma.c).
tn_status loop_while_any(const tn_build *build, const char *is_left, tn_build_body body,
                         void *user, tn_array *const *inputs, uint64_t num_carried,
                         uint64_t num_inputs, tn_array **outputs);

#endif // RANDOM_PACK_H
