// SPDX-License-Identifier: MIT
// Products by einsum, matmul and broadcasting: outer, inner, vecdot, vdot, dot, tensordot,
// matvec, vecmat, kron, cross, addmm, hadamard_transform.
#include "../pack.h"

static const tn_input_info two_inputs[] = {
    {"a", "the left operand", 0, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
    {"b", "the right operand", 0, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
};

static tn_array *product_multiply(const tn_build *build, const tn_array *a,
                                  const tn_array *b)
{
    return build->expr(build, "a, b -> a * b", TN_IN(a, b), TN_NO_ATTRS);
}

DECOMPOSE(outer)
{
    tn_array *column =
        build->op(build, "base.expand_dims/1", TN_IN(flattened(build, rule->inputs[0])),
                  tn_attrs("axis", TN_INTS(1)));
    outputs[0] = product_multiply(build, column, flattened(build, rule->inputs[1]));
    return built(outputs[0]);
}

COMPOSITE(outer, "All products of an element of a with one of b.", TN_INPUTS(two_inputs));

// --- contractions -----------------------------------------------------------------------

// Sums over paired axes: `of_a` of a and `of_b` of b. The other axes stay, a's first.
static tn_status product_contract(const tn_build *build, const tn_rule *rule,
                                  const tn_ints *of_a, const tn_ints *of_b, tn_array **out)
{
    const tn_host *host = build->host;
    const tn_type *a = build->type(rule->inputs[0]), *b = build->type(rule->inputs[1]);
    char text[4 * TN_MAX_RANK + 4], *end = text, labels[TN_MAX_RANK];
    uint32_t in_a, in_b;
    tn_status status = check_axes(host, "axes of a", of_a, a->rank, &in_a);
    if (status == TN_OK)
        status = check_axes(host, "axes of b", of_b, b->rank, &in_b);
    if (status == TN_OK && of_a->count != of_b->count)
        status = host->fail(host, TN_ERR_ARGUMENT,
                            "got %u axes of a and %u of b, expected as many", of_a->count,
                            of_b->count);
    for (uint32_t i = 0; i < of_a->count && status == TN_OK; i++) {
        int32_t x = tn_axis(of_a->value[i], a->rank), y = tn_axis(of_b->value[i], b->rank);
        labels[y] = (char)('a' + x);
        if (a->extent[x] != b->extent[y])
            status =
                host->fail(host, TN_ERR_ARGUMENT,
                           "axis %d of a has extent %" PRId64 ", axis %d of b %" PRId64, x,
                           a->extent[x], y, b->extent[y]);
    }
    if (status)
        return status;
    for (int32_t i = 0; i < a->rank; i++)
        *end++ = (char)('a' + i);
    *end++ = ',';
    for (int32_t i = 0; i < b->rank; i++)
        *end++ = labels[i] = in_b >> i & 1 ? labels[i] : (char)('A' + i);
    *end++ = '-';
    *end++ = '>';
    for (int32_t i = 0; i < a->rank; i++)
        if (!(in_a >> i & 1))
            *end++ = (char)('a' + i);
    for (int32_t i = 0; i < b->rank; i++)
        if (!(in_b >> i & 1))
            *end++ = labels[i];
    *end = 0;
    *out = build->op(build, "base.einsum/1", TN_IN(rule->inputs[0], rule->inputs[1]),
                     tn_attrs("equation", (const char *)text));
    return built(*out);
}

typedef struct {
    int64_t axes;
    tn_ints axes_a, axes_b;
} tensordot_attrs;

static const tn_attr_field tensordot_fields[] = {
    TN_I64_FIELD(tensordot_attrs, axes, 2, "how many: the last of a with the first of b"),
    TN_INTS_FIELD(tensordot_attrs, axes_a, "instead: axes of a"),
    TN_INTS_FIELD(tensordot_attrs, axes_b, "with axes_a: the axes of b to pair them with"),
};

DECOMPOSE(tensordot)
{
    const tensordot_attrs *attrs = rule->attrs;
    const tn_host *host = build->host;
    int32_t ranks[] = {build->type(rule->inputs[0])->rank,
                       build->type(rule->inputs[1])->rank};
    if (attrs->axes_a.given != attrs->axes_b.given)
        return host->fail(host, TN_ERR_ARGUMENT, "got axes_%s alone, expected both or none",
                          attrs->axes_a.given ? "a" : "b");
    if (attrs->axes_a.given)
        return product_contract(build, rule, &attrs->axes_a, &attrs->axes_b, outputs);
    if (attrs->axes < 0 || attrs->axes > ranks[0] || attrs->axes > ranks[1])
        return host->fail(host, TN_ERR_ARGUMENT,
                          "axes is %" PRId64 ", expected 0 to the ranks, %d and %d",
                          attrs->axes, ranks[0], ranks[1]);
    tn_ints of_a = {(uint32_t)attrs->axes, 1, {0}}, of_b = of_a;
    for (int32_t i = 0; i < (int32_t)attrs->axes; i++) {
        of_a.value[i] = ranks[0] - (int32_t)attrs->axes + i;
        of_b.value[i] = i;
    }
    return product_contract(build, rule, &of_a, &of_b, outputs);
}

COMPOSITE(tensordot, "Sums of products over pairs of axes.", TN_INPUTS(two_inputs),
          .attrs = TN_ATTR_TABLE(tensordot_attrs, tensordot_fields));

// Contracts the last axis of a with axis `of_b` of b; multiplies where one is a scalar.
static tn_status product_dot(const tn_build *build, const tn_rule *rule, int64_t of_b,
                             tn_array **outputs)
{
    const tn_type *a = build->type(rule->inputs[0]), *b = build->type(rule->inputs[1]);
    const tn_ints last = {1, 1, {-1}}, with = {1, 1, {b->rank < 2 ? -1 : of_b}};
    if (a->rank && b->rank)
        return product_contract(build, rule, &last, &with, outputs);
    outputs[0] = product_multiply(build, rule->inputs[0], rule->inputs[1]);
    return built(outputs[0]);
}

DECOMPOSE(inner)
{
    return product_dot(build, rule, -1, outputs);
}

DECOMPOSE(dot)
{
    return product_dot(build, rule, -2, outputs);
}

COMPOSITE(inner, "Sums of products over the last axes of a and b.", TN_INPUTS(two_inputs));
COMPOSITE(dot, "Sums of products over the last axis of a and the last but one of b.",
          TN_INPUTS(two_inputs));

typedef struct {
    int64_t axis;
} vecdot_attrs;

static const tn_attr_field vecdot_fields[] = {
    TN_I64_FIELD(vecdot_attrs, axis, -1, "axis of both, counted from the end"),
};

DECOMPOSE(vecdot)
{
    const vecdot_attrs *attrs = rule->attrs;
    const tn_host *host = build->host;
    const tn_type *a = build->type(rule->inputs[0]), *b = build->type(rule->inputs[1]);
    int32_t least = a->rank < b->rank ? a->rank : b->rank;
    int64_t axis = attrs->axis;
    if (axis >= 0 && a->rank == b->rank)
        axis -= a->rank;
    if (axis >= 0 || axis < -least)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "axis is %" PRId64
                          ", expected -%d to -1, as a has rank %d and b %d",
                          attrs->axis, least, a->rank, b->rank);
    if (a->extent[a->rank + axis] != b->extent[b->rank + axis])
        return host->fail(
            host, TN_ERR_ARGUMENT,
            "axis %" PRId64 " has extent %" PRId64 " in a and %" PRId64 " in b",
            attrs->axis, a->extent[a->rank + axis], b->extent[b->rank + axis]);
    tn_array *x = build->expr(build, "a, b -> conj(a) * b",
                              TN_IN(rule->inputs[0], rule->inputs[1]), TN_NO_ATTRS);
    outputs[0] = sum_along(build, x, axis, tn_dtype_promote(a->dtype, b->dtype));
    return built(outputs[0]);
}

DECOMPOSE(vdot)
{
    const tn_type *a = build->type(rule->inputs[0]), *b = build->type(rule->inputs[1]);
    if (type_count(a) != type_count(b))
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "a has %" PRId64 " elements and b %" PRId64
                                 ", expected as many",
                                 type_count(a), type_count(b));
    tn_array *x = build->expr(
        build, "a, b -> conj(a) * b",
        TN_IN(flattened(build, rule->inputs[0]), flattened(build, rule->inputs[1])),
        TN_NO_ATTRS);
    outputs[0] = sum_along(build, x, -1, tn_dtype_promote(a->dtype, b->dtype));
    return built(outputs[0]);
}

