// SPDX-License-Identifier: MIT
// Complex numbers and floats of 8 bits in graphs: derivatives of both kinds against
// differences, in PyTorch's convention, numbers without a dtype, rows, batches, launches
// that are checked, and kernels that name no dtypes.
#include "base/fail.h"
#include "primitive/prim_set.h"
#include <tenon/ops/reference.h>
#include <tenon/pack.h>
#include "../support/common.h"

#define N 4

// TENON_TEST_BACKEND names the device.
static const char *backend(void)
{
    const char *name = getenv("TENON_TEST_BACKEND");
    return name ? name : "cpu-blas";
}

static void open_backend(void)
{
    need_device(backend());
    runtime = open_on(backend());
}

TestSuite(complex_numbers, .init = open_backend, .fini = teardown);

static const tn_complex128 zs[N] = {{1, 2}, {-0.5, 0.75}, {-2, -1}, {0.25, -1.5}};
static const tn_complex128 ws[N] = {{0.5, -1}, {2, 0.25}, {-1, 1}, {1.25, 0.5}};
static const tn_complex128 gs[N] = {{1, -0.5}, {0.25, 2}, {-1, 1}, {0.5, 0.75}};
static const double rs[N] = {0.5, -1.25, 2, 0.75};

static tn_array *of(tn_scope *s, const tn_complex128 *values)
{
    return tn_from_data(s, TN_COMPLEX128, TN_SHAPE(N), values);
}

// --- quotients -------------------------------------------------------------------------

// Quotients of infinities by real numbers, which are complex ones with an imaginary part of
// 0, as NumPy has them.
static const struct {
    tn_complex64 z;
    float r;
    tn_complex64 want;
} quotients[] = {
    {{INFINITY, 1}, 2, {INFINITY, NAN}},
    {{1, INFINITY}, -2, {NAN, -INFINITY}},
    {{-INFINITY, INFINITY}, 2, {NAN, NAN}},
    {{INFINITY, NAN}, 2, {NAN, NAN}},
    {{NAN, 1}, 2, {NAN, NAN}},
    {{1, -2}, 0, {INFINITY, -INFINITY}},
    {{0, 1}, 0, {NAN, INFINITY}},
    {{1, 2}, INFINITY, {0, 0}},
    {{INFINITY, 1}, INFINITY, {NAN, NAN}},
    {{3, -2}, 2, {1.5f, -1}},
};
#define NUM_QUOTIENTS ((int)(sizeof(quotients) / sizeof(quotients[0])))

static bool is_same_part(float got, float want)
{
    return isnan(want) ? isnan(got) : got == want;
}

Test(complex_numbers, quotients_of_infinities_are_those_of_numpy)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_complex64 z[NUM_QUOTIENTS], got[NUM_QUOTIENTS];
    float r[NUM_QUOTIENTS];
    for (int i = 0; i < NUM_QUOTIENTS; i++) {
        z[i] = quotients[i].z;
        r[i] = quotients[i].r;
    }
    tn_array *in[] = {tn_from_data(s, TN_COMPLEX64, TN_SHAPE(NUM_QUOTIENTS), z),
                      tn_from_data(s, TN_F32, TN_SHAPE(NUM_QUOTIENTS), r)};
    must(s, tn_read(s, tn_expr(s, "z, r -> z / r", TN_IN(in[0], in[1]), TN_NO_ATTRS), got,
                    sizeof(got)));
    for (int i = 0; i < NUM_QUOTIENTS; i++)
        if (!is_same_part(got[i].re, quotients[i].want.re) ||
            !is_same_part(got[i].im, quotients[i].want.im))
            cr_fatal("(%g, %g) / %g is (%g, %g)", (double)z[i].re, (double)z[i].im,
                     (double)r[i], (double)got[i].re, (double)got[i].im);
    tn_scope_close(s);
}

// --- derivatives -------------------------------------------------------------------------

