// SPDX-License-Identifier: MIT
// The blocks that quant.quantize makes: those that others write, small errors, and what is
// no number.
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <tenon/ops/quant.h>
#include "../support/common.h"
#include "../../kernels/quant_fixtures.h"

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

// --- rows that are all alike, or nearly
// ---------------------------------------------------

enum {
    EQUAL,
    NEARLY,
    HARDLY,
    ONE_PART,
    PARTS,
    SIGNED_PARTS,
    ONE,
    TWO,
    FEW,
    OUTLIER,
    ANTI,
    RISING,
    POSITIVE,
    SPREAD,
    KINDS
};

// Element i of a row of such a kind, of magnitude 1 (an outlier's apart), and a number of
// -1/2 to 1/2.
static double element(int kind, int i, double noise)
{
    const double part = (double)(1 + i / 16) / 16;
    const double values[KINDS] = {
        [EQUAL] = 1,
        [NEARLY] = 1 + 1e-3 * noise,
        [HARDLY] = 1 + 1e-6 * noise,
        [ONE_PART] = i / 32 == 3,
        [PARTS] = part,
        [SIGNED_PARTS] = i / 16 % 2 ? -part : part,
        [ONE] = i == 77,
        [TWO] = i % 2 ? 1 : 0.5,
        [FEW] = i % 16 == 3 ? 1 : 0.5,
        [OUTLIER] = i == 77 ? 100 : 1,
        [ANTI] = i == 77 ? -100 : 1,
        [RISING] = 0.5 + (double)i / 512,
        [POSITIVE] = 0.75 + 0.5 * noise,
        [SPREAD] = 2 * noise,
    };
    return values[kind];
}

// Two neighbours' distance where it is greatest, as a share of a block's range.
static const struct {
    const char *format;
    double step;
} steps[] = {
    {"q4_0", 1 / 8.0},      {"q4_1", 1 / 15.0}, {"q5_0", 1 / 16.0}, {"q5_1", 1 / 31.0},
    {"q8_0", 1 / 127.0},    {"q2_k", 1 / 3.0},  {"q3_k", 1 / 4.0},  {"q4_k", 1 / 15.0},
    {"q5_k", 1 / 31.0},     {"q6_k", 1 / 32.0}, {"mxfp4", 1 / 2.0}, {"iq4_nl", 24 / 113.0},
    {"iq4_xs", 24 / 113.0},
};

// A row of each size, of both signs.
static const float magnitudes[ROWS] = {1,     -1,     0.02f, -0.02f, 1e-3f, -1e-3f,
                                       1e-4f, -1e-4f, 1e-5f, -1e-5f, 200,   -200,
                                       0.3f,  -0.3f,  3e4f,  -3e4f};

// The greatest error of row `row`, as a share of its range, less what half a step of the
// least f16 makes of the greatest level.
static double row_error(const float *x, const float *out, int row)
{
    double least = 0, greatest = 0, worst = 0;
    for (int i = row * 256; i < row * 256 + 256; i++) {
        double apart = fabs((double)x[i] - (double)out[i]);
        least = (double)x[i] < least ? (double)x[i] : least;
        greatest = (double)x[i] > greatest ? (double)x[i] : greatest;
        worst = apart <= worst ? worst : apart; // NaN is the worst
    }
    worst -= 128 * 0x1p-25;
    return worst > 0 || isnan(worst) ? worst / (greatest - least) : 0;
}

// Equal and nearly equal elements hardly have an error at all. Least squares may move one
// element further than half a step.
static double most_error(size_t format, int kind, bool has_importance)
{
    if (kind <= ONE_PART && strcmp(steps[format].format, "mxfp4") != 0)
        return has_importance ? 0.02 : 0.015;
    return (has_importance ? 1.5 : 1) * steps[format].step;
}

static void check_rows(tn_scope *s, size_t format, int kind, const tn_array *importance)
{
    static float x[ALL], out[ALL];
    draw_normal(x, ALL);
    for (int i = 0; i < ALL; i++)
        x[i] = magnitudes[i / 256] / (kind == OUTLIER || kind == ANTI ? 100.0f : 1.0f) *
               (float)element(kind, i % 256, tanh((double)x[i]) / 2);
    tn_array *q = tn_op(s, "quant.quantize",
                        TN_IN(tn_from_data(s, TN_F32, TN_SHAPE(ROWS, 256), x), importance),
                        tn_attrs("format", steps[format].format));
    must(s, tn_read(s, floats_of(s, q, steps[format].format), out, sizeof(out)));
    for (int row = 0; row < ROWS; row++)
        cr_expect(
            le(dbl, row_error(x, out, row), most_error(format, kind, importance != NULL)),
            "%s, kind %d of %g%s", steps[format].format, kind, (double)magnitudes[row],
            importance ? ", with importance" : "");
}

Test(quant_blocks, equal_elements_and_outliers_are_near)
{
    static float weights[256];
    draw_normal(weights, 256);
    for (int i = 0; i < 256; i++)
        weights[i] = expf(weights[i]);
    tn_scope *s = tn_scope_open(runtime);
    tn_array *importance = tn_from_data(s, TN_F32, TN_SHAPE(256), weights);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        for (int kind = 0; kind < KINDS; kind++) {
            check_rows(s, i, kind, NULL);
            check_rows(s, i, kind, importance);
        }
    tn_scope_close(s);
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
    {32, "org.tenon.q4_0_r16", "expected a plain one (quant.pack packs its blocks)"},
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
