// SPDX-License-Identifier: MIT
// Products of floats by panels, and of few rows or columns, in every variant that the
// processor has, beside sums in f64 of what the operands hold.
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/ops/reference.h>
#include "../../../sanitized.h"
#include "cpu/cpu.h"

#define GUARD 64 // floats on both sides of the result

static uint32_t state = 2027;

static int64_t between(int64_t low, int64_t high)
{
    state = state * 1664525u + 1013904223u;
    return low + (int64_t)(state >> 8) % (high - low + 1);
}

// Says which variants the processor lacks, once.
static bool runs(const struct cpu_panels_variant *k)
{
    static uint32_t features, told;
    if (!features)
        features = cpu_features() | 1u << 31;
    if ((k->needs & features) == k->needs)
        return true;
    if (!(told & k->needs))
        fprintf(stderr, "# skipped: %s, which this processor has not\n", k->name);
    told |= k->needs;
    return false;
}

// A matrix somewhere in memory of its own, and its elements as doubles.
struct operand {
    char *memory;
    int64_t first, row, column; // elements
    double *value, *imaginary;  // the latter of complex numbers alone
};

// What an element has one or two of.
static tn_dtype part_of(tn_dtype dtype)
{
    return dtype == TN_COMPLEX64 ? TN_F32 : dtype == TN_COMPLEX128 ? TN_F64 : dtype;
}

static void store(char *to, tn_dtype dtype, double x)
{
    if (dtype == TN_F64)
        memcpy(to, &x, 8);
    else if (dtype == TN_F32)
        memcpy(to, &(float){(float)x}, 4);
    else
        memcpy(to,
               &(uint16_t){dtype == TN_F16 ? tn_f16_of_f32((float)x)
                                           : tn_bf16_of_f32((float)x)},
               2);
}

static double load(const char *from, tn_dtype dtype)
{
    float x;
    double wide;
    uint16_t half;
    memcpy(&half, from, 2);
    memcpy(&x, from, tn_dtype_bytes(dtype) >= 4 ? 4 : 2);
    memcpy(&wide, from, tn_dtype_bytes(dtype) == 8 ? 8 : 2);
    return dtype == TN_F64   ? wide
           : dtype == TN_F32 ? (double)x
           : dtype == TN_F16 ? (double)tn_f32_of_f16(half)
                             : (double)tn_f32_of_bf16(half);
}

// How its elements lie: by rows or columns, with gaps; the same with negative strides; or
// with strides of 0.
enum { BY_ROWS, BY_COLUMNS, ROWS_BACK, COLUMNS_BACK, APART, ONE_ROW, ONE_COLUMN, FORMS };

static struct operand make(tn_dtype dtype, int64_t rows, int64_t columns, int form,
                           double (*element)(int64_t i, int64_t j))
{
    const int64_t gap = between(0, 3), size = tn_dtype_bytes(dtype);
    struct operand x = {.row = columns + gap, .column = 1};
    if (form == BY_COLUMNS || form == COLUMNS_BACK)
        x.row = 1, x.column = rows + gap;
    if (form == APART)
        x.row = 2 * columns + gap, x.column = 2;
    if (form == ONE_ROW)
        x.row = 0;
    if (form == ONE_COLUMN)
        x.row = 1, x.column = 0;
    if (form == ROWS_BACK || form == COLUMNS_BACK) {
        x.row = -x.row, x.column = -x.column;
        x.first =
            -x.row * (rows > 0 ? rows - 1 : 0) - x.column * (columns > 0 ? columns - 1 : 0);
    }
    int64_t last = llabs(x.row) * (rows > 0 ? rows - 1 : 0) +
                   llabs(x.column) * (columns > 0 ? columns - 1 : 0);
    // Exactly as much as the matrix has, so that a sanitizer sees what is read beside it.
    x.memory = malloc((size_t)((last + 1) * size));
    x.value = malloc((size_t)(rows * columns + 1) * sizeof(double));
    const tn_dtype part = part_of(dtype);
    const int64_t bytes = tn_dtype_bytes(part);
    for (int64_t i = 0; i < (last + 1) * size / bytes; i++)
        store(x.memory + i * bytes, part, NAN);
    if (part != dtype)
        x.imaginary = malloc((size_t)(rows * columns + 1) * sizeof(double));
    // Twice, as elements may lie in one place.
    for (int64_t i = 0; i < 2 * rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const int64_t row = i % rows;
            char *at = x.memory + (x.first + row * x.row + j * x.column) * size;
            for (int64_t p = 0; p * bytes < size && i < rows; p++)
                store(at + p * bytes, part, element(i + p, j));
            x.value[row * columns + j] = load(at, part);
            if (x.imaginary)
                x.imaginary[row * columns + j] = load(at + bytes, part);
        }
    x.memory += x.first * size;
    return x;
}

