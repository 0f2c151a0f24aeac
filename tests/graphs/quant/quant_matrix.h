// SPDX-License-Identifier: MIT
// Matrices in the formats of quantised weights, and their values, for tests on the backend
// that TENON_TEST_BACKEND names.
#ifndef TESTS_GRAPHS_QUANT_MATRIX_H
#define TESTS_GRAPHS_QUANT_MATRIX_H

#include <stdlib.h>
#include <tenon/ops/quant.h>
#include "../support/common.h"
#include "packing_of.h"

static inline void open_device(void)
{
    runtime = open_on(getenv("TENON_TEST_BACKEND"));
}

// Each format, and the bytes of a block where f16 begin; -1: none.
static const struct {
    const char *name;
    int64_t scale, minimum;
} formats[] = {{"q4_0", 0, -1},  {"q4_1", 0, 2},    {"q5_0", 0, -1},   {"q5_1", 0, 2},
               {"q8_0", 0, -1},  {"q2_k", 80, 82},  {"q3_k", 108, -1}, {"q4_k", 0, 2},
               {"q5_k", 0, 2},   {"q6_k", 208, -1}, {"iq4_nl", 0, -1}, {"iq4_xs", 0, -1},
               {"mxfp4", -1, -1}};
#define FORMATS (sizeof(formats) / sizeof(formats[0]))

// Both backends have the same kernels, which software drivers compile for long: one half of
// the formats each, or all of them with TEST_LARGE.
static inline bool is_for_the_other(size_t format)
{
    bool is_jit = strcmp(getenv("TENON_TEST_BACKEND"), "vulkan-jit") == 0;
    return !getenv("TEST_LARGE") && format % 2 != (size_t)is_jit;
}

static uint32_t state = 1;
static inline uint32_t next_bits(void)
{
    state = (uint32_t)((state * UINT64_C(1664525) + 1013904223) & UINT32_MAX);
    return state >> 8;
}

// A matrix in a format, and its values; for free().
struct matrix {
    const tn_quant_format *format;
    int64_t n, k, row_bytes;
    uint8_t *bytes; // one before the blocks
    float *values;
    int is_packed, exact; // how it is multiplied
    tn_dtype floats;      // where there is no format
};

// A number from 2^-5 to 2^-2 of any sign, unless `at` is negative.
static inline void set_f16(uint8_t *block, int64_t at)
{
    if (at >= 0)
        block[at + 1] = (uint8_t)((next_bits() & 0x80) | 0x28 | (next_bits() & 7));
}

// Blocks of any bits, with scales and minima near 1.
static inline struct matrix matrix_make(const char *name, int64_t n, int64_t k)
{
    struct matrix m = {.format = tn_quant_find(name), .n = n, .k = k};
    size_t f = 0;
    while (strcmp(formats[f].name, name) != 0)
        f++;
    int64_t block = m.format->block, bytes = m.format->bytes;
    m.row_bytes = k / block * bytes;
    m.bytes = malloc((size_t)(n * m.row_bytes + 1));
    m.values = malloc((size_t)(n * k) * sizeof(float));
    m.bytes[0] = 0xa5;
    for (int64_t i = 0; i < n * k / block; i++) {
        uint8_t *at = m.bytes + 1 + i * bytes;
        for (int64_t j = 0; j < bytes; j++)
            at[j] = (uint8_t)(next_bits() & 255);
        set_f16(at, formats[f].scale);
        set_f16(at, formats[f].minimum);
        if (formats[f].scale < 0) // mxfp4: an exponent
            at[0] = (uint8_t)(120 + at[0] % 12);
        m.format->decode(at, m.values + i * block);
    }
    return m;
}

// Numbers that bf16 has, too.
static inline struct matrix floats_make(tn_dtype dtype, int64_t n, int64_t k)
{
    struct matrix m = {.n = n, .k = k, .floats = dtype};
    m.values = malloc((size_t)(n * k) * sizeof(float));
    for (int64_t i = 0; i < n * k; i++)
        m.values[i] = (float)((int)(next_bits() & 255) - 128) / 64;
    return m;
}

static inline void matrix_free(struct matrix *m)
{
    free(m->bytes);
    free(m->values);
}

// The name by which operators know it.
static inline const char *matrix_format(const struct matrix *m)
{
    const char *plain = m->format->name;
    return m->is_packed ? packing_of(runtime, plain) : plain;
}

// The blocks as an array, packed if they are: with `is_odd` from the second byte of another
// on; or the floats.
static inline tn_array *matrix_array(tn_scope *s, const struct matrix *m, int is_odd)
{
    if (!m->format)
        return tn_op(s, "base.astype",
                     TN_IN(tn_from_data(s, TN_F32, TN_SHAPE(m->n, m->k), m->values)),
                     tn_attrs("dtype", tn_dtype_name(m->floats)));
    tn_array *plain = tn_from_data(s, TN_U8, TN_SHAPE(m->n, m->row_bytes), m->bytes + 1);
    if (m->is_packed)
        return tn_op(s, "quant.pack", TN_IN(plain),
                     tn_attrs("format", m->format->name, "to", matrix_format(m)));
    if (!is_odd)
        return plain;
    int64_t count = m->n * m->row_bytes;
    tn_array *all = tn_from_data(s, TN_U8, TN_SHAPE(count + 1), m->bytes);
    return tn_op(s, "base.reshape",
                 TN_IN(tn_op(s, "base.slice", TN_IN(all),
                             tn_attrs("start", TN_INTS(1), "stop", TN_INTS(count + 1)))),
                 tn_attrs("shape", TN_INTS(m->n, m->row_bytes)));
}

#endif // TESTS_GRAPHS_QUANT_MATRIX_H
