// SPDX-License-Identifier: MIT
// Quantised formats: blocks of each against frozen values of another implementation, bit by
// bit, in every variant that this processor can run; products with packed rows against the
// exact sum, within the bound that rounding x to bytes has; variants against each other.
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include "cpu/cpu.h"
#include "../sanitized.h"
#include "quant_fixtures.h"

static bool can_run(const struct cpu_quant_kernels *k)
{
    return (k->needs & cpu_features()) == k->needs;
}

static uint32_t state;
static uint32_t next_bits(void)
{
    state = (uint32_t)((state * UINT64_C(1664525) + 1013904223) & UINT32_MAX);
    return state;
}

// From -1 to 1.
static float next_float(void)
{
    return (float)((double)(next_bits() >> 8) / 8388608.0 - 1);
}

// --- values of blocks -------------------------------------------------------------------

static void check_format(const char *name, const uint8_t *blocks, size_t bytes,
                         const uint32_t *values, size_t count)
{
    const tn_quant_format *format = tn_quant_find(name);
    float out[TN_QUANT_MAX_BLOCK];
    cr_assert(ne(ptr, (void *)format, NULL), "%s", name);
    cr_assert(eq(u64, bytes / (size_t)format->bytes * (size_t)format->block, count), "%s",
              name);
    cr_assert(eq(ptr, (void *)tn_quant_of_gguf(format->gguf_type), (void *)format));
    for (size_t i = 0; i < count; i += (size_t)format->block) {
        format->decode(blocks + i / (size_t)format->block * (size_t)format->bytes, out);
        cr_assert(eq(int, memcmp(out, values + i, (size_t)format->block * 4), 0),
                  "%s, block %d", name, (int)(i / (size_t)format->block));
    }
    uint32_t number = 0;
    while (tn_quant_at(number) != format)
        number++;
    float *all = malloc(count * sizeof(*all));
    for (const struct cpu_quant_kernels *const *k = cpu_quant_variants(); *k; k++) {
        if (!can_run(*k))
            continue;
        (*k)->decode(number, blocks, (int64_t)(count / (size_t)format->block), all);
        cr_assert(eq(int, memcmp(all, values, count * sizeof(*all)), 0), "%s, %s", name,
                  (*k)->name);
    }
    free(all);
}