COMPOSITE(vecdot, "Sums of conj(a) * b along an axis; the others broadcast.",
          TN_INPUTS(two_inputs), .attrs = TN_ATTR_TABLE(vecdot_attrs, vecdot_fields));
COMPOSITE(vdot, "The sum of conj(a) * b over all elements, in order.",
          TN_INPUTS(two_inputs));

// --- kron -------------------------------------------------------------------------------

// Repeats each element of a as often as b has elements, and b as often as a has, and
// multiplies them: needs no more axes than the result.
static tn_array *kron_repeated(const tn_build *build, tn_array *x, tn_array *y,
                               const tn_ints *a, const tn_ints *b)
{
    for (uint32_t i = 0; i < a->count; i++) {
        tn_int_list times = {1, &b->value[i]};
        if (b->value[i] != 1)
            x = build->op(
                build, "base.repeat/1", TN_IN(x),
                tn_attrs("repeats", (const tn_int_list *)&times, "axis", (int64_t)i));
    }
    y = build->op(build, "base.tile/1", TN_IN(y), tn_attrs("reps", a));
    return product_multiply(build, x, y);
}

// By an outer product: each axis of the result merges one of a with one of b.
static tn_array *kron_outer(const tn_build *build, tn_array *x, tn_array *y,
                            const tn_ints *a, const tn_ints *b, tn_ints shape)
{
    tn_ints wide_a = {.given = 1}, wide_b = wide_a;
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->value[i] != 1) {
            wide_a.value[wide_a.count++] = a->value[i];
            wide_b.value[wide_b.count++] = 1;
        }
        if (b->value[i] != 1) {
            wide_a.value[wide_a.count++] = 1;
            wide_b.value[wide_b.count++] = b->value[i];
        }
    }
    tn_array *product =
        product_multiply(build, with_shape(build, "base.reshape/1", x, wide_a),
                         with_shape(build, "base.reshape/1", y, wide_b));
    return with_shape(build, "base.reshape/1", product, shape);
}

