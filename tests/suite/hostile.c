// SPDX-License-Identifier: MIT
// Values at the edges of their dtypes: conversions out of range, shifts of mixed widths,
// indices and labels that are none, and one hostile value at every position of rows as long
// as vectors and groups are, and one more, and one less. All of it is defined by
// <tenon/expr.h> and the primitives, and so is expected exactly of every backend.
#include "suite.h"

#define COUNT(list) ((int64_t)(sizeof(list) / sizeof((list)[0])))

static const double floats[] = {
    0,         -0.0,   0.5,      -0.5,     1,      -1,     1.5,     -2.5,
    127.5,     128,    -128,     -129,     255.9,  256,    32767.5, 32768,
    -32769,    65504,  65519,    65520,    65536,  0x1p31, -0x1p31, 0x1.fffffep30,
    0x1p32,    0x1p63, -0x1p63,  0x1.8p63, 0x1p64, 1e30,   -1e30,   INFINITY,
    -INFINITY, NAN,    16777217, 0x1p53};
static const int64_t integers[] = {0,
                                   1,
                                   -1,
                                   2,
                                   -2,
                                   7,
                                   8,
                                   31,
                                   32,
                                   33,
                                   63,
                                   64,
                                   65,
                                   127,
                                   128,
                                   -128,
                                   255,
                                   256,
                                   32767,
                                   -32768,
                                   65535,
                                   INT32_MAX,
                                   INT32_MIN,
                                   UINT32_MAX,
                                   1LL << 32,
                                   (1LL << 32) + 1,
                                   INT64_MAX,
                                   INT64_MIN,
                                   1152921573326323713,
                                   (1LL << 53) + 1};

static bool is_float(tn_dtype dtype)
{
    return tn_dtype_in(dtype, TN_FLOAT_DTYPES);
}

// All hostile values of a dtype.
static struct host_array hostile_value(tn_dtype dtype)
{
    int64_t n = is_float(dtype) ? COUNT(floats) : COUNT(integers);
    struct host_array v = host_array_new(dtype, 1, &n);
    for (int64_t i = 0; i < n; i++)
        if (is_float(dtype))
            tn_set_f64(&v.tensor, i, floats[i]);
        else
            tn_set_i64(&v.tensor, i, integers[i]);
    return v;
}

void check_array(struct suite *s, tn_scope *scope, tn_array *array, struct host_array *want,
                 double tolerance, const char *what)
{
    struct host_array got;
    if (!host_array_read(scope, array, &got)) {
        check(s, tn_scope_error(scope), "%s", what);
    } else {
        check(s, host_array_compare(&got, want, tolerance, tolerance), "%s", what);
        host_array_free(&got);
    }
    host_array_free(want);
}

// --- conversions ------------------------------------------------------------------------

// One element, as <tenon/expr.h> says. Half floats are made from f32.
static void convert(const struct host_array *in, const struct host_array *out, int64_t i)
{
    tn_dtype from = in->tensor.layout.dtype, to = out->tensor.layout.dtype;
    int64_t whole = tn_get_i64(&in->tensor, i);
    if (!is_float(from) && !is_float(to))
        tn_set_i64(&out->tensor, i, whole);
    else if (is_float(from))
        tn_set_f64(&out->tensor, i,
                   to == TN_F16 || to == TN_BF16 ? (double)(float)host_array_get(in, i)
                                                 : host_array_get(in, i));
    else if (to == TN_F64)
        tn_set_f64(&out->tensor, i, host_array_get(in, i));
    else
        tn_set_f64(&out->tensor, i,
                   from == TN_U64 ? (double)(float)(uint64_t)whole : (double)(float)whole);
}