Test(cpu_quant, blocks_have_the_values_that_others_read)
{
#define CHECK(name, ...)                                                                   \
    check_format(#name, blocks_##name, sizeof(blocks_##name), values_##name,               \
                 sizeof(values_##name) / sizeof(values_##name[0]));
    TN_QUANT_FORMATS(CHECK)
#undef CHECK
    cr_assert(eq(ptr, (void *)tn_quant_find("q4_2"), NULL));
    cr_assert(eq(ptr, (void *)tn_quant_find("q4_"), NULL));
    cr_assert(eq(ptr, (void *)tn_quant_of_gguf(4), NULL));
}

// --- packed rows ------------------------------------------------------------------------

// Of a plain block and its arranged one the values of some bits: each bit of one is one of
// the other, and the reverse finds it again.
static void check_arranged(const char *name, const tn_quant_order *order)
{
    uint8_t plain[TN_QUANT_MAX_BYTES] = {0}, arranged[TN_QUANT_MAX_BYTES];
    uint8_t back[TN_QUANT_MAX_BYTES], seen[TN_QUANT_MAX_BYTES] = {0};
    size_t bytes = (size_t)order->bytes;
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        plain[bit / 8] = (uint8_t)(1 << bit % 8);
        tn_quant_arrange(order, plain, arranged);
        tn_quant_restore(order, arranged, back);
        cr_assert(eq(int, memcmp(plain, back, bytes), 0), "%s, bit %zu", name, bit);
        for (size_t i = 0; i < bytes; i++)
            seen[i] |= arranged[i];
        plain[bit / 8] = 0;
    }
    for (size_t i = 0; i < bytes; i++)
        cr_assert(eq(u8, seen[i], 255), "%s, byte %zu", name, i);
}

// Rows packed by the record lie where tn_quant_r16_at says, those behind the last 16 as
// they were, and come back.
static void check_rows(const tn_packing *packing, const tn_quant_order *order)
{
    enum { ROWS = 37, BLOCKS = 2 };
    int64_t bytes = order->bytes, row = BLOCKS * bytes, size = ROWS * row;
    int64_t k = BLOCKS * tn_quant_find(packing->format)->block;
    uint8_t *plain = malloc((size_t)size), *packed = malloc((size_t)size);
    uint8_t arranged[TN_QUANT_MAX_BYTES];
    cr_assert(eq(i64, packing->rows_bytes(packing, ROWS, k), size));
    cr_assert(eq(i64, packing->rows_bytes(packing, INT64_MAX, k), -1));
    for (int64_t i = 0; i < size; i++)
        plain[i] = (uint8_t)(next_bits() >> 24);
    packing->pack(packing, plain, ROWS, k, packed);
    for (int32_t r = 0; r < 32; r++)
        for (int64_t b = 0; b < BLOCKS; b++) {
            tn_quant_arrange(order, plain + r * row + b * bytes, arranged);
            const uint8_t *group = packed + r / 16 * 16 * row + b * 16 * bytes;
            for (int32_t i = 0; i < bytes; i++)
                cr_assert(eq(u8, group[tn_quant_r16_at(order, r % 16, i)], arranged[i]));
        }
    cr_assert(eq(int, memcmp(packed + 32 * row, plain + 32 * row, (size_t)(5 * row)), 0));
    uint8_t *back = malloc((size_t)size);
    packing->unpack(packing, packed, ROWS, k, back);
    cr_assert(eq(int, memcmp(back, plain, (size_t)size), 0), "%s", packing->id);
    free(plain);
    free(packed);
    free(back);
}

// Every byte of 16 blocks has a place of its own.
static void check_order(const char *packed, const char *plain)
{
    tn_quant_order order = {0};
    uint8_t seen[16 * TN_QUANT_MAX_BYTES] = {0};
    const tn_quant_format *format = tn_quant_unpacked(packed, &order);
    cr_assert(eq(ptr, (void *)format, (void *)tn_quant_find(plain)));
    cr_assert(eq(i64, order.bytes, format->bytes));
    const tn_packing *packing = tn_quant_packing_find(packed);
    cr_assert(eq(str, (char *)packing->format, (char *)plain));
    cr_assert(eq(str, (char *)packing->id, (char *)packed));
    check_rows(packing, &order);
    check_arranged(packed, &order);
    for (int32_t row = 0; row < 16; row++)
        for (int32_t byte = 0; byte < order.bytes; byte++)
            seen[tn_quant_r16_at(&order, row, byte)]++;
    for (int32_t i = 0; i < 16 * order.bytes; i++)
        cr_assert(eq(u8, seen[i], 1), "%s, byte %d", packed, (int)i);
}

Test(cpu_quant, packing_permutes_bits)
{
    state = 5;
#define CHECK(packed, plain, ...) check_order(TN_QUANT_R16_ID(plain), #plain);
    TN_QUANT_PACKED_FORMATS(CHECK)
#undef CHECK
    cr_assert(eq(ptr, (void *)tn_quant_packing_find("acme"), NULL));
    cr_assert(eq(ptr, (void *)tn_quant_unpacked("q4_0_r16", &(tn_quant_order){0}), NULL));
}

// A product with random weights, and what it must be.
struct sample {
    const tn_quant_format *format;
    tn_quant_order order;
    int32_t number;
    int64_t n, k, rows;
    uint8_t *packed, *rounded;
    float *x, *out, *values; // values: of the weights
};

// Stores an f16 wherever a plain block of the format has one: where it begins, or where it
// ends. Of mxfp4, whose scale is a byte, 1 less than its exponent.
static void set_scales(const struct sample *s, uint8_t *block, uint16_t bits)
{
    static const struct {
        const char *name;
        int32_t at[2];
    } others[] = {{"q2_k", {80, 82}}, {"q3_k", {108, 108}}, {"q6_k", {208, 208}}};
    int32_t at[2] = {0, s->order.head == 4 && strcmp(s->format->name, "iq4_xs") ? 2 : 0};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strcmp(s->format->name, others[i].name) == 0)
            memcpy(at, others[i].at, sizeof(at));
    if (strcmp(s->format->name, "mxfp4") == 0)
        block[0] = (uint8_t)(112 + (bits >> 10 & 15));
    else
        for (int i = 0; i < 2; i++)
            memcpy(block + at[i], &bits, sizeof(bits));
}