static void drop(struct operand *x, tn_dtype dtype)
{
    free(x->memory - x->first * (int64_t)tn_dtype_bytes(dtype));
    free(x->value);
    free(x->imaginary);
}

static double ordinary(int64_t i, int64_t j)
{
    (void)i, (void)j;
    return (double)between(-1000, 1000) / 512;
}

// Infinities, NaN and zeros, at some places around those where tiles end.
static bool no_subnormals; // for variants that take them for zeros: infinity by one is NaN

static double hostile(int64_t i, int64_t j)
{
    static const double values[] = {INFINITY, -INFINITY, NAN, 0, -0.0, 1e-40, 60000};
    const int64_t at = (i * 31 + j * 17) % 97;
    if (at < 7 && (i % 14 > 11 || j % 32 > 29 || i % 6 == 5))
        return at == 5 && no_subnormals ? 1e-30 : values[at];
    return ordinary(i, j);
}

// The product of p; with b copied before, in parts, by parts of the columns, too.
static void multiply(const struct cpu_panels_variant *k, const struct cpu_panels *p,
                     bool packs)
{
    const int64_t first = between(0, p->n / CPU_PANELS_WIDTH) * CPU_PANELS_WIDTH;
    const int64_t middle = between(0, p->n / CPU_PANELS_WIDTH) * CPU_PANELS_WIDTH;
    if (!packs || p->k == 0) {
        k->multiply(p);
        return;
    }
    const int64_t bytes = (cpu_panels_packed(p->dtype, p->n, p->k) + 63) / 64 * 64;
    void *packed = aligned_alloc(64, (size_t)bytes + 64);
    struct cpu_panels part = *p;
    k->pack(p, 0, middle, packed);
    k->pack(p, middle, p->n, packed);
    part.packed = packed;
    part.packed_columns = p->n;
    for (int i = 0; i < 2; i++) {
        part.packed_first = i ? first : 0;
        part.n = i ? p->n - first : first;
        part.c = (char *)p->c + part.packed_first * (p->dtype == TN_F64 ? 8 : 4);
        k->multiply(&part);
    }
    free(packed);
}

// Operands, and of each element of their product the sum and the size of all terms; of
// complex numbers the imaginary part's behind those of the real one.
struct product {
    struct operand a, b;
    tn_dtype dtype;
    int64_t m, n, depth;
    double *sums, *sizes;
};

// Adds the terms of element x of a to a row of sums, by row p of b.
static void add_terms(const struct product *of, int64_t x, int64_t p, double *sums,
                      double *sizes)
{
    const double re = of->a.value[x], *b_re = of->b.value + p * of->n;
    for (int64_t i = 0; i < of->n && !of->a.imaginary; i++) {
        sums[i] += re * b_re[i];
        sizes[i] += fabs(re * b_re[i]);
    }
    if (!of->a.imaginary)
        return;
    const double im = of->a.imaginary[x], *b_im = of->b.imaginary + p * of->n;
    for (int64_t i = 0; i < of->n; i++) {
        sums[2 * i] += re * b_re[i] + -im * b_im[i];
        sizes[2 * i] += fabs(re * b_re[i]) + fabs(im * b_im[i]);
        sums[2 * i + 1] += re * b_im[i] + im * b_re[i];
        sizes[2 * i + 1] += fabs(re * b_im[i]) + fabs(im * b_re[i]);
    }
}

static struct product make_product(tn_dtype dtype, const int64_t extents[3],
                                   const int forms[2], double (*element)(int64_t, int64_t))
{
    const int64_t m = extents[0], n = extents[1], depth = extents[2];
    const int64_t parts = tn_is_complex(dtype) ? 2 : 1;
    struct product of = {.dtype = dtype, .m = m, .n = n, .depth = depth};
    of.a = make(dtype, m, depth, forms[0], element);
    of.b = make(dtype, depth, n, forms[1], element);
    of.sums = calloc((size_t)(m * n * parts) + 1, sizeof(double));
    of.sizes = calloc((size_t)(m * n * parts) + 1, sizeof(double));
    for (int64_t row = 0; row < m; row++)
        for (int64_t p = 0; p < depth; p++)
            add_terms(&of, row * depth + p, p, of.sums + row * n * parts,
                      of.sizes + row * n * parts);
    return of;
}