static void conversion_tests(struct suite *s)
{
    if (!test_begin(s, "hostile conversions"))
        return;
    for (tn_dtype from = TN_BOOL; from <= TN_F64; from++)
        for (tn_dtype to = TN_BOOL; to <= TN_F64; to++) {
            struct host_array in = hostile_value(from);
            struct host_array want = host_array_new(to, 1, &in.count);
            char what[64];
            snprintf(what, sizeof(what), "%s to %s", tn_dtype_name(from),
                     tn_dtype_name(to));
            for (int64_t i = 0; i < in.count; i++)
                convert(&in, &want, i);
            tn_scope *scope = tn_scope_open(s->runtime);
            tn_array *x = host_array_upload(scope, &in, PLAIN);
            check_array(
                s, scope,
                tn_op(scope, "base.astype", TN_IN(x), tn_attrs("dtype", (int64_t)to)),
                &want, 0, what);
            tn_scope_close(scope);
            host_array_free(&in);
        }
    test_end(s);
}

// A number that meets an array is converted to its dtype once, however it gets there.
static void number_tests(struct suite *s)
{
    if (!test_begin(s, "numbers beside arrays"))
        return;
    for (tn_dtype dtype = TN_F32; dtype <= TN_F64; dtype++) {
        const int64_t numbers[] = {1152921573326323713, -1152921573326323713, 16777217,
                                   INT64_MAX};
        for (int k = 0; k < 4; k++) {
            struct host_array ones = host_array_new(dtype, 1, (int64_t[]){3});
            struct host_array want = host_array_new(dtype, 1, (int64_t[]){3});
            for (int64_t i = 0; i < 3; i++) {
                tn_set_f64(&ones.tensor, i, 1);
                tn_set_f64(&want.tensor, i,
                           dtype == TN_F32 ? (double)(float)numbers[k]
                                           : (double)numbers[k]);
            }
            tn_scope *scope = tn_scope_open(s->runtime);
            tn_array *x = host_array_upload(scope, &ones, PLAIN);
            tn_array *y = tn_op(scope, "base.multiply", TN_IN(x, tn_int(scope, numbers[k])),
                                TN_NO_ATTRS);
            check_array(s, scope, y, &want, 0, tn_dtype_name(dtype));
            tn_scope_close(scope);
            host_array_free(&ones);
        }
    }
    test_end(s);
}

// --- shifts -----------------------------------------------------------------------------

static int64_t shifted(bool left, tn_dtype dtype, int64_t x, int64_t by)
{
    bool has_sign = tn_dtype_in(dtype, TN_SIGNED_DTYPES);
    bool out = by < 0 || by >= 8 * tn_dtype_bytes(dtype);
    if (left)
        return out ? 0 : (int64_t)((uint64_t)x << by);
    if (!has_sign)
        return out ? 0 : (int64_t)((uint64_t)x >> by);
    return out ? (x < 0 ? -1 : 0) : x >> by;
}

// Every amount with every value, computed in the dtype that both promote to.
static void check_shift(struct suite *s, bool left, tn_dtype a, tn_dtype b)
{
    struct host_array x = hostile_value(a), y = hostile_value(b);
    char what[64];
    snprintf(what, sizeof(what), "%s %s %s", tn_dtype_name(a), left ? "<<" : ">>",
             tn_dtype_name(b));
    x.tensor.layout.rank = 2;
    x.tensor.layout.extent[1] = 1;
    x.tensor.layout.stride[1] = 1;
    tn_scope *scope = tn_scope_open(s->runtime);
    tn_array *out = tn_op(
        scope, left ? "base.left_shift" : "base.right_shift",
        TN_IN(host_array_upload(scope, &x, PLAIN), host_array_upload(scope, &y, PLAIN)),
        TN_NO_ATTRS);
    const tn_type *type = tn_array_type(out);
    if (out) {
        struct host_array want = host_array_new(type->dtype, 2, type->extent);
        for (int64_t i = 0; i < want.count; i++)
            tn_set_i64(&want.tensor, i,
                       shifted(left, type->dtype, tn_get_i64(&x.tensor, i / y.count),
                               tn_get_i64(&y.tensor, i % y.count)));
        check_array(s, scope, out, &want, 0, what);
    } else {
        check(s, tn_scope_error(scope), "%s", what);
    }
    tn_scope_close(scope);
    host_array_free(&x);
    host_array_free(&y);
}