// Of z and w, complex, and r, real. Each mixes what is holomorphic with what is not.
static const char *const texts[] = {
    "z, w, r -> z * w + r",
    "z, w, r -> exp(z) * conj(w) / (r + 3)",
    "z, w, r -> abs(z) * w + abs(w - r)",
    "z, w, r -> complex(real(z) * r, imag(w) + r) * z",
    "z, w, r -> r * 2j + sin(z * r) + sqrt(w)",
    "z, w, r -> real(z) > 0 ? z * conj(z) : w * r",
    "z, w, r -> complex128(r) ** z + w ** 2",
    "z, w, r -> f64(z * w) * r * 1j",
    "z, w, r -> max(abs(z), r) * w + atan2(imag(z), real(w))",
    "z, w, r -> conj(conj(z) * w) / abs(z) + r ** 2",
    "z, w, r -> acosh(z) * w + log1p(r * z) + tanh(w)",
    "z, w, r -> sign(z * w) * sign(w) + sign(r) * z + expm1(sign(w) * r)",
};

struct point {
    tn_complex128 z[N], w[N];
    double r[N];
};

static const struct point here = {
    .z = {{1, 2}, {-0.5, 0.75}, {-2, -1}, {0.25, -1.5}},
    .w = {{0.5, -1}, {2, 0.25}, {-1, 1}, {1.25, 0.5}},
    .r = {0.5, -1.25, 2, 0.75},
};

static tn_array *apply(tn_scope *s, const char *text, const struct point *p,
                       tn_array *in[3])
{
    in[0] = of(s, p->z);
    in[1] = of(s, p->w);
    in[2] = tn_from_data(s, TN_F64, TN_SHAPE(N), p->r);
    return tn_expr(s, text, TN_IN(in[0], in[1], in[2]), TN_NO_ATTRS);
}

// L = sum over elements of Re(conj(g) f).
static double loss(const char *text, const struct point *p)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *in[3];
    tn_complex128 f[N];
    double sum = 0;
    must(s, tn_read(s, apply(s, text, p, in), f, sizeof(f)));
    for (int i = 0; i < N; i++)
        sum += gs[i].re * f[i].re + gs[i].im * f[i].im;
    tn_scope_close(s);
    return sum;
}

// dL by one real number of the point, which `at` is in `p`.
static double difference(const char *text, struct point *p, double *at)
{
    const double h = 1e-6, kept = *at;
    *at = kept + h;
    double above = loss(text, p);
    *at = kept - h;
    double below = loss(text, p);
    *at = kept;
    return (above - below) / (2 * h);
}

static void near(const char *what, double got, double want)
{
    if (!(fabs(got - want) <= 1e-6 * (1 + fabs(want))))
        cr_fatal("%s: got %.12g, by differences %.12g", what, got, want);
}

Test(complex_numbers, gradients_are_those_of_differences)
{
    for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *in[3], *gradients[3], *f = apply(s, texts[t], &here, in);
        tn_array *g = of(s, gs);
        tn_complex128 got[2][N];
        double real[N];
        must(s, tn_vjp(s, &f, &g, 1, in, 3, gradients));
        cr_assert(eq(int, tn_array_type(gradients[2])->dtype, TN_F64));
        must(s, tn_read(s, gradients[0], got[0], sizeof(got[0])));
        must(s, tn_read(s, gradients[1], got[1], sizeof(got[1])));
        must(s, tn_read(s, gradients[2], real, sizeof(real)));
        tn_scope_close(s);
        struct point p = here;
        for (int i = 0; i < N; i++) {
            near(texts[t], got[0][i].re, difference(texts[t], &p, &p.z[i].re));
            near(texts[t], got[0][i].im, difference(texts[t], &p, &p.z[i].im));
            near(texts[t], got[1][i].re, difference(texts[t], &p, &p.w[i].re));
            near(texts[t], got[1][i].im, difference(texts[t], &p, &p.w[i].im));
            near(texts[t], real[i], difference(texts[t], &p, &p.r[i]));
        }
    }
}

