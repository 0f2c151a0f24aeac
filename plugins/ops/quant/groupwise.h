// SPDX-License-Identifier: MIT
// Shared by the operators of groupwise quantisation: the format that attributes specify,
// the check of words against their scales and biases, and groups decoded to floats.
#ifndef QUANT_GROUPWISE_H
#define QUANT_GROUPWISE_H

#include <tenon/ops/quant_groups.h>
#include "pack.h"

#define GROUPWISE_MAX_GROUP 128 // elements
#define GROUPWISE_DTYPES                                                                   \
    (TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_BF16) | TN_DTYPE_BIT(TN_F32))

// A format: the attributes, with the mode's default bits and group in the place of 0.
struct groupwise {
    int64_t mode, bits, group;
};

// Names of the modes, for a field of attributes.
extern const char *const groupwise_modes[];

#define GROUPWISE_FIELDS(type)                                                             \
    TN_CHOICE_FIELD(type, mode, TN_GROUPWISE_affine, groupwise_modes,                      \
                    "what a code stands for"),                                             \
        TN_I64_FIELD(type, bits, 0, "of a code; 0: the mode's"),                           \
        TN_I64_FIELD(type, group, 0, "elements that share a scale; 0: the mode's")

// Gives the format, or fails and names the bits and groups that the mode has.
tn_status groupwise_format(const tn_host *host, int64_t mode, int64_t bits, int64_t group,
                           struct groupwise *out);
#define GROUPWISE_FORMAT(host, attrs, out)                                                 \
    groupwise_format(host, (attrs)->mode, (attrs)->bits, (attrs)->group, out)

// Whether input `i` of an application is given.
static inline bool groupwise_given(const tn_infer *infer, uint32_t i)
{
    return i < infer->num_inputs && infer->types[i].dtype != TN_DTYPE_NONE;
}

// Fails unless inputs `first` and `first` + 1 (and + 2 in mode affine) are words with
// scales (and biases). Gives the number of elements of a row.
tn_status groupwise_check(const tn_infer *infer, const struct groupwise *format,
                          uint32_t first, int64_t *out_k);

// Fails unless input `i`, where given, is a factor for a matrix in mode nvfp4.
tn_status groupwise_check_factor(const tn_infer *infer, const struct groupwise *format,
                                 uint32_t i);

// Decodes row `index` of w, whose last entry is 0, to k floats. `biases` has data in mode
// affine only. Scales of u8 are multiplied by `factor` first.
void groupwise_decode(const struct groupwise *format, const tn_tensor *w,
                      const tn_tensor *scales, const tn_tensor *biases, float factor,
                      const int64_t *index, float *out);

// The dtype of a product of x with codes of these scales (and biases).
tn_dtype groupwise_dtype(tn_dtype x, tn_dtype scales, tn_dtype biases);

// An array of the type of `like`, filled with `value`.
tn_array *groupwise_filled(const tn_build *build, tn_array *like, double value);

// Gradients of scales and biases, where wanted, from the gradient of their matrix, [..., n,
// k]: sums over groups, for scales of products with the codes. `first` is the number of the
// input with the words.
tn_status groupwise_gradients(const tn_build *build, const tn_rule *rule,
                              const struct groupwise *format, uint32_t first,
                              tn_array *matrix, const uint64_t *wanted,
                              tn_array **gradients);

// Merges x's batch axes; NULL for NULL and for a lower rank (groupwise_gather.c).
tn_array *groupwise_flat(const tn_build *build, tn_array *x);

// Decompositions of the operators (groupwise_decompose.c).
tn_status groupwise_dequantize_decompose(const tn_build *build, const tn_rule *rule,
                                         tn_array **outputs);
tn_status groupwise_matmul_decompose(const tn_build *build, const tn_rule *rule,
                                     tn_array **outputs);
tn_status groupwise_gather_decompose(const tn_build *build, const tn_rule *rule,
                                     tn_array **outputs);

static inline bool groupwise_is_wanted(const uint64_t *wanted, uint32_t i)
{
    return wanted[0] >> i & 1;
}

#endif // QUANT_GROUPWISE_H
