// SPDX-License-Identifier: MIT
// The language of expressions: grammar, printing, errors, hostile texts.
#include "expr_check.h"

TestSuite(parse, .init = open_set, .fini = close_set);

Test(parse, texts_print_as_expected)
{
    static const char *const cases[][2] = {
        {"x, y -> alpha*x+beta*y", "alpha * x + beta * y"},
        {"x -> (x+1)*2", "(x + 1) * 2"},
        {"x -> x-(1-x)", "x - (1 - x)"},
        {"x -> x - 1 - x", "x - 1 - x"},
        {"x -> -x**2", "-x**2"},
        {"x -> (-x)**2", "(-x)**2"},
        {"x -> 2**-x", "2**-x"},
        {"x -> x**2**3", "x**8"},
        {"x, y -> (x**y)**2", "(x**y)**2"},
        {"x -> -2", "-2"},
        {"x -> (-2)**x", "(-2)**x"},
        {"x -> x - -2", "x - -2"},
        {"x -> x // 2 % 3 / 4", "x // 2 % 3 / 4"},
        {"x -> x << 1 + 2 & 7 | 8 ^ 1", "x << 3 & 7 | 9"},
        {"x -> !(x < 1) && x >= 2 || x == 3", "!(x < 1) && x >= 2 || x == 3"},
        {"x -> x > 0 ? x : 0.1 * x", "select(x > 0, x, 0.1 * x)"},
        {"x -> where(x != x, 0, pow(x, 3))", "select(x != x, 0, x**3)"},
        {"x -> i32(x) + float32(x)", "i32(x) + f32(x)"},
        {"-> index % 4", "index % 4"},
        {"-> 2 * pi", "6.283185307179586"},
        {"-> e, inf, -inf, nan, true", "2.718281828459045, inf, -inf, nan, true"},
        {"-> 0x10, 1e-3, 1E3, .5, 5.", "16, 0.001, 1000.0, 0.5, 5.0"},
        {"-> 18446744073709551615, -9223372036854775808",
         "18446744073709551615, -9223372036854775808"},
        {"-> 7 // 2, -7 // 2, -7 % 3, 1 / 4, 2 - 3 * 4", "3, -4, 2, 0.25, -10"},
        {"x -> a = exp(x); b = a + 1; a / b", "t0 = exp(x); t0 / (t0 + 1)"},
        {"t0 -> a = exp(t0); a * a", "tt0 = exp(t0); tt0 * tt0"},
        {"x -> ~i8(x), !x, --x, +x", "~i8(x), !x, --x, x"},
        {"x,y\n->\tx +\n y", "x + y"},
        {"x -> e = exp(x - max(x)); e/sum(e)", "t0 = exp(x - max(x)); t0 / sum(t0)"},
        {"x, y -> max(max(x), mean(y)) + min(y) - prod(x)",
         "max(max(x), mean(y)) + min(y) - prod(x)"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        cr_assert(eq(str, parsed(cases[i][0])->text, cases[i][1]));
}

Test(parse, what_is_printed_parses_to_the_same_tree)
{
    static const char *const cases[] = {
        "x, y -> atan2(x, y) * -2.5e-7 - (x % y) ** (x / y)",
        "x, y -> a = x * y; b = a + a; c = b * b - a; c, b, min(a, max(b, c))",
        "x, y -> x < y ? x >> 2 : (y << 3 | 1) & ~x",
        "x, y -> d = x - y; 0.5 * d * d, select(d > 0, d, -d)",
        "x, y -> -0.0 * x + 1e300 * y + 1.7976931348623157e308",
        "x, y -> (x == y) == (y != x), !(x && y || !x)",
        "x, y -> -(-x) - (-(y ** -x)) ** -2",
        "x, y -> d = x - mean(x); d * rsqrt(mean(d * d)) * max(y) + sum(min(x) * index)",
    };
    static const char *const names[] = {"x", "y"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct expr *first = parsed(cases[i]), *again = NULL;
        check_status(expr_parse(&runtime, first->text, names, 2, NULL, &again), TN_OK);
        cr_assert(hash_equal(first->hash, again->hash));
        cr_assert(eq(ptr, first, again)); // interned
    }
}

Test(parse, names_resolve_to_inputs_then_attributes_then_constants)
{
    static const char *const names[] = {"e", "x"};
    struct attrs {
        double min, max;
        int64_t n;
    };
    static const tn_attr_field fields[] = {
        TN_F64_FIELD(struct attrs, min, 0, "low"),
        TN_F64_FIELD(struct attrs, max, 1, "high"),
        TN_I64_FIELD(struct attrs, n, 1, "count"),
    };
    static const tn_attr_table table = TN_ATTR_TABLE(struct attrs, fields);
    const struct expr *expr = NULL;
    check_status(
        expr_parse(&runtime, "min(max(x, min), max) * e + n", names, 2, &table, &expr),
        TN_OK);
    cr_assert(eq(str, expr->text, "min(max(x, min), max) * e + n"));
    cr_assert(eq(uint, expr->num_attrs, 3));
    cr_assert(eq(str, expr->attr_names[0], "min"));
    cr_assert(eq(u64, expr->inputs_used, 3));
}

Test(parse, errors_say_what_where_and_what_is_nearest)
{
    static const char *const cases[][2] = {
        {"x -> x +", "expected a value, got the end (line 1, column 9)"},
        {"x -> x y", "expected an operator or the end, got 'y'"},
        {"x -> sqr(x)", "unknown function 'sqr', did you mean 'sqrt'?"},
        {"x -> exp(x, 2)", "'exp' takes 1 argument, got 2"},
        {"x -> select(x)", "'select' takes 3 arguments, got 1"},
        {"x -> max(x, x, x)", "'max' takes 1 or 2 arguments, got 3"},
        {"x -> sum(2 * alpha)", "'sum' of a constant: expected an input in its argument"},
        {"x -> 1 < x < 2", "comparisons do not chain"},
        {"x -> (x", "expected ')' to close the bracket, got the end"},
        {"x -> x = 1; x", "'x' already has a meaning"},
        {"x -> a = 1 a", "expected ';' after a definition, got 'a'"},
        {"x -> x ? 1", "expected ':'"},
        {"x -> 1x", "a number ends here, got 'x'"},
        {"x -> 0x", "hexadecimal digits are missing"},
        {"x -> 99999999999999999999", "the integer does not fit 64 bits"},
        {"x -> 1e999", "larger than any f64"},
        {"x -> x @ x", "'@' is not part of the language"},
        {"x -> x \xc3\xa9", "byte 0xc3"},
        {"x -> x,\n  x * )", "(line 2, column 7)\n    x * )\n        ^"},
        {"x + 1", "expected ',' or '->', got '+'"},
        {"x, x -> x", "'x' already has a meaning"},
        {"nan -> 1", "'nan' already has a meaning"},
        {"", "expected an input's name before '->', got the end"},
        {"x -> ", "expected a value, got the end"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct expr *expr = NULL;
        check_status(expr_parse_arrow(&runtime, cases[i][0], &expr), TN_ERR_ARGUMENT);
        if (!strstr(fail_text(), cases[i][1]))
            cr_fatal("%s: got \"%s\", expected \"%s\"", cases[i][0], fail_text(),
                     cases[i][1]);
        cr_assert(eq(ptr, expr, NULL));
    }
}

Test(parse, an_unknown_attribute_names_the_nearest)
{
    struct attrs {
        double alpha;
        tn_ints axes;
    };
    static const tn_attr_field fields[] = {TN_F64_FIELD(struct attrs, alpha, 0, "factor"),
                                           TN_INTS_FIELD(struct attrs, axes, "axes")};
    static const tn_attr_table table = TN_ATTR_TABLE(struct attrs, fields);
    static const char *const names[] = {"x"};
    const struct expr *expr = NULL;
    check_status(expr_parse(&runtime, "alhpa * x", names, 1, &table, &expr),
                 TN_ERR_ARGUMENT);
    check_says(fail_text(), "unknown name 'alhpa', did you mean 'alpha'?");
    check_status(expr_parse(&runtime, "axes * x", names, 1, &table, &expr),
                 TN_ERR_ARGUMENT);
    check_says(fail_text(), "'axes' is a list");
}

static char *repeated(const char *start, const char *piece, int times, const char *end)
{
    size_t size = strlen(piece);
    char *text = malloc(strlen(start) + size * (size_t)times + strlen(end) + 1);
    char *at = stpcpy(text, start);
    for (int i = 0; i < times; i++)
        at = stpcpy(at, piece);
    strcpy(at, end);
    return text;
}

Test(parse, deep_and_long_texts_are_errors_not_crashes)
{
    static const char *const cases[][4] = {
        {"x -> ", "(", "x", "nested deeper"},
        {"x -> ", "-", "x", "nested deeper"},
        {"x -> ", "!", "x", "nested deeper"},
        {"x -> ", "exp(", "x", "nested deeper"},
        {"x -> ", "x ? x : ", "x", "nested"},
        {"x -> ", "x ** ", "x", "nested deeper"},
        {"x -> x", " + x", "", "depend on each"},
        {"x -> x", ", x", "", "more than 8 outputs"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *text = repeated(cases[i][0], cases[i][1], 100000, cases[i][2]);
        const struct expr *expr = NULL;
        check_status(expr_parse_arrow(&runtime, text, &expr), TN_ERR_ARGUMENT);
        if (!strstr(fail_text(), cases[i][3]))
            cr_fatal("%s...: %s", cases[i][1], fail_text());
        free(text);
    }
    char *text = repeated("x -> ", "0", 5000, "1");
    const struct expr *expr = NULL;
    check_status(expr_parse_arrow(&runtime, text, &expr), TN_ERR_ARGUMENT);
    free(text);
}

// Each definition doubles what the tree would be without sharing.
Test(parse, shared_definitions_do_not_explode)
{
    char text[4096];
    int used = snprintf(text, sizeof(text), "x -> a0 = x + x;");
    for (int i = 1; i < 100; i++)
        used += snprintf(text + used, sizeof(text) - (size_t)used, "a%d=a%d*a%d;", i, i - 1,
                         i - 1);
    snprintf(text + used, sizeof(text) - (size_t)used, "a99");
    const struct expr *expr = parsed(text), *derivative = NULL;
    cr_assert(strlen(expr->text) < 4096);
    const tn_expr_program *program =
        compiled(expr, &(struct expr_input){.dtype = TN_F32}, NULL);
    cr_assert(eq(uint, program->num_insns, 101));
    check_status(expr_derive(expr, 0, 0, &derivative), TN_OK);
    cr_assert(strlen(derivative->text) < 16384);
}

Test(parse, random_texts_parse_or_fail_cleanly)
{
    static const char *const pieces[] = {
        "x",  "y",   "alpha", "(", ")",  ",",    ";",   "=",    "->",   "+",    "-",
        "**", "//",  "<",     "?", ":",  "exp(", "i8(", "0x1f", "1e-3", "&&",   "~",
        "e",  "nan", "index", " ", "\n", "1.5",  "7",   "min(", "%",    "\x80", "!"};
    uint64_t seed = random_seed();
    int good = 0;
    for (int i = 0; i < 20000; i++) {
        char text[400] = "x, y -> ";
        uint32_t count = 1 + (uint32_t)(random_next(&seed) % 12);
        for (uint32_t k = 0; k < count; k++) {
            uint64_t r = random_next(&seed);
            char byte[2] = {(char)(1 + (r >> 32) % 255), 0};
            strcat(text,
                   r % 16 == 0 ? byte : pieces[r % (sizeof(pieces) / sizeof(*pieces))]);
        }
        const struct expr *expr = NULL, *again = NULL;
        static const char *const names[] = {"x", "y"};
        tn_status status = expr_parse_arrow(&runtime, text, &expr);
        cr_assert(status == TN_OK || status == TN_ERR_ARGUMENT);
        if (status != TN_OK || expr->num_inputs != 2)
            continue;
        good++;
        if (expr_parse(&runtime, expr->text, names, 2, NULL, &again) != TN_OK)
            cr_fatal("%s: printed as %s: %s", text, expr->text, fail_text());
        cr_assert(hash_equal(expr->hash, again->hash));
        const tn_expr_program *program;
        const struct expr_input inputs[] = {{.dtype = TN_F32}, {.dtype = TN_I16}};
        (void)expr_compile(expr, inputs, NULL, &program);
        for (uint32_t k = 0; k < 2; k++)
            check_status(expr_derive(expr, 0, k, &again), TN_OK);
    }
    cr_assert(good > 100);
}
