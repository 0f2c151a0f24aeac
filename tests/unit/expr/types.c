// SPDX-License-Identifier: MIT
// Which dtypes expressions give: the expected ones are NumPy 2's, but for what is said.
#include "expr_check.h"

struct expectation {
    const char *text;
    tn_dtype x, y;
    tn_dtype out;
};

static tn_dtype infer(const char *text, tn_dtype x, tn_dtype y)
{
    const struct expr_input inputs[] = {{.dtype = x}, {.dtype = y}};
    tn_dtype out[TN_EXPR_MAX_OUTPUTS] = {TN_DTYPE_NONE};
    if (expr_infer(parsed(text), inputs, out) != TN_OK)
        return TN_DTYPE_NONE;
    return out[0];
}

TestSuite(types, .init = open_set, .fini = close_set);

Test(types, dtypes_are_numpys)
{
    static const struct expectation cases[] = {
        {"x, y -> x + y", TN_I8, TN_U8, TN_I16},
        {"x, y -> x + y", TN_I32, TN_U32, TN_I64},
        {"x, y -> x + y", TN_I64, TN_U64, TN_F64},
        {"x, y -> x * y", TN_I16, TN_F16, TN_F32},
        {"x, y -> x * y", TN_I8, TN_F16, TN_F16},
        {"x, y -> x * y", TN_I32, TN_F32, TN_F64},
        {"x, y -> x - y", TN_BOOL, TN_U8, TN_U8},
        {"x, y -> x + y", TN_F16, TN_BF16, TN_F32}, // NumPy has no bf16
        {"x, y -> x + y", TN_BOOL, TN_BOOL, TN_BOOL},
        {"x, y -> x * y", TN_BOOL, TN_BOOL, TN_BOOL},
        {"x, y -> x // y", TN_BOOL, TN_BOOL, TN_I8},
        {"x, y -> x % y", TN_BOOL, TN_BOOL, TN_I8},
        {"x, y -> x ** y", TN_BOOL, TN_BOOL, TN_I8},
        {"x, y -> x << y", TN_BOOL, TN_BOOL, TN_I8},
        {"x, y -> x & y", TN_BOOL, TN_BOOL, TN_BOOL},
        {"x, y -> x / y", TN_I8, TN_I8, TN_F64},
        {"x, y -> x / y", TN_BOOL, TN_BOOL, TN_F64},
        {"x, y -> x / y", TN_F32, TN_I8, TN_F32},
        {"x, y -> x // y", TN_I8, TN_I16, TN_I16},
        {"x, y -> x ** y", TN_U8, TN_U8, TN_U8},
        {"x, y -> max(x, y)", TN_BOOL, TN_BOOL, TN_BOOL},
        {"x, y -> atan2(x, y)", TN_I8, TN_I8, TN_F16},
        {"x, y -> x < y", TN_F32, TN_I64, TN_BOOL},
        {"x, y -> x && y", TN_F32, TN_I64, TN_BOOL},
        {"x, y -> select(x, y, 1)", TN_BOOL, TN_I8, TN_I8},
        {"x, y -> select(x, y, 1.5)", TN_BOOL, TN_I8, TN_F64},
        {"x, y -> exp(x)", TN_BOOL, TN_I8, TN_F16},
        {"x, y -> exp(x)", TN_U8, TN_I8, TN_F16},
        {"x, y -> exp(x)", TN_I16, TN_I8, TN_F32},
        {"x, y -> exp(x)", TN_I32, TN_I8, TN_F64},
        {"x, y -> exp(x)", TN_BF16, TN_I8, TN_BF16},
        {"x, y -> sqrt(x)", TN_U64, TN_I8, TN_F64},
        {"x, y -> floor(x)", TN_I16, TN_I8, TN_I16},
        {"x, y -> round(x)", TN_BOOL, TN_I8, TN_BOOL},
        {"x, y -> abs(x)", TN_BOOL, TN_I8, TN_BOOL},
        {"x, y -> -x", TN_U8, TN_I8, TN_U8},
        {"x, y -> ~x", TN_BOOL, TN_I8, TN_BOOL},
        {"x, y -> isnan(x)", TN_I32, TN_I8, TN_BOOL},
        {"x, y -> i8(x) + y", TN_F64, TN_I16, TN_I16},
        {"x, y -> sum(x)", TN_BOOL, TN_I8, TN_I64},
        {"x, y -> sum(x)", TN_I8, TN_I8, TN_I64},
        {"x, y -> prod(x)", TN_U16, TN_I8, TN_U64},
        {"x, y -> sum(x)", TN_F16, TN_I8, TN_F16},
        {"x, y -> mean(x)", TN_I32, TN_I8, TN_F64},
        {"x, y -> mean(x)", TN_BF16, TN_I8, TN_BF16},
        {"x, y -> max(x)", TN_BOOL, TN_I8, TN_BOOL},
        {"x, y -> min(x)", TN_U8, TN_I8, TN_U8},
        {"x, y -> max(x) * 2", TN_I8, TN_I8, TN_I8},
        {"x, y -> mean(x) + 0.5", TN_F32, TN_I8, TN_F32},
        {"x, y -> x / sum(x == x ? 1.0 : 0)", TN_F32, TN_I8, TN_F32},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        tn_dtype out = infer(cases[i].text, cases[i].x, cases[i].y);
        if (out != cases[i].out)
            cr_fatal("%s of %s, %s: got %s, expected %s", cases[i].text,
                     dtype_name(cases[i].x), dtype_name(cases[i].y), dtype_name(out),
                     dtype_name(cases[i].out));
    }
}

