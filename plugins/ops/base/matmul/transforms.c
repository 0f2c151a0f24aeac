// SPDX-License-Identifier: MIT
// Sums of products by views: convolve and correlate of vectors, whose windows overlap in
// memory, and the Hadamard transform.
#include "../pack.h"

enum { MODE_FULL, MODE_SAME, MODE_VALID };

typedef struct {
    int64_t mode;
} convolve_attrs;

static const char *const modes[] = {"full", "same", "valid", NULL};
static const tn_input_info vector_inputs[] = {
    {"a", "a vector", 0, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
    {"v", "a vector", 0, TN_FIRST_DTYPES | TN_COMPLEX_DTYPES},
};
static const tn_attr_field convolve_fields[] = {
    TN_CHOICE_FIELD(convolve_attrs, mode, MODE_FULL, modes,
                    "every overlap; as many as the longer vector; whole overlaps"),
};
static const tn_attr_field correlate_fields[] = {
    TN_CHOICE_FIELD(convolve_attrs, mode, MODE_VALID, modes,
                    "every overlap; as many as the longer vector; whole overlaps"),
};

// Sums over windows of `a` times `v`, both in order: element i begins at a[i - left] of a
// padded with zeros.
static tn_array *convolve_windows(const tn_build *build, tn_array *a, tn_array *v,
                                  int64_t left, int64_t count)
{
    const tn_type *of_a = build->type(a), *of_v = build->type(v);
    if (!of_a || !of_v)
        return NULL;
    int64_t n = of_a->extent[0], m = of_v->extent[0];
    int64_t right = count + m - 1 - n - left;
    tn_dtype dtype = tn_dtype_promote(of_a->dtype, of_v->dtype);
    a = as_dtype(build, a, dtype);
    if (left || right)
        a = build->op(build, "base.pad_constant/1", TN_IN(a),
                      tn_attrs("before", TN_INTS(left), "after", TN_INTS(right)));
    const tn_ints shape = ints_of(2, (int64_t[]){count, m}),
                  steps = ints_of(2, (int64_t[]){1, 1});
    tn_array *windows = build->op(build, "base.as_strided/1", TN_IN(a),
                                  tn_attrs("shape", &shape, "strides", &steps));
    tn_array *products = build->expr(
        build, "w, v -> w * v", TN_IN(windows, as_dtype(build, v, dtype)), TN_NO_ATTRS);
    return sum_along(build, products, -1, dtype);
}

static tn_status convolve_check(const tn_host *host, const tn_type *a, const tn_type *v)
{
    const tn_type *types[] = {a, v};
    for (int32_t i = 0; i < 2; i++)
        if (types[i]->rank != 1 || types[i]->extent[0] == 0)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "%s has rank %d and %" PRId64
                              " elements, expected rank 1 and at least one",
                              i ? "v" : "a", types[i]->rank, type_count(types[i]));
    return TN_OK;
}

static tn_array *convolve_reverse(const tn_build *build, const tn_array *x)
{
    return build->op(build, "base.flip/1", TN_IN(x), TN_NO_ATTRS);
}

static int64_t convolve_count(int64_t mode, int64_t n, int64_t m)
{
    return mode == MODE_FULL ? n + m - 1 : mode == MODE_SAME ? n : n - m + 1;
}

static tn_status convolve_infer(const tn_infer *infer, tn_type *types)
{
    const convolve_attrs *attrs = infer->attrs;
    tn_type a = infer->types[0], v = infer->types[1];
    tn_status status = convolve_check(infer->host, &a, &v);
    if (status)
        return status;
    int64_t n = a.extent[0], m = v.extent[0];
    types[0] = (tn_type){
        tn_dtype_promote(a.dtype, v.dtype),
        1,
        {n < m ? convolve_count(attrs->mode, m, n) : convolve_count(attrs->mode, n, m)}};
    return TN_OK;
}

DECOMPOSE(convolve)
{
    const convolve_attrs *attrs = rule->attrs;
    tn_array *a = rule->inputs[0], *v = rule->inputs[1];
    if (!build->type(a) || !build->type(v))
        return TN_ERR_ARGUMENT;
    if (build->type(a)->extent[0] < build->type(v)->extent[0]) {
        tn_array *shorter = a;
        a = v;
        v = shorter;
    }
    int64_t n = build->type(a)->extent[0], m = build->type(v)->extent[0];
    int64_t left = attrs->mode == MODE_FULL ? m - 1 : attrs->mode == MODE_SAME ? m / 2 : 0;
    outputs[0] = convolve_windows(build, a, convolve_reverse(build, v), left,
                                  convolve_count(attrs->mode, n, m));
    return built(outputs[0]);
}

// c[k] = sum of a[n + k] * conj(v[n]), as NumPy: k begins at 1 - m.
DECOMPOSE(correlate)
{
    const convolve_attrs *attrs = rule->attrs;
    tn_array *a = rule->inputs[0];
    const tn_type *of_a = build->type(a), *of_v = build->type(rule->inputs[1]);
    if (!of_a || !of_v)
        return TN_ERR_ARGUMENT;
    tn_status status = convolve_check(build->host, of_a, of_v);
    if (status)
        return status;
    tn_array *v = build->expr(build, "v -> conj(v)", TN_IN(rule->inputs[1]), TN_NO_ATTRS);
    if (!v)
        return TN_ERR_ARGUMENT;
    // Where a is shorter than v, NumPy exchanges them and reverses the result.
    int is_shorter = build->type(a)->extent[0] < build->type(v)->extent[0];
    tn_array *flipped = convolve_reverse(build, is_shorter ? a : v);
    outputs[0] = build->op(build, "base.convolve/1", TN_IN(is_shorter ? v : a, flipped),
                           tn_attrs("mode", attrs->mode));
    if (is_shorter)
        outputs[0] = convolve_reverse(build, outputs[0]);
    return built(outputs[0]);
}

