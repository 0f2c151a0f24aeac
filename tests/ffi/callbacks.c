// SPDX-License-Identifier: MIT
// Callbacks of an application as primitives: what they compute, and what is refused.
#include "callbacks.h"

// --- what they compute -----------------------------------------------------------------

static double clip(double x, double lo, double hi)
{
    return fmin(fmax(x, lo), hi);
}

TestSuite(callbacks, .init = open_runtime, .fini = close_runtime);

Test(callbacks, numbers_alone_are_elementwise_and_broadcast)
{
    tn_scope *s = tn_scope_open(runtime);
    const double data[] = {-2, -1, 0, 1, 2, 3}, one = 1, low[] = {-1, 0, 0.5};
    add(runtime, "app.clip/1", "f64 f64 f64 -> f64", (function)clip, NULL);
    tn_array *x = f64s(s, *TN_SHAPE(2, 3), data), *lo = f64s(s, *TN_SHAPE(3), low);
    tn_array *hi = f64s(s, (tn_shape){0}, &one), *empty = f64s(s, *TN_SHAPE(0, 3), data);
    tn_array *y = tn_op(s, "app.clip", TN_IN(x, lo, hi), TN_NO_ATTRS);
    expect(s, y, (double[]){-1, 0, 0.5, 1, 1, 1}, 6);
    // Transposed and reversed inputs, and none.
    tn_array *t = tn_op(s, "base.transpose", TN_IN(x), TN_NO_ATTRS);
    y = tn_op(s, "app.clip", TN_IN(t, hi, hi), TN_NO_ATTRS);
    cr_assert(eq(i64, tn_array_type(y)->extent[0], 3));
    y = tn_op(s, "app.clip", TN_IN(t, tn_scalar(s, TN_F64, -9), tn_scalar(s, TN_F64, 9)),
              TN_NO_ATTRS);
    expect(s, y, (double[]){-2, 1, -1, 2, 0, 3}, 6);
    y = tn_op(s, "app.clip", TN_IN(empty, lo, hi), TN_NO_ATTRS);
    expect(s, y, NULL, 0);
    tn_scope_close(s);
}

static void row_sums(const double *x, double *out, int64_t m, int64_t n, void *user)
{
    *(int64_t *)user += 1;
    for (int64_t i = 0; i < m; i++) {
        out[i] = 0;
        for (int64_t k = 0; k < n; k++)
            out[i] += x[i * n + k];
    }
}

Test(callbacks, arrays_come_row_major_with_their_extents)
{
    tn_scope *s = tn_scope_open(runtime);
    const double data[] = {1, 2, 3, 4, 5, 6};
    int64_t calls = 0;
    add(runtime, "app.row_sums/1",
        "in f64[m, n], out f64[m], extent m, extent n, user -> void", (function)row_sums,
        &calls);
    tn_array *x = f64s(s, *TN_SHAPE(2, 3), data);
    expect(s, tn_op(s, "app.row_sums", TN_IN(x), TN_NO_ATTRS), (double[]){6, 15}, 2);
    tn_array *t = tn_op(s, "base.transpose", TN_IN(x), TN_NO_ATTRS);
    expect(s, tn_op(s, "app.row_sums", TN_IN(t), TN_NO_ATTRS), (double[]){5, 7, 9}, 3);
    cr_assert(eq(i64, calls, 2));
    tn_scope_close(s);
}

static int32_t diagonal(double *x, double *sum, double *out, int64_t m, int64_t n)
{
    int64_t k = m < n ? m : n;
    *sum = 0;
    for (int64_t i = 0; i < k; i++) {
        *sum += out[i] = x[i * n + i];
        x[i * n + i] = 0;
    }
    return 0;
}

Test(callbacks, outputs_have_shapes_of_expressions_and_inputs_are_overwritten)
{
    tn_scope *s = tn_scope_open(runtime);
    const double data[] = {1, 2, 3, 4, 5, 6};
    add(runtime, "app.diagonal/1",
        "inout f64[m, n] out f64[] out f64[min(m, n)] extent m extent n -> status",
        (function)diagonal, NULL);
    tn_array *x = f64s(s, *TN_SHAPE(2, 3), data), *outs[3];
    check_status(tn_op_n(s, "app.diagonal", TN_IN(x), TN_NO_ATTRS, outs, 3), TN_OK);
    expect(s, outs[0], (double[]){0, 2, 3, 4, 0, 6}, 6);
    expect(s, outs[1], (double[]){6}, 1);
    expect(s, outs[2], (double[]){1, 5}, 2);
    expect(s, x, data, 6); // the input itself stays
    tn_scope_close(s);
}

static void add_all(const double *x, const double *y, double *out, int64_t size)
{
    for (int64_t i = 0; i < size; i++)
        out[i] = x[i] + y[i];
}

