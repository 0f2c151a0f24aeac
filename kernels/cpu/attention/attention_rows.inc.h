// SPDX-License-Identifier: MIT
// The rows of a block of attention. Included for each dtype by rows.c, which
// defines T, the C type, NAME(word), the names of this file's functions, and GEMM, the
// member of struct blas.

// Applies `op`, MUL or DIV, by `number` to a row of the output.
static void NAME(scale_row)(const struct attention *s, uint32_t op, T *row, T number)
{
    s->kernels->map[s->dtype][op](row, (const void *[]){row, &number}, s->width, 2);
}

// Turns the scores of a row into weights for keys [begin, end) of a block of `count`, and 0
// for the others. Rescales the row's sums so far when its greatest score grows.
static void NAME(weigh_row)(const struct attention *s, struct attention_row *state, T *row,
                            T *out, int64_t begin, int64_t end, int64_t count)
{
    union cpu_accumulator most = {.f = state->most}, sum = {.f = 0};
    for (int64_t j = 0; j < begin; j++)
        row[j] = 0;
    end = NAME(pad_row)(row, begin, end, ATTENTION_KEY_BLOCK);
    for (int64_t j = end; j < count; j++)
        row[j] = 0;
    s->kernels->reduce->row[CPU_REDUCE_MAX][s->dtype](&most, row + begin, end - begin);
    T shift = most.f > -INFINITY ? (T)most.f : 0;
    if (most.f > state->most) {
        T scale = (T)exp(state->most - (double)shift); // 0 in the row's first block
        NAME(scale_row)(s, TN_EXPR_MUL, out, scale);
        state->sum *= (double)scale;
        state->most = most.f;
    }
    const void *in[] = {row + begin, &shift};
    s->kernels->map[s->dtype][CPU_OP_SUB_THEN_EXP](row + begin, in, end - begin, 2);
    s->kernels->reduce->row[CPU_REDUCE_SUM][s->dtype](&sum, row + begin, end - begin);
    state->sum += sum.f;
}

// Adds the values of keys [first, first + count), weighed, to the rows of a block.
static void NAME(add_keys)(const struct attention *s, const struct attention_block *b,
                           int64_t first, int64_t count)
{
    int rows = (int)b->rows, keys = (int)count;
    T *scores = (T *)b->scores, *out = (T *)b->out;
    if (!NAME(multiply_tiles)(s, b, first, count)) {
        struct attention_rows k =
            attention_rows_read_rows(s, b, b->k, s->k_row, first, count, s->depth);
        if (!NAME(multiply_few)(s, b, &k, count))
            s->blas->GEMM(BLAS_ROW_MAJOR, BLAS_NO_TRANS, BLAS_TRANS, rows, keys,
                          (int)s->depth, (T)s->scale, (const T *)b->q, (int)s->depth,
                          (const T *)k.data, (int)k.row, 0, scores, ATTENTION_PITCH);
    }
    for (int64_t i = 0; i < b->rows; i++) {
        struct attention_row *state = &b->states[i];
        int64_t begin = state->low > first ? state->low - first : 0;
        int64_t end = state->high - first < count ? state->high - first : count;
        T *row = scores + i * ATTENTION_PITCH;
        end = end < 0 ? 0 : end;
        begin = begin < end ? begin : end;
        if (s->soft_cap > 0)
            NAME(cap_row)(s, row + begin, end - begin);
        NAME(mask_row)(s, row, begin, end, first, state->mask_at);
        NAME(weigh_row)(s, state, row, out + i * s->width, begin, end, count);
    }
    if (NAME(add_tiles)(s, b, first, count))
        return;
    struct attention_rows v =
        attention_rows_read_rows(s, b, b->v, s->v_row, first, count, s->width);
    if (!NAME(add_few)(s, b, &v, count))
        s->blas->GEMM(BLAS_ROW_MAJOR, BLAS_NO_TRANS, BLAS_NO_TRANS, rows, (int)s->width,
                      keys, 1, scores, ATTENTION_PITCH, (const T *)v.data, (int)v.row, 1,
                      out, (int)s->width);
}

// Sums the values of a block, weighed, over the keys that any of its rows sees.
static void NAME(sum_block)(const struct attention *s, const struct attention_block *b)
{
    T *out = (T *)b->out;
    for (int64_t i = 0; i < b->rows * s->width; i++)
        out[i] = 0;
    for (int64_t first = b->low; first < b->high; first += ATTENTION_KEY_BLOCK) {
        int64_t left = b->high - first;
        NAME(add_keys)
        (s, b, first, left < ATTENTION_KEY_BLOCK ? left : ATTENTION_KEY_BLOCK);
    }
}

// Adds the sums of a row's splits into the sums of its first split. Sums of consecutive
// splits lie `pitch` bytes apart, and so do the row's states.
static void NAME(add_splits)(const struct attention *s, struct attention_row *state,
                             char *out, int64_t pitch)
{
    double most = -INFINITY, sum = 0;
    for (int64_t p = 0; p < s->splits; p++) {
        double own = state_of_split(state, p, pitch)->most;
        most = own > most ? own : most;
    }
    for (int64_t p = 0; p < s->splits; p++) {
        const struct attention_row *own = state_of_split(state, p, pitch);
        const T *from = (const T *)(out + p * pitch);
        // A split without keys (sum 0) adds nothing; a NaN in its sum must spread.
        bool is_whole = own->most == most || own->sum != own->sum;
        T scale = own->sum == 0 ? 0 : is_whole ? 1 : (T)exp(own->most - most);
        T *to = (T *)out;
        sum += scale == 0 ? 0 : own->sum * (double)scale;
        for (int64_t k = 0; k < s->width; k++)
            to[k] = (p > 0 ? to[k] : 0) + (scale == 0 ? 0 : from[k] * scale);
    }
    state->most = most;
    state->sum = sum;
}

// Divides the sums of a row by the sum of its weights, the sink's weight included.
static void NAME(divide)(const struct attention *s, const struct attention_row *state,
                         char *out)
{
    T *to = (T *)out;
    double sum = state->sum, scale = 1;
    if (state->sink != -INFINITY) { // or NaN
        const double most = state->most > state->sink ? state->most : state->sink;
        scale = exp(state->most - most);
        sum = sum * scale + exp(state->sink - most);
    }
    if (sum == 0) {
        memset(to, 0, (size_t)s->width * sizeof(T));
        return;
    }
    if (scale != 1)
        NAME(scale_row)(s, TN_EXPR_MUL, to, (T)scale);
    NAME(scale_row)(s, TN_EXPR_DIV, to, (T)sum);
}