// Along (ws, gs, rs): the derivative is linear in real factors of the tangents.
Test(complex_numbers, tangents_are_those_of_differences)
{
    const double h = 1e-6;
    for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
        tn_complex128 moved[2][N], got[N];
        for (int side = 0; side < 2; side++) {
            struct point p = here;
            double by = side ? -h : h;
            for (int i = 0; i < N; i++) {
                p.z[i].re += by * ws[i].re;
                p.z[i].im += by * ws[i].im;
                p.w[i].re += by * gs[i].re;
                p.w[i].im += by * gs[i].im;
                p.r[i] += by * rs[i];
            }
            tn_scope *s = tn_scope_open(runtime);
            tn_array *in[3];
            must(s, tn_read(s, apply(s, texts[t], &p, in), moved[side], sizeof(moved[0])));
            tn_scope_close(s);
        }
        tn_scope *s = tn_scope_open(runtime);
        tn_array *in[3], *out, *f = apply(s, texts[t], &here, in);
        tn_array *along[3] = {of(s, ws), of(s, gs),
                              tn_from_data(s, TN_F64, TN_SHAPE(N), rs)};
        must(s, tn_jvp(s, &f, 1, in, along, 3, &out));
        must(s, tn_read(s, out, got, sizeof(got)));
        tn_scope_close(s);
        for (int i = 0; i < N; i++) {
            near(texts[t], got[i].re, (moved[0][i].re - moved[1][i].re) / (2 * h));
            near(texts[t], got[i].im, (moved[0][i].im - moved[1][i].im) / (2 * h));
        }
    }
}

// d/dz* of |z|^4, and of it again along a direction: 4 |z|^2 z, whose derivative along t is
// 8 |z|^2 t + 4 z^2 conj(t), of which L = Re(sum(gradient * conj(gs))) takes parts.
Test(complex_numbers, second_derivatives_go_through_conjugates)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *z = of(s, zs), *g = of(s, gs), *first, *second;
    tn_array *four = tn_expr(s, "z -> abs(z) ** 4", TN_IN(z), TN_NO_ATTRS);
    tn_array *sum = un(s, "base.sum", four);
    tn_complex128 got[N];
    must(s, tn_vjp(s, &sum, NULL, 1, &z, 1, &first));
    must(s, tn_vjp(s, &first, &g, 1, &z, 1, &second));
    must(s, tn_read(s, second, got, sizeof(got)));
    for (int i = 0; i < N; i++) {
        double x = zs[i].re, y = zs[i].im, square = x * x + y * y;
        double re =
            8 * square * gs[i].re + 4 * ((x * x - y * y) * gs[i].re + 2 * x * y * gs[i].im);
        double im =
            8 * square * gs[i].im + 4 * (2 * x * y * gs[i].re - (x * x - y * y) * gs[i].im);
        near("re", got[i].re, re);
        near("im", got[i].im, im);
    }
    tn_scope_close(s);
}

// --- products of matrices --------------------------------------------------------------

// L = Re(sum(conj(G) (A B))): the gradient by A is G B^H, and by B A^H G.
Test(complex_numbers, gradients_of_products_are_hermitian)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *a = tn_from_data(s, TN_COMPLEX128, TN_SHAPE(2, 2), zs);
    tn_array *b = tn_from_data(s, TN_COMPLEX128, TN_SHAPE(2, 2), ws);
    tn_array *g = tn_from_data(s, TN_COMPLEX128, TN_SHAPE(2, 2), gs);
    tn_array *c = bin(s, "base.matmul", a, b), *wrt[2] = {a, b}, *got[2];
    must(s, tn_vjp(s, &c, &g, 1, wrt, 2, got));
    tn_complex128 by_a[4], by_b[4];
    must(s, tn_read(s, got[0], by_a, sizeof(by_a)));
    must(s, tn_read(s, got[1], by_b, sizeof(by_b)));
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            tn_complex128 want[2] = {{0, 0}, {0, 0}};
            for (int n = 0; n < 2; n++) {
                const tn_complex128 *p = &gs[i * 2 + n], *q = &ws[k * 2 + n];
                want[0].re += p->re * q->re + p->im * q->im;
                want[0].im += p->im * q->re - p->re * q->im;
                const tn_complex128 *u = &zs[n * 2 + i], *v = &gs[n * 2 + k];
                want[1].re += u->re * v->re + u->im * v->im;
                want[1].im += u->re * v->im - u->im * v->re;
            }
            near("a", by_a[i * 2 + k].re, want[0].re);
            near("a", by_a[i * 2 + k].im, want[0].im);
            near("b", by_b[i * 2 + k].re, want[1].re);
            near("b", by_b[i * 2 + k].im, want[1].im);
        }
    tn_scope_close(s);
}

