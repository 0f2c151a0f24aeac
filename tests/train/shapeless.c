// SPDX-License-Identifier: MIT
// Functions that are traced for the extents of one call and serve others.
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/control.h>

TestSuite(shapeless, .init = train_begin, .fini = train_finish);

#define BODY(name)                                                                         \
    static tn_status name(tn_scope *s, tn_array *const *in, uint64_t num_in,               \
                          tn_array **out, uint64_t num_out, void *user)
#define UNUSED (void)num_in, (void)num_out, (void)user
#define OP(name, ...) tn_op(s, name, TN_IN(__VA_ARGS__), TN_NO_ATTRS)

static int64_t extent(const tn_array *x, int axis)
{
    return tn_array_type(x)->extent[axis];
}

static tn_array *shaped(tn_scope *s, tn_array *x, uint32_t rank, const int64_t *extents)
{
    tn_ints shape = {.count = rank, .given = 1};
    memcpy(shape.value, extents, rank * sizeof(*extents));
    const tn_ints *list = &shape;
    return tn_op(s, "base.reshape", TN_IN(x), tn_attrs("shape", list));
}

// --- bodies -----------------------------------------------------------------------------

BODY(normed)
{
    UNUSED;
    tn_array *d = tn_expr(s, "x, m -> x - m",
                          TN_IN(in[0], tn_op(s, "base.mean", TN_IN(in[0]),
                                             tn_attrs("axis", TN_INTS(-1), "keepdims", 1))),
                          TN_NO_ATTRS);
    out[0] = tn_expr(s, "p, v -> p / (1 + v)",
                     TN_IN(OP("nn.softmax", d), OP("base.std", in[0])), TN_NO_ATTRS);
    return tn_scope_status(s);
}

// The mean by a count that the body knows, of elements in a row, plus their numbers.
BODY(counted)
{
    UNUSED;
    int64_t n = extent(in[0], 0), m = extent(in[0], 1);
    tn_array *flat = shaped(s, in[0], 1, (int64_t[]){n * m});
    tn_array *sum =
        tn_expr(s, "s, n -> s / n",
                TN_IN(OP("base.sum", flat), tn_float(s, (double)(n * m))), TN_NO_ATTRS);
    tn_array *places = tn_op(s, "base.arange", NULL, 0,
                             tn_attrs("stop", (double)(n * m), "dtype", (int64_t)TN_F32));
    out[0] = tn_expr(s, "x, s, p -> x * s + p", TN_IN(flat, sum, places), TN_NO_ATTRS);
    return tn_scope_status(s);
}

BODY(divided_by_root)
{
    UNUSED;
    out[0] =
        tn_expr(s, "x, n -> x / n",
                TN_IN(in[0], tn_float(s, sqrt((double)extent(in[0], 1)))), TN_NO_ATTRS);
    return tn_scope_status(s);
}

// Heads of a width that `user` does not say: [b, t, w] to [b, t, 2, w / 2].
BODY(heads)
{
    UNUSED;
    int64_t b = extent(in[0], 0), t = extent(in[0], 1), w = extent(in[0], 2);
    tn_array *x = shaped(s, in[0], 4, (int64_t[]){b, t, 2, w / 2});
    tn_array *y = tn_op(s, "nn.scaled_dot_product_attention", TN_IN(x, x, x),
                        tn_attrs("scale", 1 / sqrt((double)(w / 2)), "is_causal", 1));
    out[0] = shaped(s, y, 3, (int64_t[]){b, t, w});
    return tn_scope_status(s);
}

static tn_array *kept_weight;

// The gradient of a mean square error of x W by x; W is kept, [4, 3].
BODY(slope)
{
    UNUSED;
    tn_array *y =
        tn_expr(s, "y -> y * y", TN_IN(OP("base.matmul", in[0], kept_weight)), TN_NO_ATTRS);
    tn_array *loss = OP("base.mean", y);
    return tn_vjp(s, &loss, NULL, 1, in, 1, out);
}

BODY(added)
{
    UNUSED;
    out[0] = tn_expr(s, "c, x -> 0.5 * c + x", TN_IN(in[0], in[1]), TN_NO_ATTRS);
    out[1] = tn_op(s, "base.cumsum", TN_IN(out[0]), tn_attrs("axis", 0));
    return tn_scope_status(s);
}

// A scan along the first axis, whose body has rows of any width, and its last value sorted.
BODY(scanned)
{
    UNUSED;
    const tn_scan_call_options one = {.carries = 1};
    tn_array *results[2] = {NULL};
    tn_array *start = tn_op(s, "base.sum", TN_IN(in[0]), tn_attrs("axis", TN_INTS(0)));
    tn_status status =
        tn_scan_call(s, added, NULL, &one, (tn_array *[]){start, in[0]}, 2, results, 2);
    out[0] = OP("base.sort", results[0]);
    out[1] = results[1];
    return status;
}

