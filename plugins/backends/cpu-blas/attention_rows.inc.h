// SPDX-License-Identifier: MIT
// The rows of a block of attention. Included for each dtype by kernels_attention.c, which
// defines T, the C type, NAME(word), the names of this file's functions, and GEMM, the
// member of struct blas.

// Scores of a row for keys [begin, end) of a block, which are seen by place: soft cap and
// mask. Key 0 of the block is key `first`.
static void NAME(mask_row)(const struct attention *s, T *row, int64_t begin, int64_t end,
                           int64_t first, int64_t mask_at)
{
    const void *in = row + begin;
    if (s->soft_cap > 0) {
        for (int64_t j = begin; j < end; j++)
            row[j] *= (T)(1 / s->soft_cap);
        s->kernels->map[s->dtype][TN_EXPR_TANH](row + begin, &in, end - begin, 0);
        for (int64_t j = begin; j < end; j++)
            row[j] *= (T)s->soft_cap;
    }
    if (!s->mask)
        return;
    mask_at += (first + begin) * s->mask_key;
    if (s->mask->layout.dtype == TN_BOOL) {
        const uint8_t *seen = (const uint8_t *)s->mask->data + mask_at;
        for (int64_t j = begin; j < end; j++, seen += s->mask_key)
            row[j] = *seen ? row[j] : (T)-INFINITY;
    } else {
        const T *added = (const T *)s->mask->data + mask_at;
        for (int64_t j = begin; j < end; j++, added += s->mask_key)
            row[j] += *added;
    }
}

// Turns the scores of a row for keys [begin, end) of a block of `count` into weights: 0 for
// the others. Rescales what the row has so far when its greatest score grows.
static void NAME(weigh_row)(const struct attention *s, struct row_state *state, T *row,
                            T *out, int64_t begin, int64_t end, int64_t count)
{
    const void *in = row + begin;
    T most = (T)state->most, sum = 0;
    for (int64_t j = 0; j < begin; j++)
        row[j] = 0;
    for (int64_t j = end; j < count; j++)
        row[j] = 0;
    for (int64_t j = begin; j < end; j++)
        most = row[j] > most ? row[j] : most;
    T shift = most > (T)-INFINITY ? most : 0;
    if (most > (T)state->most) {
        T scale = (T)exp(state->most - (double)shift); // 0 for the first one
        for (int64_t k = 0; k < s->width; k++)
            out[k] *= scale;
        state->sum *= (double)scale;
        state->most = (double)most;
    }
    for (int64_t j = begin; j < end; j++)
        row[j] -= shift;
    s->kernels->map[s->dtype][TN_EXPR_EXP](row + begin, &in, end - begin, 0);
    for (int64_t j = begin; j < end; j++)
        sum += row[j];
    state->sum += (double)sum;
}

// Adds the values of keys [first, first + count), weighed, to the rows of a block.
static void NAME(add_keys)(const struct attention *s, const struct block *b,
                           struct row_state *states, T *scores, int64_t first,
                           int64_t count)
{
    int rows = (int)b->rows, keys = (int)count;
    const T *q = (const T *)b->q, *k = (const T *)b->k + first * s->k_row;
    const T *v = (const T *)b->v + first * s->v_row;
    T *out = (T *)b->out;
    s->blas->GEMM(BLAS_ROW_MAJOR, BLAS_NO_TRANS, BLAS_TRANS, rows, keys, (int)s->depth,
                  (T)s->scale, q, (int)s->depth, k, (int)s->k_row, 0, scores, keys);
    for (int64_t i = 0; i < b->rows; i++) {
        struct row_state *state = &states[i];
        int64_t begin = state->low > first ? state->low - first : 0;
        int64_t end = state->high - first < count ? state->high - first : count;
        T *row = scores + i * count;
        end = end < 0 ? 0 : end;
        begin = begin < end ? begin : end;
        NAME(mask_row)(s, row, begin, end, first, state->mask_at);
        NAME(weigh_row)(s, state, row, out + i * s->width, begin, end, count);
    }
    s->blas->GEMM(BLAS_ROW_MAJOR, BLAS_NO_TRANS, BLAS_NO_TRANS, rows, (int)s->width, keys,
                  1, scores, keys, v, (int)s->v_row, 1, out, (int)s->width);
}

// Computes the rows of a block, over the keys that any of them sees.
static void NAME(run_block)(const struct attention *s, const struct block *b,
                            struct row_state *states, void *scores)
{
    T *out = (T *)b->out;
    for (int64_t i = 0; i < b->rows * s->width; i++)
        out[i] = 0;
    for (int64_t first = b->low; first < b->high; first += KEY_BLOCK) {
        int64_t left = b->high - first;
        NAME(add_keys)(s, b, states, scores, first, left < KEY_BLOCK ? left : KEY_BLOCK);
    }
    for (int64_t i = 0; i < b->rows; i++)
        for (int64_t k = 0; k < s->width; k++)
            out[i * s->width + k] =
                states[i].sum == 0 ? 0 : out[i * s->width + k] / (T)states[i].sum;
}
