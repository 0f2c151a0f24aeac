// SPDX-License-Identifier: MIT
// The equation of einsum: einsum_parse.c reads it, einsum.c builds the products.
#ifndef BASE_EINSUM_H
#define BASE_EINSUM_H

#include "../pack.h"

#define EINSUM_OPERANDS 32 // most operands
#define EINSUM_LETTERS 52
// Labels: 0 .. 51 are the letters in the order of ASCII; from 52 on the axes of "...", the
// last axis first.
#define EINSUM_LABELS (EINSUM_LETTERS + TN_MAX_RANK)

// The labels of an array's axes in order.
struct einsum_term {
    int32_t rank;
    int32_t label[TN_MAX_RANK];
};

struct einsum {
    uint32_t num_operands;
    struct einsum_term operand[EINSUM_OPERANDS], output;
    int64_t extent[EINSUM_LABELS]; // by label; -1: not in use
};

// Reads the equation for operands of these types. Fails with the position in the text.
tn_status einsum_parse(const tn_host *host, const char *equation, const tn_type *types,
                       uint32_t num_operands, struct einsum *out);

#endif // BASE_EINSUM_H
