// SPDX-License-Identifier: MIT
// The derivative of attention for a block of rows. Included for each dtype by
// grad.c, which defines T, the C type, NAME(word), the names of this
// file's functions, and GEMM, the member of struct blas.

// Scores of keys [first, first + count), `pitch` elements from row to row.
static void NAME(multiply_keys)(const struct attention_gradient *g,
                                const struct attention_grad_block *b, int64_t first,
                                int64_t count, T *scores, int64_t pitch)
{
    const struct attention *s = &g->of;
    int64_t row = s->k_row;
    if (NAME(multiply_keys_in_tiles)(g, b, first, count, scores, pitch))
        return;
    const T *k = attention_read_rows(s, b->wide_k, b->k, first, count, s->depth, &row);
    s->blas->GEMM(BLAS_ROW_MAJOR, BLAS_NO_TRANS, BLAS_TRANS, (int)b->rows, (int)count,
                  (int)s->depth, (T)s->scale, (const T *)b->q, (int)s->depth, k, (int)row,
                  0, scores, (int)pitch);
}

// Finds the scores [*begin, *end) of keys [first, first + count) that row i sees by
// position, and sets the others to 0.
static void NAME(cut_row)(const struct attention_grad_block *b, int64_t i, T *row,
                          int64_t first, int64_t count, int64_t *begin, int64_t *end)
{
    const struct attention_row *state = &b->states[i];
    int64_t low = state->low > first ? state->low - first : 0;
    int64_t high = state->high - first < count ? state->high - first : count;
    high = high < 0 ? 0 : high;
    low = low < high ? low : high;
    for (int64_t j = 0; j < low; j++)
        row[j] = 0;
    for (int64_t j = high; j < count; j++)
        row[j] = 0;
    *begin = low;
    *end = high;
}

// Multiplies x[0 .. n) by `factor`.
static void NAME(scale_row)(const struct attention *s, T *x, int64_t n, T factor)
{
    const void *in[] = {x, &factor};
    s->kernels->map[s->dtype][TN_EXPR_MUL](x, in, n, 2);
}

// x = exp(x - most). A row that sees no key has most = -INFINITY, which shifts nothing.
static void NAME(exp_row)(const struct attention *s, T *x, int64_t n, double most)
{
    T shift = most > -INFINITY ? (T)most : 0;
    const void *in[] = {x, &shift};
    s->kernels->map[s->dtype][CPU_OP_SUB_THEN_EXP](x, in, n, 2);
}

static double NAME(reduce_row)(const struct attention *s, int reduction, double from,
                               const T *x, int64_t n)
{
    union cpu_accumulator acc = {.f = from};
    s->kernels->reduce->row[reduction][s->dtype](&acc, x, n);
    return acc.f;
}

static T NAME(share)(const struct attention_row *state)
{
    return state->sum == 0 ? 0 : (T)(1 / state->sum);
}

// The weight of a row's sink, a term of the sum of its weights.
static double NAME(sink_weight)(const struct attention_row *state)
{
    return state->sink == -INFINITY ? 0 : exp(state->sink - state->most);
}

// Computes the weights of all keys of the block, to be kept in b->weights.
static void NAME(weigh_all)(const struct attention_gradient *g,
                            const struct attention_grad_block *b)
{
    const struct attention *s = &g->of;
    int64_t all = b->high - b->low, begin, end;
    for (int64_t at = 0; at < all; at += ATTENTION_KEY_BLOCK) {
        int64_t left = all - at,
                count = left < ATTENTION_KEY_BLOCK ? left : ATTENTION_KEY_BLOCK;
        NAME(multiply_keys)(g, b, b->low + at, count, (T *)b->weights + at, g->pitch);
    }
    for (int64_t i = 0; i < b->rows; i++) {
        struct attention_row *state = &b->states[i];
        T *row = (T *)b->weights + i * g->pitch;
        NAME(cut_row)(b, i, row, b->low, all, &begin, &end);
        NAME(mask_row)(s, row, begin, end, b->low, state->mask_at);
        int64_t padded = NAME(pad_row)(row, begin, end, all) - begin;
        row += begin;
        state->most = NAME(reduce_row)(s, CPU_REDUCE_MAX, state->sink, row, padded);
        NAME(exp_row)(s, row, padded, state->most);
        state->sum =
            NAME(sink_weight)(state) + NAME(reduce_row)(s, CPU_REDUCE_SUM, 0, row, padded);
        NAME(scale_row)(s, row, end - begin, NAME(share)(state));
    }
}