Test(callbacks, any_shape_is_one_run_of_elements)
{
    tn_scope *s = tn_scope_open(runtime);
    const double data[] = {1, 2, 3, 4, 5, 6}, row[] = {10, 20, 30};
    add(runtime, "app.add_all/1", "in f64[*] in f64[*] out f64[*] extent size -> void",
        (function)add_all, NULL);
    tn_array *x = f64s(s, *TN_SHAPE(2, 3), data), *y = f64s(s, *TN_SHAPE(3), row);
    tn_array *sum = tn_op(s, "app.add_all", TN_IN(x, y), TN_NO_ATTRS);
    expect(s, sum, (double[]){11, 22, 33, 14, 25, 36}, 6);
    tn_scope_close(s);
}

// One callback a dtype, which negates (bool: inverts) what it is given by value.
#define NEGATE(name, type)                                                                 \
    static type negate_##name(type x)                                                      \
    {                                                                                      \
        return (type)(0 - x);                                                              \
    }
NEGATE(i8, int8_t)
NEGATE(i16, int16_t)
NEGATE(i32, int32_t)
NEGATE(i64, int64_t)
NEGATE(u8, uint8_t)
NEGATE(u16, uint16_t)
NEGATE(u32, uint32_t)
NEGATE(u64, uint64_t)
NEGATE(f32, float)
NEGATE(f64, double)
#undef NEGATE

static bool negate_bool(bool x)
{
    return !x;
}

Test(callbacks, each_dtype_is_passed_by_value)
{
    static const struct {
        const char *name;
        tn_dtype dtype;
        function f;
        double expected; // of 3; of true
    } cases[] = {
        {"i8", TN_I8, (function)negate_i8, -3},
        {"i16", TN_I16, (function)negate_i16, -3},
        {"i32", TN_I32, (function)negate_i32, -3},
        {"i64", TN_I64, (function)negate_i64, -3},
        {"u8", TN_U8, (function)negate_u8, 253},
        {"u16", TN_U16, (function)negate_u16, 65533},
        {"u32", TN_U32, (function)negate_u32, 4294967293},
        {"u64", TN_U64, (function)negate_u64, 18446744073709551613.0},
        {"f32", TN_F32, (function)negate_f32, -3},
        {"f64", TN_F64, (function)negate_f64, -3},
        {"bool", TN_BOOL, (function)negate_bool, 0},
    };
    tn_scope *s = tn_scope_open(runtime);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char id[64], signature[64];
        snprintf(id, sizeof(id), "app.negate_%s/1", cases[i].name);
        snprintf(signature, sizeof(signature), "%s -> %s", cases[i].name, cases[i].name);
        add(runtime, id, signature, cases[i].f, NULL);
        tn_array *x = tn_scalar(s, cases[i].dtype, 3);
        tn_array *y = tn_op(s, id, TN_IN(x), TN_NO_ATTRS);
        cr_assert(eq(int, tn_array_type(y)->dtype, cases[i].dtype));
        cr_assert(tn_item(s, y) == cases[i].expected);
    }
    tn_scope_close(s);
}

static tn_status twice(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                       tn_array **outputs, uint64_t num_outputs, void *user)
{
    (void)user, (void)num_inputs, (void)num_outputs;
    tn_array *once = tn_op(scope, "app.negate_f64", TN_IN(inputs[0]), TN_NO_ATTRS);
    outputs[0] = tn_op(scope, "app.negate_f64", TN_IN(once), TN_NO_ATTRS);
    return tn_scope_status(scope);
}

Test(callbacks, a_recorded_function_replays_them)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_function *f = NULL;
    tn_function_options options = {.struct_size = sizeof(options)};
    add(runtime, "app.negate_f64/1", "f64 -> f64", (function)negate_f64, NULL);
    check_status(tn_function_create(runtime, twice, NULL, &options, &f), TN_OK);
    for (int i = 0; i < 3; i++) {
        tn_array *x = tn_f64(s, i), *y = NULL;
        check_status(tn_function_call(f, s, &x, 1, &y, 1), TN_OK);
        expect(s, y, (double[]){i}, 1);
    }
    tn_function_destroy(f);
    tn_scope_close(s);
}

// --- failures --------------------------------------------------------------------------

static int32_t fails_when_told(const double *x, double *out, void *user)
{
    *out = *x;
    return *(int32_t *)user;
}

Test(callbacks, a_callback_that_fails_fails_the_evaluation_and_no_other)
{
    int32_t code = -7;
    tn_scope *s = tn_scope_open(runtime);
    add(runtime, "app.fails/1", "in f64[] out f64[] user -> status",
        (function)fails_when_told, &code);
    tn_array *y = tn_op(s, "app.fails", TN_IN(tn_f64(s, 4)), TN_NO_ATTRS);
    cr_assert(ne(int, tn_eval(s, y), TN_OK));
    check_says(tn_scope_error(s), "app.fails/1");
    check_says(tn_scope_error(s), "returned status -7");
    tn_scope_clear_error(s);
    code = 0;
    expect(s, y, (double[]){4}, 1);
    tn_scope_close(s);
}

