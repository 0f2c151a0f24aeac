// SPDX-License-Identifier: MIT
// Quantised weights in graphs: rules, packing, formats of third parties, the choice of
// kernels, and what wrong arguments are told. Values of the formats are in
// tests/kernels/cpu_quant.c.
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <tenon/ops/quant.h>
#include "../support/common.h"
#include "packing_of.h"
#include "quant.h"
#include "../../kernels/quant_fixtures.h"

static void open_cpu(void)
{
    runtime = open_on("cpu-blas");
}

TestSuite(quant, .init = open_cpu, .fini = teardown);

static double number(int64_t i)
{
    return (double)((i * i * 7 + 3 * i) % 31) / 8 - 2;
}

static tn_array *numbers(tn_scope *s, const tn_shape *shape)
{
    int64_t count = 1;
    for (int32_t i = 0; i < shape->rank; i++)
        count *= shape->extent[i];
    float *data = malloc((size_t)count * sizeof(*data));
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)number(i);
    tn_array *out = tn_from_data(s, TN_F32, shape, data);
    free(data);
    return out;
}

// An array of any extents, without memory for them.
static tn_array *repeated(tn_scope *s, const tn_shape *shape, tn_dtype dtype)
{
    const uint64_t zero = 0;
    tn_ints extents = {.count = (uint32_t)shape->rank, .given = 1};
    memcpy(extents.value, shape->extent, sizeof(extents.value));
    return tn_op(s, "base.broadcast_to", TN_IN(tn_from_data(s, dtype, TN_SCALAR, &zero)),
                 tn_attrs("shape", (const tn_ints *)&extents));
}

static tn_array *quantised(tn_scope *s, const char *format, int64_t n, int64_t k)
{
    return tn_op(s, "quant.quantize", TN_IN(numbers(s, TN_SHAPE(n, k))),
                 tn_attrs("format", format));
}

static tn_array *packed(tn_scope *s, const tn_array *w, const char *from, const char *to)
{
    return tn_op(s, "quant.pack", TN_IN(w), tn_attrs("format", from, "to", to));
}

static tn_array *floats_of(tn_scope *s, const tn_array *w, const char *format)
{
    return tn_op(s, "quant.dequantize", TN_IN(w), tn_attrs("format", format));
}

static tn_array *product(tn_scope *s, const tn_array *x, const tn_array *w,
                         const char *format, int exact)
{
    return tn_op(s, "quant.quantized_matmul", TN_IN(x, w),
                 tn_attrs("format", format, "exact", (int64_t)exact));
}

// The same by base.matmul of what the blocks stand for.
static tn_array *plain_product(tn_scope *s, const tn_array *x, const tn_array *w,
                               const char *format)
{
    return bin(s, "base.matmul", x, un(s, "base.transpose", floats_of(s, w, format)));
}

// max |a - b|, over max |b|.
static double apart(tn_scope *s, const tn_array *a, const tn_array *b)
{
    tn_array *error = tn_expr(s, "a, b -> abs(a - b)", TN_IN(a, b), TN_NO_ATTRS);
    tn_array *size = tn_expr(s, "b -> abs(b)", TN_IN(b), TN_NO_ATTRS);
    float got[2] = {1, 1};
    must(s, tn_read(s, un(s, "base.max", error), &got[0], sizeof(float)));
    must(s, tn_read(s, un(s, "base.max", size), &got[1], sizeof(float)));
    return (double)got[0] / (double)got[1];
}