// The block of row `row` to where packed rows have it.
static void pack_block(const struct sample *s, const uint8_t *plain, int32_t row,
                       uint8_t *group)
{
    uint8_t arranged[TN_QUANT_MAX_BYTES];
    tn_quant_arrange(&s->order, plain, arranged);
    for (int32_t byte = 0; byte < s->order.bytes; byte++)
        group[tn_quant_r16_at(&s->order, row, byte)] = arranged[byte];
}

// Random bits, with scales (and minima) that are finite floats of usual size.
static void fill_blocks(const struct sample *s, uint8_t *plain)
{
    int64_t bytes = s->format->bytes, blocks = s->n * s->k / s->format->block;
    for (int64_t i = 0; i < blocks * bytes; i++)
        plain[i] = (uint8_t)(next_bits() >> 24);
    for (int64_t b = 0; b < blocks; b++)
        set_scales(s, plain + b * bytes, tn_f16_of_f32(next_float()));
}

static struct sample sample_new(const char *name, int32_t number, int64_t n, int64_t k,
                                int64_t rows)
{
    struct sample s = {.number = number, .n = n, .k = k, .rows = rows};
    s.format = tn_quant_unpacked(name, &s.order);
    int64_t bytes = s.format->bytes, row = k / s.format->block * bytes;
    uint8_t *plain = malloc((size_t)(n * row));
    s.packed = malloc((size_t)(n * row));
    s.rounded = malloc((size_t)(rows * cpu_quant_row_bytes(k)));
    s.x = malloc((size_t)(rows * k) * sizeof(float));
    s.out = malloc((size_t)((rows + 1) * n) * sizeof(float));
    s.values = malloc((size_t)(n * k) * sizeof(float));
    fill_blocks(&s, plain);
    for (int64_t i = 0; i < n; i++)
        for (int64_t b = 0; b < row / bytes; b++) {
            const uint8_t *from = plain + i * row + b * bytes;
            pack_block(&s, from, (int32_t)(i % 16),
                       s.packed + i / 16 * 16 * row + b * bytes * 16);
            s.format->decode(from, s.values + i * k + b * s.format->block);
        }
    for (int64_t i = 0; i < rows * k; i++)
        s.x[i] = next_float() * (i / 32 % 5 == 4 ? 0 : 1); // some blocks are 0
    free(plain);
    return s;
}

static void sample_free(struct sample *s)
{
    free(s->packed);
    free(s->rounded);
    free(s->x);
    free(s->out);
    free(s->values);
}

// --- rounded rows -----------------------------------------------------------------------

// The bytes that x has in a block whose greatest magnitude is `most`: the nearest multiples
// of most / 127. Next to the middle of two, where the factor's own rounding may decide,
// either one is right.
static void check_rounded(const char *variant, const float *x, const int8_t *got,
                          float scale, float most)
{
    cr_assert(eq(flt, scale, most / 127), "%s: the scale of %g", variant, (double)most);
    for (int i = 0; i < 32; i++) {
        double exact = most > 0 ? (double)x[i] * 127 / (double)most : 0;
        double off = fabs(exact - (double)got[i]);
        if (off > 0.5 + 127 * ldexp(1, -22))
            cr_fatal("%s: %g of at most %g is %d, expected %g", variant, (double)x[i],
                     (double)most, got[i], nearbyint(exact));
    }
}

