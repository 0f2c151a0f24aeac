// SPDX-License-Identifier: MIT
// einsum: sums of products by an equation.
//
// Each operand is brought to the distinct labels that are still needed: diagonals become
// strided views, broadcast axes of extent 1 are dropped, labels of this operand alone are
// summed. Then two operands at a time are contracted, the pair with the fewest
// multiplications first (of equals, the pair with the smaller result), by matmul, or by a
// product and a sum where matmul would multiply vectors.
#include "einsum.h"
#include <tenon/ops/promote.h>

static const tn_input_info einsum_inputs[] = {
    {"arrays", "whose dtypes promote", TN_INPUT_VARIADIC,
     TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
};
static const tn_attr_field einsum_fields[] = {
    TN_REQUIRED_FIELD(tn_einsum_attrs, equation, TN_ATTR_STRING,
                      "labels of axes, as \"ij,jk->ik\""),
};

// The dtype that the operands promote to, one after the other.
static tn_dtype einsum_dtype(const tn_type *types, uint32_t count)
{
    tn_dtype dtype = types[0].dtype;
    for (uint32_t i = 1; i < count; i++)
        dtype = tn_dtype_promote(dtype, types[i].dtype);
    return dtype;
}

static tn_status einsum_infer(const tn_infer *infer, tn_type *types)
{
    const tn_einsum_attrs *attrs = infer->attrs;
    struct einsum e;
    tn_status status =
        einsum_parse(infer->host, attrs->equation, infer->types, infer->num_inputs, &e);
    if (status)
        return status;
    types[0] = (tn_type){.dtype = einsum_dtype(infer->types, infer->num_inputs),
                         .rank = e.output.rank};
    for (int32_t i = 0; i < e.output.rank; i++)
        types[0].extent[i] = e.extent[e.output.label[i]];
    return TN_OK;
}

// --- one operand ------------------------------------------------------------------------

// An operand during contraction: the array, and the labels of its axes.
struct factor {
    tn_array *array;
    struct einsum_term term;
};

struct einsum_product {
    const tn_build *build;
    const struct einsum *e;
    struct factor factors[EINSUM_OPERANDS];
    uint32_t count;
};

static uint64_t einsum_labels_of(const struct einsum_term *term)
{
    uint64_t set = 0;
    for (int32_t i = 0; i < term->rank; i++)
        set |= UINT64_C(1) << term->label[i];
    return set;
}

// The axis with this label; -1: none.
static int32_t einsum_axis_of(const struct einsum_term *term, int32_t label)
{
    for (int32_t i = 0; i < term->rank; i++)
        if (term->label[i] == label)
            return i;
    return -1;
}

// The extents of axes with these labels.
static tn_ints einsum_extents_of(const struct einsum_product *p,
                                 const struct einsum_term *term)
{
    tn_ints shape = {.count = (uint32_t)term->rank, .given = 1};
    for (int32_t i = 0; i < term->rank; i++)
        shape.value[i] = p->e->extent[term->label[i]];
    return shape;
}

// Drops axes of extent 1 whose label has a greater extent elsewhere.
static void drop_broadcast(const struct einsum_product *p, struct factor *f)
{
    struct einsum_term kept = {0};
    tn_ints shape = tn_extents(p->build, f->array), left = {.given = 1};
    for (int32_t i = 0; i < f->term.rank; i++) {
        if (shape.value[i] == 1 && p->e->extent[f->term.label[i]] != 1)
            continue;
        kept.label[kept.rank++] = f->term.label[i];
        left.value[left.count++] = shape.value[i];
    }
    if (kept.rank < f->term.rank)
        f->array = with_shape(p->build, "base.reshape/1", f->array, left);
    f->term = kept;
}

// Takes the diagonal of two axes with one label: moves both to the end and merges them;
// every (n + 1)-th element is on the diagonal.
static void take_diagonal(const struct einsum_product *p, struct factor *f, int32_t a,
                          int32_t b)
{
    tn_ints order = {.given = 1}, shape = {.given = 1},
            extents = tn_extents(p->build, f->array);
    struct einsum_term term = {0};
    int64_t n = extents.value[a];
    for (int32_t i = 0; i < f->term.rank; i++) {
        if (i == a || i == b)
            continue;
        order.value[order.count++] = i;
        shape.value[shape.count++] = extents.value[i];
        term.label[term.rank++] = f->term.label[i];
    }
    term.label[term.rank++] = f->term.label[a];
    order.value[order.count++] = a;
    order.value[order.count++] = b;
    shape.value[shape.count++] = n * n;
    tn_array *merged =
        with_shape(p->build, "base.reshape/1", turned(p->build, f->array, &order), shape);
    f->array = part_of_axis(p->build, merged, term.rank - 1, 0, n + 1, n);
    f->term = term;
}

// Sums over the axes with labels of `set`.
static void sum_labels(const struct einsum_product *p, struct factor *f, uint64_t set)
{
    tn_ints axes = {.given = 1};
    struct einsum_term kept = {0};
    const tn_type *type = p->build->type(f->array);
    if (!type)
        return;
    for (int32_t i = 0; i < f->term.rank; i++)
        if (set >> f->term.label[i] & 1)
            axes.value[axes.count++] = i;
        else
            kept.label[kept.rank++] = f->term.label[i];
    if (axes.count == 0)
        return;
    tn_dtype dtype = type->dtype;
    f->array = p->build->op(p->build, "base.sum/1", TN_IN(f->array),
                            tn_attrs("axis", (const tn_ints *)&axes));
    type = p->build->type(f->array);
    if (type && type->dtype != dtype) // narrow integers are summed in 64 bits
        f->array = cast(p->build, f->array, dtype);
    f->term = kept;
}

// The labels that the result or another factor than `a` and `b` has.
static uint64_t needed_beside(const struct einsum_product *p, uint32_t a, uint32_t b)
{
    uint64_t set = einsum_labels_of(&p->e->output);
    for (uint32_t k = 0; k < p->count; k++)
        if (k != a && k != b)
            set |= einsum_labels_of(&p->factors[k].term);
    return set;
}

// Finds two axes with one label; false: there are none.
static int find_diagonal(const struct einsum_term *term, int32_t *a, int32_t *b)
{
    for (*a = 0; *a < term->rank; ++*a)
        for (*b = *a + 1; *b < term->rank; ++*b)
            if (term->label[*a] == term->label[*b])
                return 1;
    return 0;
}

static void einsum_simplify(const struct einsum_product *p, struct factor *f)
{
    int32_t a, b;
    drop_broadcast(p, f);
    while (find_diagonal(&f->term, &a, &b))
        take_diagonal(p, f, a, b);
}

// --- two operands -----------------------------------------------------------------------

// The number of index values of these labels; a double, as it is only compared.
static double einsum_size_of(const struct einsum_product *p, uint64_t set)
{
    double size = 1;
    for (int32_t label = 0; label < EINSUM_LABELS; label++)
        if (set >> label & 1)
            size *= (double)p->e->extent[label];
    return size;
}

static int32_t count_labels(uint64_t set)
{
    return __builtin_popcountll(set);
}

// Finds the cheapest pair to contract. False: every pair's result has too many axes.
static int choose_pair(const struct einsum_product *p, uint32_t *out_a, uint32_t *out_b)
{
    double least = INFINITY, smallest = INFINITY;
    int found = 0;
    for (uint32_t a = 0; a < p->count; a++)
        for (uint32_t b = a + 1; b < p->count; b++) {
            uint64_t all = einsum_labels_of(&p->factors[a].term) |
                           einsum_labels_of(&p->factors[b].term);
            uint64_t result = all & needed_beside(p, a, b);
            double cost = einsum_size_of(p, all), size = einsum_size_of(p, result);
            if (count_labels(result) > TN_MAX_RANK ||
                (found && !(cost < least || (cost == least && size < smallest))))
                continue;
            found = 1;
            least = cost;
            smallest = size;
            *out_a = a;
            *out_b = b;
        }
    return found;
}

// Appends the labels of `set` in the order of `term`; gives the product of their extents.
static int64_t append_labels(const struct einsum_product *p, struct einsum_term *to,
                             const struct einsum_term *term, uint64_t set)
{
    int64_t size = 1;
    for (int32_t i = 0; i < term->rank; i++)
        if (set >> term->label[i] & 1) {
            to->label[to->rank++] = term->label[i];
            size *= p->e->extent[term->label[i]];
        }
    return size;
}

// The factor with its axes in the order of `term`, as an array of extents `shape`.
static tn_array *einsum_arranged(const struct einsum_product *p, const struct factor *f,
                                 const struct einsum_term *term, tn_ints shape)
{
    tn_ints order = {.count = (uint32_t)term->rank, .given = 1};
    for (int32_t i = 0; i < term->rank; i++)
        order.value[i] = einsum_axis_of(&f->term, term->label[i]);
    return with_shape(p->build, "base.reshape/1", turned(p->build, f->array, &order),
                      shape);
}

// The labels of a contraction by their part in a product of matrices: [batch, rows, sum]
// and [batch, sum, columns].
struct groups {
    uint64_t batch, sum, rows, columns;
};

// The sums of x * y along rows; half floats are rounded at the end only.
static tn_array *inner_products(const struct einsum_product *p, const tn_array *x,
                                const tn_array *y)
{
    const tn_build *build = p->build;
    const tn_type *type = build->type(x);
    tn_dtype dtype = type ? type->dtype : TN_F32;
    int is_half = tn_is_float(dtype) && tn_dtype_computed(dtype) != dtype;
    struct factor both = {build->expr(build,
                                      is_half ? "x, y -> f32(x) * f32(y)" : "x, y -> x * y",
                                      TN_IN(x, y), TN_NO_ATTRS),
                          {2, {0, 1}}};
    sum_labels(p, &both, 2);
    return is_half ? cast(build, both.array, dtype) : both.array;
}

// [batch, rows, columns] from both factors: by matmul, or by an elementwise product where
// no label is summed, or where all others are gone.
static tn_array *einsum_multiplied(const struct einsum_product *p, const struct factor *a,
                                   const struct factor *b, const struct groups *g,
                                   struct einsum_term *out)
{
    const tn_build *build = p->build;
    struct einsum_term left = {0}, right = {0};
    *out = (struct einsum_term){0};
    int64_t batch = append_labels(p, &left, &a->term, g->batch);
    append_labels(p, &right, &left, g->batch);
    append_labels(p, out, &left, g->batch);
    int64_t rows = append_labels(p, &left, &a->term, g->rows);
    append_labels(p, out, &a->term, g->rows);
    int64_t sum = append_labels(p, &left, &a->term, g->sum);
    append_labels(p, &right, &a->term, g->sum);
    int64_t columns = append_labels(p, &right, &b->term, g->columns);
    append_labels(p, out, &b->term, g->columns);
    if (g->sum == 0)
        return build->expr(
            build, "x, y -> x * y",
            TN_IN(
                einsum_arranged(p, a, &left, ints_of(3, (int64_t[]){batch, rows, 1})),
                einsum_arranged(p, b, &right, ints_of(3, (int64_t[]){batch, 1, columns}))),
            TN_NO_ATTRS);
    if (g->rows == 0 && g->columns == 0)
        return inner_products(
            p, einsum_arranged(p, a, &left, ints_of(2, (int64_t[]){batch, sum})),
            einsum_arranged(p, b, &right, ints_of(2, (int64_t[]){batch, sum})));
    int32_t skip = g->batch == 0; // a single product of matrices
    const int64_t l[] = {batch, rows, sum}, r[] = {batch, sum, columns};
    return build->op(build, "base.matmul/1",
                     TN_IN(einsum_arranged(p, a, &left, ints_of(3 - skip, l + skip)),
                           einsum_arranged(p, b, &right, ints_of(3 - skip, r + skip))),
                     TN_NO_ATTRS);
}

// Replaces factors a and b by their contraction.
static void einsum_contract(struct einsum_product *p, uint32_t a, uint32_t b)
{
    struct factor *x = &p->factors[a], *y = &p->factors[b], made;
    uint64_t of_x = einsum_labels_of(&x->term), of_y = einsum_labels_of(&y->term);
    uint64_t needed = needed_beside(p, a, b);
    sum_labels(p, x, of_x & ~of_y & ~needed);
    sum_labels(p, y, of_y & ~of_x & ~needed);
    of_x = einsum_labels_of(&x->term);
    of_y = einsum_labels_of(&y->term);
    const struct groups g = {.batch = of_x & of_y & needed,
                             .sum = of_x & of_y & ~needed,
                             .rows = of_x & ~of_y,
                             .columns = of_y & ~of_x};
    made.array = einsum_multiplied(p, x, y, &g, &made.term);
    made.array = with_shape(p->build, "base.reshape/1", made.array,
                            einsum_extents_of(p, &made.term));
    *x = made;
    p->factors[b] = p->factors[--p->count];
}

// --- the primitive ----------------------------------------------------------------------

// x in the dtype of the result; bool is multiplied and summed as integers, so that counts
// are exact.
static tn_array *einsum_number_of(const tn_build *build, tn_array *x, tn_dtype dtype)
{
    const tn_type *type = build->type(x);
    tn_dtype number = dtype == TN_BOOL ? TN_I64 : dtype;
    return type && type->dtype != number ? cast(build, x, number) : x;
}

DECOMPOSE(einsum)
{
    const tn_einsum_attrs *attrs = rule->attrs;
    struct einsum e;
    struct einsum_product p = {.build = build, .e = &e, .count = rule->num_inputs};
    tn_type types[EINSUM_OPERANDS] = {{0}};
    tn_ints order = {.given = 1};
    for (uint32_t i = 0; i < rule->num_inputs; i++)
        types[i] = *build->type(rule->inputs[i]);
    tn_status status =
        einsum_parse(build->host, attrs->equation, types, rule->num_inputs, &e);
    if (status)
        return status;
    tn_dtype dtype = einsum_dtype(types, rule->num_inputs);
    for (uint32_t i = 0; i < p.count; i++) {
        p.factors[i] =
            (struct factor){einsum_number_of(build, rule->inputs[i], dtype), e.operand[i]};
        einsum_simplify(&p, &p.factors[i]);
    }
    for (uint32_t i = 0; i < p.count; i++)
        sum_labels(&p, &p.factors[i], ~needed_beside(&p, i, i));
    while (p.count > 1) {
        uint32_t a = 0, b = 1;
        if (!choose_pair(&p, &a, &b))
            return build->host->fail(
                build->host, TN_ERR_UNSUPPORTED,
                "equation '%s': a product of two operands has more than "
                "%d axes in every order",
                attrs->equation, TN_MAX_RANK);
        einsum_contract(&p, a, b);
    }
    struct factor *f = &p.factors[0];
    for (int32_t i = 0; i < e.output.rank; i++)
        order.value[order.count++] = einsum_axis_of(&f->term, e.output.label[i]);
    tn_array *out = turned(build, f->array, &order);
    outputs[0] = dtype == TN_BOOL ? cast(build, out, TN_BOOL) : out;
    return built(outputs[0]);
}

DECOMPOSED(einsum, tn_einsum_attrs, einsum_fields,
           "Sums of products by an equation of labels of axes.", TN_INPUTS(einsum_inputs));