// Products of one row, of few and of many, with rows of weights behind the last 16.
Test(quant, products_are_those_of_the_values)
{
    static const char *const formats[] = {"q4_0", "q4_1", "q8_0", "q5_0", "mxfp4"};
    static const int64_t rows[] = {1, 5, 40};
    for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++)
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            tn_scope *s = tn_scope_open(runtime);
            tn_array *w = quantised(s, formats[f], 37, 96);
            tn_array *x = numbers(s, TN_SHAPE(rows[i], 96));
            tn_array *want = plain_product(s, x, w, formats[f]);
            const char *to = packing_of(runtime, formats[f]);
            cr_assert(le(dbl, apart(s, product(s, x, w, formats[f], 0), want), 1e-6));
            if (to) {
                tn_array *p = packed(s, w, formats[f], to);
                cr_assert(le(dbl, apart(s, product(s, x, p, to, 1), want), 1e-6), "%s", to);
                double error = apart(s, product(s, x, p, to, 0), want);
                cr_assert(le(dbl, error, 0.01), "%s", to);
                cr_assert(gt(dbl, error, 1e-5), "%s: x was not rounded", to);
                cr_assert(
                    eq(dbl, apart(s, floats_of(s, p, to), floats_of(s, w, formats[f])), 0));
            }
            tn_scope_close(s);
        }
}

// A product for each choice of a row: of blocks, plain and packed, and of floats.
static tn_array *chosen_products(tn_scope *s, tn_array *x, tn_array *w, tn_array *ids,
                                 const char *format, int exact)
{
    return tn_op(s, "quant.experts_matmul", TN_IN(x, w, ids),
                 tn_attrs("format", format, "exact", (int64_t)exact));
}

// The same by matrices of floats, gathered by choice.
static tn_array *plain_products(tn_scope *s, tn_array *x, const tn_array *values,
                                const tn_array *ids)
{
    tn_array *each =
        tn_op(s, "base.take", TN_IN(values, ids), tn_attrs("axis", (int64_t)0));
    tn_array *rows = tn_op(s, "base.expand_dims", TN_IN(x), tn_attrs("axis", TN_INTS(2)));
    return tn_op(s, "base.sum",
                 TN_IN(tn_expr(s, "x, w -> x * w", TN_IN(rows, each), TN_NO_ATTRS)),
                 tn_attrs("axis", TN_INTS(-1)));
}

// One row and many; rows that choices share, and rows of their own; an expert that two
// choices of one row take, one that nobody takes, numbers from the end and beyond it.
Test(quant, experts_multiply_the_rows_that_chose_them)
{
    static const char *const formats[] = {"q4_0", "q8_0", "mxfp4", ""};
    static const int64_t sizes[][2] = {{1, 1}, {1, 3}, {5, 1}, {5, 3}, {40, 3}};
    const int64_t single[3] = {4, -5, 99}, twice[3] = {2, 4, 2};
    for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++)
        for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
            tn_scope *s = tn_scope_open(runtime);
            int64_t n = sizes[i / 2][0], m = 3, choices[120];
            for (int64_t p = 0; p < n * m; p++)
                choices[p] = n > 1 ? (p * p) % 5 - p % 2 * 5 : (i % 2 ? twice : single)[p];
            tn_array *ids = tn_from_data(s, TN_I64, TN_SHAPE(n, m), choices);
            tn_array *x = numbers(s, TN_SHAPE(n, sizes[i / 2][1], 64));
            tn_array *w = numbers(s, TN_SHAPE(5, 37, 64));
            const char *to = *formats[f] ? packing_of(runtime, formats[f]) : NULL;
            if (*formats[f])
                w = tn_op(s, "quant.quantize", TN_IN(w), tn_attrs("format", formats[f]));
            tn_array *want =
                plain_products(s, x, *formats[f] ? floats_of(s, w, formats[f]) : w, ids);
            double error = apart(s, chosen_products(s, x, w, ids, formats[f], 0), want);
            cr_assert(le(dbl, error, 1e-6), "%s, case %zu", formats[f], i);
            tn_array *p = to ? packed(s, w, formats[f], to) : NULL;
            if (p) {
                error = apart(s, chosen_products(s, x, p, ids, to, 1), want);
                cr_assert(le(dbl, error, 1e-6), "%s exact, case %zu", to, i);
                error = apart(s, chosen_products(s, x, p, ids, to, 0), want);
                cr_assert(le(dbl, error, 0.01), "%s, case %zu", to, i);
            }
            tn_scope_close(s);
        }
}

