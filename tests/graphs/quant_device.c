// SPDX-License-Identifier: MIT
// Quantised weights on the backend that TENON_TEST_BACKEND names: products, rows and values
// against blocks that are decoded here.
#include <math.h>
#include <stdlib.h>
#include <tenon/ops/quant.h>
#include "common.h"
#include "quant.h"

static void open_device(void)
{
    runtime = open_on(getenv("TENON_TEST_BACKEND"));
}

TestSuite(quant_device, .init = open_device, .fini = teardown);

static const char *const formats[] = {"q4_0", "q4_1", "q5_0", "q5_1", "q8_0"};
#define FORMATS (sizeof(formats) / sizeof(formats[0]))

static uint32_t state = 1;
static uint32_t next_bits(void)
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
};

// Blocks of any bits, with scales and minima from 2^-5 to 2^-2 of both signs.
static struct matrix matrix_make(const char *name, int64_t n, int64_t k)
{
    struct matrix m = {tn_quant_find(name), n, k, 0, NULL, NULL};
    int64_t block = m.format->block, bytes = m.format->bytes;
    m.row_bytes = k / block * bytes;
    m.bytes = malloc((size_t)(n * m.row_bytes + 1));
    m.values = malloc((size_t)(n * k) * sizeof(float));
    m.bytes[0] = 0xa5;
    for (int64_t i = 0; i < n * k / block; i++) {
        uint8_t *at = m.bytes + 1 + i * bytes;
        for (int64_t j = 0; j < bytes; j++)
            at[j] = (uint8_t)(next_bits() & 255);
        at[1] = (uint8_t)((next_bits() & 0x80) | 0x28 | (next_bits() & 7));
        if (name[3] == '1')
            at[3] = (uint8_t)((next_bits() & 0x80) | 0x28 | (next_bits() & 7));
        m.format->decode(at, m.values + i * block);
    }
    return m;
}

static void matrix_free(struct matrix *m)
{
    free(m->bytes);
    free(m->values);
}

// The blocks as an array: with `is_odd` from the second byte of another on.
static tn_array *matrix_array(tn_scope *s, const struct matrix *m, int is_odd)
{
    if (!is_odd)
        return tn_from_data(s, TN_U8, TN_SHAPE(m->n, m->row_bytes), m->bytes + 1);
    int64_t count = m->n * m->row_bytes;
    tn_array *all = tn_from_data(s, TN_U8, TN_SHAPE(count + 1), m->bytes);
    return tn_op(s, "base.reshape",
                 TN_IN(tn_op(s, "base.slice", TN_IN(all),
                             tn_attrs("start", TN_INTS(1), "stop", TN_INTS(count + 1)))),
                 tn_attrs("shape", TN_INTS(m->n, m->row_bytes)));
}

// The product of `rows` rows, from element `skipped` of their memory on.
static void check_product(const struct matrix *m, int64_t rows, int64_t skipped, int is_odd)
{
    tn_scope *s = tn_scope_open(runtime);
    int64_t count = rows * m->k;
    float *x = malloc((size_t)(count + skipped) * sizeof(*x));
    float *got = malloc((size_t)(rows * m->n) * sizeof(*got));
    for (int64_t i = 0; i < count + skipped; i++)
        x[i] = (float)next_bits() / 8388608 - 1;
    tn_array *in = tn_from_data(s, TN_F32, TN_SHAPE(count + skipped), x);
    if (skipped)
        in = tn_op(s, "base.slice", TN_IN(in),
                   tn_attrs("start", TN_INTS(skipped), "stop", TN_INTS(count + skipped)));
    in = tn_op(s, "base.reshape", TN_IN(in), tn_attrs("shape", TN_INTS(rows, m->k)));
    tn_array *y = tn_op(s, "quant.quantized_matmul", TN_IN(in, matrix_array(s, m, is_odd)),
                        tn_attrs("format", m->format->name));
    must(s, tn_read(s, y, got, (size_t)(rows * m->n) * sizeof(*got)));
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < m->n; column++) {
            double sum = 0, size = 0;
            for (int64_t i = 0; i < m->k; i++) {
                double term = (double)x[skipped + row * m->k + i] *
                              (double)m->values[column * m->k + i];
                sum += term;
                size += fabs(term);
            }
            double error = fabs((double)got[row * m->n + column] - sum);
            cr_assert(le(dbl, error, 1e-6 * size + 1e-30),
                      "%s, %d rows: row %d, column %d is %g, expected %g", m->format->name,
                      (int)rows, (int)row, (int)column, (double)got[row * m->n + column],
                      sum);
        }
    free(x);
    free(got);
    tn_scope_close(s);
}

// One row, some at a time, tiles; more terms than invocations take at once; rows and blocks
// that begin where they are read in pieces.
Test(quant_device, products_are_those_of_the_values)
{
    for (size_t f = 0; f < FORMATS; f++) {
        struct matrix m = matrix_make(formats[f], 37, 1120);
        cr_assert(eq(ptr, (void *)tn_quant_packed(formats[f], "vulkan"), NULL));
        cr_assert(eq(ptr, (void *)tn_quant_packed(formats[f], "vulkan-jit"), NULL));
        check_product(&m, 1, 0, 0);
        check_product(&m, 6, 0, 0);
        check_product(&m, 18, 0, 0);
        matrix_free(&m);
    }
    struct matrix odd = matrix_make("q5_1", 21, 96), large = matrix_make("q5_0", 730, 64);
    check_product(&odd, 1, 3, 1);
    check_product(&large, 190, 0, 0); // larger tiles
    matrix_free(&odd);
    matrix_free(&large);
    large = matrix_make("q8_0", 730, 32);
    check_product(&large, 190, 1, 0);
    matrix_free(&large);
    large = matrix_make("q4_0", 7, 4128); // all invocations share a column
    check_product(&large, 1, 0, 0);
    matrix_free(&large);
}

