// SPDX-License-Identifier: MIT
// Small matrices side by side: each lane has the bits of the matrix alone, on every
// instruction set; residuals are small; nothing beside the matrices is written.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cpu/instruction_sets.h"
#include "cpu/linalg/small.h"

enum { GAP = 3, MOST = 64, ROWS = SMALL_MOST_ROWS, LANES = SMALL_MOST_LANES };

static const struct variant {
    const char *name;
    uint32_t needs;
    const struct small_kernels *kernels[2], *one[2]; // of f32 and f64
} variants[] = {
    {"baseline",
     0,
     {&small_kernels_f32_baseline, &small_kernels_f64_baseline},
     {&small_kernels_f32_one_baseline, &small_kernels_f64_one_baseline}},
#ifdef CPU_BUILD_X86
    {"avx2",
     CPU_HAS_AVX2,
     {&small_kernels_f32_avx2, &small_kernels_f64_avx2},
     {&small_kernels_f32_one_avx2, &small_kernels_f64_one_avx2}},
    {"avx512",
     CPU_HAS_AVX512,
     {&small_kernels_f32_avx512, &small_kernels_f64_avx512},
     {&small_kernels_f32_one_avx512, &small_kernels_f64_one_avx512}},
#endif
};

static double numbers[LANES][ROWS][ROWS + MOST]; // a matrix, and its right-hand sides
static unsigned char memory[3][LANES * (ROWS + GAP) * (MOST + GAP) * 8];
static unsigned char work[ROWS * (ROWS + MOST) * SMALL_VECTOR] __attribute__((aligned(64)));
static uint32_t seed;

static double draw(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (double)(seed >> 8) / (double)(1 << 23) - 1;
}

enum kind { ANY, DOMINANT, TIES, ZERO_ROW, WITH_NAN, WITH_INFINITY, KINDS };

static double element(enum kind kind, int64_t i, int64_t j, int64_t n)
{
    double v = draw();
    switch (kind) {
    case DOMINANT: // symmetric
        return i == j ? (double)n : (double)((i * j) % 5) / 8;
    case TIES: // and zeros of both signs
        return v < 0 ? -0.0 : 1;
    case ZERO_ROW:
        return i == n / 2 ? 0 : v;
    case WITH_NAN:
        return i + j == n - 1 ? NAN : v;
    case WITH_INFINITY: // and subnormal numbers
        return i == j ? INFINITY : v * 1e-310;
    default:
        return v;
    }
}

static void fill(enum kind kind, int64_t n, int64_t k)
{
    for (int64_t lane = 0; lane < LANES; lane++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n + k; j++)
                numbers[lane][i][j] = j < n ? element(kind, i, j, n) : draw();
}

static size_t bytes_of(int wide)
{
    return wide ? sizeof(double) : sizeof(float);
}

static void put(int wide, char *at, double v)
{
    if (wide)
        *(double *)at = v;
    else
        *(float *)at = (float)v;
}

static double get(int wide, const char *at)
{
    return wide ? *(const double *)at : (double)*(const float *)at;
}

static char *lane_at(int which, int wide, int64_t lane)
{
    return (char *)memory[which] +
           (size_t)(lane * (ROWS + GAP) * (MOST + GAP)) * bytes_of(wide);
}

// Lanes from `from` on of memory `which`: rows with gaps, or, turned, columns.
static struct small_matrices places(int which, int wide, int64_t columns, bool turned,
                                    int64_t from)
{
    struct small_matrices p = {.row = turned ? 1 : columns + GAP,
                               .column = turned ? ROWS + GAP : 1};
    for (int64_t lane = 0; lane < LANES; lane++)
        p.at[lane] = lane_at(which, wide, from + lane < LANES ? from + lane : LANES - 1);
    return p;
}

static char *place(const struct small_matrices *p, int wide, int64_t lane, int64_t i,
                   int64_t j)
{
    return p->at[lane] + (i * p->row + j * p->column) * (int64_t)bytes_of(wide);
}

struct shape {
    int64_t n, k;
    enum kind kind;
    int wide;
    bool turned, cholesky;
};

static void write_operands(const struct shape *s)
{
    struct small_matrices a = places(0, s->wide, s->n, s->turned, 0);
    struct small_matrices b = places(1, s->wide, s->k, false, 0);
    for (int64_t lane = 0; lane < LANES; lane++)
        for (int64_t i = 0; i < s->n; i++)
            for (int64_t j = 0; j < s->n + s->k; j++)
                put(s->wide,
                    j < s->n ? place(&a, s->wide, lane, i, j)
                             : place(&b, s->wide, lane, i, j - s->n),
                    numbers[lane][i][j]);
}

// Computes `count` lanes from `from` on, into memory 2.
static void compute(const struct small_kernels *kernels, const struct shape *s,
                    int64_t from, int64_t count, struct small_answer *answer)
{
    struct small_group group = {work, s->n, s->cholesky ? 0 : s->k};
    int64_t columns = s->cholesky ? s->n : s->k;
    struct small_matrices a = places(0, s->wide, s->n, s->turned, from);
    struct small_matrices b = places(1, s->wide, s->k, false, from);
    struct small_matrices x = places(2, s->wide, columns, s->turned, from);
    kernels->load(&group, &a, 0, s->n);
    if (s->cholesky) {
        kernels->cholesky(&group, answer);
        kernels->store(&group, &x, 0, s->n, count);
        return;
    }
    kernels->load(&group, &b, s->n, s->k);
    kernels->factor(&group, answer);
    kernels->solve(&group, false, false);
    kernels->store(&group, &x, s->n, s->k, count);
}