// Ids count from the end when negative, and the nearest row is taken beyond the ends.
// Of packed weights whose rows are whole groups: several blocks of results, and threads.
Test(quant, programs_are_part_of_products)
{
    static const char *const formats[][2] = {{"q4_0", "org.tenon.q4_0_r16"},
                                             {"q4_1", "org.tenon.q4_1_r16"},
                                             {"q8_0", "org.tenon.q8_0_r16"},
                                             {"q4_0", NULL}};
    static const int64_t rows[] = {1, 7, 300};
    for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++) {
        tn_scope *s = tn_scope_open(runtime);
        const char *to = formats[f][1] ? formats[f][1] : formats[f][0];
        for (int64_t n = 96; n <= 97; n++) {
            tn_array *w = quantised(s, formats[f][0], n, 64);
            struct beside b = {to, w, 0, n, 64, formats[f][1] && n % 16 == 0 ? 1 : 3};
            b.w = tn_keep(s, formats[f][1] ? packed(s, w, formats[f][0], to) : w);
            for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                b.rows = rows[i];
                check_beside(&b);
            }
            tn_release(b.w);
        }
        tn_scope_close(s);
    }
}

Test(quant, taken_rows_are_those_of_the_values)
{
    const int64_t ids[6] = {0, 36, -1, 20, 99, -99};
    tn_scope *s = tn_scope_open(runtime);
    tn_array *w = quantised(s, "q8_0", 37, 64),
             *p = packed(s, w, "q8_0", "org.tenon.q8_0_r16");
    tn_array *at = tn_from_data(s, TN_I64, TN_SHAPE(2, 3), ids);
    tn_array *want = tn_op(s, "base.take", TN_IN(floats_of(s, w, "q8_0"), at),
                           tn_attrs("axis", (int64_t)0));
    cr_assert(eq(
        dbl,
        apart(s, tn_op(s, "quant.quantized_take", TN_IN(w, at), tn_attrs("format", "q8_0")),
              want),
        0));
    cr_assert(eq(dbl,
                 apart(s,
                       tn_op(s, "quant.quantized_take", TN_IN(p, at),
                             tn_attrs("format", "org.tenon.q8_0_r16")),
                       want),
                 0));
    tn_scope_close(s);
}

// Packing a stack of matrices, and back: the same bytes.
static void check_packing(const char *format, const char *to, int64_t row)
{
    tn_scope *s = tn_scope_open(runtime);
    size_t size = (size_t)(2 * 35 * row);
    uint8_t *bytes = malloc(size), *got = malloc(size);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 37 % 251);
    tn_array *w = tn_from_data(s, TN_U8, TN_SHAPE(2, 35, row), bytes);
    tn_array *p = packed(s, w, format, to);
    must(s, tn_read(s, p, got, size));
    cr_assert(ne(int, memcmp(got, bytes, size), 0), "%s", to);
    must(s, tn_read(s, packed(s, p, to, format), got, size));
    cr_assert(eq(int, memcmp(got, bytes, size), 0), "%s", to);
    free(bytes);
    free(got);
    tn_scope_close(s);
}

