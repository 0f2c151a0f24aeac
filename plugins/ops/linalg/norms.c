// SPDX-License-Identifier: MIT
// Norms of vectors and of matrices: vector_norm, matrix_norm, norm; the condition number.
//
// A norm of integers is f64, of halves it is computed in f32. Its derivative is 0 where it
// is 0.
#include "pack.h"

#include <stdlib.h>

static const tn_input_info norm_inputs[] = {
    {"x", "the array", 0, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
};

typedef struct {
    double ord; // vector_norm
    const char *name;
    tn_ints axis;
    int64_t keepdims;
} norm_attrs;

// x in the dtype of computation.
static tn_array *norm_widened(const tn_build *build, tn_array *x)
{
    tn_dtype dtype = build->type(x)->dtype;
    tn_dtype wide = tn_dtype_in(dtype, TN_FLOAT_DTYPES | TN_COMPLEX_DTYPES)
                        ? tn_is_complex(dtype) ? dtype : tn_dtype_computed(dtype)
                        : TN_F64;
    return in_dtype(build, x, &(const tn_type){.dtype = wide});
}

// Converts a norm of x back to halves where x has halves.
static tn_array *norm_narrowed(const tn_build *build, tn_array *norm, const tn_array *x)
{
    const tn_type *type = build->type(x);
    return tn_is_float(type->dtype) ? in_dtype(build, norm, type) : norm;
}

static tn_array *norm_reduced(const tn_build *build, const char *primitive, tn_array *x,
                              const tn_ints *axes, int64_t keepdims)
{
    const tn_attr items[] = {
        {.name = "keepdims", .kind = TN_ATTR_I64, .i = keepdims},
        {.name = "axis", .kind = TN_ATTR_INTS, .ints = axes},
    };
    return build->op(build, primitive, TN_IN(x), TN_ATTR_LIST(items, axes->given ? 2 : 1));
}

static tn_array *norm_absolute(const tn_build *build, tn_array *x)
{
    return build->expr(build, "x -> abs(x)", TN_IN(x), TN_NO_ATTRS);
}

// (sum of |x|^ord)^(1 / ord), for orders without a shorter form. Zeros stay out of the
// derivatives: `none` is their power.
static tn_array *norm_of_powers(const tn_build *build, tn_array *x, double ord,
                                const tn_ints *axes, int64_t keepdims)
{
    double none = ord < 0 ? INFINITY : 0;
    tn_array *powers = build->expr(build, "x -> a = abs(x); a == 0 ? none : a ** ord",
                                   TN_IN(x), tn_attrs("ord", ord, "none", none));
    tn_array *sum = norm_reduced(build, "base.sum/1", powers, axes, keepdims);
    return build->expr(build, "s -> s == 0 ? none : s ** root", TN_IN(sum),
                       tn_attrs("root", 1 / ord, "none", none));
}

// The norm of x, which is widened, over `axes`; over all where they are not given.
static tn_array *norm_of_vectors(const tn_build *build, tn_array *x, double ord,
                                 const tn_ints *axes, int64_t keepdims)
{
    const tn_type *type = build->type(x);
    if (!type)
        return NULL;
    if (isinf(ord))
        return norm_reduced(build, ord > 0 ? "base.max/1" : "base.min/1",
                            norm_absolute(build, x), axes, keepdims);
    if (ord == 0) {
        const tn_type real = {.dtype = tn_dtype_real(type->dtype)};
        tn_array *is = build->expr(build, "x -> x != 0", TN_IN(x), TN_NO_ATTRS);
        return norm_reduced(build, "base.sum/1", in_dtype(build, is, &real), axes,
                            keepdims);
    }
    if (ord == 1)
        return norm_reduced(build, "base.sum/1", norm_absolute(build, x), axes, keepdims);
    if (ord != 2)
        return norm_of_powers(build, x, ord, axes, keepdims);
    const char *square = tn_is_complex(type->dtype)
                             ? "x -> real(x) * real(x) + imag(x) * imag(x)"
                             : "x -> x * x";
    tn_array *sum =
        norm_reduced(build, "base.sum/1", build->expr(build, square, TN_IN(x), TN_NO_ATTRS),
                     axes, keepdims);
    return build->expr(build, "s -> s == 0 ? s : sqrt(s)", TN_IN(sum), TN_NO_ATTRS);
}

static const tn_attr_field vector_norm_fields[] = {
    TN_F64_FIELD(norm_attrs, ord, 2, "the order: a number, inf or -inf"),
    TN_INTS_FIELD(norm_attrs, axis, "axes of the vectors; not given: all"),
    TN_BOOL_FIELD(norm_attrs, keepdims, 0, "keep these axes with extent 1"),
};

DECOMPOSE(vector_norm)
{
    const norm_attrs *attrs = rule->attrs;
    if (isnan(attrs->ord))
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "ord is nan, expected a number, inf or -inf");
    tn_array *x = rule->inputs[0], *norm;
    norm = norm_of_vectors(build, norm_widened(build, x), attrs->ord, &attrs->axis,
                           attrs->keepdims);
    outputs[0] = norm_narrowed(build, norm, x);
    return built(outputs[0]);
}