static void drop_product(struct product *of)
{
    drop(&of->a, of->dtype);
    drop(&of->b, of->dtype);
    free(of->sums);
    free(of->sizes);
}

static void check(const struct cpu_panels_variant *k, bool packs, const struct product *of,
                  const char *what)
{
    const struct operand *a = &of->a, *b = &of->b;
    const int64_t m = of->m, n = of->n, depth = of->depth;
    const tn_dtype dtype = of->dtype;
    const int64_t c_row = n + between(n == 0, 2), size = m * c_row + 2 * GUARD;
    const tn_dtype out = tn_dtype_bytes(dtype) == 2 ? TN_F32 : dtype, part = part_of(out);
    const int64_t bytes = tn_dtype_bytes(part), parts = tn_dtype_bytes(out) / bytes;
    char *memory = malloc((size_t)(size * parts * bytes));
    char *c = memory + GUARD * parts * bytes;
    void *scratch = aligned_alloc(
        64, (size_t)(2 * cpu_panels_scratch(parts * m, parts * n, depth)) + 64);
    for (int64_t i = 0; i < size * parts; i++)
        store(memory + i * bytes, part, 12345);
    multiply(k,
             &(struct cpu_panels){.a = a->memory,
                                  .b = b->memory,
                                  .c = c,
                                  .scratch = scratch,
                                  .m = m,
                                  .n = n,
                                  .k = depth,
                                  .a_row = a->row,
                                  .a_column = a->column,
                                  .b_row = b->row,
                                  .b_column = b->column,
                                  .c_row = c_row,
                                  .dtype = dtype},
             packs);
    for (int64_t i = -GUARD * parts; i < (size - GUARD) * parts; i++) {
        const int64_t row = i / parts / c_row, column = i / parts % c_row;
        const double got = load(c + i * bytes, part);
        if (i < 0 || row >= m || column >= n) {
            cr_assert(got == 12345, "%s: %s wrote beside the result at %ld", k->name, what,
                      (long)i);
            continue;
        }
        const int64_t at = (row * n + column) * parts + i % parts;
        const double sum = of->sums[at], size_of_terms = of->sizes[at];
        // Each product and each sum is rounded by at most half of 2^-23 of what the terms
        // add up to; of F64 those of this loop, too. 2^-126: what is subnormal.
        const double bound = part == TN_F64
                                 ? ((double)depth + 2) * 0x1p-51 * size_of_terms
                                 : ((double)depth + 2) * 0x1p-23 * size_of_terms + 0x1p-126;
        cr_assert(isfinite(sum) ? fabs(sum - got) <= bound
                  : isnan(sum)  ? isnan(got)
                                : got == sum,
                  "%s: %s%s of %ld x %ld x %ld is %g at [%ld, %ld], expected %g", k->name,
                  what, packs ? ", copied before," : "", (long)m, (long)depth, (long)n, got,
                  (long)row, (long)column, sum);
    }
    free(memory);
    free(scratch);
}

static const tn_dtype dtypes[] = {TN_F32, TN_BF16,      TN_F16,
                                  TN_F64, TN_COMPLEX64, TN_COMPLEX128};
enum { NUM_DTYPES = sizeof(dtypes) / sizeof(dtypes[0]) };

static void check_forms(int64_t m, int64_t n, int64_t depth, int a_form, int b_form,
                        double (*element)(int64_t, int64_t))
{
    enum { STEP = IS_SANITIZED ? 3 : 1 }; // dtypes: the one or the other with each call
    static int first = -1;
    first = (first + 1) % STEP;
    for (int d = first; d < NUM_DTYPES; d += STEP) {
        char what[64];
        struct product of = make_product(dtypes[d], (int64_t[]){m, n, depth},
                                         (int[]){a_form, b_form}, element);
        snprintf(what, sizeof(what), "%s, layouts %d and %d", tn_dtype_name(dtypes[d]),
                 a_form, b_form);
        for (const struct cpu_panels_variant *const *k = cpu_panels_variants(); *k; k++)
            for (int packs = 0; packs < (tn_is_complex(dtypes[d]) ? 1 : 2) && runs(*k);
                 packs++)
                check(*k, packs, &of, what);
        drop_product(&of);
    }
}