Test(quant, packing_goes_back)
{
#define CHECK(name, plain, ...)                                                            \
    check_packing(#plain, TN_QUANT_R16_ID(plain), 2 * TN_QUANT_BYTES_##plain);
    TN_QUANT_PACKED_FORMATS(CHECK)
#undef CHECK
}

// --- rules ------------------------------------------------------------------------------

Test(quant, derivatives_are_those_of_the_values)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *w = quantised(s, "q4_0", 20, 64), *x = numbers(s, TN_SHAPE(3, 64));
    tn_array *y[2] = {product(s, x, w, "q4_0", 1), plain_product(s, x, w, "q4_0")};
    tn_array *g = numbers(s, TN_SHAPE(3, 20)), *t = numbers(s, TN_SHAPE(3, 64));
    tn_array *back[2], *ahead[2];
    for (int i = 0; i < 2; i++) {
        must(s, tn_vjp(s, &y[i], &g, 1, &x, 1, &back[i]));
        must(s, tn_jvp(s, &y[i], 1, &x, &t, 1, &ahead[i]));
    }
    cr_assert(le(dbl, apart(s, back[0], back[1]), 1e-6));
    cr_assert(le(dbl, apart(s, ahead[0], ahead[1]), 1e-6));
    tn_scope_close(s);
}

static tn_status mapped(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                        uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out;
    out[0] = *(const int *)user ? product(s, in[0], in[1], "q4_0", 1)
                                : plain_product(s, in[0], in[1], "q4_0");
    return TN_OK;
}

// A batch of x, of w, and of both.
Test(quant, batches_are_those_of_the_values)
{
    static const int32_t axes[][2] = {{1, -1}, {-1, 0}, {0, 0}};
    for (size_t i = 0; i < sizeof(axes) / sizeof(axes[0]); i++) {
        tn_scope *s = tn_scope_open(runtime);
        int is_w = axes[i][1] >= 0, ours = 1, theirs = 0;
        tn_array *in[2] = {
            numbers(s, axes[i][0] < 0 ? TN_SHAPE(2, 64) : TN_SHAPE(3, 3, 64)), NULL};
        in[1] = is_w ? tn_op(s, "quant.quantize", TN_IN(numbers(s, TN_SHAPE(3, 20, 64))),
                             tn_attrs("format", "q4_0"))
                     : quantised(s, "q4_0", 20, 64);
        tn_array *got = NULL, *want = NULL;
        must(s, tn_vmap_call(s, mapped, &ours, in, axes[i], 2, &got, NULL, 1));
        must(s, tn_vmap_call(s, mapped, &theirs, in, axes[i], 2, &want, NULL, 1));
        cr_assert(le(dbl, apart(s, got, want), 1e-6));
        tn_scope_close(s);
    }
}

static tn_status mapped_choices(tn_scope *s, tn_array *const *in, uint64_t num_in,
                                tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out;
    out[0] = *(const int *)user
                 ? chosen_products(s, in[0], in[1], in[2], "q4_0", 1)
                 : plain_products(s, in[0], floats_of(s, in[1], "q4_0"), in[2]);
    return TN_OK;
}

