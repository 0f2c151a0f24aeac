// SPDX-License-Identifier: MIT
// Transforms in lanes, each lane of vectors being one: arithmetic, butterflies, passes.
// Included by fft.inc.h.

// --- butterflies -------------------------------------------------------------------------

// a * b + c and c - a * b, rounded once where the processor can.
INLINE vector add_product(vector c, vector a, vector b)
{
    return VECTOR_FMA(a, b, c);
}
INLINE vector less_product(vector c, vector a, vector b)
{
    return add_product(c, -a, b);
}
INLINE vector all(REAL x)
{
    return x - (vector){0};
}

INLINE struct lanes add(struct lanes a, struct lanes b)
{
    return (struct lanes){a.re + b.re, a.im + b.im};
}
INLINE struct lanes subtract(struct lanes a, struct lanes b)
{
    return (struct lanes){a.re - b.re, a.im - b.im};
}
INLINE struct lanes add_scaled(struct lanes a, REAL by, struct lanes b)
{
    return (struct lanes){add_product(a.re, all(by), b.re),
                          add_product(a.im, all(by), b.im)};
}
INLINE struct lanes scaled(REAL by, struct lanes a)
{
    return (struct lanes){by * a.re, by * a.im};
}
INLINE struct lanes product(struct lanes a, struct lanes b)
{
    return (struct lanes){less_product(a.re * b.re, a.im, b.im),
                          add_product(a.re * b.im, a.im, b.re)};
}
INLINE struct lanes times(struct lanes a, REAL re, REAL im)
{
    return product(a, (struct lanes){all(re), all(im)});
}
// a - i b, a + i b
INLINE struct lanes minus_i(struct lanes a, struct lanes b)
{
    return (struct lanes){a.re + b.im, a.im - b.re};
}
INLINE struct lanes plus_i(struct lanes a, struct lanes b)
{
    return (struct lanes){a.re - b.im, a.im + b.re};
}

// Form of a pass's operands or results: vectors, or rows of complex numbers that lie
// `stride` numbers apart, for SWAPPED_ROWS with real and imaginary parts exchanged.
enum fft_form { VECTORS, MULTIPLIED, ROWS, SWAPPED_ROWS };

struct fft_source {
    enum fft_form form;
    const struct lanes *lanes;
    const REAL *rows;
    int64_t stride;
};
INLINE struct lanes fetch(const struct fft_source *from, int64_t i)
{
    if (from->form == VECTORS)
        return from->lanes[i];
    return load(from->rows + 2 * from->stride * i, from->form == SWAPPED_ROWS);
}

// Results of a pass. MULTIPLIED: vectors, each multiplied by a row of factors, whose
// imaginary parts lie `apart` numbers behind the real parts. `scale` multiplies rows.
struct fft_sink {
    enum fft_form form;
    struct lanes *lanes;
    REAL *rows;
    int64_t stride, apart;
    const REAL *factors;
    REAL scale;
};
INLINE struct lanes factors_at(const REAL *re, int64_t apart)
{
    return (struct lanes){*(const loose_vector *)re, *(const loose_vector *)(re + apart)};
}
INLINE void put(const struct fft_sink *to, int64_t i, struct lanes a)
{
    switch (to->form) {
    case VECTORS:
        to->lanes[i] = a;
        break;
    case MULTIPLIED:
        to->lanes[i] = product(a, factors_at(to->factors + to->stride * i, to->apart));
        break;
    case ROWS:
    case SWAPPED_ROWS:
        store(to->rows + 2 * to->stride * i, scaled(to->scale, a),
              to->form == SWAPPED_ROWS);
    }
}

// Operands and results of a butterfly: elements `step` apart. If `twiddles` is not NULL, it
// multiplies all results but the first.
struct fft_ins {
    const struct fft_source *from;
    int64_t at, step;
};
struct fft_outs {
    const struct fft_sink *to;
    int64_t at, step;
    const REAL *twiddles;
};
INLINE struct lanes get(const struct fft_ins *in, int64_t k)
{
    return fetch(in->from, in->at + in->step * k);
}
INLINE void give(const struct fft_outs *out, int64_t j, struct lanes a)
{
    if (out->twiddles && j > 0)
        a = times(a, out->twiddles[2 * j - 2], out->twiddles[2 * j - 1]);
    put(out->to, out->at + out->step * j, a);
}

