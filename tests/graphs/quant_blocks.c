// SPDX-License-Identifier: MIT
// The blocks that quant.quantize makes: those that others write, small errors, and what is
// no number.
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <tenon/ops/quant.h>
#include "common.h"
#include "../kernels/quant_fixtures.h"

static void open_cpu(void)
{
    runtime = open_on("cpu-blas");
}

TestSuite(quant_blocks, .init = open_cpu, .fini = teardown);

static tn_array *floats_of(tn_scope *s, const tn_array *w, const char *format)
{
    return tn_op(s, "quant.dequantize", TN_IN(w), tn_attrs("format", format));
}

// Floats of several sizes, a block of zeros among them, as the fixtures were made of.
static void check_encoded(const char *format, const uint8_t *want, size_t bytes)
{
    static const float sizes[4] = {1, 0, 1e-3f, 300};
    uint32_t state = 1;
    float x[128];
    uint8_t got[4 * 34];
    for (int i = 0; i < 128; i++) {
        state = (uint32_t)((state * UINT64_C(1664525) + 1013904223) & UINT32_MAX);
        uint32_t bits = state & 0xffffff00;
        double number = bits < 0x80000000 ? (double)bits : (double)bits - 4294967296.0;
        x[i] = (float)(number / 2147483648.0) * sizes[i / 32];
    }
    tn_scope *s = tn_scope_open(runtime);
    tn_array *q =
        tn_op(s, "quant.quantize", TN_IN(tn_from_data(s, TN_F32, TN_SHAPE(128), x)),
              tn_attrs("format", format));
    must(s, tn_read(s, q, got, bytes));
    for (size_t i = 0; i < bytes; i++)
        cr_assert(eq(u8, got[i], want[i]), "%s, byte %d", format, (int)i);
    tn_scope_close(s);
}

Test(quant_blocks, blocks_are_those_that_others_write)
{
#define CHECK(name) check_encoded(#name, encoded_##name, sizeof(encoded_##name));
    CHECK(q4_0)
    CHECK(q4_1)
    CHECK(q5_0)
    CHECK(q5_1)
    CHECK(q8_0)
    CHECK(mxfp4)
#undef CHECK
}

// Sums of twelve uniform numbers: nearly a normal distribution of variance 1.
static void draw_normal(float *x, int count)
{
    uint32_t state = 7;
    for (int i = 0; i < count; i++) {
        double sum = -6;
        for (int k = 0; k < 12; k++) {
            state = (uint32_t)((state * UINT64_C(1664525) + 1013904223) & UINT32_MAX);
            sum += (double)state / 4294967296.0;
        }
        x[i] = (float)sum;
    }
}

#define ROWS 16
#define ALL (ROWS * 256)

// Blocks of a format for x, as floats.
static void round_trip(const char *format, const float *x, float *out)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *q =
        tn_op(s, "quant.quantize", TN_IN(tn_from_data(s, TN_F32, TN_SHAPE(ROWS, 256), x)),
              tn_attrs("format", format));
    must(s, tn_read(s, floats_of(s, q, format), out, ALL * sizeof(*out)));
    tn_scope_close(s);
}

// The root of the mean of the squared differences.
static double rms(const float *a, const float *b)
{
    double sum = 0;
    for (int i = 0; i < ALL; i++)
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sqrt(sum / ALL);
}

// The error of normal numbers, in per cent of their deviation: what the best of known
// encoders reaches, and a little more. A fifth of it is what encoding the values of blocks
// once more may change: nothing, where the rule is plain.
static const struct {
    const char *format;
    double most;
} errors[] = {
    {"q4_0", 8.7},   {"q4_1", 7.9},    {"q5_0", 4.35},   {"q5_1", 3.85}, {"q8_0", 0.545},
    {"q2_k", 26.4},  {"q3_k", 14.5},   {"q4_k", 7.06},   {"q5_k", 3.49}, {"q6_k", 1.67},
    {"mxfp4", 11.7}, {"iq4_nl", 7.42}, {"iq4_xs", 7.48},
};

Test(quant_blocks, errors_are_small)
{
    static float x[ALL], once[ALL], twice[ALL], small[ALL];
    draw_normal(x, ALL);
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        const char *format = errors[i].format;
        round_trip(format, x, once);
        double error = 100 * rms(x, once);
        cr_expect(le(dbl, error, errors[i].most), "%s", format);
        cr_expect(ge(dbl, error, 0.9 * errors[i].most), "%s: the bound is loose", format);
        round_trip(format, once, twice);
        cr_expect(le(dbl, 100 * rms(once, twice), 0.2 * errors[i].most), "%s", format);
        for (int k = 0; k < ALL; k++)
            small[k] = x[k] * 0x1p-12f;
        round_trip(format, small, once);
        cr_expect(le(dbl, 100 * rms(small, once) * 0x1p12, 1.2 * errors[i].most), "%s",
                  format);
    }
}

Test(quant_blocks, zeros_stay_and_what_is_not_finite_stays_in_its_block)
{
    static float x[ALL], out[ALL];
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        memset(x, 0, sizeof(x));
        round_trip(errors[i].format, x, out);
        cr_expect(eq(dbl, rms(x, out), 0), "%s", errors[i].format);
        draw_normal(x, ALL);
        x[256] = NAN;
        x[512] = INFINITY;
        x[768] = -INFINITY;
        x[1024] = FLT_MAX;
        x[1280] = FLT_TRUE_MIN;
        round_trip(errors[i].format, x, out);
        for (int k = 0; k < ALL; k++) {
            bool is_near = k / 256 == 0 || k / 256 >= 5;
            bool is_searched =
                strstr(errors[i].format, "_k") || strstr(errors[i].format, "iq4");
            if (is_near)
                cr_assert(lt(flt, fabsf(out[k] - x[k]), 2), "%s", errors[i].format);
            if (is_searched)
                cr_assert(isfinite(out[k]), "%s", errors[i].format);
        }
    }
}

