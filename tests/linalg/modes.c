// SPDX-License-Identifier: MIT
// Derivatives in forward mode are the transposes of those in reverse mode, which linalg.py
// compares with differences: also where tenon check cannot, for Hermitian matrices and for
// vectors that have a phase.
#include <math.h>
#include "../graphs/support/common.h"

static void open_cpu(void)
{
    runtime = open_on("cpu-blas");
}

TestSuite(linalg_modes, .init = open_cpu, .fini = teardown);

static const struct mode_case {
    const char *primitive;
    int outputs, output, hermitian, inputs;
} mode_cases[] = {
    {"linalg.cholesky", 1, 0, 1, 1}, {"linalg.eigh", 2, 0, 1, 1},
    {"linalg.eigh", 2, 1, 1, 1},     {"linalg.eigvalsh", 1, 0, 1, 1},
    {"linalg.svd", 3, 0, 0, 1},      {"linalg.svd", 3, 1, 0, 1},
    {"linalg.svd", 3, 2, 0, 1},      {"linalg.svdvals", 1, 0, 0, 1},
    {"linalg.eig", 2, 0, 0, 1},      {"linalg.eig", 2, 1, 0, 1},
    {"linalg.eigvals", 1, 0, 0, 1},  {"linalg.qr", 2, 0, 0, 1},
    {"linalg.qr", 2, 1, 0, 1},       {"linalg.lstsq", 4, 0, 0, 2},
};

// A matrix of 3 rows of numbers between -1 and 1.
static tn_array *matrix_of(tn_scope *s, tn_dtype dtype, int seed)
{
    double data[18];
    for (int i = 0; i < 18; i++)
        data[i] = sin(1.7 * i * i + 2.3 * seed + 0.4);
    return tn_from_data(s, dtype, TN_SHAPE(3, 3), data);
}

// The real part of the sum of conj(a) b.
static double dot_of(tn_scope *s, tn_array *a, tn_array *b)
{
    double sum = NAN;
    tn_array *terms = tn_expr(s, "a, b -> real(conj(a) * b)", TN_IN(a, b), TN_NO_ATTRS);
    must(s, tn_read(s, un(s, "sum", terms), &sum, sizeof(sum)));
    return sum;
}

static void check_modes(const struct mode_case *c, tn_dtype dtype)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = matrix_of(s, dtype, 1), *t = matrix_of(s, dtype, 2), *a = x;
    tn_array *outputs[4] = {NULL}, *moved = NULL, *gradient = NULL;
    if (c->hermitian)
        a = tn_expr(s, "a, b -> a + conj(b)",
                    TN_IN(x, tn_op(s, "base.matrix_transpose", TN_IN(x), TN_NO_ATTRS)),
                    TN_NO_ATTRS);
    if (c->hermitian) // and positive definite
        a = tn_expr(s, "a -> a + select(index % 4 == 0, f64(6), f64(0))", TN_IN(a),
                    TN_NO_ATTRS);
    const tn_array *in[2] = {a, matrix_of(s, dtype, 3)};
    must(s, tn_op_n(s, c->primitive, in, (uint64_t)c->inputs, TN_NO_ATTRS, outputs,
                    (uint64_t)c->outputs));
    tn_array *y = outputs[c->output];
    tn_array *w = tn_expr(s, "y -> y * 0.3 + cos(index * 1.7)", TN_IN(y), TN_NO_ATTRS);
    must(s, tn_jvp(s, &y, 1, &x, &t, 1, &moved));
    must(s, tn_vjp(s, &y, &w, 1, &x, 1, &gradient));
    double forward = dot_of(s, w, moved), reverse = dot_of(s, gradient, t);
    cr_assert(le(dbl, fabs(forward - reverse), 1e-9 * (1 + fabs(forward))),
              "%s, output %d of %s: %.12g forward, %.12g in reverse", c->primitive,
              c->output, tn_dtype_name(dtype), forward, reverse);
    tn_scope_close(s);
}

Test(linalg_modes, forward_mode_is_the_transpose_of_reverse_mode)
{
    for (size_t i = 0; i < sizeof(mode_cases) / sizeof(mode_cases[0]); i++) {
        check_modes(&mode_cases[i], TN_F64);
        check_modes(&mode_cases[i], TN_COMPLEX128);
    }
}