// A NaN is one value: which bits it has depends on the order of operands.
static void make_nans_alike(const struct shape *s)
{
    struct small_matrices x = places(2, s->wide, s->cholesky ? s->n : s->k, s->turned, 0);
    for (int64_t lane = 0; lane < LANES; lane++)
        for (int64_t i = 0; i < s->n; i++)
            for (int64_t j = 0; j < (s->cholesky ? s->n : s->k); j++)
                if (isnan(get(s->wide, place(&x, s->wide, lane, i, j))))
                    put(s->wide, place(&x, s->wide, lane, i, j), NAN);
}

// a x = b, or l l^T = a, in f64.
static void check_residual(const struct shape *s, int64_t lane, const char *name)
{
    struct small_matrices x = places(2, s->wide, s->cholesky ? s->n : s->k, s->turned, 0);
    double unit = s->wide ? 0x1p-53 : 0x1p-24;
    for (int64_t i = 0; i < s->n; i++)
        for (int64_t j = 0; j < (s->cholesky ? i + 1 : s->k); j++) {
            double sum = 0, size = 0;
            for (int64_t m = 0; m < s->n; m++) {
                double left = s->cholesky ? get(s->wide, place(&x, s->wide, lane, i, m))
                                          : numbers[lane][i][m];
                double v =
                    left * get(s->wide, s->cholesky ? place(&x, s->wide, lane, j, m)
                                                    : place(&x, s->wide, lane, m, j));
                sum += v;
                size += fabs(v);
            }
            double want = numbers[lane][i][s->cholesky ? j : s->n + j];
            cr_assert_leq(fabs(sum - want), 40 * (double)s->n * unit * (size + fabs(want)),
                          "%s, f%d n=%d k=%d lane %d: (%d, %d) is off by %g", name,
                          s->wide ? 64 : 32, (int)s->n, (int)s->k, (int)lane, (int)i,
                          (int)j, sum - want);
        }
}

static void check_shape(const struct variant *v, const struct shape *s)
{
    static unsigned char whole[sizeof(memory[2])];
    const struct small_kernels *kernels = v->kernels[s->wide], *one = v->one[s->wide];
    struct small_answer answer = {.zero = {0}}, alone = {.zero = {0}};
    int64_t count = kernels->lanes - (s->n & 1);  // a lane more is not stored
    memset(answer.nan, true, sizeof(answer.nan)); // what a kernel has to overwrite
    memset(alone.nan, true, sizeof(alone.nan));
    fill(s->kind, s->n, s->k);
    write_operands(s);
    memset(memory[2], 0x55, sizeof(memory[2]));
    compute(kernels, s, 0, count, &answer);
    make_nans_alike(s);
    memcpy(whole, memory[2], sizeof(whole));
    for (int64_t lane = 0; lane < count && s->kind <= DOMINANT && s->k > 0; lane++)
        check_residual(s, lane, v->name);
    memset(memory[2], 0x55, sizeof(memory[2]));
    for (int64_t lane = 0; lane < count; lane++) {
        compute(one, s, lane, 1, &alone);
        cr_assert(alone.zero[0] == answer.zero[lane] && alone.nan[0] == answer.nan[lane] &&
                      alone.sign[0] == answer.sign[lane] && !(s->cholesky && alone.nan[0]),
                  "%s, kind %d f%d n=%d lane %d: pivot %d, alone %d", v->name, s->kind,
                  s->wide ? 64 : 32, (int)s->n, (int)lane, answer.zero[lane],
                  alone.zero[0]);
    }
    make_nans_alike(s);
    cr_assert(memcmp(whole, memory[2], sizeof(whole)) == 0,
              "%s, kind %d f%d n=%d k=%d turned %d cholesky %d: a lane differs from its "
              "matrix alone",
              v->name, s->kind, s->wide ? 64 : 32, (int)s->n, (int)s->k, s->turned,
              s->cholesky);
}

Test(cpu_small, lanes_are_matrices_alone)
{
    static const int64_t rows[] = {1, 2, 3, 4, 7, 16, 17, 31, 32}, columns[] = {1, 3, 33};
    uint32_t features = cpu_features();
    for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++)
        for (int c = 0; c < 9 * 3 * 2 * 2 * KINDS; c++) {
            struct shape s = {rows[c % 9],        columns[c / 9 % 3], c / 27 % KINDS,
                              c / 27 / KINDS % 2, c / 27 / KINDS / 2, false};
            if ((variants[i].needs & features) != variants[i].needs)
                continue;
            check_shape(&variants[i], &s);
            s.cholesky = true;
            if (s.k == 1 && s.kind != ANY)
                check_shape(&variants[i], &s);
        }
}
