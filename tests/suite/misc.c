// SPDX-License-Identifier: MIT
// Random numbers and optimisers.
#include "suite.h"

// --- random numbers --------------------------------------------------------------------

static void rotate(uint32_t *a, uint32_t *b, int by)
{
    *a += *b;
    *b = (*b << by | *b >> (32 - by)) ^ *a;
}

// Threefry-2x32-20 as the paper has it.
static void threefry(const uint32_t key[2], uint64_t counter, uint32_t out[2])
{
    static const int by[8] = {13, 15, 26, 6, 17, 29, 16, 24};
    uint32_t k[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA};
    uint32_t a = (uint32_t)counter + k[0], b = (uint32_t)(counter >> 32) + k[1];
    for (uint32_t i = 0; i < 20; i++) {
        rotate(&a, &b, by[i % 8]);
        if (i % 4 != 3)
            continue;
        uint32_t j = i / 4 + 1;
        a += k[j % 3];
        b += k[(j + 1) % 3] + j;
    }
    out[0] = a;
    out[1] = b;
}

// The known answers of the authors' Random123.
static void check_threefry(struct suite *s)
{
    static const struct {
        uint32_t key[2];
        uint64_t counter;
        uint32_t want[2];
    } known[] = {
        {{0, 0}, 0, {0x6b200159, 0x99ba4efe}},
        {{0xffffffff, 0xffffffff}, UINT64_MAX, {0x1cb996fc, 0xbb002be7}},
        {{0x13198a2e, 0x03707344}, UINT64_C(0x85a308d3243f6a88), {0xc4923a9c, 0x483df7a0}},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        uint32_t got[2];
        threefry(known[i].key, known[i].counter, got);
        bool same = got[0] == known[i].want[0] && got[1] == known[i].want[1];
        check(s, same ? NULL : "differs", "known answer %zu", i);
    }
}

static const uint32_t keys[][2] = {
    {0, 0}, {0xffffffff, 0xffffffff}, {0x13198a2e, 0x03707344}, {7, 0}};

enum { BITS, UNIFORM, NORMAL };

static double expected_random(int what, tn_dtype dtype, const uint32_t key[2], uint64_t i)
{
    uint32_t w[2];
    threefry(key, i, w);
    if (what == BITS)
        return w[0];
    if (what == UNIFORM)
        return dtype == TN_F64 ? ((w[0] >> 5) * 67108864.0 + (w[1] >> 6)) * 0x1p-53
                               : (w[0] >> 8) * 0x1p-24;
    double u = dtype == TN_F64 ? (w[0] + 1.0) * 0x1p-32 : ((w[0] >> 8) + 1) * 0x1p-24;
    double v = dtype == TN_F64 ? w[1] * 0x1p-32 : (w[1] >> 8) * 0x1p-24;
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static void check_random(struct suite *s, const char *primitive, int what, tn_dtype dtype,
                         const uint32_t key[2], const tn_ints *shape)
{
    struct host_array got;
    tn_scope *scope = tn_scope_open(s->runtime);
    tn_array *k = tn_from_data(scope, TN_U32, TN_SHAPE(2), key);
    tn_attr_list list = what == BITS ? tn_attrs("shape", shape)
                                     : tn_attrs("shape", shape, "dtype", (int64_t)dtype);
    tn_array *x = tn_op(scope, primitive, TN_IN(k), list);
    const char *failure = NULL;
    if (!host_array_read(scope, x, &got)) {
        failure = tn_scope_error(scope);
    } else {
        struct host_array want =
            host_array_new(dtype, got.tensor.layout.rank, got.tensor.layout.extent);
        for (int64_t i = 0; i < want.count; i++)
            tn_set_f64(&want.tensor, i, expected_random(what, dtype, key, (uint64_t)i));
        // The radius is up to 6, the angle up to 6.3 with an error of an ulp or two (on a
        // GPU of what its sine allows).
        double bound = what == NORMAL ? (s->is_cpu ? 24 : 64) * dtype_rounding(dtype) : 0;
        if (!s->is_cpu && what == NORMAL)
            bound = fmax(bound, 1e-5);
        failure = host_array_compare(&got, &want, dtype == TN_F16 ? 0x1p-11 : 0, bound);
        host_array_free(&want);
        host_array_free(&got);
    }
    check(s, failure, "%s key %08x %08x rank %u", tn_dtype_name(dtype), key[0], key[1],
          shape->count);
    tn_scope_close(scope);
}

// Mean and variance of n samples, to within five standard errors.
static void check_moments(struct suite *s, const char *primitive, double mean,
                          double variance, double fourth)
{
    enum { COUNT = 100000 };
    struct host_array got;
    uint32_t key[2] = {(uint32_t)random_bits(s), (uint32_t)random_bits(s)};
    tn_scope *scope = tn_scope_open(s->runtime);
    tn_array *k = tn_from_data(scope, TN_U32, TN_SHAPE(2), key);
    tn_array *x = tn_op(scope, primitive, TN_IN(k),
                        tn_attrs("shape", TN_INTS(COUNT), "a", 2.0, "b", 5.0));
    char text[160];
    const char *failure = NULL;
    if (!host_array_read(scope, x, &got)) {
        failure = tn_scope_error(scope);
    } else {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < COUNT; i++)
            sum += host_array_get(&got, i);
        for (int64_t i = 0; i < COUNT; i++)
            squares += pow(host_array_get(&got, i) - mean, 2);
        double got_mean = sum / COUNT, got_variance = squares / COUNT;
        if (fabs(got_mean - mean) > 5 * sqrt(variance / COUNT) ||
            fabs(got_variance - variance) >
                5 * sqrt((fourth - variance * variance) / COUNT)) {
            snprintf(text, sizeof(text), "mean %g and variance %g, expected %g and %g",
                     got_mean, got_variance, mean, variance);
            failure = text;
        }
        host_array_free(&got);
    }
    check(s, failure, "moments of %s, key %08x %08x", primitive, key[0], key[1]);
    tn_scope_close(scope);
}