COMPOSITE(vector_norm, "The norm of vectors, of all elements along axes.",
          TN_INPUTS(norm_inputs), .attrs = TN_ATTR_TABLE(norm_attrs, vector_norm_fields));

// --- matrices ---------------------------------------------------------------------------

// The orders of matrix norms: sums of absolute values along `sum`, or (0) singular values,
// which `reduction` reduces. Without both: the vector norm.
static const struct norm_order {
    const char *name;
    int64_t sum;
    const char *reduction;
} norm_orders[] = {
    {"fro", 0, NULL},          {"nuc", 0, "base.sum/1"},   {"1", -2, "base.max/1"},
    {"-1", -2, "base.min/1"},  {"2", 0, "base.max/1"},     {"-2", 0, "base.min/1"},
    {"inf", -1, "base.max/1"}, {"-inf", -1, "base.min/1"},
};

// Whether the text is a number.
static bool norm_number(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && *end == 0 && !isnan(*out);
}

static tn_status norm_order_of(const tn_host *host, const char *name, const char *text,
                               const struct norm_order **out)
{
    double number, own;
    bool is_number = norm_number(text, &number);
    for (size_t i = 0; i < sizeof(norm_orders) / sizeof(norm_orders[0]); i++) {
        *out = &norm_orders[i];
        bool same = norm_number((*out)->name, &own) ? is_number && own == number
                                                    : strcmp(text, (*out)->name) == 0;
        if (same)
            return TN_OK;
    }
    return host->fail(host, TN_ERR_ARGUMENT,
                      "%s is '%s', expected of matrices 'fro', 'nuc', '1', '-1', '2', "
                      "'-2', 'inf' or '-inf'",
                      name, text);
}

// Gives the axes of rows and of columns, counted from the front: the two in `axis`, or the
// last ones.
static tn_status norm_axes(const tn_host *host, const tn_type *x, const tn_ints *axis,
                           tn_ints *out)
{
    char text[SHAPE_TEXT];
    *out = (tn_ints){2, 1, {x->rank - 2, x->rank - 1}};
    if (x->rank < 2)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "x has shape %s, expected a matrix: at least 2 axes",
                          shape_text(x, text));
    if (axis->given && axis->count != 2)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "got %u axes, expected those of rows and columns", axis->count);
    for (uint32_t i = 0; i < axis->count && axis->given; i++) {
        if (axis->value[i] < -x->rank || axis->value[i] >= x->rank)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "axis %" PRId64 " is out of range for rank %d",
                              axis->value[i], x->rank);
        out->value[i] = tn_axis(axis->value[i], x->rank);
    }
    return out->value[0] != out->value[1]
               ? TN_OK
               : host->fail(host, TN_ERR_ARGUMENT,
                            "axis %" PRId64 " is given twice, expected rows and columns",
                            axis->value[1]);
}

static tn_array *norm_of_matrices(const tn_build *build, tn_array *x,
                                  const struct norm_order *order, const tn_ints *axes,
                                  int64_t keepdims)
{
    if (!order->reduction)
        return norm_of_vectors(build, x, 2, axes, keepdims);
    const tn_type *type = build->type(x);
    int64_t rows = axes->value[0], columns = axes->value[1];
    tn_ints turn = {.given = 1};
    if (!type)
        return NULL;
    for (int64_t i = 0; i < type->rank; i++)
        if (i != rows && i != columns)
            turn.value[turn.count++] = i;
    turn.value[turn.count++] = rows;
    turn.value[turn.count++] = columns;
    x = build->op(build, "base.transpose/1", TN_IN(x),
                  tn_attrs("axes", (const tn_ints *)&turn));
    x = order->sum ? norm_reduced(build, "base.sum/1", norm_absolute(build, x),
                                  TN_INTS(order->sum), 0)
                   : build->op(build, "linalg.svdvals/1", TN_IN(x), TN_NO_ATTRS);
    x = norm_reduced(build, order->reduction, x, TN_INTS(-1), 0);
    if (keepdims)
        x = build->op(build, "base.expand_dims/1", TN_IN(x),
                      tn_attrs("axis", rows < columns ? TN_INTS(rows, columns)
                                                      : TN_INTS(columns, rows)));
    return x;
}

// The norm of matrices with this name of an order.
static tn_status norm_by_name(const tn_build *build, tn_array *x, const char *name,
                              const char *order, const norm_attrs *attrs, tn_array **out)
{
    const struct norm_order *known;
    tn_ints axes;
    tn_status status = norm_order_of(build->host, name, order, &known);
    if (status == TN_OK)
        status = norm_axes(build->host, build->type(x), &attrs->axis, &axes);
    if (status)
        return status;
    tn_array *norm =
        norm_of_matrices(build, norm_widened(build, x), known, &axes, attrs->keepdims);
    *out = norm_narrowed(build, norm, x);
    return built(*out);
}