// Halves of steps, which are exact where the greatest element is 127 times a power of two:
// ties to even.
static void check_ties(const char *variant, const float *x, const int8_t *got, float step)
{
    for (int i = 0; i < 32; i++)
        if (got[i] != (int)nearbyint((double)(x[i] / step)))
            cr_fatal("%s: %g steps of %g are %d, expected %g", variant,
                     (double)(x[i] / step), (double)step, got[i],
                     nearbyint((double)(x[i] / step)));
}

static void check_round(const struct cpu_quant_kernels *kernels, const float *x, float most,
                        float step)
{
    uint8_t out[64];
    float scale;
    kernels->round(CPU_QUANT_q8_0_r16, x, 32, out);
    memcpy(&scale, out + 32, sizeof(scale));
    check_rounded(kernels->name, x, (const int8_t *)out, scale, most);
    if (step > 0)
        check_ties(kernels->name, x, (const int8_t *)out, step);
}

// Draws blocks of random elements, and of elements next to and at the middle between two.
Test(cpu_quant, rows_are_rounded_to_nearest)
{
    state = 5;
    for (const struct cpu_quant_kernels *const *k = cpu_quant_variants(); *k; k++)
        for (int round = 0; can_run(*k) && round < ROUNDS(300); round++) {
            float x[32], size = ldexpf(1, round % 60 - 30), most = 0;
            for (int i = 0; i < 32; i++) {
                x[i] = size * next_float();
                most = fmaxf(most, fabsf(x[i]));
            }
            check_round(*k, x, most, 0);
            for (int i = 0; i < 32; i++)
                x[i] = size * ((float)(next_bits() >> 24) / 2 - 63.5f); // -63.5 .. 64
            x[round % 32] = round % 2 ? 127 * size : -127 * size;
            check_round(*k, x, 127 * size, size);
        }
}

// --- products ---------------------------------------------------------------------------

static void multiply(const struct sample *s, const struct cpu_quant_kernels *kernels)
{
    for (int64_t i = 0; i < (s->rows + 1) * s->n; i++)
        s->out[i] = 0.625f; // a row more than is written
    for (int64_t r = 0; r < s->rows; r++)
        kernels->round(s->number, s->x + r * s->k, s->k,
                       s->rounded + r * cpu_quant_row_bytes(s->k));
    kernels->product(&(struct cpu_quant_product){.w = s->packed,
                                                 .x = s->rounded,
                                                 .out = s->out,
                                                 .out_row = s->n,
                                                 .k = s->k,
                                                 .rows = s->rows,
                                                 .groups = s->n / 16,
                                                 .format = s->number});
}

// Half a step of x in each block of 32 times the weights there, and 2^-20 for rounding of
// floats.
static void check_sums(const struct sample *s, const char *variant)
{
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t i = 0; i < s->n; i++) {
            double want = 0, bound = 0, sizes = 0;
            for (int64_t b = 0; b < s->k; b += 32) {
                double most = 0, weights = 0;
                for (int64_t j = b; j < b + 32; j++) {
                    double x = (double)s->x[r * s->k + j];
                    double w = (double)s->values[i * s->k + j];
                    want += x * w;
                    sizes += fabs(x * w);
                    weights += fabs(w);
                    most = fmax(most, fabs(x));
                }
                bound += weights * most / 254;
                sizes += 8 * weights * most; // sums of offsets
            }
            double got = (double)s->out[r * s->n + i];
            cr_assert(le(dbl, fabs(got - want), bound + ldexp(sizes, -20)),
                      "%s of %s, row %d, column %d: got %g, expected %g", variant,
                      s->format->name, (int)r, (int)i, got, want);
        }
    for (int64_t i = 0; i < s->n; i++)
        cr_assert(eq(flt, s->out[s->rows * s->n + i], 0.625f));
}