INLINE void butterfly_2(struct lanes *a)
{
    struct lanes b = a[1];
    a[1] = subtract(a[0], b);
    a[0] = add(a[0], b);
}

INLINE void butterfly_3(struct lanes *a)
{
    const REAL sine = (REAL)0.86602540378443864676; // sine of a third of a turn
    struct lanes sum = add(a[1], a[2]), difference = scaled(sine, subtract(a[1], a[2]));
    struct lanes middle = add_scaled(a[0], (REAL)-0.5, sum);
    a[0] = add(a[0], sum);
    a[1] = minus_i(middle, difference);
    a[2] = plus_i(middle, difference);
}

INLINE void butterfly_4(struct lanes *a)
{
    struct lanes b = add(a[0], a[2]), c = subtract(a[0], a[2]);
    struct lanes d = add(a[1], a[3]), e = subtract(a[1], a[3]);
    a[0] = add(b, d);
    a[1] = minus_i(c, e);
    a[2] = subtract(b, d);
    a[3] = plus_i(c, e);
}

INLINE void butterfly_5(struct lanes *a)
{
    const REAL c1 = (REAL)0.30901699437494742410, c2 = (REAL)-0.80901699437494742410;
    const REAL s1 = (REAL)0.95105651629515357212, s2 = (REAL)0.58778525229247312917;
    struct lanes b = add(a[1], a[4]), c = add(a[2], a[3]);
    struct lanes d = subtract(a[1], a[4]), e = subtract(a[2], a[3]);
    struct lanes f = add_scaled(add_scaled(a[0], c1, b), c2, c);
    struct lanes g = add_scaled(add_scaled(a[0], c2, b), c1, c);
    struct lanes h = add_scaled(scaled(s1, d), s2, e);
    struct lanes k = add_scaled(scaled(s2, d), -s1, e);
    a[0] = add(a[0], add(b, c));
    a[1] = minus_i(f, h);
    a[2] = minus_i(g, k);
    a[3] = plus_i(g, k);
    a[4] = plus_i(f, h);
}

#define ROOT_HALF (REAL)0.70710678118654752440

// a + ROOT_HALF * b and a - ROOT_HALF * b: for b = c - i c, c rotated by an eighth of a
// circle is added and subtracted; for b = c + i c, c rotated by three eighths is subtracted
// and added.
INLINE void add_eighth_rotations(struct lanes *plus, struct lanes *minus, struct lanes a,
                                 struct lanes b)
{
    *plus = add_scaled(a, ROOT_HALF, b);
    *minus = add_scaled(a, -ROOT_HALF, b);
}

// Holds few vectors at a time: reads four, and then four more.
INLINE void run_8(const struct fft_ins *in, const struct fft_outs *out)
{
    struct lanes even[4], odd[4], plus, minus;
    UNROLL
    for (int64_t k = 0; k < 4; k++)
        even[k] = get(in, 2 * k);
    butterfly_4(even);
    UNROLL
    for (int64_t k = 0; k < 4; k++)
        odd[k] = get(in, 2 * k + 1);
    butterfly_4(odd);
    give(out, 0, add(even[0], odd[0]));
    give(out, 4, subtract(even[0], odd[0]));
    add_eighth_rotations(&plus, &minus, even[1], minus_i(odd[1], odd[1]));
    give(out, 1, plus);
    give(out, 5, minus);
    give(out, 2, minus_i(even[2], odd[2]));
    give(out, 6, plus_i(even[2], odd[2]));
    add_eighth_rotations(&plus, &minus, even[3], plus_i(odd[3], odd[3]));
    give(out, 3, minus);
    give(out, 7, plus);
}