// Computes the scores of a tile with soft cap and mask. Row i sees scores
// [begin[i], end[i]). With a soft cap, b->slopes gets its derivatives.
static void NAME(score_tile)(const struct attention_gradient *g,
                             const struct attention_grad_block *b, int64_t first,
                             int64_t count, int64_t *begin, int64_t *end)
{
    const struct attention *s = &g->of;
    NAME(multiply_keys)(g, b, first, count, (T *)b->weights, ATTENTION_KEY_BLOCK);
    for (int64_t i = 0; i < b->rows; i++) {
        T *row = (T *)b->weights + i * ATTENTION_KEY_BLOCK,
          *slope = (T *)b->slopes + i * ATTENTION_KEY_BLOCK;
        NAME(cut_row)(b, i, row, first, count, &begin[i], &end[i]);
        if (s->soft_cap > 0) {
            NAME(cap_row)(s, row + begin[i], end[i] - begin[i]);
            T inverse = (T)(1 / s->soft_cap);
            for (int64_t j = 0; j < count; j++)
                slope[j] = 1 - row[j] * inverse * (row[j] * inverse);
        }
        NAME(mask_row)(s, row, begin[i], end[i], first, b->states[i].mask_at);
    }
}

// Computes the greatest score of each row and the sum of its weights, tile by tile.
static void NAME(sum_weights)(const struct attention_gradient *g,
                              const struct attention_grad_block *b)
{
    const struct attention *s = &g->of;
    int64_t begin[ATTENTION_ROW_BLOCK], end[ATTENTION_ROW_BLOCK];
    for (int64_t i = 0; i < b->rows; i++) {
        b->states[i].most = b->states[i].sink;
        b->states[i].sum = NAME(sink_weight)(&b->states[i]);
    }
    for (int64_t first = b->low; first < b->high; first += ATTENTION_KEY_BLOCK) {
        int64_t left = b->high - first;
        NAME(score_tile)
        (g, b, first, left < ATTENTION_KEY_BLOCK ? left : ATTENTION_KEY_BLOCK, begin, end);
        for (int64_t i = 0; i < b->rows; i++) {
            struct attention_row *state = &b->states[i];
            T *row = (T *)b->weights + i * ATTENTION_KEY_BLOCK;
            int64_t n =
                NAME(pad_row)(row, begin[i], end[i], ATTENTION_KEY_BLOCK) - begin[i];
            row += begin[i];
            double most = NAME(reduce_row)(s, CPU_REDUCE_MAX, state->most, row, n);
            if (most > state->most)
                state->sum *= exp(state->most - most);
            state->most = most;
            NAME(exp_row)(s, row, n, most);
            state->sum += NAME(reduce_row)(s, CPU_REDUCE_SUM, 0, row, n);
        }
    }
}

// Computes the weights of a tile again, from the greatest scores and the sums.
static void NAME(weigh_tile)(const struct attention_gradient *g,
                             const struct attention_grad_block *b, int64_t first,
                             int64_t count)
{
    const struct attention *s = &g->of;
    int64_t begin[ATTENTION_ROW_BLOCK], end[ATTENTION_ROW_BLOCK];
    NAME(score_tile)(g, b, first, count, begin, end);
    for (int64_t i = 0; i < b->rows; i++) {
        T *row = (T *)b->weights + i * ATTENTION_KEY_BLOCK;
        int64_t padded =
            NAME(pad_row)(row, begin[i], end[i], ATTENTION_KEY_BLOCK) - begin[i];
        row += begin[i];
        NAME(exp_row)(s, row, padded, b->states[i].most);
        NAME(scale_row)(s, row, end[i] - begin[i], NAME(share)(&b->states[i]));
    }
}

// Turns the terms of a tile (gradient . value) into gradients of its scores: subtracts the
// row's b->shared, and multiplies by the weight and by the soft cap's slope.
static void NAME(weigh_terms)(const struct attention_gradient *g,
                              const struct attention_grad_block *b, int64_t count,
                              const T *p, int64_t pitch)
{
    const struct attention *s = &g->of;
    for (int64_t i = 0; i < b->rows; i++) {
        T *row = (T *)b->terms + i * ATTENTION_PITCH, shared = (T)b->shared[i];
        const void *in[] = {row, &shared, p + i * pitch};
        s->kernels->map[s->dtype][CPU_OP_SUB_THEN_MUL](row, in, count, 2);
        const void *capped[] = {row, (const T *)b->slopes + i * ATTENTION_KEY_BLOCK};
        if (s->soft_cap > 0)
            s->kernels->map[s->dtype][TN_EXPR_MUL](row, capped, count, 0);
    }
}