// --- rows, batches, numbers ------------------------------------------------------------

// An expression that reduces: split into elementwise parts and reductions of pack base.
Test(complex_numbers, rows_are_reduced_and_derived)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *z = of(s, zs), *g = of(s, gs), *gradient;
    tn_array *shifted = tn_expr(s, "z -> z - mean(z)", TN_IN(z), TN_NO_ATTRS);
    tn_complex128 got[N], back[N], mean = {0, 0}, mean_g = {0, 0};
    must(s, tn_vjp(s, &shifted, &g, 1, &z, 1, &gradient));
    must(s, tn_read(s, shifted, got, sizeof(got)));
    must(s, tn_read(s, gradient, back, sizeof(back)));
    for (int i = 0; i < N; i++) {
        mean.re += zs[i].re / N, mean.im += zs[i].im / N;
        mean_g.re += gs[i].re / N, mean_g.im += gs[i].im / N;
    }
    for (int i = 0; i < N; i++) {
        near("re", got[i].re, zs[i].re - mean.re);
        near("im", got[i].im, zs[i].im - mean.im);
        near("d re", back[i].re, gs[i].re - mean_g.re);
        near("d im", back[i].im, gs[i].im - mean_g.im);
    }
    tn_scope_close(s);
}

// NaNs included, whose bits a conversion would not keep.
Test(complex_numbers, floats_of_8_bits_are_moved_as_they_are)
{
    static const tn_dtype dtypes[] = {TN_F8_E4M3, TN_F8_E5M2};
    uint8_t bits[256], got[256];
    for (int i = 0; i < 256; i++)
        bits[i] = (uint8_t)i;
    tn_scope *s = tn_scope_open(runtime);
    for (int k = 0; k < 2; k++) {
        tn_array *x = tn_from_data(s, dtypes[k], TN_SHAPE(16, 16), bits);
        must(s,
             tn_read(s, un(s, "base.copy", un(s, "base.transpose", x)), got, sizeof(got)));
        for (int i = 0; i < 256; i++)
            if (got[i] != bits[i % 16 * 16 + i / 16])
                cr_fatal("%s: %02x became %02x", tn_dtype_name(dtypes[k]),
                         bits[i % 16 * 16 + i / 16], got[i]);
    }
    tn_scope_close(s);
}

// Rows of what is only stored.
Test(complex_numbers, floats_of_8_bits_are_summed_over_rows)
{
    static const float values[2][3] = {{0.3f, 2, -17}, {448, 0.5f, 1}};
    static const tn_dtype dtypes[] = {TN_F8_E4M3, TN_F8_E5M2};
    static const float sums[] = {0.3125f + 2 - 16, 449.5f, 0.3125f + 2 - 16, 449.5f};
    tn_scope *s = tn_scope_open(runtime);
    for (int i = 0; i < 2; i++) {
        float got[6];
        tn_array *x =
            tn_op(s, "base.astype", TN_IN(tn_from_data(s, TN_F32, TN_SHAPE(2, 3), values)),
                  tn_attrs("dtype", (int64_t)dtypes[i]));
        tn_array *y =
            tn_expr(s, "x -> sum(f32(x)) * (f32(x) > 1 ? 2 : 1)", TN_IN(x), TN_NO_ATTRS);
        must(s, tn_read(s, y, got, sizeof(got)));
        for (int k = 0; k < 6; k++)
            cr_assert(got[k] == sums[2 * i + k / 3] * (values[k / 3][k % 3] > 1 ? 2 : 1));
    }
    tn_scope_close(s);
}