// The butterfly of elements q, q + 4, q + 8 and q + 12, multiplied by powers of
// exp(-2 pi i / 16).
INLINE void quarter_of_16(const struct fft_ins *in, int64_t q, struct lanes *b)
{
    const REAL c = (REAL)0.92387953251128675613, s = (REAL)0.38268343236508977173;
    UNROLL
    for (int64_t k = 0; k < 4; k++)
        b[k] = get(in, q + 4 * k);
    butterfly_4(b);
    switch (q) {
    case 0:
        break;
    case 1:
        b[1] = times(b[1], c, -s);
        b[2] = scaled(ROOT_HALF, minus_i(b[2], b[2]));
        b[3] = times(b[3], s, -c);
        break;
    case 2:
        b[1] = scaled(ROOT_HALF, minus_i(b[1], b[1]));
        b[2] = (struct lanes){b[2].im, -b[2].re};
        b[3] = scaled(-ROOT_HALF, plus_i(b[3], b[3]));
        break;
    default:
        b[1] = times(b[1], s, -c);
        b[2] = scaled(-ROOT_HALF, plus_i(b[2], b[2]));
        b[3] = times(b[3], -c, s);
    }
}

INLINE void run_16(const struct fft_ins *in, const struct fft_outs *out)
{
    struct lanes b[4][4];
    quarter_of_16(in, 0, b[0]);
    quarter_of_16(in, 1, b[1]);
    quarter_of_16(in, 2, b[2]);
    quarter_of_16(in, 3, b[3]);
    UNROLL
    for (int64_t k = 0; k < 4; k++) {
        struct lanes d[4] = {b[0][k], b[1][k], b[2][k], b[3][k]};
        butterfly_4(d);
        UNROLL
        for (int64_t j = 0; j < 4; j++)
            give(out, k + 4 * j, d[j]);
    }
}

// A butterfly of an odd radix: sums of elements k and radix - k, whose factors are real,
// and their differences, whose factors are imaginary.
INLINE void butterfly_odd(int64_t radix, struct lanes *a, const REAL *roots)
{
    struct lanes sum[CPU_FFT_MAX_RADIX / 2], gap[CPU_FFT_MAX_RADIX / 2], first = a[0];
    int64_t half = radix / 2;
    for (int64_t k = 0; k < half; k++) {
        sum[k] = add(a[k + 1], a[radix - 1 - k]);
        gap[k] = subtract(a[k + 1], a[radix - 1 - k]);
        a[0] = add(a[0], sum[k]);
    }
    for (int64_t j = 1; j <= half; j++) {
        struct lanes even = add_scaled(first, roots[2 * j], sum[0]);
        struct lanes odd = scaled(roots[2 * j + 1], gap[0]);
        for (int64_t k = 1, at = j; k < half; k++) {
            at = at + j < radix ? at + j : at + j - radix;
            even = add_scaled(even, roots[2 * at], sum[k]);
            odd = add_scaled(odd, roots[2 * at + 1], gap[k]);
        }
        a[j] = plus_i(even, odd);
        a[radix - j] = minus_i(even, odd);
    }
}

// --- transforms in lanes -----------------------------------------------------------------

OF_SIZES void run_butterfly(int64_t radix, const struct fft_ins *in,
                            const struct fft_outs *out, const REAL *roots)
{
    struct lanes a[CPU_FFT_MAX_RADIX];
    if (radix == 8) {
        run_8(in, out);
        return;
    }
    if (radix == 16) {
        run_16(in, out);
        return;
    }
    for (int64_t k = 0; k < radix; k++)
        a[k] = get(in, k);
    switch (radix) {
    case 2:
        butterfly_2(a);
        break;
    case 3:
        butterfly_3(a);
        break;
    case 4:
        butterfly_4(a);
        break;
    case 5:
        butterfly_5(a);
        break;
    default:
        butterfly_odd(radix, a, roots);
    }
    for (int64_t j = 0; j < radix; j++)
        give(out, j, a[j]);
}