// Axes of extent 1 take none of the outer product's axes; a batch does.
DECOMPOSE(kron)
{
    tn_ints a = tn_extents(build, rule->inputs[0]), b = tn_extents(build, rule->inputs[1]);
    tn_ints shape = {.given = 1};
    while (a.count < b.count)
        a = tn_ints_after(1, &a);
    while (b.count < a.count)
        b = tn_ints_after(1, &b);
    uint32_t positions = 0;
    for (uint32_t i = 0; i < a.count; i++) {
        if (!tn_checked_multiply_extents(a.value[i], b.value[i],
                                         &shape.value[shape.count++]))
            return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                     "axis %u has too many elements", i);
        positions += (a.value[i] != 1) + (b.value[i] != 1);
    }
    tn_array *x = with_shape(build, "base.reshape/1", rule->inputs[0], a);
    tn_array *y = with_shape(build, "base.reshape/1", rule->inputs[1], b);
    outputs[0] = positions < TN_MAX_RANK ? kron_outer(build, x, y, &a, &b, shape)
                                         : kron_repeated(build, x, y, &a, &b);
    return built(outputs[0]);
}

COMPOSITE(kron, "The Kronecker product: b scaled by each element of a.",
          TN_INPUTS(two_inputs));

// --- cross ------------------------------------------------------------------------------

DECOMPOSE(cross)
{
    const vecdot_attrs *attrs = rule->attrs;
    const tn_host *host = build->host;
    const tn_type *types[] = {build->type(rule->inputs[0]), build->type(rule->inputs[1])};
    int32_t most = types[0]->rank > types[1]->rank ? types[0]->rank : types[1]->rank;
    tn_array *part[2][3], *made[3];
    for (int32_t i = 0; i < 2; i++) {
        int32_t axis;
        tn_status status = check_axis(host, attrs->axis, types[i]->rank, &axis);
        if (status)
            return status;
        if (types[i]->extent[axis] != 3)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "axis %" PRId64 " of %s has extent %" PRId64 ", expected 3",
                              attrs->axis, i ? "b" : "a", types[i]->extent[axis]);
        for (int32_t k = 0; k < 3; k++)
            part[i][k] = part_of_axis(build, rule->inputs[i], axis, k, 1, 1);
    }
    if (attrs->axis >= 0 && types[0]->rank != types[1]->rank)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "axis is %" PRId64 " and a has rank %d, b %d: of unlike ranks it "
                          "counts from the end",
                          attrs->axis, types[0]->rank, types[1]->rank);
    for (int32_t k = 0; k < 3; k++) {
        int32_t next = (k + 1) % 3, last = (k + 2) % 3;
        made[k] = build->expr(
            build, "a, b, c, d -> a * b - c * d",
            TN_IN(part[0][next], part[1][last], part[0][last], part[1][next]), TN_NO_ATTRS);
    }
    outputs[0] = joined(build, made, 3, tn_axis(attrs->axis, most));
    return built(outputs[0]);
}