// A real reduction of complex numbers, and its cotangent, in one expression.
Test(complex_numbers, a_real_sum_takes_the_real_part_of_a_cotangent)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *z = of(s, zs), *g = of(s, gs), *gradient;
    tn_array *unit = tn_expr(s, "z -> z / sum(abs(z))", TN_IN(z), TN_NO_ATTRS);
    tn_complex128 got[N];
    double sum = 0, along = 0;
    must(s, tn_vjp(s, &unit, &g, 1, &z, 1, &gradient));
    must(s, tn_read(s, gradient, got, sizeof(got)));
    for (int i = 0; i < N; i++) {
        sum += hypot(zs[i].re, zs[i].im);
        along += gs[i].re * zs[i].re + gs[i].im * zs[i].im;
    }
    for (int i = 0; i < N; i++) {
        double size = hypot(zs[i].re, zs[i].im);
        near("re", got[i].re, gs[i].re / sum - along / (sum * sum) * zs[i].re / size);
        near("im", got[i].im, gs[i].im / sum - along / (sum * sum) * zs[i].im / size);
    }
    tn_scope_close(s);
}

static tn_status square(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                        uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = bin(s, "base.matmul", in[0], in[0]);
    return TN_OK;
}

Test(complex_numbers, a_batch_of_matrices_is_one_product)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_complex128 data[8], got[8], want[4];
    memcpy(data, zs, sizeof(zs));
    memcpy(data + 4, ws, sizeof(ws));
    tn_array *x = tn_from_data(s, TN_COMPLEX128, TN_SHAPE(2, 2, 2), data), *out;
    const int32_t axis = 0;
    must(s, tn_vmap_call(s, square, NULL, &x, &axis, 1, &out, NULL, 1));
    must(s, tn_read(s, out, got, sizeof(got)));
    for (int i = 0; i < 2; i++) {
        tn_array *one = tn_from_data(s, TN_COMPLEX128, TN_SHAPE(2, 2), data + 4 * i);
        must(s, tn_read(s, bin(s, "base.matmul", one, one), want, sizeof(want)));
        cr_assert(memcmp(want, got + 4 * i, sizeof(want)) == 0);
    }
    tn_scope_close(s);
}

Test(complex_numbers, numbers_take_the_dtype_of_what_they_meet)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *f32 = tn_f32(s, 2), *f64 = tn_f64(s, 2), *j = tn_complex(s, 0.5, -1);
    tn_array *x = bin(s, "base.multiply", f32, j), *y = bin(s, "base.multiply", f64, j);
    tn_complex64 single;
    tn_complex128 wide;
    cr_assert(eq(int, tn_array_type(x)->dtype, TN_COMPLEX64));
    cr_assert(eq(int, tn_array_type(y)->dtype, TN_COMPLEX128));
    must(s, tn_read(s, x, &single, sizeof(single)));
    must(s, tn_read(s, y, &wide, sizeof(wide)));
    cr_assert(single.re == 1 && single.im == -2 && wide.re == 1 && wide.im == -2);
    // Computed from numbers alone, and filled: constants have no imaginary part.
    tn_array *root = un(s, "base.sqrt", tn_scalar(s, TN_COMPLEX128, -4));
    must(s, tn_read(s, root, &wide, sizeof(wide)));
    cr_assert(wide.re == 0 && wide.im == 2);
    cr_assert(eq(dbl, tn_item(s, tn_scalar(s, TN_COMPLEX64, -4)), -4));
    tn_scope_close(s);
}

// --- bad input -------------------------------------------------------------------------

static const struct {
    const char *text, *message;
} refused[] = {
    {"z -> z < 1", "'<' of complex128 and 1: expected real numbers"},
    {"z -> floor(z)", "'floor' of complex128: expected real numbers"},
    {"z -> max(z)", "'max' of complex128: expected real numbers"},
    {"z -> complex(z, 1)", "'complex' of complex128 and 1: expected real"},
    {"z -> z << 1", "expected real numbers"},
    {"z -> f32(f8_e4m3(real(z)))", "base.astype, which rounds"},
};

Test(complex_numbers, what_is_not_defined_is_refused_by_name)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        tn_scope *s = tn_scope_open(runtime);
        cr_assert(tn_expr(s, refused[i].text, TN_IN(of(s, zs)), TN_NO_ATTRS) == NULL);
        check_says(tn_scope_error(s), refused[i].message);
        tn_scope_close(s);
    }
    tn_scope *s = tn_scope_open(runtime);
    tn_array *z = of(s, zs), *sum = un(s, "base.sum", z), *gradient;
    cr_assert(tn_vjp(s, &sum, NULL, 1, &z, 1, &gradient) != TN_OK);
    check_says(tn_scope_error(s), "expected a real dtype: take real(), imag() or abs()");
    tn_scope_close(s);
}

