// SPDX-License-Identifier: MIT
// Functions: traced once a signature, replayed, with inputs donated.
#include "../support/common.h"

struct counted {
    int calls;
    tn_array *captured;
};

static tn_status axpy(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                      uint64_t num_out, void *user)
{
    struct counted *counted = user;
    counted->calls++;
    cr_assert(eq(u64, num_in, 2));
    cr_assert(eq(u64, num_out, 1));
    out[0] = bin(s, "add", bin(s, "multiply", in[0], tn_float(s, 3)), in[1]);
    if (counted->captured)
        out[0] = bin(s, "add", out[0], counted->captured);
    return TN_OK;
}

TestSuite(function, .init = setup, .fini = teardown);

Test(function, a_body_is_traced_once_a_signature)
{
    struct counted counted = {0};
    tn_function *f;
    must(NULL, tn_function_create(runtime, axpy, &counted, NULL, &f));
    for (int round = 0; round < 4; round++)
        for (int size = 1; size <= 2; size++) {
            tn_scope *s = tn_scope_open(runtime);
            tn_array *in[] = {ramp(s, size, 3, (float)round, 1), ramp(s, size, 3, 5, -1)};
            tn_array *out;
            float values[6];
            must(s, tn_function_call(f, s, in, 2, &out, 1));
            must(s, tn_read(s, out, values, (uint64_t)size * 12));
            for (int i = 0; i < size * 3; i++)
                cr_assert(values[i] == 3 * (float)(round + i) + 5 - (float)i);
            tn_scope_close(s);
        }
    cr_assert(eq(int, counted.calls, 2));
    tn_function_destroy(f);
}

Test(function, captured_arrays_are_kept_by_the_function)
{
    tn_scope *first = tn_scope_open(runtime);
    struct counted counted = {.captured = tn_keep(first, ramp(first, 1, 3, 100, 100))};
    tn_scope_close(first);
    tn_function *f;
    must(NULL, tn_function_create(runtime, axpy, &counted, NULL, &f));
    for (int round = 0; round < 2; round++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *in[] = {ramp(s, 1, 3, 0, 1), ramp(s, 1, 3, 0, 0)}, *out;
        float values[3];
        must(s, tn_function_call(f, s, in, 2, &out, 1));
        must(s, tn_read(s, out, values, sizeof(values)));
        for (int i = 0; i < 3; i++)
            cr_assert(values[i] == 3 * (float)i + 100 * (float)(i + 1));
        tn_scope_close(s);
        if (round == 0)
            tn_release(counted.captured);
    }
    tn_function_destroy(f);
}

static tn_status increment(tn_scope *s, tn_array *const *in, uint64_t num_in,
                           tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = bin(s, "add", in[0], tn_float(s, 1));
    return TN_OK;
}

Test(function, an_input_given_away_lends_its_memory_to_the_output)
{
    tn_function *f;
    const tn_function_options options = {
        .struct_size = sizeof(options), .donated = (const uint32_t[]){0}, .num_donated = 1};
    must(NULL, tn_function_create(runtime, increment, NULL, &options, &f));
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 64, 64, 0, 1);
    must(s, tn_eval(s, x));
    const void *memory = tn_data(s, x);
    uint64_t before = stats_of(runtime).buffer_bytes;
    for (int i = 0; i < 10; i++) {
        tn_array *old = x;
        must(s, tn_function_call(f, s, &old, 1, &x, 1));
        check_status(tn_scope_status(s), TN_OK);
    }
    cr_assert(eq(ptr, tn_data(s, x), memory));
    cr_assert(eq(u64, stats_of(runtime).buffer_bytes, before));
    float values[64 * 64];
    must(s, tn_read(s, x, values, sizeof(values)));
    for (int i = 0; i < 64 * 64; i++)
        cr_assert(values[i] == (float)(i + 10));
    tn_scope_close(s);
    tn_function_destroy(f);
}

Test(function, reading_an_array_given_away_is_an_error)
{
    tn_function *f;
    const tn_function_options options = {
        .struct_size = sizeof(options), .donated = (const uint32_t[]){0}, .num_donated = 1};
    must(NULL, tn_function_create(runtime, increment, NULL, &options, &f));
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 2, 0, 1), *y;
    must(s, tn_function_call(f, s, &x, 1, &y, 1));
    cr_assert(eq(ptr, tn_data(s, x), NULL));
    check_status(tn_scope_status(s), TN_ERR_ARGUMENT);
    check_says(tn_scope_error(s), "donated");
    tn_scope_close(s);
    tn_function_destroy(f);
}