// Adds the contributions of keys [first, first + count) to dq, dk and dv. p: their weights,
// `pitch` elements from row to row.
static void NAME(add_tile)(const struct attention_gradient *g,
                           const struct attention_grad_block *b, int64_t first,
                           int64_t count, const T *p, int64_t pitch)
{
    const struct attention *s = &g->of;
    if (NAME(add_in_tiles)(g, b, first, count, p, pitch))
        return;
    int rows = (int)b->rows, keys = (int)count, depth = (int)s->depth,
        width = (int)s->width;
    int64_t k_row = s->k_row, v_row = s->v_row;
    const T *k = attention_read_rows(s, b->wide_k, b->k, first, count, s->depth, &k_row);
    const T *v = attention_read_rows(s, b->wide_v, b->v, first, count, s->width, &v_row);
    const T *q = (const T *)b->q, *gradient = (const T *)b->gradient;
    T *terms = (T *)b->terms, scale = (T)s->scale;
    s->blas->GEMM(BLAS_ROW_MAJOR, BLAS_TRANS, BLAS_NO_TRANS, keys, width, rows, 1, p,
                  (int)pitch, gradient, width, 1, (T *)b->dv + first * s->width, width);
    s->blas->GEMM(BLAS_ROW_MAJOR, BLAS_NO_TRANS, BLAS_TRANS, rows, keys, width, 1, gradient,
                  width, v, (int)v_row, 0, terms, ATTENTION_PITCH);
    NAME(weigh_terms)(g, b, count, p, pitch);
    s->blas->GEMM(BLAS_ROW_MAJOR, BLAS_NO_TRANS, BLAS_NO_TRANS, rows, depth, keys, scale,
                  terms, ATTENTION_PITCH, k, (int)k_row, 1, (T *)b->dq, depth);
    s->blas->GEMM(BLAS_ROW_MAJOR, BLAS_TRANS, BLAS_NO_TRANS, keys, depth, rows, scale,
                  terms, ATTENTION_PITCH, q, depth, 1, (T *)b->dk + first * s->depth,
                  depth);
}

// Sets b->shared: for each row the sum of its outputs times their gradients.
static void NAME(share_rows)(const struct attention_gradient *g,
                             const struct attention_grad_block *b)
{
    int64_t width = g->of.width;
    for (int64_t i = 0; i < b->rows; i++) {
        const T *out = (const T *)b->out + i * width;
        const T *gradient = (const T *)b->gradient + i * width;
        b->shared[i] = 0;
        for (int64_t j = 0; j < width; j++)
            b->shared[i] += (double)out[j] * (double)gradient[j];
    }
}

static void NAME(add_block)(const struct attention_gradient *g,
                            const struct attention_grad_block *b)
{
    NAME(share_rows)(g, b);
    if (g->is_kept)
        NAME(weigh_all)(g, b);
    else
        NAME(sum_weights)(g, b);
    for (int64_t first = b->low; first < b->high; first += ATTENTION_KEY_BLOCK) {
        int64_t left = b->high - first,
                count = left < ATTENTION_KEY_BLOCK ? left : ATTENTION_KEY_BLOCK;
        const T *p = (const T *)b->weights;
        if (g->is_kept)
            p += first - b->low;
        else
            NAME(weigh_tile)(g, b, first, count);
        NAME(add_tile)(g, b, first, count, p, g->is_kept ? g->pitch : ATTENTION_KEY_BLOCK);
    }
    for (int64_t i = 0; i < b->rows && b->to_sinks; i++) {
        const struct attention_row *state = &b->states[i];
        ((T *)b->to_sinks)[i] =
            (T)(-NAME(sink_weight)(state) * (double)NAME(share)(state) * b->shared[i]);
    }
    // Register tiles have added to dq without the scale, which BLAS applies.
    if (b->k_across)
        NAME(scale_row)(&g->of, (T *)b->dq, b->rows * g->of.depth, (T)g->of.scale);
}

// Adds elements [begin, end) of the sums of all splits, `pitch` bytes apart, to `to`.
static void NAME(add_sums)(const struct attention_gradient *g, char *to, const char *from,
                           int64_t begin, int64_t end, int64_t pitch)
{
    T *out = (T *)to;
    for (int64_t p = 0; p < g->of.splits; p++) {
        const T *x = (const T *)(from + p * pitch);
        for (int64_t j = begin; j < end; j++)
            out[j - begin] = (p > 0 ? out[j - begin] : 0) + x[j];
    }
}