static void shift_tests(struct suite *s)
{
    static const tn_dtype pairs[][2] = {
        {TN_I8, TN_I8},   {TN_I16, TN_I16}, {TN_I32, TN_I32}, {TN_I64, TN_I64},
        {TN_U8, TN_U8},   {TN_U16, TN_U16}, {TN_U32, TN_U32}, {TN_U64, TN_U64},
        {TN_I32, TN_I64}, {TN_I64, TN_I32}, {TN_I8, TN_U32},  {TN_U8, TN_I16},
        {TN_U32, TN_I32}, {TN_U32, TN_U64}, {TN_U16, TN_I8},
    };
    if (!test_begin(s, "hostile shifts"))
        return;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        check_shift(s, true, pairs[i][0], pairs[i][1]);
        check_shift(s, false, pairs[i][0], pairs[i][1]);
    }
    test_end(s);
}

// --- one hostile value at every position ------------------------------------------------

static const double planted[] = {NAN, INFINITY, -INFINITY, 3, -3};

enum { ALL_POSITIONS = 300 };

// Where the hostile values stand in rows of n: everywhere, or in long rows at both ends and
// around the 256 elements that a group of a GPU takes at once.
static int64_t num_positions(int64_t n)
{
    return n <= ALL_POSITIONS ? n : 12;
}

static int64_t position(int64_t n, int64_t k)
{
    const int64_t places[12] = {0,       255,     256,     2047,    2048,  2304,
                                n - 300, n - 257, n - 256, n - 255, n - 2, n - 1};
    return n <= ALL_POSITIONS ? k : places[k];
}

// Rows of n numbers in [-1, 1], one for each position and planted value.
static struct host_array plant(struct suite *s, tn_dtype dtype, int64_t n)
{
    int64_t positions = num_positions(n), rows = COUNT(planted) * positions;
    struct host_array x = host_array_new(dtype, 2, (int64_t[]){rows, n});
    host_array_fill(s, &x, -1, 1);
    for (int64_t row = 0; row < rows; row++)
        tn_set_f64(&x.tensor, row * n + position(n, row % positions),
                   planted[row / positions]);
    return x;
}

struct row_results {
    double most, least, sum, logsumexp;
    int64_t first; // argmax
};

static struct row_results read_row(const struct host_array *x, int64_t row, int64_t n)
{
    struct row_results r = {-INFINITY, INFINITY, 0, 0, 0};
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = host_array_get(x, row * n + i);
        if (i == 0 || v > r.most || (isnan(v) && !isnan(r.most)))
            r.most = v, r.first = i;
        if (v < r.least || isnan(v))
            r.least = v;
        r.sum += v;
    }
    double shift = isfinite(r.most) ? r.most : 0;
    for (int64_t i = 0; i < n; i++)
        sum += exp(host_array_get(x, row * n + i) - shift);
    r.logsumexp = shift + log(sum);
    return r;
}

enum { MAX, MIN, SUM, LOGSUMEXP, ARGMAX, LOSS, SOFTMAX, LOG_SOFTMAX, NUM_ROW_OPS };
static const char *const row_ops[NUM_ROW_OPS] = {
    "base.max",    "base.min",           "base.sum",   "base.logsumexp",
    "base.argmax", "nn.cross_entropy/1", "nn.softmax", "nn.log_softmax"};

static void fill_wanted(const struct host_array *x, int64_t n,
                        struct host_array want[NUM_ROW_OPS])
{
    int64_t rows = x->count / n;
    for (int64_t row = 0; row < rows; row++) {
        struct row_results r = read_row(x, row, n);
        tn_set_f64(&want[MAX].tensor, row, r.most);
        tn_set_f64(&want[MIN].tensor, row, r.least);
        tn_set_f64(&want[SUM].tensor, row, r.sum);
        tn_set_f64(&want[LOGSUMEXP].tensor, row, r.logsumexp);
        tn_set_i64(&want[ARGMAX].tensor, row, r.first);
        tn_set_f64(&want[LOSS].tensor, row,
                   r.logsumexp - host_array_get(x, row * n)); // label 0
        for (int64_t i = 0; i < n; i++) {
            double v = host_array_get(x, row * n + i);
            double log_share = isinf(r.most) && r.most > 0 ? (double)NAN : v - r.logsumexp;
            if (r.most == -INFINITY)
                log_share = (double)NAN; // 0 / 0
            tn_set_f64(&want[SOFTMAX].tensor, row * n + i, exp(log_share));
            tn_set_f64(&want[LOG_SOFTMAX].tensor, row * n + i, log_share);
        }
    }
}