// All but the last row, twice, and rows of another input.
BODY(joined)
{
    UNUSED;
    tn_array *most = tn_op(s, "base.slice", TN_IN(in[0]),
                           tn_attrs("stop", TN_INTS(extent(in[0], 0) - 1)));
    out[0] = tn_op(s, "base.concatenate", TN_IN(most, most, in[1]), tn_attrs("axis", 0));
    out[1] = tn_op(s, "base.slice", TN_IN(out[0]), tn_attrs("stop", TN_INTS(2)));
    return tn_scope_status(s);
}

// Other operations for even numbers of rows.
BODY(by_parity)
{
    UNUSED;
    out[0] = OP(extent(in[0], 0) % 2 ? "base.sin" : "base.cos", in[0]);
    return tn_scope_status(s);
}

// Blocks of 128, of which there is one at first.
BODY(by_blocks)
{
    UNUSED;
    int64_t blocks = (extent(in[0], 0) + 127) / 128;
    out[0] =
        tn_expr(s, "x, n -> x * n", TN_IN(in[0], tn_float(s, (double)blocks)), TN_NO_ATTRS);
    return tn_scope_status(s);
}

BODY(of_own_data)
{
    UNUSED;
    const float data[2] = {1, 2};
    out[0] = tn_expr(s, "x, y -> x * y",
                     TN_IN(in[0], tn_from_data(s, TN_F32, TN_SHAPE(2), data)), TN_NO_ATTRS);
    return tn_scope_status(s);
}

BODY(by_hand)
{
    UNUSED;
    out[0] = shaped(s, in[0], 2, (int64_t[]){2, 3});
    return tn_scope_status(s);
}

// --- the table --------------------------------------------------------------------------

static tn_array *rows_of(tn_scope *s, const tn_shape *shape)
{
    static float data[4096];
    for (int i = 0; i < 4096; i++)
        data[i] = sinf(0.7F * (float)i);
    return tn_from_data(s, TN_F32, shape, data);
}

enum { CALLS = 4 };
static const struct row {
    const char *name;
    tn_function_body body;
    int inputs, outputs;
    const char *why; // what is told; NULL: nothing
    int again;       // calls, bit by bit, that trace again
    tn_shape first[CALLS], second[CALLS];
    uint32_t flags;
} rows[] = {
    {"normed",
     normed,
     1,
     1,
     NULL,
     0,
     {{2, 0, {3, 4}}, {2, 0, {5, 7}}, {2, 0, {2, 8}}, {2, 0, {9, 9}}},
     {{0}}},
    {"counted",
     counted,
     1,
     1,
     NULL,
     0,
     {{2, 0, {3, 4}}, {2, 0, {5, 7}}, {2, 0, {2, 8}}, {2, 0, {9, 9}}},
     {{0}}},
    {"heads",
     heads,
     1,
     1,
     NULL,
     0,
     {{3, 0, {2, 3, 8}}, {3, 0, {4, 5, 12}}, {3, 0, {3, 3, 4}}, {3, 0, {2, 9, 16}}},
     {{0}}},
    // Widths other than the kept weight's are no calls of this body.
    {"slope",
     slope,
     1,
     1,
     "axis 1 of input 0 keeps the extent 4: ",
     0,
     {{2, 0, {3, 4}}, {2, 0, {5, 4}}, {2, 0, {7, 4}}, {2, 0, {2, 4}}},
     {{0}}},
    {"slope of one row",
     slope,
     1,
     1,
     "axis 1 of input 0 keeps the extent 4: ",
     0,
     {{2, 0, {3, 4}}, {2, 0, {1, 4}}, {2, 0, {7, 4}}, {2, 0, {1, 4}}},
     {{0}},
     TN_SHAPELESS_ONES},
    {"divided by a root",
     divided_by_root,
     1,
     1,
     NULL,
     2,
     {{2, 0, {3, 4}}, {2, 0, {1, 5}}, {2, 0, {7, 16}}, {2, 0, {9, 9}}},
     {{0}}},
    {"scanned",
     scanned,
     1,
     2,
     NULL,
     0,
     {{2, 0, {3, 4}}, {2, 0, {5, 7}}, {2, 0, {2, 8}}, {2, 0, {9, 9}}},
     {{0}}},
    {"joined",
     joined,
     2,
     2,
     NULL,
     8,
     {{2, 0, {3, 4}}, {2, 0, {5, 6}}, {2, 0, {6, 5}}, {2, 0, {3, 2}}},
     {{2, 0, {2, 4}}, {2, 0, {3, 6}}, {2, 0, {6, 5}}, {2, 0, {1, 2}}}},
    {"of_own_data",
     of_own_data,
     1,
     1,
     "keeps the extent 2: ",
     0,
     {{1, 0, {2}}, {1, 0, {2}}, {1, 0, {2}}, {1, 0, {2}}},
     {{0}}},
    {"by_parity",
     by_parity,
     1,
     1,
     "the body builds another graph, from base.",
     6,
     {{1, 0, {4}}, {1, 0, {5}}, {1, 0, {6}}, {1, 0, {4}}},
     {{0}}},
    {"by_blocks",
     by_blocks,
     1,
     1,
     "is made of extents in a way that is not known",
     6,
     {{1, 0, {4}}, {1, 0, {5}}, {1, 0, {200}}, {1, 0, {4}}},
     {{0}}},
};