// The last pass, which has one group, whose factors are 1.
OF_SIZES void run_last(int64_t radix, const struct cpu_fft_pass *pass,
                       const struct fft_sink *to, const struct fft_source *from)
{
    const struct fft_source in = *from;
    const struct fft_sink out = *to;
    const REAL *roots = pass->roots;
    int64_t stride = pass->stride;
    for (int64_t q = 0; q < stride; q++)
        run_butterfly(radix, &(struct fft_ins){&in, q, stride},
                      &(struct fft_outs){&out, q, stride, NULL}, roots);
}

// A pass to y. The first group's factors are 1.
OF_SIZES void run_pass(int64_t radix, const struct cpu_fft_pass *pass, struct lanes *y,
                       const struct fft_source *from)
{
    const struct fft_source in = *from;
    const struct fft_sink out = {.form = VECTORS, .lanes = y};
    const REAL *roots = pass->roots, *twiddles = pass->twiddles;
    int64_t stride = pass->stride, groups = pass->groups;
    for (int64_t q = 0; q < stride; q++)
        run_butterfly(radix, &(struct fft_ins){&in, q, stride * groups},
                      &(struct fft_outs){&out, q, stride, NULL}, roots);
    for (int64_t p = 1; p < groups; p++) {
        twiddles += 2 * (radix - 1);
        for (int64_t q = 0; q < stride; q++)
            run_butterfly(
                radix, &(struct fft_ins){&in, q + stride * p, stride * groups},
                &(struct fft_outs){&out, q + stride * radix * p, stride, twiddles}, roots);
    }
}

// Copies of a source and of a sink whose `form` is a constant.
#define FROM(given, constant)                                                              \
    (&(struct fft_source){constant, (given)->lanes, (given)->rows, (given)->stride})
#define TO(given, constant)                                                                \
    (&(struct fft_sink){constant, (given)->lanes, (given)->rows, (given)->stride,          \
                        (given)->apart, (given)->factors, (given)->scale})
#define FROM_VECTORS(x) (&(struct fft_source){.form = VECTORS, .lanes = (x)})
#define TO_VECTORS(y) (&(struct fft_sink){.form = VECTORS, .lanes = (y)})

// Defines a pass of a constant radix.
#define PASS(radix)                                                                        \
    static void pass_##radix(const struct cpu_fft_pass *pass, struct lanes *y,             \
                             const struct lanes *x)                                        \
    {                                                                                      \
        if (pass->groups > 1)                                                              \
            run_pass(radix, pass, y, FROM_VECTORS(x));                                     \
        else                                                                               \
            run_last(radix, pass, TO_VECTORS(y), FROM_VECTORS(x));                         \
    }
// Defines a last pass of a constant radix, with a copy for each form of the sink.
#define LAST(radix)                                                                        \
    static void last_##radix(const struct cpu_fft_pass *pass, const struct fft_sink *to,   \
                             const struct lanes *x)                                        \
    {                                                                                      \
        if (to->form == MULTIPLIED)                                                        \
            run_last(radix, pass, TO(to, MULTIPLIED), FROM_VECTORS(x));                    \
        else if (to->form == ROWS)                                                         \
            run_last(radix, pass, TO(to, ROWS), FROM_VECTORS(x));                          \
        else                                                                               \
            run_last(radix, pass, TO(to, SWAPPED_ROWS), FROM_VECTORS(x));                  \
    }
// Defines a first pass of a constant radix, which reads rows; as the only pass it writes
// MULTIPLIED vectors.
#define FIRST(radix)                                                                       \
    static void first_##radix(const struct cpu_fft_pass *pass, const struct fft_sink *to,  \
                              const struct fft_source *from)                               \
    {                                                                                      \
        bool swaps = from->form == SWAPPED_ROWS;                                           \
        if (pass->groups > 1 && swaps)                                                     \
            run_pass(radix, pass, to->lanes, FROM(from, SWAPPED_ROWS));                    \
        else if (pass->groups > 1)                                                         \
            run_pass(radix, pass, to->lanes, FROM(from, ROWS));                            \
        else if (swaps)                                                                    \
            run_last(radix, pass, TO(to, MULTIPLIED), FROM(from, SWAPPED_ROWS));           \
        else                                                                               \
            run_last(radix, pass, TO(to, MULTIPLIED), FROM(from, ROWS));                   \
    }