static void check_products(const char *name, int32_t number)
{
    static const int64_t shapes[][3] = {
        {16, 0, 35}, {16, 1, 1}, {48, 3, 5}, {32, 2, 23}, {32, 1, 35}};
    tn_quant_order order;
    int64_t block = tn_quant_unpacked(name, &order)->block;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct sample s =
            sample_new(name, number, shapes[i][0], shapes[i][1] * block, shapes[i][2]);
        float *first = NULL;
        size_t size = (size_t)(s.rows * s.n) * sizeof(float);
        for (const struct cpu_quant_kernels *const *k = cpu_quant_variants(); *k; k++) {
            if (!can_run(*k))
                continue;
            multiply(&s, *k);
            check_sums(&s, (*k)->name);
            if (!first) {
                first = malloc(size);
                memcpy(first, s.out, size);
            }
            cr_assert(eq(int, memcmp(first, s.out, size), 0), "%s of %s is not as others",
                      (*k)->name, name);
        }
        free(first);
        sample_free(&s);
    }
}

Test(cpu_quant, products_are_within_the_error_of_rounding)
{
    state = 7;
#define CHECK(name, plain, ...) check_products(TN_QUANT_R16_ID(plain), CPU_QUANT_##name);
    TN_QUANT_PACKED_FORMATS(CHECK)
#undef CHECK
}

// All weights have the same bytes, and x the ends of its range: no sum saturates.
static void check_extremes(const char *name, int32_t number, uint8_t byte)
{
    tn_quant_order order;
    int64_t k = tn_quant_unpacked(name, &order)->block;
    enum { ROWS = 19 }; // a tile of rows, and more
    struct sample s = sample_new(name, number, 16, k, ROWS);
    uint8_t block[TN_QUANT_MAX_BYTES];
    memset(block, byte, sizeof(block));
    set_scales(&s, block, 0x3c00); // 1
    for (int32_t row = 0; row < 16; row++) {
        pack_block(&s, block, row, s.packed);
        s.format->decode(block, s.values + row * k);
    }
    for (int64_t i = 0; i < ROWS * k; i++)
        s.x[i] = i / k % 3 == 0   ? 127.0f
                 : i / k % 3 == 1 ? -127.0f
                 : i % 2          ? 127.0f
                                  : -127.0f;
    for (const struct cpu_quant_kernels *const *v = cpu_quant_variants(); *v; v++)
        if (can_run(*v)) {
            multiply(&s, *v);
            check_sums(&s, (*v)->name);
        }
    sample_free(&s);
}

Test(cpu_quant, extremes_do_not_saturate)
{
    static const uint8_t bytes[] = {0x00, 0x7f, 0x80, 0xff};
    for (size_t i = 0; i < sizeof(bytes); i++) {
#define CHECK(name, plain, ...)                                                            \
    check_extremes(TN_QUANT_R16_ID(plain), CPU_QUANT_##name, bytes[i]);
        TN_QUANT_PACKED_FORMATS(CHECK)
#undef CHECK
    }
}

// A NaN or an infinity in x reaches every element of its row, and none of another row.
Test(cpu_quant, what_is_no_number_stays_none)
{
    static const float values[] = {NAN, INFINITY, -INFINITY};
    for (int v = 0; v < 3; v++) {
        state = 11;
        struct sample s = sample_new("org.tenon.q4_0_r16", CPU_QUANT_q4_0_r16, 16, 64, 18);
        s.x[37] = values[v];
        for (const struct cpu_quant_kernels *const *k = cpu_quant_variants(); *k; k++) {
            if (!can_run(*k))
                continue;
            multiply(&s, *k);
            for (int i = 0; i < 18 * 16; i++)
                cr_assert(i < 16 ? isnan(s.out[i]) : isfinite(s.out[i]), "%s, [%d]",
                          (*k)->name, i);
        }
        sample_free(&s);
    }
}
