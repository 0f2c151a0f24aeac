// SPDX-License-Identifier: MIT
// Soft cap and mask of scores. Included for each dtype by rows.c and grad.c, which
// define T, the C type, and NAME(word), the names of this file's functions.

// Applies the soft cap, which is not 0, to scores.
static void NAME(cap_row)(const struct attention *s, T *row, int64_t n)
{
    const void *in = row;
    for (int64_t j = 0; j < n; j++)
        row[j] *= (T)(1 / s->soft_cap);
    s->kernels->map[s->dtype][TN_EXPR_TANH](row, &in, n, 0);
    for (int64_t j = 0; j < n; j++)
        row[j] *= (T)s->soft_cap;
}

// Pads the scores [begin, end) of a row to whole vectors, but not beyond `most`, with minus
// infinity, whose weight is 0. Returns the end of the padding.
static int64_t NAME(pad_row)(T *row, int64_t begin, int64_t end, int64_t most)
{
    const int64_t vector = 32;
    int64_t padded = begin + (end - begin + vector - 1) / vector * vector;
    padded = padded < most ? padded : most;
    for (int64_t j = end; j < padded; j++)
        row[j] = (T)-INFINITY;
    return padded < end ? end : padded;
}

// Applies the mask to the scores of keys [begin, end) of a block, which the row sees by
// position. Key 0 of the block is key `first`.
static void NAME(mask_row)(const struct attention *s, T *row, int64_t begin, int64_t end,
                           int64_t first, int64_t mask_at)
{
    if (!s->mask)
        return;
    mask_at += (first + begin) * s->mask_key;
    if (s->mask->layout.dtype == TN_BOOL) {
        const uint8_t *seen = (const uint8_t *)s->mask->data + mask_at;
        for (int64_t j = begin; j < end; j++, seen += s->mask_key)
            row[j] = *seen ? row[j] : (T)-INFINITY;
    } else if (s->stored == s->dtype) {
        const T *added = (const T *)s->mask->data + mask_at;
        for (int64_t j = begin; j < end; j++, added += s->mask_key)
            row[j] += *added;
    } else {
        for (int64_t j = begin; j < end; j++, mask_at += s->mask_key)
            row[j] += (T)tn_get_f64(s->mask, mask_at);
    }
}