Test(function, an_array_given_away_but_shared_is_not_overwritten)
{
    tn_function *f;
    const tn_function_options options = {
        .struct_size = sizeof(options), .donated = (const uint32_t[]){0}, .num_donated = 1};
    must(NULL, tn_function_create(runtime, increment, NULL, &options, &f));
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 2, 2, 7, 1), *y;
    must(s, tn_eval(s, x));
    tn_array *t = un(s, "transpose", x); // shares the memory
    must(s, tn_eval(s, t));
    must(s, tn_function_call(f, s, &x, 1, &y, 1));
    float a[4], b[4];
    must(s, tn_read(s, t, a, sizeof(a)));
    must(s, tn_read(s, y, b, sizeof(b)));
    cr_assert(a[0] == 7 && a[1] == 9 && b[0] == 8 && b[1] == 9);
    tn_scope_close(s);
    tn_function_destroy(f);
}

Test(function, options_that_this_version_does_not_know_are_refused)
{
    struct {
        tn_function_options known;
        uint64_t added;
    } newer = {.known = {.struct_size = sizeof(newer),
                         .donated = (const uint32_t[]){0},
                         .num_donated = 1}};
    tn_function *f = NULL;
    must(NULL, tn_function_create(runtime, increment, NULL, &newer.known, &f));
    tn_function_destroy(f);
    newer.added = 1;
    check_status(tn_function_create(runtime, increment, NULL, &newer.known, &f),
                 TN_ERR_REFUSED);
    check_says(tn_last_error(), "byte 40 is set");
    const tn_function_options flags = {.flags = 4};
    check_status(tn_function_create(runtime, increment, NULL, &flags, &f), TN_ERR_ARGUMENT);
    check_says(tn_last_error(), "flags 0x4, expected 0");
}

static tn_status wrong(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                       uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = bin(s, "matmul", in[0], in[0]); // 2x3 by 2x3
    return TN_OK;
}

static tn_status evaluating(tn_scope *s, tn_array *const *in, uint64_t num_in,
                            tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = in[0];
    return tn_eval(s, in[0]);
}

Test(function, a_failing_body_fails_the_call_and_says_why)
{
    const struct {
        tn_function_body body;
        const char *says;
    } cases[] = {{wrong, "matmul"}, {evaluating, "cannot evaluate"}};
    for (int i = 0; i < 2; i++) {
        tn_function *f;
        must(NULL, tn_function_create(runtime, cases[i].body, NULL, NULL, &f));
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = ramp(s, 2, 3, 0, 1), *y = NULL;
        check_status(tn_function_call(f, s, &x, 1, &y, 1), TN_ERR_ARGUMENT);
        check_says(tn_scope_error(s), cases[i].says);
        tn_scope_close(s);
        tn_function_destroy(f);
    }
}

static tn_status swap(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                      uint64_t num_out, void *user)
{
    (void)s, (void)num_in, (void)num_out, (void)user;
    out[0] = in[1];
    out[1] = in[0];
    return TN_OK;
}

Test(function, a_function_may_return_its_inputs)
{
    tn_function *f;
    must(NULL, tn_function_create(runtime, swap, NULL, NULL, &f));
    tn_scope *s = tn_scope_open(runtime);
    tn_array *in[] = {ramp(s, 1, 2, 1, 1), ramp(s, 1, 2, 10, 1)}, *out[2];
    must(s, tn_function_call(f, s, in, 2, out, 2));
    float a[2], b[2];
    must(s, tn_read(s, out[0], a, sizeof(a)));
    must(s, tn_read(s, out[1], b, sizeof(b)));
    cr_assert(a[0] == 10 && b[0] == 1);
    tn_scope_close(s);
    tn_function_destroy(f);
}

// --- signatures -------------------------------------------------------------------------

// An input of a call: donated, and shared or not.
struct signature_row {
    const char *name;
    tn_type type;
    bool is_shared; // something else can still read its memory
};

enum { MOST_ELEMENTS = 240 };

static tn_status double_all(tn_scope *s, tn_array *const *in, uint64_t num_in,
                            tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = bin(s, "add", in[0], in[0]);
    return tn_scope_status(s);
}

static uint64_t count_of(const tn_type *type)
{
    uint64_t count = 1;
    for (int32_t i = 0; i < type->rank; i++)
        count *= (uint64_t)type->extent[i];
    return count;
}