// Of products with experts: rows that choices share and others; batches of x, of the
// matrices and of the choices.
Test(quant, rules_of_experts_are_those_of_the_values)
{
    static const int32_t axes[][3] = {{0, -1, -1}, {-1, -1, 0}, {0, 0, 0}};
    const int64_t choices[3][3][2] = {
        {{1, 0}, {-1, 1}, {2, 2}}, {{0, 0}, {1, 2}, {9, 0}}, {{2, 1}, {1, 0}, {0, -3}}};
    tn_scope *s = tn_scope_open(runtime);
    tn_array *ids = tn_from_data(s, TN_I64, TN_SHAPE(3, 2), choices);
    tn_array *w = tn_op(s, "quant.quantize", TN_IN(numbers(s, TN_SHAPE(3, 20, 64))),
                        tn_attrs("format", "q4_0"));
    for (int64_t own = 1; own <= 2; own++) {
        tn_array *x = numbers(s, TN_SHAPE(3, own, 64)), *back[2], *ahead[2];
        tn_array *y[2] = {chosen_products(s, x, w, ids, "q4_0", 1),
                          plain_products(s, x, floats_of(s, w, "q4_0"), ids)};
        tn_array *g = numbers(s, TN_SHAPE(3, 2, 20)), *t = numbers(s, TN_SHAPE(3, own, 64));
        for (int i = 0; i < 2; i++) {
            must(s, tn_vjp(s, &y[i], &g, 1, &x, 1, &back[i]));
            must(s, tn_jvp(s, &y[i], 1, &x, &t, 1, &ahead[i]));
        }
        cr_assert(le(dbl, apart(s, back[0], back[1]), 1e-6));
        cr_assert(le(dbl, apart(s, ahead[0], ahead[1]), 1e-6));
    }
    for (size_t i = 0; i < sizeof(axes) / sizeof(axes[0]); i++) {
        int ours = 1, theirs = 0;
        tn_array *all =
            tn_op(s, "quant.quantize", TN_IN(numbers(s, TN_SHAPE(3, 3, 20, 64))),
                  tn_attrs("format", "q4_0"));
        tn_array *in[3] = {
            numbers(s, axes[i][0] < 0 ? TN_SHAPE(3, 1, 64) : TN_SHAPE(3, 3, 1, 64)),
            axes[i][1] < 0 ? w : all,
            axes[i][2] < 0 ? ids : tn_from_data(s, TN_I64, TN_SHAPE(3, 3, 2), choices)};
        tn_array *got = NULL, *want = NULL;
        must(s, tn_vmap_call(s, mapped_choices, &ours, in, axes[i], 3, &got, NULL, 1));
        must(s, tn_vmap_call(s, mapped_choices, &theirs, in, axes[i], 3, &want, NULL, 1));
        cr_assert(le(dbl, apart(s, got, want), 1e-6), "batch %d", (int)i);
    }
    tn_scope_close(s);
}