DECOMPOSED(convolve, convolve_attrs, convolve_fields,
           "The linear convolution of two vectors.", TN_INPUTS(vector_inputs));
COMPOSITE(correlate, "The cross-correlation of two vectors.", TN_INPUTS(vector_inputs),
          .attrs = TN_ATTR_TABLE(convolve_attrs, correlate_fields));

// --- hadamard_transform -----------------------------------------------------------------

typedef struct {
    double scale;
} hadamard_attrs;

static const tn_attr_field hadamard_fields[] = {
    TN_F64_FIELD(hadamard_attrs, scale, NAN, "factor; not given: 1 / sqrt(n)"),
};

#define HADAMARD_STEP 64 // the transform of so many elements is one product

// Sylvester's matrix of h rows: -1 to the number of bits that row and column have in
// common.
static tn_array *hadamard_matrix(const tn_build *build, int64_t h, tn_dtype dtype)
{
    tn_array *sign =
        build->expr(build,
                    "i, j -> b = i & j; c = b ^ b >> 4; d = c ^ c >> 2; e = d ^ d >> 1; 1 "
                    "- 2 * (e & 1)",
                    TN_IN(counted(build, h, 1), counted(build, h, 0)), TN_NO_ATTRS);
    return cast(build, sign, dtype);
}

// Matrices of other sizes, as MLX has them. Size 12: blocks of two, by the quadratic
// residues of 5. Sizes 20 and 28: four by four blocks, in each of which a row is the row
// above shifted by one column; bits of a word are the signs of a block's first row.
//
// Paley, "On orthogonal matrices", 1933; Williamson, "Hadamard's determinant theorem and
// the sum of four squares", 1944.
static tn_array *hadamard_other(const tn_build *build, int64_t m, tn_dtype dtype)
{
    const int64_t words[2][4] = {{0x933de, 0x637c1, 0x0fa53, 0xf7a6d},
                                 {0xcd69e7e, 0xb467f43, 0x87fb325, 0xfcf1299}};
    const int64_t *w = words[m == 28];
    tn_array *i = counted(build, m, 1), *j = counted(build, m, 0), *sign;
    if (m == 12)
        sign =
            build->expr(build,
                        "i, j -> p = i // 2; q = j // 2; r = (q - p) % 5; "
                        "b = p == q ? (i | j) & 1 "
                        ": i & j & 1 ^ (p * q == 0 | r == 1 | r == 4 ? 0 : 1); 1 - 2 * b",
                        TN_IN(i, j), TN_NO_ATTRS);
    else
        sign = build->expr(build,
                           "i, j -> r = i // side; w = r == 0 ? first : r == 1 ? second "
                           ": r == 2 ? third : last; "
                           "1 - 2 * (w >> j // side * side + (j - i) % side & 1)",
                           TN_IN(i, j),
                           tn_attrs("side", m / 4, "first", w[0], "second", w[1], "third",
                                    w[2], "last", w[3]));
    return cast(build, sign, dtype);
}

// Transforms the middle axis of [outside, matrix's rows, inside].
static tn_array *hadamard_step(const tn_build *build, tn_array *matrix, tn_array *x,
                               int64_t outside, int64_t h, int64_t inside)
{
    x = with_shape(build, "base.reshape/1", x, ints_of(3, (int64_t[]){outside, h, inside}));
    return build->op(build, "base.matmul/1", TN_IN(matrix, x), TN_NO_ATTRS);
}

// The transform of n = m * h * rest elements, h and rest powers of two, is three
// transforms: of m elements at distance h * rest, of h at distance rest, and of rest.
DECOMPOSE(hadamard_transform)
{
    const hadamard_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    const tn_type *type = build->type(x);
    const tn_ints shape = tn_extents(build, x);
    int64_t n = shape.count ? shape.value[shape.count - 1] : 0;
    int64_t twos = n > 0 ? n & -n : 0;           // the greatest power of two in n
    int64_t power = n == twos ? twos : twos / 4; // 12, 20 and 28 have four of it
    int64_t m = power > 0 ? n / power : 0;
    if (n < 1 || (m != 1 && m != 12 && m != 20 && m != 28))
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "the last axis has extent %" PRId64
                                 ", expected a power of two, or 12, 20 or 28 times one",
                                 n);
    tn_dtype dtype = tn_is_float(type->dtype) ? type->dtype : TN_F32,
             wide = tn_dtype_computed(dtype);
    x = as_dtype(build, x, wide);
    int64_t outside = type_count(type) / n;
    for (int64_t left = power; left > 1;) {
        int64_t h = left < HADAMARD_STEP ? left : HADAMARD_STEP, inside = power / left;
        left /= h;
        x = hadamard_step(build, hadamard_matrix(build, h, wide), x, outside * m * left, h,
                          inside);
    }
    if (m > 1)
        x = hadamard_step(build, hadamard_other(build, m, wide), x, outside, m, power);
    x = with_shape(build, "base.reshape/1", x, shape);
    double scale = isnan(attrs->scale) ? 1 / sqrt((double)n) : attrs->scale;
    x = build->expr(build, "x -> x * scale", TN_IN(x), tn_attrs("scale", scale));
    outputs[0] = as_dtype(build, x, dtype);
    return built(outputs[0]);
}

COMPOSITE(hadamard_transform, "The Walsh-Hadamard transform of the last axis.",
          TN_INPUTS(base_x), .attrs = TN_ATTR_TABLE(hadamard_attrs, hadamard_fields));