// Bounds between which there may be few numbers: all are of [a, b), rounded to the dtype;
// where that has none, all are a.
static void check_bounds(struct suite *s, tn_dtype dtype, double a, double b)
{
    enum { COUNT = 60000 };
    static const uint32_t key[2] = {3, 4};
    uint64_t stores[2] = {0, 0};
    struct host_array got;
    char text[160];
    const char *failure = NULL;
    tn_scope *scope = tn_scope_open(s->runtime);
    tn_array *x = tn_op(
        scope, "base.random_uniform", TN_IN(tn_from_data(scope, TN_U32, TN_SHAPE(2), key)),
        tn_attrs("shape", TN_INTS(COUNT), "dtype", (int64_t)dtype, "a", a, "b", b));
    const tn_tensor bounds = {.data = stores, .layout = {.dtype = dtype}};
    tn_set_f64(&bounds, 0, a);
    tn_set_f64(&bounds, 1, b);
    double first = tn_get_f64(&bounds, 0), end = tn_get_f64(&bounds, 1);
    if (!host_array_read(scope, x, &got)) {
        failure = tn_scope_error(scope);
    } else {
        double least = INFINITY, most = -INFINITY;
        for (int64_t i = 0; i < COUNT; i++) {
            least = fmin(least, host_array_get(&got, i));
            most = fmax(most, host_array_get(&got, i));
        }
        bool good =
            first < end ? least >= first && most < end : least == first && most == first;
        if (!good) {
            snprintf(text, sizeof(text), "numbers from %.9g to %.9g", least, most);
            failure = text;
        }
        host_array_free(&got);
    }
    check(s, failure, "%s from %.9g up to %.9g", tn_dtype_name(dtype), a, b);
    tn_scope_close(scope);
}

static void bounds_tests(struct suite *s)
{
    static const double bounds[][2] = {
        {0, 1},     {-1, 0},          {-3, -2},         {1, 1 + 0x1p-6}, {1, 1 + 0x1p-9},
        {100, 101}, {1, 1 + 0x1p-22}, {1e4, 1e4 + 1},   {2, 2},          {5, 4},
        {0, 70000}, {0.1, 0.3},       {1, 1 + 0x1p-51}, {-1e-6, 1e-6}};
    for (tn_dtype dtype = TN_F16; dtype <= TN_F64; dtype++)
        for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
            check_bounds(s, dtype, bounds[i][0], bounds[i][1]);
}

void random_tests(struct suite *s)
{
    static const char *const names[] = {"base.random_bits", "base.random_uniform",
                                        "base.random_normal"};
    for (int what = 0; what < 3; what++) {
        cover(names[what]);
        if (!test_begin(s, "%s", names[what]))
            continue;
        check_threefry(s);
        for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
            tn_dtype dtype = what == BITS ? TN_U32 : TN_F32;
            const tn_ints scalar = {0, 1, {0}};
            check_random(s, names[what], what, dtype, keys[k], TN_INTS(1000));
            check_random(s, names[what], what, dtype, keys[k], TN_INTS(3, 0));
            check_random(s, names[what], what, dtype, keys[k], TN_INTS(2, 3, 5));
            check_random(s, names[what], what, dtype, keys[k], &scalar);
            if (what != BITS)
                check_random(s, names[what], what, TN_F64, keys[k], TN_INTS(100));
        }
        // a is the low end or the mean, b the high end or the deviation.
        if (what == UNIFORM)
            bounds_tests(s);
        if (what == UNIFORM)
            check_moments(s, names[what], 3.5, 0.75, 81.0 / 80);
        if (what == NORMAL)
            check_moments(s, names[what], 2, 25, 3 * 625);
        test_end(s);
    }
}

// --- optimisers ------------------------------------------------------------------------