// One launch of few rows; with more of them, what is before is one of its own. The first
// format with all, the others with some.
Test(quant_device, programs_are_part_of_products)
{
    static const int64_t rows[] = {1, 5, 18};
    for (size_t f = 0; f < FORMATS; f++) {
        tn_scope *s = tn_scope_open(runtime);
        struct matrix m = matrix_make(formats[f], 37, 96);
        struct beside b = {formats[f], tn_keep(s, matrix_array(s, &m, 0)), 0, m.n, m.k, 0};
        for (size_t i = 0; i < 3; i++) {
            b.rows = rows[i];
            b.steps = rows[i] > 8 ? 2 : 1;
            if (f == 0 || f % 3 == i)
                check_beside(&b);
        }
        tn_release(b.w);
        matrix_free(&m);
        tn_scope_close(s);
    }
}

// The bytes of a value in a dtype.
static size_t stored(const char *dtype, float value, uint8_t out[8])
{
    uint16_t half =
        strcmp(dtype, "f16") == 0 ? tn_f16_of_f32(value) : tn_bf16_of_f32(value);
    double wide = (double)value;
    if (strcmp(dtype, "f32") == 0) {
        memcpy(out, &value, sizeof(value));
        return sizeof(value);
    }
    if (strcmp(dtype, "f64") == 0) {
        memcpy(out, &wide, sizeof(wide));
        return sizeof(wide);
    }
    memcpy(out, &half, sizeof(half));
    return sizeof(half);
}

static void check_values(const struct matrix *m, const char *dtype, int is_odd)
{
    tn_scope *s = tn_scope_open(runtime);
    int64_t count = m->n * m->k;
    uint8_t *got = malloc((size_t)count * 8), want[8];
    size_t size = stored(dtype, 0, want);
    tn_array *values = tn_op(s, "quant.dequantize", TN_IN(matrix_array(s, m, is_odd)),
                             tn_attrs("format", m->format->name, "dtype", dtype));
    must(s, tn_read(s, values, got, (size_t)count * size));
    for (int64_t i = 0; i < count; i++) {
        stored(dtype, m->values[i], want);
        cr_assert(eq(int, memcmp(got + (size_t)i * size, want, size), 0),
                  "%s as %s, element %d", m->format->name, dtype, (int)i);
    }
    free(got);
    tn_scope_close(s);
}

// To the bit, in each dtype.
Test(quant_device, values_are_those_of_the_blocks)
{
    static const char *const dtypes[] = {"f16", "bf16", "f64"};
    for (size_t f = 0; f < FORMATS; f++) {
        struct matrix m = matrix_make(formats[f], 13, 96);
        check_values(&m, "f32", (int)(f % 2));
        if (f < 3)
            check_values(&m, dtypes[f], 0);
        matrix_free(&m);
    }
}

static const struct {
    tn_dtype dtype;
    uint64_t bits[4]; // little-endian, as many bytes as the dtype has
    int64_t rows[4];
} lookups[] = {
    {TN_I64, {0, UINT64_MAX, UINT64_C(1) << 32, UINT64_MAX << 32}, {0, 12, 12, 0}},
    {TN_I8, {5, 0xff, 127, 0x80}, {5, 12, 12, 0}},
    {TN_U8, {5, 0xff, 12, 11}, {5, 12, 12, 11}},
    {TN_U64, {5, UINT64_MAX, 12, UINT64_C(5) << 32}, {5, 12, 12, 12}},
    {TN_I32, {5, UINT32_MAX - 1, 13, 0x80000000}, {5, 11, 12, 0}},
};

// Ids of all sizes; negative ones count from the end, and beyond the ends is the nearest.
Test(quant_device, rows_are_those_that_ids_mean)
{
    for (size_t f = 0; f < FORMATS; f++) {
        tn_scope *s = tn_scope_open(runtime);
        struct matrix m = matrix_make(formats[f], 13, 64);
        uint8_t ids[32];
        float got[4 * 64];
        size_t size = (size_t)tn_dtype_bytes(lookups[f].dtype);
        for (size_t i = 0; i < 4; i++)
            memcpy(ids + i * size, &lookups[f].bits[i], size);
        tn_array *at = tn_from_data(s, lookups[f].dtype, TN_SHAPE(2, 2), ids);
        must(s, tn_read(s,
                        tn_op(s, "quant.quantized_take", TN_IN(matrix_array(s, &m, 0), at),
                              tn_attrs("format", formats[f])),
                        got, sizeof(got)));
        for (int64_t i = 0; i < 4 * 64; i++)
            cr_assert(eq(flt, got[i], m.values[lookups[f].rows[i / 64] * 64 + i % 64]),
                      "%s, row %d", tn_dtype_name(lookups[f].dtype), (int)(i / 64));
        matrix_free(&m);
        tn_scope_close(s);
    }
}

// A format that the shaders do not have is told, not computed wrongly.
Test(quant_device, other_formats_are_refused)
{
    static const uint8_t bytes[17] = {0};
    tn_scope *s = tn_scope_open(runtime);
    float out[32];
    tn_array *w = tn_from_data(s, TN_U8, TN_SHAPE(1, 17), bytes);
    tn_array *y = tn_op(s, "quant.dequantize", TN_IN(w), tn_attrs("format", "mxfp4"));
    cr_assert(ne(int, tn_read(s, y, out, sizeof(out)), TN_OK));
    const char *said = tn_scope_error(s);
    cr_assert(ne(ptr, (void *)said, NULL));
    cr_assert(ne(ptr, strstr(said, "quant.dequantize"), NULL), "%s", said);
    tn_scope_close(s);
}