// The squared error of blocks of x, counted by `importance`, of columns or of each row.
static double counted(tn_scope *s, const char *format, const float *x,
                      const float *importance, const tn_array *given)
{
    static float out[ALL];
    double sum = 0;
    tn_array *q = tn_op(s, "quant.quantize",
                        TN_IN(tn_from_data(s, TN_F32, TN_SHAPE(ROWS, 256), x), given),
                        tn_attrs("format", format));
    must(s, tn_read(s, floats_of(s, q, format), out, sizeof(out)));
    for (int i = 0; i < ALL; i++)
        sum += (double)importance[i % 256] * ((double)x[i] - (double)out[i]) *
               ((double)x[i] - (double)out[i]);
    return sum;
}

// Columns of which some count a thousand times as much as others: errors go where they
// count little, in the formats that can choose; blocks of the others are the same.
Test(quant_blocks, errors_count_by_importance)
{
    static const char *const plain[] = {"q4_1", "q5_1", "q8_0", "mxfp4"};
    static float x[ALL], importance[256], rows[ALL];
    tn_scope *s = tn_scope_open(runtime);
    draw_normal(x, ALL);
    draw_normal(importance, 256);
    for (int i = 0; i < 256; i++)
        importance[i] = expf(2 * importance[i]);
    for (int i = 0; i < ALL; i++)
        rows[i] = importance[i % 256];
    tn_array *columns = tn_from_data(s, TN_F32, TN_SHAPE(256), importance);
    tn_array *each = tn_from_data(s, TN_F32, TN_SHAPE(ROWS, 256), rows);
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        const char *format = errors[i].format;
        bool is_plain = false;
        for (size_t k = 0; k < sizeof(plain) / sizeof(plain[0]); k++)
            is_plain |= strcmp(plain[k], format) == 0;
        double without = counted(s, format, x, importance, NULL);
        double with = counted(s, format, x, importance, columns);
        if (is_plain)
            cr_expect(eq(dbl, with, without), "%s", format);
        else
            cr_expect(lt(dbl, with, 0.9 * without), "%s", format);
        cr_expect(eq(dbl, counted(s, format, x, importance, each), with), "%s", format);
    }
    tn_scope_close(s);
}

// What is no importance counts as little as any: columns of nothing else as if none were
// given.
Test(quant_blocks, what_is_no_importance_counts_as_nothing)
{
    static float x[ALL], ones[256], odd[256], none[256];
    tn_scope *s = tn_scope_open(runtime);
    draw_normal(x, ALL);
    for (int i = 0; i < 256; i++) {
        ones[i] = 1;
        odd[i] = i % 4 == 0 ? NAN : i % 4 == 1 ? -1.0f : i % 4 == 2 ? INFINITY : 3e38f;
        none[i] = i % 2 ? -INFINITY : 0;
    }
    tn_array *a = tn_from_data(s, TN_F32, TN_SHAPE(256), odd);
    tn_array *b = tn_from_data(s, TN_F32, TN_SHAPE(256), none);
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        const char *format = errors[i].format;
        double without = counted(s, format, x, ones, NULL),
               with = counted(s, format, x, ones, a);
        cr_expect(lt(dbl, with, 40 * without), "%s", format);
        bool is_searched = strstr(format, "_k") || strstr(format, "iq4");
        if (is_searched)
            cr_expect(eq(dbl, counted(s, format, x, ones, b), without), "%s", format);
    }
    tn_op(s, "quant.quantize",
          TN_IN(tn_from_data(s, TN_F32, TN_SHAPE(ROWS, 256), x),
                tn_from_data(s, TN_F32, TN_SHAPE(2, 128), odd)),
          tn_attrs("format", "q4_0"));
    cr_assert(ne(ptr,
                 strstr(tn_scope_error(s),
                        "importance has shape [2, 128], expected the last extent of x, "
                        "[16, 256], behind some of its first ones"),
                 NULL),
              "%s", tn_scope_error(s));
    tn_scope_close(s);
}

static const struct {
    int64_t k;
    const char *format, *said;
} refused[] = {
    {33, "q4_0",
     "x has shape [2, 33], expected rows of a multiple of 32 elements, as q4_0 has"},
    {128, "q6_k",
     "x has shape [2, 128], expected rows of a multiple of 256 elements, as q6_k has"},
    {32, "q4_0_r16", "expected a plain one (quant.pack packs its blocks)"},
};

Test(quant_blocks, what_cannot_be_quantised_is_told)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_op(s, "quant.quantize",
              TN_IN(tn_op(s, "base.full/1", NULL, 0,
                          tn_attrs("shape", TN_INTS(2, refused[i].k)))),
              tn_attrs("format", refused[i].format));
        const char *said = tn_scope_error(s);
        cr_assert(ne(ptr, (void *)said, NULL), "case %d", (int)i);
        cr_assert(ne(ptr, strstr(said, refused[i].said), NULL), "%s", said);
        tn_scope_close(s);
    }
}