Test(panels, products_around_the_sizes_of_tiles)
{
    static const int64_t sizes[] = {0,  1,  2,  5,  6,  7,  8,  9, 13,
                                    14, 15, 16, 17, 29, 31, 32, 33};
    enum { NUM = sizeof(sizes) / sizeof(sizes[0]) };
    for (int i = 0; i < NUM; i++)
        for (int j = 0; j < NUM; j++)
            for (int form = (int)between(0, 1); form < 4; form += 2)
                check_forms(sizes[i], sizes[j], sizes[between(0, NUM - 1)],
                            form & 1 ? BY_COLUMNS : BY_ROWS,
                            form & 2 ? BY_COLUMNS : BY_ROWS, ordinary);
}

Test(panels, operands_with_any_strides)
{
    for (int round = 0; round < 4; round++)
        for (int a = 0; a < FORMS; a++)
            for (int b = 0; b < FORMS; b++)
                check_forms(between(1, 40), between(1, 70), between(1, 40), a, b, ordinary);
}

// What AMX does to subnormal numbers: docs/performance.md.
static void set_subnormals(void)
{
    for (const struct cpu_panels_variant *const *k = cpu_panels_variants(); *k; k++)
        no_subnormals |= (*k)->flushes && runs(*k);
}

Test(panels, infinities_and_nan_stay_where_they_belong)
{
    set_subnormals();
    for (int round = 0; round < 40; round++)
        check_forms(between(1, 60), between(1, 90), between(1, 60),
                    (int)between(0, FORMS - 1), (int)between(0, FORMS - 1), hostile);
}

Test(panels, few_rows_and_columns)
{
    set_subnormals();
    for (int64_t few = 1; few <= CPU_PANELS_FEW + 1; few++)
        for (int form = 0; form < 4; form++) {
            const int a = form & 1 ? BY_COLUMNS : BY_ROWS,
                      b = form & 2 ? BY_COLUMNS : BY_ROWS;
            const int64_t other = between(1, 600), inner = between(1, 200);
            check_forms(few, other, inner, a, b, hostile);
            check_forms(other, few, inner, a, b, hostile);
            check_forms(few, between(1, 9), CPU_PANELS_FEW_INNER + between(-1, 70), a, b,
                        ordinary);
        }
}

Test(panels, products_of_several_blocks)
{
    check_forms(CPU_PANELS_ROWS + 5, 43, CPU_PANELS_INNER + 3, BY_ROWS, BY_ROWS, ordinary);
    check_forms(130, 261, 150, BY_ROWS, BY_ROWS, ordinary);    // thin parts
    check_forms(100, 97, 1024, BY_ROWS, BY_COLUMNS, ordinary); // rows that collide
    check_forms(47, 40, 1024, BY_ROWS, BY_ROWS, ordinary);
    check_forms(19, CPU_PANELS_COLUMNS + 37, 2 * CPU_PANELS_INNER + 1, BY_COLUMNS,
                BY_COLUMNS, ordinary);
}

// Rows from end to end by few columns, on the tiles of AMX alone.
Test(panels, many_rows_by_few_columns)
{
    static const int64_t extents[][3] = {{CPU_PANELS_ROWS, 9, 4128},
                                         {CPU_PANELS_ROWS + 1, 16, 500},
                                         {CPU_PANELS_ROWS + 2, 30, 512}};
    for (int i = 0; i < 3; i++)
        for (const struct cpu_panels_variant *const *k = cpu_panels_variants(); *k; k++) {
            if (!(*k)->flushes || !runs(*k))
                continue;
            struct product of =
                make_product(TN_BF16, extents[i], (int[]){BY_ROWS, BY_ROWS}, ordinary);
            check(*k, false, &of, "rows by few columns");
            drop_product(&of);
        }
}

// Threads share a product in parts, each with the memory that the whole asks for.
Test(panels, a_part_needs_no_more_memory_than_the_whole)
{
    for (int64_t m = 1; m <= 700; m += 3)
        for (int64_t n = 1; n <= 2100; n += 41)
            for (int64_t k = 1; k <= 2600; k += 173)
                for (int64_t parts = 2; parts <= 16; parts *= 2) {
                    int64_t whole = cpu_panels_scratch(m, n, k);
                    int64_t rows = (m + parts - 1) / parts,
                            columns = (n + parts - 1) / parts;
                    if (cpu_panels_scratch(rows, n, k) > whole ||
                        cpu_panels_scratch(m, columns, k) > whole)
                        cr_fatal("%ld x %ld x %ld in %ld parts", (long)m, (long)k, (long)n,
                                 (long)parts);
                }
}