Test(callbacks, wrong_inputs_are_told_when_the_graph_is_built)
{
    static const struct {
        const char *op;
        tn_dtype dtype;
        int32_t rank;
        const char *says;
    } cases[] = {
        {"app.clip", TN_F32, 0, "x0 is f32, expected f64"},
        {"app.row_sums", TN_F64, 1, "x0 has rank 1, expected 2: [m, n]"},
    };
    tn_scope *s = tn_scope_open(runtime);
    int64_t calls = 0;
    add(runtime, "app.clip/1", "f64 f64 f64 -> f64", (function)clip, NULL);
    add(runtime, "app.row_sums/1",
        "in f64[m, n], out f64[m], extent m, extent n, user -> void", (function)row_sums,
        &calls);
    for (size_t i = 0; i < 2; i++) {
        const double zeros[2] = {0, 0};
        tn_shape shape = {.rank = cases[i].rank, .extent = {2}};
        tn_array *x = tn_from_data(s, cases[i].dtype, &shape, zeros);
        const tn_array *inputs[] = {x, x, x};
        cr_assert(eq(ptr, tn_op(s, cases[i].op, inputs, i ? 1 : 3, TN_NO_ATTRS), NULL));
        check_says(tn_scope_error(s), cases[i].op);
        check_says(tn_scope_error(s), cases[i].says);
        tn_scope_clear_error(s);
    }
    cr_assert(eq(ptr, tn_op(s, "app.clip", TN_IN(tn_f64(s, 1)), TN_NO_ATTRS), NULL));
    check_says(tn_scope_error(s), "app.clip/1");
    cr_assert(eq(i64, calls, 0));
    tn_scope_close(s);
}

Test(callbacks, wrong_signatures_are_shown_by_their_column)
{
    static const struct {
        const char *signature, *says;
    } cases[] = {
        {"", "column 1: got the end, expected ->"},
        {"f64", "column 4: got the end, expected ->"},
        {"f64 ->", "column 7: got the end, expected a dtype, void or status"},
        {"f63 -> f64", "column 1: got 'f63 -> f64', expected a dtype, in, out"},
        {"f64 -> f63", "column 8: got 'f63', expected a dtype, void or status"},
        {"f64 -> f64 f64", "column 12: got 'f64', expected the end"},
        {"f64 => f64", "column 5: got '=> f64'"},
        {"in f64 -> f64", "column 8: got '-> f64', expected '['"},
        {"in [m] -> f64", "column 4: got '[m] -> f64', expected a dtype"},
        {"in f64[m -> f64", "expected ',' or ']'"},
        {"in f64[m,,n] out f64[] -> void",
         "column 10: got ',n] out f64[] -> voi', expected an extent"},
        {"in f64[m,] out f64[] -> void",
         "column 10: got '] out f64[] -> void', expected an extent"},
        {"in f64[m] out f64[k] -> void", "got 'k', expected a name"},
        {"in f64[m] out f64[m +] -> void", "got the end, expected a number"},
        {"in f64[m] extent -> f64",
         "column 18: got '-> f64', expected the name of an extent"},
        {"in f64[m] extent k -> f64", "got 'k', expected a name"},
        {"in f64[m] out f64[m] -> f64", "column 25: got 'f64', expected void or status"},
        {"f64 -> void", "got an empty list, expected an output"},
        {"in f64[m] -> void", "got an empty list, expected an output"},
        {"f16 -> f16", "got a half float, expected a type that C passes by value"},
        {"in f64[*, n] out f64[*] -> void", "got axes beside \"*\", expected none"},
        {"in f64[1,1,1,1,1,1,1,1,1] -> f64", "got 9 axes, expected at most 8"},
        {"in f64[\xff] -> f64", "expected an extent in UTF-8"},
        {"f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 -> f64",
         "got 13 elements, expected at most 12"},
        {"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklm -> f64",
         "expected a shorter word"},
        {"in f64[((((((((((((((((((((((((((((((m))))))))))))))))))))))))))))))] -> f64",
         "expected fewer levels of nesting"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_status(
            tn_callback_add(runtime, "app.bad/1", cases[i].signature, (function)clip, NULL),
            TN_ERR_ARGUMENT);
        check_says(tn_last_error(), "callback app.bad/1: ");
        if (!strstr(tn_last_error(), cases[i].says))
            cr_fatal("signature '%s': got '%s', expected '%s'", cases[i].signature,
                     tn_last_error(), cases[i].says);
    }
    cr_assert(eq(ptr, tn_primitive_find(runtime, "app.bad"), NULL));
}

Test(callbacks, wrong_ids_and_arguments_are_refused)
{
    static const char *const ids[] = {
        "",           "clip",        "app.clip",    "app.clip/",      "app.clip/0",
        "app.clip/x", "app.clip/ 1", "app.clip/+1", "app.clip/12345", ".clip/1",
        "app./1",     "app.Clip/1",  "App.clip/1",  "base.add/1"};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        cr_assert(ne(
            int, tn_callback_add(runtime, ids[i], "f64 -> f64", (function)negate_f64, NULL),
            TN_OK));
        check_says(tn_last_error(), *ids[i] ? ids[i] : "''");
    }
    check_status(tn_callback_add(runtime, NULL, "f64 -> f64", (function)clip, NULL),
                 TN_ERR_ARGUMENT);
    check_says(tn_last_error(), "primitive is NULL");
    check_status(tn_callback_add(runtime, "app.a/1", NULL, (function)clip, NULL),
                 TN_ERR_ARGUMENT);
    check_says(tn_last_error(), "signature is NULL");
    check_status(tn_callback_add(runtime, "app.a/1", "f64 -> f64", NULL, NULL),
                 TN_ERR_ARGUMENT);
    check_says(tn_last_error(), "function is NULL");
    check_status(add_flags(runtime, 6, "app.a/1", "f64 -> f64", (function)negate_f64, NULL),
                 TN_ERR_ARGUMENT);
    check_says(tn_last_error(), "unknown flags 0x6");
    check_status(tn_callback_remove(runtime, NULL), TN_ERR_NOT_FOUND);
}