static const tn_attr_field matrix_norm_fields[] = {
    {"ord", "fro (if not given), nuc, 1, -1, 2, -2, inf or -inf, as a text", TN_ATTR_STRING,
     0, offsetof(norm_attrs, name), 0, 0, NULL},
    TN_INTS_FIELD(norm_attrs, axis, "axes of rows and columns; not given: the last two"),
    TN_BOOL_FIELD(norm_attrs, keepdims, 0, "keep these axes with extent 1"),
};

DECOMPOSE(matrix_norm)
{
    const norm_attrs *attrs = rule->attrs;
    return norm_by_name(build, rule->inputs[0], "ord", attrs->name ? attrs->name : "fro",
                        attrs, outputs);
}

COMPOSITE(matrix_norm, "The norm of matrices.", TN_INPUTS(norm_inputs),
          .attrs = TN_ATTR_TABLE(norm_attrs, matrix_norm_fields));

// --- norm -------------------------------------------------------------------------------

static const tn_attr_field norm_fields[] = {
    {"ord", "as a text: of one axis a number, of two what matrix_norm takes; not given: 2",
     TN_ATTR_STRING, 0, offsetof(norm_attrs, name), 0, 0, NULL},
    TN_INTS_FIELD(norm_attrs, axis, "one axis, of vectors, or two, of matrices"),
    TN_BOOL_FIELD(norm_attrs, keepdims, 0, "keep these axes with extent 1"),
};

DECOMPOSE(norm)
{
    const norm_attrs *attrs = rule->attrs;
    const tn_host *host = build->host;
    tn_array *x = rule->inputs[0];
    const tn_type *type = build->type(x);
    int64_t count = attrs->axis.given ? (int64_t)attrs->axis.count : type->rank;
    double ord = 2;
    char text[SHAPE_TEXT];
    if (attrs->axis.given && (count < 1 || count > 2))
        return host->fail(host, TN_ERR_ARGUMENT,
                          "got %" PRId64 " axes, expected one, of vectors, or two, of "
                          "matrices",
                          count);
    if (attrs->name && (count < 1 || count > 2))
        return host->fail(host, TN_ERR_ARGUMENT,
                          "x has shape %s, expected a vector or a matrix where ord is "
                          "given and axis is not",
                          shape_text(type, text));
    if (attrs->name && count == 2)
        return norm_by_name(build, x, "ord", attrs->name, attrs, outputs);
    if (attrs->name && !norm_number(attrs->name, &ord))
        return host->fail(host, TN_ERR_ARGUMENT,
                          "ord is '%s', expected of vectors a number such as '3' or 'inf'",
                          attrs->name);
    tn_array *norm =
        norm_of_vectors(build, norm_widened(build, x), ord, &attrs->axis, attrs->keepdims);
    outputs[0] = norm_narrowed(build, norm, x);
    return built(outputs[0]);
}

COMPOSITE(norm, "The norm of vectors or matrices, as numpy.linalg.norm.",
          TN_INPUTS(norm_inputs), .attrs = TN_ATTR_TABLE(norm_attrs, norm_fields));

// --- cond -------------------------------------------------------------------------------

static const tn_attr_field cond_fields[] = {
    {"p", "the norm, as matrix_norm's ord; not given: 2", TN_ATTR_STRING, 0,
     offsetof(norm_attrs, name), 0, 0, NULL},
};

// Combines two norms, each of its matrix and by its name, in an expression.
static tn_status norm_quotient(const tn_build *build, tn_array *const a[2],
                               const char *const p[2], const char *expr, tn_array **out)
{
    const norm_attrs plain = {0};
    tn_array *norms[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        tn_status status = a[i] ? norm_by_name(build, a[i], "p", p[i], &plain, &norms[i])
                                : TN_ERR_ARGUMENT;
        if (status)
            return status;
    }
    *out = build->expr(build, expr, TN_IN(norms[0], norms[1]), TN_NO_ATTRS);
    return built(*out);
}

DECOMPOSE(cond)
{
    const norm_attrs *attrs = rule->attrs;
    const char *p = attrs->name ? attrs->name : "2";
    tn_array *a = norm_widened(build, rule->inputs[0]), *norm = NULL;
    double number = 0;
    tn_status status = TN_OK;
    if (norm_number(p, &number) && fabs(number) == 2) {
        status = norm_quotient(build, (tn_array *const[]){a, a},
                               (const char *const[]){p, number > 0 ? "-2" : "2"},
                               "a, b -> a / b", &norm);
    } else {
        status = check_square(build->host, "a", build->type(a));
        if (status)
            return status;
        tn_array *inverse = build->op(build, "linalg.inv/1", TN_IN(a), TN_NO_ATTRS);
        status = norm_quotient(build, (tn_array *const[]){a, inverse},
                               (const char *const[]){p, p}, "a, b -> a * b", &norm);
    }
    if (status == TN_OK)
        outputs[0] = norm_narrowed(build, norm, rule->inputs[0]);
    return status ? status : built(outputs[0]);
}

static const tn_input_info cond_inputs[] = {
    {"a", "matrices", 0, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
};
COMPOSITE(cond, "The condition number of matrices, by a norm.", TN_INPUTS(cond_inputs),
          .attrs = TN_ATTR_TABLE(norm_attrs, cond_fields));