static tn_array *row_op(tn_scope *scope, int k, tn_array *x, int64_t rows)
{
    if (k == LOSS) {
        tn_array *zeros = tn_op(scope, "base.full", NULL, 0,
                                tn_attrs("shape", TN_INTS(rows), "dtype", (int64_t)TN_I64));
        return tn_op(scope, row_ops[k], TN_IN(x, zeros), TN_NO_ATTRS);
    }
    if (k <= LOGSUMEXP)
        return tn_op(scope, row_ops[k], TN_IN(x), tn_attrs("axis", TN_INTS(1)));
    return tn_op(scope, row_ops[k], TN_IN(x), tn_attrs("axis", (int64_t)1));
}

// Along the last axis, or along the first of the same rows transposed in memory.
static void check_rows(struct suite *s, tn_dtype dtype, int64_t n, bool by_columns)
{
    struct host_array x = plant(s, dtype, n), want[NUM_ROW_OPS];
    int64_t rows = x.count / n, full[2] = {rows, n};
    tn_scope *scope = tn_scope_open(s->runtime);
    tn_array *array = host_array_upload(scope, &x, by_columns ? TRANSPOSED : PLAIN);
    tn_array *out[NUM_ROW_OPS];
    for (int k = 0; k < NUM_ROW_OPS; k++) {
        want[k] = host_array_new(k == ARGMAX ? TN_I64 : dtype, k < SOFTMAX ? 1 : 2, full);
        out[k] = row_op(scope, k, array, rows);
    }
    fill_wanted(&x, n, want);
    for (int k = 0; k < NUM_ROW_OPS; k++) {
        char what[96];
        bool is_exact = k == MAX || k == MIN || k == ARGMAX;
        snprintf(what, sizeof(what), "%s of %d %s%s", row_ops[k], (int)n,
                 tn_dtype_name(dtype), by_columns ? " by columns" : "");
        check_array(s, scope, out[k], &want[k],
                    is_exact ? 0 : 8 * dtype_rounding(dtype) + 1e-5, what);
    }
    tn_scope_close(scope);
    host_array_free(&x);
}

static void position_tests(struct suite *s)
{
    // Around 4, 8, 16, 32, 64, 128 and 256, and what is left behind them.
    static const int64_t lengths[] = {1,  2,  3,  7,  8,  9,   15,  16,  17,
                                      31, 33, 47, 63, 65, 129, 255, 257, 5003};
    static const int64_t few[] = {1, 9, 17, 33, 129};
    if (!test_begin(s, "a hostile value at every position of a row"))
        return;
    for (int64_t i = 0; i < COUNT(lengths); i++) {
        check_rows(s, TN_F32, lengths[i], false);
        check_rows(s, TN_F32, lengths[i], true);
    }
    for (int64_t i = 0; i < COUNT(few); i++) {
        check_rows(s, TN_F64, few[i], false);
        check_rows(s, TN_F64, few[i], true);
        check_rows(s, TN_F16, few[i], false);
    }
    test_end(s);
}

