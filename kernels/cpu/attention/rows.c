// SPDX-License-Identifier: MIT
// Rows of attention: weights are exp() of scores less the greatest so far (online softmax).
#include "attention.h"

#include <math.h>
#include <string.h>

// The state of the same row in split p; splits are `pitch` bytes apart.
static struct attention_row *state_of_split(struct attention_row *state, int64_t p,
                                            int64_t pitch)
{
    return (struct attention_row *)(void *)((char *)state + p * pitch);
}

// Rows of keys or values, in the dtype of arithmetic or of a kind that few_rows.c reads.
struct attention_rows {
    const void *data;
    int64_t row; // elements between rows; for blocks bytes
    int32_t kind;
};

// Rows [first, first + count): where they are stored if the loops for few rows of q can
// read them there, else widened.
static struct attention_rows attention_rows_read_rows(const struct attention *s,
                                                      const struct attention_block *b,
                                                      const char *rows, int64_t row,
                                                      int64_t first, int64_t count,
                                                      int64_t width)
{
    bool is_direct = s->kv == TN_F16 || s->kv == TN_U8;
    struct attention_rows r = {.row = row, .kind = CPU_FEW_F32};
    if (b->rows > CPU_FEW_ROWS || s->dtype != TN_F32 || !is_direct) {
        r.data = attention_read_rows(s, b->wide, rows, first, count, width, &r.row);
        return r;
    }
    r.kind = s->kv == TN_F16 ? CPU_FEW_F16 : CPU_FEW_Q8_0;
    r.data = rows + first * row * s->kv_size;
    return r;
}

// This and add_few_f32() compute scores of `count` keys, and add their weighed values, by
// the loops for few rows. False: there are more rows, for which BLAS is quicker.
static bool multiply_few_f32(const struct attention *s, const struct attention_block *b,
                             const struct attention_rows *k, int64_t count)
{
    if (b->rows > CPU_FEW_ROWS)
        return false;
    s->kernels->few->by_rows(&(struct cpu_few_rows){.a = (const float *)(const void *)b->q,
                                                    .b = k->data,
                                                    .c = (float *)(void *)b->scores,
                                                    .m = b->rows,
                                                    .n = count,
                                                    .k = s->depth,
                                                    .a_row = s->depth,
                                                    .b_row = k->row,
                                                    .c_row = ATTENTION_PITCH,
                                                    .scale = (float)s->scale,
                                                    .kind = k->kind});
    return true;
}

static bool add_few_f32(const struct attention *s, const struct attention_block *b,
                        const struct attention_rows *v, int64_t count)
{
    if (b->rows > CPU_FEW_ROWS)
        return false;
    s->kernels->few->by_columns(
        &(struct cpu_few_rows){.a = (const float *)(const void *)b->scores,
                               .b = v->data,
                               .c = (float *)(void *)b->out,
                               .m = b->rows,
                               .n = s->width,
                               .k = count,
                               .a_row = ATTENTION_PITCH,
                               .b_row = v->row,
                               .c_row = s->width,
                               .kind = v->kind});
    return true;
}

// The same by tiles, where keys and values are packed for AMX or as panels; for panels q is
// scaled already.
static bool multiply_tiles_f32(const struct attention *s, const struct attention_block *b,
                               int64_t first, int64_t count)
{
    if (b->k_tiles)
        attention_multiply_halves(s, b, first, count);
    else if (b->k_across)
        attention_multiply(s, b->k_across, s->depth, (const float *)(const void *)b->q,
                           b->rows, b->states, first, count, (float *)(void *)b->scores,
                           ATTENTION_PITCH);
    return b->k_tiles || b->k_across;
}

static bool add_tiles_f32(const struct attention *s, const struct attention_block *b,
                          int64_t first, int64_t count)
{
    if (b->v_tiles)
        attention_add_halves(s, b, first, count);
    else if (b->v_along)
        attention_add_along(s, b->v_along, s->width, (const float *)(const void *)b->scores,
                            ATTENTION_PITCH, b->rows, b->states, first, count,
                            (float *)(void *)b->out);
    return b->v_tiles || b->v_along;
}

static bool multiply_tiles_f64(const struct attention *s, const struct attention_block *b,
                               int64_t first, int64_t count)
{
    (void)s, (void)b, (void)first, (void)count;
    return false;
}

static bool add_tiles_f64(const struct attention *s, const struct attention_block *b,
                          int64_t first, int64_t count)
{
    (void)s, (void)b, (void)first, (void)count;
    return false;
}

static bool multiply_few_f64(const struct attention *s, const struct attention_block *b,
                             const struct attention_rows *k, int64_t count)
{
    (void)s, (void)b, (void)k, (void)count;
    return false;
}

static bool add_few_f64(const struct attention *s, const struct attention_block *b,
                        const struct attention_rows *v, int64_t count)
{
    (void)s, (void)b, (void)v, (void)count;
    return false;
}

#define T float
#define NAME(word) word##_f32
#define GEMM sgemm
#include "attention_scores.inc.h"
#include "attention_rows.inc.h"
#undef T
#undef NAME
#undef GEMM

#define T double
#define NAME(word) word##_f64
#define GEMM dgemm
#include "attention_scores.inc.h"
#include "attention_rows.inc.h"
#undef T
#undef NAME
#undef GEMM

void attention_sum_block(const struct attention *s, const struct attention_block *b)
{
    if (s->dtype == TN_F32)
        sum_block_f32(s, b);
    else
        sum_block_f64(s, b);
}

void attention_add_splits(const struct attention *s, struct attention_row *state, char *out,
                          int64_t pitch)
{
    if (s->dtype == TN_F32)
        add_splits_f32(s, state, out, pitch);
    else
        add_splits_f64(s, state, out, pitch);
}

void attention_divide(const struct attention *s, const struct attention_row *state,
                      char *out)
{
    if (s->dtype == TN_F32)
        divide_f32(s, state, out);
    else
        divide_f64(s, state, out);
}
