// SPDX-License-Identifier: MIT
// NaN, infinities and zeros of either sign beside constants, which compilers of drivers
// simplify, on the backend that TENON_TEST_BACKEND or TENON_BACKEND names: each expression
// beside the same in C.
#include <math.h>
#include <string.h>
#include "../support/common.h"

static void begin(void)
{
    if (getenv("TENON_TEST_BACKEND"))
        setup_backend();
    else
        setup();
}

TestSuite(nan, .init = begin, .fini = teardown);

static float least(float a, float b)
{
    return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
}

static float most(float a, float b)
{
    return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
}

// X(number, the expression of x, the same in C). From MESA_FIRST on Mesa's llvmpipe is
// wrong: its arithmetic with a constant 0 is that of integers (docs/expressions.md).
#define EXPRESSIONS(X)                                                                     \
    X(0, "max(1, x)", most(1, x))                                                          \
    X(1, "max(x, 1)", most(x, 1))                                                          \
    X(2, "min(1, x)", least(1, x))                                                         \
    X(3, "min(x, 1)", least(x, 1))                                                         \
    X(4, "max(1, sqrt(x) / 0.5)", most(1, sqrtf(x) / 0.5f))                                \
    X(5, "min(0.01, 1 / sqrt(x))", least(0.01f, 1 / sqrtf(x)))                             \
    X(6, "min(max(x, -1), 1)", least(most(x, -1), 1))                                      \
    X(7, "select(x < 1, 1, x)", x < 1 ? 1 : x)                                             \
    X(8, "select(x > 1, 1, x)", x > 1 ? 1 : x)                                             \
    X(9, "select(1 > x, 1, x)", 1 > x ? 1 : x)                                             \
    X(10, "select(x > 0, x, 0)", x > 0 ? x : 0)                                            \
    X(11, "select(x < 0, x, 0)", x < 0 ? x : 0)                                            \
    X(12, "select(x <= 1, x, 1)", x <= 1 ? x : 1)                                          \
    X(13, "select(x >= 1, 1, x)", x >= 1 ? 1 : x)                                          \
    X(14, "select(sqrt(x) > 1, 1, sqrt(x))", sqrtf(x) > 1 ? 1 : sqrtf(x))                  \
    X(15, "f32(select(x == x, 0.0, 1.0))", x == x ? 0 : 1)                                 \
    X(16, "f32(select(x != x, 1.0, 0.0))", x != x ? 1 : 0)                                 \
    X(17, "f32(select(sqrt(x) == sqrt(x), 0.0, 1.0))", x < 0 || isnan(x) ? 1 : 0)          \
    X(18, "f32(select(~(x < 1), 1.0, 0.0))", !(x < 1) ? 1 : 0)                             \
    X(19, "f32(select(x - x == 0, 1.0, 0.0))", isfinite(x) ? 1 : 0)                        \
    X(20, "x - x", x - x)                                                                  \
    X(21, "x / x", x / x)                                                                  \
    X(22, "-x", -x)                                                                        \
    X(23, "max(x, x * 0)", most(x, x * 0))                                                 \
    X(24, "x * 0", x * 0)                                                                  \
    X(25, "0 / x", 0 / x)                                                                  \
    X(26, "x + 0", x + 0)                                                                  \
    X(27, "0 - x", 0 - x)                                                                  \
    X(28, "abs(x) * 0 + 1", fabsf(x) * 0 + 1)
enum { MESA_FIRST = 23 };

#define TEXT(number, text, value) text,
static const char *const texts[] = {EXPRESSIONS(TEXT)};
enum { NUM_TEXTS = sizeof(texts) / sizeof(texts[0]) };

#define CASE(number, text, value)                                                          \
    case number:                                                                           \
        return value;
static float expected(int which, float x)
{
    switch (which) {
        EXPRESSIONS(CASE)
    default:
        return 0;
    }
}

static bool is_same(float a, float b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b)) ||
           (a != 0 && fabsf(a - b) <= 1e-6f * fabsf(b));
}

static bool is_mesa(void)
{
    const char *backend = getenv("TENON_TEST_BACKEND");
    tn_device_summary all[16] = {{0}};
    uint64_t count = 16;
    for (int i = 0; i < 16; i++)
        all[i].struct_size = sizeof(all[i]);
    if (!backend || tn_devices(runtime, all, &count))
        return false;
    for (uint64_t i = 0; i < count && i < 16; i++)
        if (strcmp(all[i].backend, backend) == 0 && strstr(all[i].name, "llvmpipe"))
            return true;
    return false;
}

Test(nan, expressions_with_constants_are_as_in_c)
{
    const float values[] = {NAN, -NAN, -INFINITY, -2, -0.0f, 0, 0.5f, 1, 3, INFINITY};
    enum { COUNT = sizeof(values) / sizeof(values[0]) };
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(COUNT), values);
    int count = is_mesa() ? MESA_FIRST : NUM_TEXTS;
    for (int i = 0; i < count; i++) {
        char text[80];
        float got[COUNT];
        snprintf(text, sizeof(text), "x -> %s", texts[i]);
        must(s, tn_read(s, tn_expr(s, text, TN_IN(x), TN_NO_ATTRS), got, sizeof(got)));
        for (int k = 0; k < COUNT; k++)
            cr_expect(is_same(got[k], expected(i, values[k])),
                      "%s of %g: got %g, expected %g", texts[i], (double)values[k],
                      (double)got[k], (double)expected(i, values[k]));
    }
    tn_scope_close(s);
}