static const tn_attr_field cross_fields[] = {
    TN_I64_FIELD(vecdot_attrs, axis, -1, "axis of both, of extent 3"),
};
COMPOSITE(cross, "The vector product of vectors of three elements.", TN_INPUTS(two_inputs),
          .attrs = TN_ATTR_TABLE(vecdot_attrs, cross_fields));

// --- matrices and vectors ---------------------------------------------------------------

// a @ b of different dtypes, with an axis of extent 1 inserted at `axis` of input `which`,
// and removed from the result.
static tn_status product_with_vector(const tn_build *build, const tn_rule *rule,
                                     int32_t which, int64_t axis, tn_array **outputs)
{
    const tn_type *a = build->type(rule->inputs[0]), *b = build->type(rule->inputs[1]);
    int32_t least[] = {which ? 2 : 1, which ? 1 : 2};
    tn_array *in[2] = {rule->inputs[0], rule->inputs[1]};
    if (a->rank < least[0] || b->rank < least[1])
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "a has rank %d and b %d, expected at least %d and %d",
                                 a->rank, b->rank, least[0], least[1]);
    if (which == 0)
        in[0] = build->expr(build, "a -> conj(a)", TN_IN(in[0]), TN_NO_ATTRS);
    in[which] = build->op(build, "base.expand_dims/1", TN_IN(in[which]),
                          tn_attrs("axis", TN_INTS(axis)));
    tn_dtype dtype = tn_dtype_promote(a->dtype, b->dtype);
    tn_array *product = build->op(
        build, "base.matmul/1",
        TN_IN(as_dtype(build, in[0], dtype), as_dtype(build, in[1], dtype)), TN_NO_ATTRS);
    outputs[0] = build->op(build, "base.squeeze/1", TN_IN(product),
                           tn_attrs("axis", TN_INTS(which ? -1 : -2)));
    return built(outputs[0]);
}

DECOMPOSE(matvec)
{
    return product_with_vector(build, rule, 1, -1, outputs);
}

DECOMPOSE(vecmat)
{
    return product_with_vector(build, rule, 0, -2, outputs);
}

COMPOSITE(matvec, "Matrices by vectors: a @ b with b's last axis as a column.",
          TN_INPUTS(two_inputs));
COMPOSITE(vecmat, "Vectors by matrices: conj(a) @ b with a's last axis as a row.",
          TN_INPUTS(two_inputs));

// --- addmm ------------------------------------------------------------------------------

typedef struct {
    double alpha, beta;
} addmm_attrs;

static const tn_input_info addmm_inputs[] = {
    {"c", "what the product is added to; broadcasts to it", 0,
     TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
    {"a", "the left matrices", 0, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
    {"b", "the right matrices", 0, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
};
static const tn_attr_field addmm_fields[] = {
    TN_F64_FIELD(addmm_attrs, alpha, 1, "factor of the product"),
    TN_F64_FIELD(addmm_attrs, beta, 1, "factor of c"),
};

DECOMPOSE(addmm)
{
    const addmm_attrs *attrs = rule->attrs;
    tn_array *product = build->op(build, "base.matmul/1",
                                  TN_IN(rule->inputs[1], rule->inputs[2]), TN_NO_ATTRS);
    outputs[0] = attrs->alpha == 1 && attrs->beta == 1
                     ? build->expr(build, "c, p -> c + p", TN_IN(rule->inputs[0], product),
                                   TN_NO_ATTRS)
                     : build->expr(build, "c, p -> beta * c + alpha * p",
                                   TN_IN(rule->inputs[0], product),
                                   tn_attrs("alpha", attrs->alpha, "beta", attrs->beta));
    return built(outputs[0]);
}

COMPOSITE(addmm, "beta * c + alpha * (a @ b).", TN_INPUTS(addmm_inputs),
          .attrs = TN_ATTR_TABLE(addmm_attrs, addmm_fields));