// --- launches checked, kernels of others -----------------------------------------------

Test(checked_complex, launches_agree_with_their_definitions)
{
    char variable[96];
    need_device(backend());
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s", backend());
    tn_runtime *rt = open_with((const char *const[]){variable, "TENON_CHECK=1", NULL});
    tn_scope *s = tn_scope_open(rt);
    tn_array *z = of(s, zs), *w = of(s, ws), *gradient;
    tn_array *m = tn_from_data(s, TN_COMPLEX128, TN_SHAPE(2, 2), zs);
    tn_array *single =
        tn_op(s, "base.astype", TN_IN(z), tn_attrs("dtype", (int64_t)TN_COMPLEX64));
    tn_array *small = tn_op(s, "base.astype", TN_IN(un(s, "base.abs", z)),
                            tn_attrs("dtype", (int64_t)TN_F8_E4M3));
    tn_array *f = bin(s, "base.multiply", un(s, "base.exp", z), un(s, "base.conjugate", w));
    tn_array *size = un(s, "base.sum", un(s, "base.abs", f));
    must(s, tn_vjp(s, &size, NULL, 1, &z, 1, &gradient));
    must(s, tn_eval(s, gradient, bin(s, "base.matmul", m, m), un(s, "base.prod", single),
                    un(s, "base.mean", single), small));
    tn_scope_close(s);
    tn_stats stats = stats_of(rt);
    // vulkan-jit computes the copy in both reductions of it.
    cr_assert(stats.checked > (strcmp(backend(), "vulkan-jit") == 0 ? 4u : 5u));
    cr_assert(eq(u64, stats.differing, 0));
    tn_runtime_close(rt);
}

// A primitive that takes all dtypes, and a kernel of the time before complex numbers: it
// names no dtypes, and gives 7 where the definition copies.
static tn_status same_type(const tn_infer *infer, tn_type *types)
{
    types[0] = infer->types[0];
    return TN_OK;
}

static tn_status copy_it(const tn_cpu_call *call)
{
    tn_copy_region(&call->outputs[0], &call->inputs[0]);
    return TN_OK;
}

static tn_status sevens(const tn_cpu_call *call)
{
    for (int64_t i = 0; i < tn_layout_count(&call->outputs[0].layout); i++)
        tn_set_f64(&call->outputs[0], call->outputs[0].layout.offset + i, 7);
    return TN_OK;
}

Test(old_kernels, get_no_dtype_that_they_do_not_name)
{
    static const tn_input_info inputs[] = {{"x", "any array", 0, TN_ALL_DTYPES}};
    static const tn_primitive identity = {.struct_size = sizeof(identity),
                                          .id = "test.identity/1",
                                          .doc = "x",
                                          TN_INPUTS(inputs),
                                          .infer = same_type,
                                          .reference = copy_it};
    static const tn_cpu_kernel payload = {sizeof(payload), 0, sevens};
    static const tn_kernel old = {.struct_size = sizeof(old),
                                  .primitive = "test.identity/1",
                                  .family = TN_FAMILY_CPU,
                                  .name = "old",
                                  .priority = 900,
                                  .payload = &payload};
    runtime = open_on("cpu-blas");
    must(NULL, prim_register(runtime, NULL, &identity));
    must(NULL, kernel_register(runtime, &(struct provider){.id = "com.acme.old"}, &old));
    tn_scope *s = tn_scope_open(runtime);
    for (tn_dtype dtype = TN_BOOL + 1; dtype < TN_NUM_DTYPES; dtype++) {
        tn_array *x = tn_scalar(s, dtype, 2);
        bool is_old = tn_dtype_in(dtype, TN_FIRST_DTYPES);
        double got = tn_item(s, un(s, "test.identity", x));
        if (got != (is_old ? 7 : 2))
            cr_fatal("%s: the old kernel %s", tn_dtype_name(dtype),
                     is_old ? "is not chosen" : "is chosen");
    }
    tn_scope_close(s);
    tn_runtime_close(runtime);
}