Test(types, literals_and_attributes_take_the_dtype_they_meet)
{
    static const struct expectation cases[] = {
        {"x, y -> x + 1", TN_I8, TN_I8, TN_I8},
        {"x, y -> x + 1", TN_BOOL, TN_I8, TN_I64},
        {"x, y -> x + 1.0", TN_I8, TN_I8, TN_F64},
        {"x, y -> x + 1.0", TN_BOOL, TN_I8, TN_F64},
        {"x, y -> x * 2.5", TN_F16, TN_I8, TN_F16},
        {"x, y -> x * 2.5", TN_BF16, TN_I8, TN_BF16},
        {"x, y -> x * alpha", TN_F32, TN_I8, TN_F32},
        {"x, y -> x * alpha", TN_I32, TN_I8, TN_F64},
        {"x, y -> x * (2 * alpha - exp(beta))", TN_F32, TN_I8, TN_F32},
        {"x, y -> x + 1 / 2", TN_F16, TN_I8, TN_F16},
        {"x, y -> select(x > 0, 1, 0.0) * x", TN_F32, TN_I8, TN_F32},
        {"x, y -> 1", TN_F32, TN_I8, TN_I64},
        {"x, y -> 1.0", TN_F32, TN_I8, TN_F64},
        {"x, y -> 18446744073709551615", TN_F32, TN_I8, TN_U64},
        {"x, y -> abs(18446744073709551615)", TN_F32, TN_I8, TN_U64},
        {"x, y -> sign(18446744073709551615)", TN_F32, TN_I8, TN_U64},
        {"x, y -> true", TN_F32, TN_I8, TN_BOOL},
        {"x, y -> index", TN_F32, TN_I8, TN_I64},
        {"x, y -> x > 1.5", TN_I8, TN_I8, TN_BOOL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        tn_dtype out = infer(cases[i].text, cases[i].x, cases[i].y);
        if (out != cases[i].out)
            cr_fatal("%s of %s: got %s, expected %s", cases[i].text, dtype_name(cases[i].x),
                     dtype_name(out), dtype_name(cases[i].out));
    }
}

Test(types, inputs_that_are_numbers_take_it_too)
{
    const struct expr_input inputs[] = {{.dtype = TN_F64, .weak_kind = KIND_FLOAT},
                                        {.dtype = TN_F16}};
    tn_dtype out;
    check_status(expr_infer(parsed("x, y -> x * y"), inputs, &out), TN_OK);
    cr_assert(eq(int, out, TN_F16));
    const struct expr_input whole[] = {{.dtype = TN_I64, .weak_kind = KIND_SIGNED},
                                       {.dtype = TN_U8}};
    check_status(expr_infer(parsed("x, y -> x * y"), whole, &out), TN_OK);
    cr_assert(eq(int, out, TN_U8));
}

Test(types, attributes_take_the_kind_of_a_table)
{
    static const tn_attr_field fields[] = {{.name = "k", .kind = TN_ATTR_I64},
                                           {.name = "a", .kind = TN_ATTR_F64, .offset = 8}};
    static const tn_attr_table table = {16, 2, sizeof(*fields), fields};
    const struct expr *free = parsed("x -> x * k"), *bound = NULL;
    const struct expr_input input = {.dtype = TN_I32};
    tn_dtype out;
    check_status(expr_infer(free, &input, &out), TN_OK);
    cr_assert(eq(int, out, TN_F64));
    check_status(expr_bind(free, &table, &bound), TN_OK);
    check_status(expr_infer(bound, &input, &out), TN_OK);
    cr_assert(eq(int, out, TN_I32));
    free = parsed("x -> x * a");
    check_status(expr_bind(free, &table, &bound), TN_OK);
    cr_assert(eq(ptr, free, bound));
}

Test(types, what_has_no_type_is_refused)
{
    static const struct {
        const char *text;
        tn_dtype x;
        const char *message;
    } cases[] = {
        {"x, y -> x & y", TN_F32, "'&' of f32 and bool: expected integers or bool"},
        {"x, y -> x << 1", TN_F32, "'<<' of f32 and 1: expected integers"},
        {"x, y -> x & 1.5", TN_I8, "'&' of i8 and a number: expected integers or bool"},
        {"x, y -> x ^ u64(3)", TN_I32, "'^' of i32 and u64: expected integers that one"},
        {"x, y -> u64(1) << x", TN_I8, "'<<' of u64 and i8: expected integers that one"},
        {"x, y -> x + 300", TN_U8, "'+' of u8 and 300: expected a number that u8 holds"},
        {"x, y -> -1 * x", TN_U64, "'*' of -1 and u64: expected a number that u64 holds"},
        {"x, y -> min(x, 2**7)", TN_I8, "'min' of i8 and 128: expected a number that i8"},
        {"x, y -> x ** -129", TN_I8, "'**' of i8 and -129: expected a number that i8"},
        {"x, y -> x & 9223372036854775808", TN_I64, "'&' of i64 and 9223372036854775808:"},
        {"x, y -> y ? x : -32769", TN_I16, "'select' of i16 and -32769: expected a number"},
        {"x, y -> y + 18446744073709551615", TN_I8, "'+' of bool and 18446744073709551615"},
        {"x, y -> ~x", TN_F64, "'~' of f64: expected integers or bool"},
        {"x, y -> x - y", TN_BOOL, "'-' of bool and bool: expected numbers"},
        {"x, y -> -x", TN_BOOL, "'-' of bool: expected a number"},
        {"x, y -> sign(x)", TN_BOOL, "'sign' of bool: expected a number"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        cr_assert(eq(int, infer(cases[i].text, cases[i].x, TN_BOOL), TN_DTYPE_NONE));
        if (!strstr(fail_text(), cases[i].message) || !strstr(fail_text(), "expression '"))
            cr_fatal("%s: %s", cases[i].text, fail_text());
    }
}