// A maximum of two arrays, at each position of a length.
static void check_pairs(struct suite *s, const char *id, tn_dtype dtype, int64_t n)
{
    bool is_max = strcmp(id, "base.maximum") == 0;
    struct host_array x = plant(s, dtype, n), y = plant(s, dtype, n);
    struct host_array want = host_array_new(dtype, 2, x.tensor.layout.extent);
    host_array_fill(s, &y, -1, 1);
    for (int64_t i = 0; i < x.count; i++) {
        double a = host_array_get(&x, i), b = host_array_get(&y, i);
        double chosen = is_max ? (a > b ? a : b) : (a < b ? a : b);
        tn_set_f64(&want.tensor, i, isnan(a) ? a : chosen);
    }
    struct host_array again = host_array_new(dtype, 2, x.tensor.layout.extent);
    memcpy(again.tensor.data, want.tensor.data,
           (size_t)(want.count * tn_dtype_bytes(dtype)));
    tn_scope *scope = tn_scope_open(s->runtime);
    tn_array *a = host_array_upload(scope, &x, PLAIN),
             *b = host_array_upload(scope, &y, PLAIN);
    check_array(s, scope, tn_op(scope, id, TN_IN(a, b), TN_NO_ATTRS), &want, 0, id);
    check_array(s, scope, tn_op(scope, id, TN_IN(b, a), TN_NO_ATTRS), &again, 0, id);
    tn_scope_close(scope);
    host_array_free(&x);
    host_array_free(&y);
}

static void pair_tests(struct suite *s)
{
    static const int64_t lengths[] = {1, 3, 5, 9, 17, 33};
    if (!test_begin(s, "a hostile value at every position of a pair"))
        return;
    for (int64_t i = 0; i < COUNT(lengths); i++)
        for (tn_dtype dtype = TN_F32; dtype <= TN_F64; dtype++) {
            check_pairs(s, "base.maximum", dtype, lengths[i]);
            check_pairs(s, "base.minimum", dtype, lengths[i]);
        }
    test_end(s);
}

// --- pooling ----------------------------------------------------------------------------

enum { SIDE = 5 };

// The maximum of a window of an image, its places from (h, w) on.
static double window_max(const struct host_array *x, int64_t image, int64_t channels,
                         int64_t c, int64_t h, int64_t w, int64_t window)
{
    double most = -INFINITY;
    for (int64_t i = h < 0 ? 0 : h; i < h + window && i < SIDE; i++)
        for (int64_t k = w < 0 ? 0 : w; k < w + window && k < SIDE; k++) {
            double v = host_array_get(x, ((image * SIDE + i) * SIDE + k) * channels + c);
            most = isnan(most) || isnan(v) ? (double)NAN : v > most ? v : most;
        }
    return most;
}

// One image a position, of SIDE by SIDE pixels; windows of 3 that overlap, padded by 1.
static void check_pool(struct suite *s, int64_t channels)
{
    int64_t size = SIDE * SIDE * channels;
    int64_t extent[4] = {COUNT(planted) * size, SIDE, SIDE, channels};
    struct host_array x = plant(s, TN_F32, size), want = host_array_new(TN_F32, 4, extent);
    struct host_array images = host_array_new(TN_F32, 4, extent);
    memcpy(images.tensor.data, x.tensor.data, (size_t)x.count * sizeof(float));
    for (int64_t i = 0; i < want.count; i++) {
        int64_t c = i % channels, pixel = i / channels;
        tn_set_f64(&want.tensor, i,
                   window_max(&images, pixel / (SIDE * SIDE), channels, c,
                              pixel / SIDE % SIDE - 1, pixel % SIDE - 1, 3));
    }
    tn_scope *scope = tn_scope_open(s->runtime);
    char what[64];
    snprintf(what, sizeof(what), "%d channels", (int)channels);
    check_array(
        s, scope,
        tn_op(scope, "nn.max_pool2d/1", TN_IN(host_array_upload(scope, &images, PLAIN)),
              tn_attrs("window", TN_INTS(3), "stride", TN_INTS(1), "padding", TN_INTS(1))),
        &want, 0, what);
    tn_scope_close(scope);
    host_array_free(&x);
    host_array_free(&images);
}

static void pool_tests(struct suite *s)
{
    static const int64_t channels[] = {1, 7, 8, 9};
    if (!test_begin(s, "a hostile value at every position of an image"))
        return;
    for (int64_t i = 0; i < COUNT(channels); i++)
        check_pool(s, channels[i]);
    test_end(s);
}

void hostile_tests(struct suite *s)
{
    conversion_tests(s);
    number_tests(s);
    shift_tests(s);
    index_tests(s);
    position_tests(s);
    pair_tests(s);
    pool_tests(s);
}