// Shapes of x, of the matrices and of the choices.
Test(quant, wrong_experts_are_told)
{
    static const struct {
        tn_shape x, w, ids;
        const char *format, *said;
    } rows[] = {
        {{3, 0, {2, 1, 64}},
         {2, 0, {20, 36}},
         {2, 0, {2, 2}},
         "q4_0",
         "w has shape [20, 36], expected [experts, r, row bytes] with an expert at least"},
        {{3, 0, {2, 1, 64}}, {3, 0, {0, 20, 36}}, {2, 0, {2, 2}}, "q4_0", "at least"},
        {{3, 0, {2, 1, 64}}, {3, 0, {3, 20, 35}}, {2, 0, {2, 2}}, "q4_0", "whole blocks"},
        {{3, 0, {2, 1, 64}},
         {3, 0, {3, 20, 36}},
         {2, 0, {2, 2}},
         "",
         "w is u8 with the format '', expected u8 with one, or floats without"},
        {{3, 0, {2, 3, 64}},
         {3, 0, {3, 20, 36}},
         {2, 0, {2, 2}},
         "q4_0",
         "x has shape [2, 3, 64] and experts [2, 2], expected [n, 1 or m, 64] and [n, m]"},
        {{3, 0, {2, 1, 32}}, {3, 0, {3, 20, 36}}, {2, 0, {2, 2}}, "q4_0", "1 or m, 64]"},
        {{3, 0, {3, 1, 64}}, {3, 0, {3, 20, 36}}, {2, 0, {2, 2}}, "q4_0", "[n, m]"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tn_scope *s = tn_scope_open(runtime);
        chosen_products(s, repeated(s, &rows[i].x, TN_F32), repeated(s, &rows[i].w, TN_U8),
                        repeated(s, &rows[i].ids, TN_I64), rows[i].format, 0);
        const char *said = tn_scope_error(s);
        cr_assert(ne(ptr, (void *)(said ? strstr(said, rows[i].said) : NULL), NULL),
                  "case %d: %s", (int)i, said);
        tn_scope_close(s);
    }
}

// --- formats of others ------------------------------------------------------------------

Test(quant, a_plugin_brings_a_format)
{
    const uint8_t bytes[2][3] = {{16, 3, 0xfe}, {8, 10, 0}};
    const float x[2] = {2, 5};
    float got[2], back[4];
    tn_scope *s = tn_scope_open(runtime);
    tn_array *w = tn_from_data(s, TN_U8, TN_SHAPE(2, 3), bytes);
    tn_array *y = product(s, tn_from_data(s, TN_F32, TN_SHAPE(2), x), w, "acme_3", 0);
    must(s, tn_read(s, y, got, sizeof(got)));
    cr_assert(eq(flt, got[0], 2 * 3 - 5 * 2));
    cr_assert(eq(flt, got[1], 2 * 5));
    tn_array *q = tn_op(s, "quant.quantize", TN_IN(floats_of(s, w, "acme_3")),
                        tn_attrs("format", "acme_3"));
    must(s, tn_read(s, floats_of(s, q, "acme_3"), back, sizeof(back)));
    cr_assert(eq(flt, back[0], 3));
    cr_assert(eq(flt, back[2], 5));
    tn_scope_close(s);
}

// --- wrong arguments --------------------------------------------------------------------

static const struct wrong {
    const char *op;
    tn_shape x, w; // x of rank -1: none; ids of take
    const char *format, *to;
    const char *said;
} wrongs[] = {
    {"quant.quantized_matmul",
     {1, 0, {32}},
     {2, 0, {4, 18}},
     "q4_2",
     NULL,
     "install a plugin with format \"q4_2\", or use one of the formats q4_0, q4_1, "},
    {"quant.quantized_matmul",
     {1, 0, {32}},
     {2, 0, {4, 18}},
     "Q4_0",
     NULL,
     "or one that a plugin brings"},
    {"quant.quantized_matmul", {1, 0, {32}}, {2, 0, {4, 18}}, "", NULL, "format is \"\""},
    {"quant.quantized_matmul",
     {1, 0, {32}},
     {2, 0, {4, 18}},
     "a_name_that_is_longer_than_any_name_may_be",
     NULL,
     "expected one of"},
    {"quant.quantized_matmul",
     {1, 0, {32}},
     {2, 0, {4, 18}},
     "acme_bad",
     NULL,
     "format acme_bad has 0 bytes for 2 elements"},
    {"quant.quantized_matmul",
     {1, 0, {32}},
     {2, 0, {4, 19}},
     "q4_0",
     NULL,
     "w has shape [4, 19], expected rows of whole blocks: q4_0 has blocks of 18 bytes"},
    {"quant.quantized_matmul",
     {1, 0, {33}},
     {2, 0, {4, 18}},
     "q4_0",
     NULL,
     "x has shape [33] and w [4, 18] of q4_0, expected 32 elements"},
    {"quant.quantized_matmul",
     {0, 0, {0}},
     {2, 0, {4, 18}},
     "q4_0",
     NULL,
     "expected 32 elements"},
    {"quant.quantized_matmul",
     {1, 0, {32}},
     {1, 0, {18}},
     "q4_0",
     NULL,
     "w has shape [18], expected [n, row bytes]"},
    {"quant.quantized_matmul",
     {1, 0, {32}},
     {3, 0, {2, 4, 18}},
     "org.tenon.q4_0_r16",
     NULL,
     "expected [n, row bytes]"},
    {"quant.dequantize",
     {-1},
     {1, 0, {18}},
     "org.tenon.q4_0_r16",
     NULL,
     "w has shape [18], expected rank 2 or more: rows of a packed format lie together"},
    {"quant.dequantize",
     {-1},
     {0},
     "q4_0",
     NULL,
     "w has shape [], expected rank 1 or more"},
    {"quant.dequantize",
     {-1},
     {2, 0, {0, INT64_MAX / 17 * 17}},
     "mxfp4",
     NULL,
     "whose rows stand for more than 2^63 - 1 elements"},
    {"quant.quantized_take",
     {1, 0, {3}},
     {2, 0, {0, 18}},
     "q4_0",
     NULL,
     "expected [n, row bytes] with a row at least"},
    {"quant.quantized_take",
     {8, 0, {1, 1, 1, 1, 1, 1, 1, 1}},
     {2, 0, {1, 18}},
     "q4_0",
     NULL,
     "ids has rank 8, expected at most 7"},
    {"quant.pack",
     {-1},
     {2, 0, {16, 18}},
     "q4_0",
     "org.tenon.q8_0_r16",
     "to is \"org.tenon.q8_0_r16\", expected \"q4_0\" or a packed format of it"},
    {"quant.pack",
     {-1},
     {1, 0, {18}},
     "q4_0",
     "org.tenon.q4_0_r16",
     "expected rank 2 or more"},
};

Test(quant, wrong_arguments_are_told)
{
    for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
        const struct wrong *c = &wrongs[i];
        tn_scope *s = tn_scope_open(runtime);
        tn_array *w = repeated(s, &c->w, TN_U8);
        const tn_array *in[2] = {w, NULL};
        uint64_t count = 1;
        if (c->x.rank >= 0) {
            int is_take = strcmp(c->op, "quant.quantized_take") == 0;
            in[is_take] = repeated(s, &c->x, is_take ? TN_I64 : TN_F32);
            in[!is_take] = w;
            count = 2;
        }
        tn_op(s, c->op, in, count,
              c->to ? tn_attrs("format", c->format, "to", c->to)
                    : tn_attrs("format", c->format));
        const char *said = tn_scope_error(s);
        cr_assert(ne(ptr, (void *)said, NULL), "case %d", (int)i);
        cr_assert(ne(ptr, strstr(said, c->said), NULL), "case %d: %s", (int)i, said);
        tn_scope_close(s);
    }
}