PASS(2)
PASS(3)
PASS(4)
PASS(5)
PASS(7)
PASS(8)
PASS(16)
LAST(3)
LAST(4)
LAST(5)
LAST(8)
LAST(16)
FIRST(4)
FIRST(8)
FIRST(16)
#undef PASS
#undef LAST
#undef FIRST

static void run_one(const struct cpu_fft_pass *pass, struct lanes *y, const struct lanes *x)
{
    switch (pass->radix) {
    case 2:
        pass_2(pass, y, x);
        break;
    case 3:
        pass_3(pass, y, x);
        break;
    case 4:
        pass_4(pass, y, x);
        break;
    case 5:
        pass_5(pass, y, x);
        break;
    case 7:
        pass_7(pass, y, x);
        break;
    case 8:
        pass_8(pass, y, x);
        break;
    case 16:
        pass_16(pass, y, x);
        break;
    default:
        run_pass(pass->radix, pass, y, FROM_VECTORS(x));
    }
}

// Runs the last pass. False: its radix has no function of its own.
static bool run_last_to(const struct cpu_fft_pass *pass, const struct fft_sink *to,
                        const struct lanes *x)
{
    switch (pass->radix) {
    case 3:
        last_3(pass, to, x);
        return true;
    case 4:
        last_4(pass, to, x);
        return true;
    case 5:
        last_5(pass, to, x);
        return true;
    case 8:
        last_8(pass, to, x);
        return true;
    case 16:
        last_16(pass, to, x);
        return true;
    default:
        return false;
    }
}

static bool run_first_of(const struct cpu_fft_pass *pass, const struct fft_sink *to,
                         const struct fft_source *from)
{
    switch (pass->radix) {
    case 4:
        first_4(pass, to, from);
        return true;
    case 8:
        first_8(pass, to, from);
        return true;
    case 16:
        first_16(pass, to, from);
        return true;
    default:
        return false;
    }
}

// Transforms x[0 .. n); y has room for n. Returns where the result is: x or y.
static struct lanes *run_lanes(const struct cpu_fft *plan, struct lanes *x, struct lanes *y)
{
    for (int32_t i = 0; i < plan->num_passes; i++) {
        run_one(&plan->passes[i], y, x);
        struct lanes *z = x;
        x = y;
        y = z;
    }
    return x;
}

// Runs the passes from `begin` on, with the results of the last one going to `to`.
static void run_lanes_to(const struct cpu_fft *plan, struct lanes *x, struct lanes *y,
                         int32_t begin, const struct fft_sink *to)
{
    int32_t last = plan->num_passes - 1;
    for (int32_t i = begin; i < last; i++) {
        run_one(&plan->passes[i], y, x);
        struct lanes *z = x;
        x = y;
        y = z;
    }
    if (run_last_to(&plan->passes[last], to, x))
        return;
    run_one(&plan->passes[last], y, x);
    for (int64_t i = 0; i < plan->n; i++)
        put(to, i, y[i]);
}

// Transforms the lanes of rows `from` to `to`; x and y have room for n vectors.
static void run_rows_to(const struct cpu_fft *plan, const struct fft_source *from,
                        const struct fft_sink *to, struct lanes *x, struct lanes *y)
{
    const struct cpu_fft_pass *first = plan->passes;
    bool is_only = plan->num_passes == 1;
    if (run_first_of(first, is_only ? to : TO_VECTORS(y), from)) {
        if (!is_only)
            run_lanes_to(plan, y, x, 1, to);
        return;
    }
    load_columns(x, from->rows, plan->n, from->stride, LANES, from->form == SWAPPED_ROWS);
    run_lanes_to(plan, x, y, 0, to);
}