// Elements first, first + 1, ... of the row's type, as data.
static tn_array *row_input(tn_scope *s, const struct signature_row *row, int first)
{
    int32_t ints[MOST_ELEMENTS];
    float floats[MOST_ELEMENTS];
    tn_shape shape = {.rank = row->type.rank};
    memcpy(shape.extent, row->type.extent, sizeof(shape.extent));
    for (int i = 0; i < MOST_ELEMENTS; i++) {
        ints[i] = first + i;
        floats[i] = (float)(first + i);
    }
    return tn_from_data(s, row->type.dtype, &shape,
                        row->type.dtype == TN_I32 ? (void *)ints : (void *)floats);
}

static void check_ramp(tn_scope *s, const struct signature_row *row,
                       const struct signature_row *before, const char *what,
                       tn_array *array, double first, double step)
{
    const tn_type *type = tn_array_type(array);
    uint64_t count = count_of(&row->type);
    double values[MOST_ELEMENTS];
    if (type->dtype != row->type.dtype || type->rank != row->type.rank ||
        memcmp(type->extent, row->type.extent, (size_t)type->rank * 8) != 0)
        cr_fatal("%s behind %s: %s has another type", row->name, before->name, what);
    array = tn_op(s, "astype", TN_IN(array), tn_attrs("dtype", (int64_t)TN_F64));
    must(s, tn_read(s, array, values, count * sizeof(values[0])));
    for (uint64_t i = 0; i < count; i++)
        if (values[i] != first + step * (double)i)
            cr_fatal("%s behind %s: %s[%d] is %g, expected %g", row->name, before->name,
                     what, (int)i, values[i], first + step * (double)i);
}

static void call_row(tn_function *f, tn_scope *s, const struct signature_row *row,
                     const struct signature_row *before, int first)
{
    tn_array *x = row_input(s, row, first), *view = NULL, *y = NULL;
    must(s, tn_eval(s, x));
    if (row->is_shared) {
        view = tn_op(s, "expand_dims", TN_IN(x), tn_attrs("axis", TN_INTS(0)));
        view = tn_op(s, "squeeze", TN_IN(view), tn_attrs("axis", TN_INTS(0)));
        must(s, tn_eval(s, view));
    }
    must(s, tn_function_call(f, s, &x, 1, &y, 1));
    check_ramp(s, row, before, "the result", y, 2 * first, 2);
    if (view)
        check_ramp(s, row, before, "what shares the input's memory", view, first, 1);
}

// Calls of each row directly behind each other one, and again when all are traced.
Test(function, a_call_has_the_signature_of_its_own_inputs)
{
    static const struct signature_row rows[] = {
        {"f32 [3, 4, 5]", {TN_F32, 3, {3, 4, 5}}, false},
        {"another first extent", {TN_F32, 3, {4, 4, 5}}, false},
        {"another middle extent", {TN_F32, 3, {3, 2, 5}}, false},
        {"another last extent", {TN_F32, 3, {3, 4, 6}}, false},
        {"a last extent of 1", {TN_F32, 3, {3, 4, 1}}, false},
        {"swapped extents", {TN_F32, 3, {3, 5, 4}}, false},
        {"rank 2", {TN_F32, 2, {3, 4}}, false},
        {"rank 1", {TN_F32, 1, {60}}, false},
        {"rank 0", {TN_F32, 0, {0}}, false},
        {"i32", {TN_I32, 3, {3, 4, 5}}, false},
        {"a shared input", {TN_F32, 3, {3, 4, 5}}, true},
        {"a shared input of i32", {TN_I32, 3, {3, 4, 5}}, true},
        {"a shared vector", {TN_F32, 1, {60}}, true},
    };
    const tn_function_options options = {
        .struct_size = sizeof(options), .donated = (const uint32_t[]){0}, .num_donated = 1};
    tn_function *f;
    must(NULL, tn_function_create(runtime, double_all, NULL, &options, &f));
    enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
    for (int i = 0, first = 1; i < ROWS; i++)
        for (int k = 0; k < ROWS; k++) {
            tn_scope *s = tn_scope_open(runtime);
            call_row(f, s, &rows[i], &rows[k], first++);
            call_row(f, s, &rows[k], &rows[i], first++);
            call_row(f, s, &rows[i], &rows[k], first++);
            tn_scope_close(s);
        }
    tn_function_destroy(f);
}