// Results of a body for these inputs, bit by bit as those of the function.
static void compare(const struct row *row, tn_function *f, int call)
{
    static float want[8192], got[8192];
    tn_scope *s = tn_scope_open(rt);
    tn_array *in[2] = {rows_of(s, &row->first[call]), NULL}, *plain[2], *made[2];
    if (row->inputs > 1)
        in[1] = rows_of(s, &row->second[call]);
    row->body(s, in, (uint64_t)row->inputs, plain, (uint64_t)row->outputs, NULL);
    tn_function_call(f, s, in, (uint64_t)row->inputs, made, (uint64_t)row->outputs);
    cr_assert_eq(tn_scope_status(s), TN_OK, "%s, call %d: %s", row->name, call,
                 tn_scope_error(s));
    for (int i = 0; i < row->outputs; i++) {
        const tn_type *type = tn_array_type(plain[i]);
        cr_assert_eq(memcmp(type, tn_array_type(made[i]), sizeof(*type)), 0,
                     "%s, call %d: output %d is of another type", row->name, call, i);
        uint64_t size = sizeof(float);
        for (int32_t axis = 0; axis < type->rank; axis++)
            size *= (uint64_t)type->extent[axis];
        must(tn_read(s, plain[i], want, size));
        must(tn_read(s, made[i], got, size));
        for (uint64_t k = 0; k < size / sizeof(float); k++)
            cr_assert(fabsf(got[k] - want[k]) <= 1e-6F * (1 + fabsf(want[k])),
                      "%s, call %d: element %d of output %d is %g, expected %g", row->name,
                      call, (int)k, i, got[k], want[k]);
    }
    tn_scope_close(s);
}

static void open_weight(void)
{
    tn_scope *s = tn_scope_open(rt);
    kept_weight = tn_keep(s, rows_of(s, TN_SHAPE(4, 3)));
    must_scope(s);
    tn_scope_close(s);
}

Test(shapeless, bodies_are_traced_for_the_first_extents)
{
    open_weight();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tn_shapeless *shapeless;
        tn_function *f;
        char why[1000] = "";
        must(tn_shapeless_create(rt, rows[i].body, NULL, rows[i].flags, &shapeless));
        must(tn_function_create(rt, tn_shapeless_body, shapeless, NULL, &f));
        for (int call = 0; call < CALLS; call++) {
            uint64_t before = tn_shapeless_traces(shapeless);
            compare(&rows[i], f, call);
            bool traced = tn_shapeless_traces(shapeless) > before;
            tn_shapeless_why(shapeless, why, sizeof(why));
            cr_assert_eq(traced, call == 0 || (rows[i].again >> call & 1),
                         "%s, call %d: %s", rows[i].name, call, why);
        }
        if (rows[i].why)
            check_says(why, rows[i].why);
        else
            cr_assert_str_eq(why, "", "%s: %s", rows[i].name, why);
        tn_function_destroy(f);
        tn_shapeless_destroy(shapeless);
    }
    tn_release(kept_weight);
}

// --- what is refused --------------------------------------------------------------------

Test(shapeless, what_cannot_be_is_told)
{
    static const struct {
        tn_function_body body;
        uint32_t flags;
        int64_t extents[2]; // of two calls, of which the last one fails
        const char *says;
    } cases[] = {
        {by_parity,
         TN_SHAPELESS_STRICT,
         {4, 4},
         "axis 0 of input 0 keeps the extent 4: the body builds another graph"},
        {by_hand, 0, {6, 8}, "base.reshape"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tn_shapeless *shapeless;
        tn_function *f;
        must(tn_shapeless_create(rt, cases[i].body, NULL, cases[i].flags, &shapeless));
        must(tn_function_create(rt, tn_shapeless_body, shapeless, NULL, &f));
        tn_status status = TN_OK;
        for (int call = 0; call < 2; call++) {
            tn_scope *s = tn_scope_open(rt);
            tn_array *x = rows_of(s, TN_SHAPE(cases[i].extents[call])), *y;
            status = tn_function_call(f, s, &x, 1, &y, 1);
            if (call)
                check_says(tn_scope_error(s), cases[i].says);
            tn_scope_close(s);
        }
        cr_assert_neq(status, TN_OK);
        tn_function_destroy(f);
        tn_shapeless_destroy(shapeless);
    }
    tn_shapeless *shapeless;
    cr_assert_neq(tn_shapeless_create(rt, NULL, NULL, 0, &shapeless), TN_OK);
    check_says(tn_train_error(), "shapeless_create: the body is NULL");
    cr_assert_neq(tn_shapeless_create(rt, normed, NULL, 8, &shapeless), TN_OK);
    check_says(tn_train_error(), "unknown flags");
    tn_shapeless_destroy(NULL);
}