static void check_optimiser(struct suite *s, bool is_adam, tn_dtype dtype)
{
    enum { COUNT = 37 };
    struct host_array in[4], got, want[3];
    tn_array *out[3] = {NULL};
    tn_scope *scope = tn_scope_open(s->runtime);
    for (int i = 0; i < 4; i++) {
        in[i] = host_array_new(dtype, 1, (int64_t[]){COUNT});
        host_array_fill(s, &in[i], i == 3 ? 0 : -1, 1);
    }
    for (int i = 0; i < 3; i++)
        want[i] = host_array_new(dtype, 1, (int64_t[]){COUNT});
    double lr = 0.1, step = 3;
    for (int64_t i = 0; i < COUNT; i++) {
        double p = host_array_get(&in[0], i), g = host_array_get(&in[1], i),
               m = host_array_get(&in[2], i);
        double v = host_array_get(&in[3], i);
        double m1 = is_adam ? 0.9 * m + (1 - 0.9) * g : 0.5 * m + g + 0.01 * p;
        double v1 = 0.999 * v + (1 - 0.999) * g * g;
        double by = m1 / (1 - pow(0.9, step)) / (sqrt(v1 / (1 - pow(0.999, step))) + 1e-8);
        tn_set_f64(&want[0].tensor, i, p - lr * (is_adam ? by + 0.01 * p : m1));
        tn_set_f64(&want[1].tensor, i, m1);
        tn_set_f64(&want[2].tensor, i, v1);
    }
    tn_array *a[4];
    for (int i = 0; i < 4; i++)
        a[i] = host_array_upload(scope, &in[i], PLAIN);
    if (is_adam)
        tn_op_n(scope, "nn.adam",
                TN_IN(a[0], a[1], a[2], a[3],
                      tn_scalar(scope, dtype == TN_F64 ? TN_F64 : TN_F32, step)),
                tn_attrs("lr", lr, "weight_decay", 0.01), out, 3);
    else
        tn_op_n(scope, "nn.sgd", TN_IN(a[0], a[1], a[2]),
                tn_attrs("lr", lr, "momentum", 0.5, "weight_decay", 0.01), out, 2);
    for (int i = 0; i < (is_adam ? 3 : 2); i++) {
        const char *failure = NULL;
        if (host_array_read(scope, out[i], &got)) {
            // The update is up to 10, by some 20 operations; on a GPU by a logarithm that
            // Vulkan allows to be off by 2^-21, where it is 0.003.
            double bound = dtype_rounding(dtype == TN_F64 ? TN_F64 : TN_F32) * 200;
            if (!s->is_cpu)
                bound = 1e-3;
            failure = host_array_compare(&got, &want[i], dtype_rounding(dtype) * 2, bound);
            host_array_free(&got);
        } else {
            failure = tn_scope_error(scope);
        }
        check(s, failure, "%s output %d", tn_dtype_name(dtype), i);
    }
    for (int i = 0; i < 4; i++)
        host_array_free(&in[i]);
    for (int i = 0; i < 3; i++)
        host_array_free(&want[i]);
    tn_scope_close(scope);
}

// The parts of a vector of 11 that end at 3, 3 and 8, in every dtype.
static void check_split(struct suite *s, tn_dtype dtype)
{
    static const int64_t begin[] = {0, 3, 3, 8, 11};
    struct host_array in = host_array_new(dtype, 1, (int64_t[]){11}), got;
    tn_array *out[4] = {NULL};
    tn_scope *scope = tn_scope_open(s->runtime);
    host_array_fill(s, &in, 0, 2);
    tn_array *x = host_array_upload(scope, &in, PLAIN);
    tn_op_n(scope, "base.split", TN_IN(x), tn_attrs("indices", TN_INT_LIST(3, 3, 8)), out,
            4);
    for (int i = 0; i < 4; i++) {
        const int64_t width = begin[i + 1] - begin[i];
        struct host_array want = host_array_new(dtype, 1, &width);
        const char *failure = NULL;
        for (int64_t k = 0; k < width; k++)
            tn_set_f64(&want.tensor, k, host_array_get(&in, begin[i] + k));
        if (host_array_read(scope, out[i], &got)) {
            failure = host_array_compare(&got, &want, 0, 0);
            host_array_free(&got);
        } else {
            failure = tn_scope_error(scope);
        }
        check(s, failure, "%s part %d", tn_dtype_name(dtype), i);
        host_array_free(&want);
    }
    host_array_free(&in);
    tn_scope_close(scope);
}

static void split_test(struct suite *s)
{
    cover("base.split");
    if (!test_begin(s, "base.split"))
        return;
    for (tn_dtype dtype = TN_BOOL; dtype <= TN_F64; dtype++)
        check_split(s, dtype);
    test_end(s);
}

void optimiser_tests(struct suite *s)
{
    split_test(s);
    static const char *const names[] = {"nn.sgd", "nn.adam"};
    for (int i = 0; i < 2; i++) {
        cover(names[i]);
        if (!test_begin(s, "%s", names[i]))
            continue;
        for (tn_dtype dtype = TN_F16; dtype <= TN_F64; dtype++)
            check_optimiser(s, i == 1, dtype);
        test_end(s);
    }
}