// Of weights that are floats.
Test(quant, wrong_floats_are_told)
{
    static const struct {
        tn_shape w;
        const char *format, *said;
    } rows[] = {
        {{2, 0, {4, 32}}, "q4_0", "w is f16 with the format 'q4_0', expected u8 with one"},
        {{2, 0, {4, 31}},
         "",
         "x has shape [32] and w [4, 31] of f16, expected 31 elements"},
        {{1, 0, {32}}, "", "w has shape [32], expected [n, k]"},
        {{3, 0, {2, 4, 32}}, "", "w has shape [2, 4, 32], expected [n, k]"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_op(s, "quant.quantized_matmul",
              TN_IN(numbers(s, TN_SHAPE(32)), repeated(s, &rows[i].w, TN_F16)),
              tn_attrs("format", rows[i].format));
        const char *said = tn_scope_error(s);
        cr_assert(said && strstr(said, rows[i].said), "case %zu: %s", i, said);
        tn_scope_close(s);
    }
}

// What is derived of products with halves, as of those with the same numbers as f32.
Test(quant, rules_hold_for_halves)
{
    static const char *const dtypes[] = {"f16", "bf16"};
    for (size_t d = 0; d < 2; d++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = numbers(s, TN_SHAPE(3, 40));
        tn_array *w = tn_op(s, "base.astype", TN_IN(numbers(s, TN_SHAPE(7, 40))),
                            tn_attrs("dtype", dtypes[d]));
        must(s, tn_eval(s, w));
        tn_array *wide = tn_op(s, "base.astype", TN_IN(w), tn_attrs("dtype", "f32"));
        tn_array *g = numbers(s, TN_SHAPE(3, 7)), *back[2];
        tn_array *y[2] = {tn_op(s, "quant.quantized_matmul", TN_IN(x, w), TN_NO_ATTRS),
                          bin(s, "base.matmul", x, un(s, "base.transpose", wide))};
        for (int i = 0; i < 2; i++)
            must(s, tn_vjp(s, &y[i], &g, 1, &x, 1, &back[i]));
        cr_assert(le(dbl, apart(s, y[0], y[1]), 1e-6));
        cr_assert(le(dbl, apart(s, back[0], back[1]), 1e-6));
        tn_scope_close(s);
    }
}