Test(callbacks, derivatives_are_refused_by_name_and_rule)
{
    tn_scope *s = tn_scope_open(runtime);
    add(runtime, "app.negate_f64/1", "f64 -> f64", (function)negate_f64, NULL);
    tn_array *x = tn_f64(s, 2), *one = tn_f64(s, 1), *made = NULL;
    tn_array *y = tn_op(s, "app.negate_f64", TN_IN(x), TN_NO_ATTRS);
    cr_assert(ne(int, tn_vjp(s, &y, &one, 1, &x, 1, &made), TN_OK));
    check_says(tn_scope_error(s), "app.negate_f64/1 has no vjp");
    tn_scope_clear_error(s);
    cr_assert(ne(int, tn_jvp(s, &y, 1, &x, &one, 1, &made), TN_OK));
    check_says(tn_scope_error(s), "app.negate_f64/1 has no jvp");
    tn_scope_close(s);
}

static tn_status clip_slices(tn_scope *s, tn_array *const *inputs, uint64_t num_inputs,
                             tn_array **outputs, uint64_t num_outputs, void *user)
{
    (void)user, (void)num_inputs, (void)num_outputs;
    outputs[0] =
        tn_op(s, "app.clip", TN_IN(inputs[0], inputs[1], tn_f64(s, 4)), TN_NO_ATTRS);
    return tn_scope_status(s);
}

static tn_status sum_slices(tn_scope *s, tn_array *const *inputs, uint64_t num_inputs,
                            tn_array **outputs, uint64_t num_outputs, void *user)
{
    (void)user, (void)num_inputs, (void)num_outputs;
    outputs[0] = tn_op(s, "app.row_sums", TN_IN(inputs[0]), TN_NO_ATTRS);
    return tn_scope_status(s);
}

Test(callbacks, numbers_alone_are_mapped_and_arrays_are_refused_by_name)
{
    tn_scope *s = tn_scope_open(runtime);
    const double data[] = {1, 2, 3, 4, 5, 6}, low[] = {2, 3};
    int64_t calls = 0;
    add(runtime, "app.clip/1", "f64 f64 f64 -> f64", (function)clip, NULL);
    add(runtime, "app.row_sums/1", "in f64[m, n] out f64[m] extent m extent n user -> void",
        (function)row_sums, &calls);
    tn_array *x = f64s(s, *TN_SHAPE(3, 2), data), *lo = f64s(s, *TN_SHAPE(2), low),
             *y = NULL;
    // Slices are columns of x, of three elements; each has a lower bound of its own.
    tn_array *inputs[] = {x, lo};
    check_status(tn_vmap_call(s, clip_slices, NULL, inputs, (int32_t[]){1, 0}, 2, &y,
                              (int32_t[]){0}, 1),
                 TN_OK);
    expect(s, y, (double[]){2, 3, 4, 3, 4, 4}, 6);
    tn_array *z = f64s(s, *TN_SHAPE(1, 3, 2), data);
    cr_assert(
        ne(int,
           tn_vmap_call(s, sum_slices, NULL, &z, (int32_t[]){0}, 1, &y, (int32_t[]){0}, 1),
           TN_OK));
    check_says(tn_scope_error(s), "app.row_sums/1 has no vmap");
    tn_scope_close(s);
}
