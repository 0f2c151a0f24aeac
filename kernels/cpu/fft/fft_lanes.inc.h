// SPDX-License-Identifier: MIT
// Loads, stores and transposes of vectors of complex numbers. Included by fft.inc.h.

typedef REAL vector __attribute__((vector_size(VECTOR_BYTES)));
typedef REAL loose_vector
    __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));
typedef double wide __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef double loose_wide
    __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

// LANES complex numbers.
struct lanes {
    vector re, im;
};

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)

// --- memory ------------------------------------------------------------------------------

INLINE struct lanes load(const REAL *in, bool swaps)
{
    vector a = *(const loose_vector *)in, b = *(const loose_vector *)(in + LANES);
    vector even = SHUFFLE(a, b, EVEN), odd = SHUFFLE(a, b, ODD);
    return swaps ? (struct lanes){odd, even} : (struct lanes){even, odd};
}

INLINE void store(REAL *out, struct lanes a, bool swaps)
{
    vector even = swaps ? a.im : a.re, odd = swaps ? a.re : a.im;
    *(loose_vector *)out = SHUFFLE(even, odd, LOW);
    *(loose_vector *)(out + LANES) = SHUFFLE(even, odd, HIGH);
}

// Loads the first `count` numbers; other lanes are 0.
static struct lanes load_some(const REAL *in, int64_t count, bool swaps)
{
    REAL numbers[2 * LANES] = {0};
    memcpy(numbers, in, (size_t)(2 * count) * sizeof(REAL));
    return load(numbers, swaps);
}

// Stores lanes [first, end); lane 0 would go to `out`.
static void store_some(REAL *out, struct lanes a, int64_t first, int64_t end, bool swaps)
{
    REAL numbers[2 * LANES];
    store(numbers, a, swaps);
    memcpy(out + 2 * first, numbers + 2 * first,
           (size_t)(2 * (end - first)) * sizeof(REAL));
}

// Loads `rows` rows of `count` complex numbers, `stride` numbers apart, to a vector each.
static void load_columns(struct lanes *to, const REAL *in, int64_t rows, int64_t stride,
                         int64_t count, bool swaps)
{
    if (count < LANES)
        for (int64_t r = 0; r < rows; r++)
            to[r] = load_some(in + 2 * r * stride, count, swaps);
    else if (swaps)
        for (int64_t r = 0; r < rows; r++)
            to[r] = load(in + 2 * r * stride, true);
    else
        for (int64_t r = 0; r < rows; r++)
            to[r] = load(in + 2 * r * stride, false);
}

// Rows of memory, to each of which lanes [first, end) of a vector are written.
struct fft_columns {
    REAL *out;
    int64_t stride, first, end;
    bool swaps;
    REAL scale;
};

static void store_columns(const struct fft_columns *to, const struct lanes *from,
                          int64_t rows)
{
    REAL scale = to->scale;
    bool swaps = to->swaps;
    for (int64_t r = 0; r < rows; r++) {
        struct lanes a = {scale * from[r].re, scale * from[r].im};
        REAL *out = to->out + 2 * r * to->stride;
        if (to->first > 0 || to->end < LANES)
            store_some(out, a, to->first, to->end, swaps);
        else
            store(out, a, swaps);
    }
}

// --- transposes --------------------------------------------------------------------------

#define LANES_16 (VECTOR_BYTES / 16) // units of 16 bytes in a vector

// Transposes a square of units of 16 bytes.
INLINE void transpose_16_bytes(wide *r)
{
#if VECTOR_BYTES == 64
    wide a = SHUFFLE(r[0], r[1], LANES_EVEN), b = SHUFFLE(r[0], r[1], LANES_ODD);
    wide c = SHUFFLE(r[2], r[3], LANES_EVEN), d = SHUFFLE(r[2], r[3], LANES_ODD);
    r[0] = SHUFFLE(a, c, LANES_EVEN);
    r[1] = SHUFFLE(b, d, LANES_EVEN);
    r[2] = SHUFFLE(a, c, LANES_ODD);
    r[3] = SHUFFLE(b, d, LANES_ODD);
#elif VECTOR_BYTES == 32
    wide a = r[0];
    r[0] = SHUFFLE(a, r[1], LANES_EVEN);
    r[1] = SHUFFLE(a, r[1], LANES_ODD);
#else
    (void)r;
#endif
}

// Transposes a square of doubles.
INLINE void transpose_8_bytes(wide *r)
{
    wide low[LANES_16], high[LANES_16];
    for (int i = 0; i < LANES_16; i++) {
        low[i] = SHUFFLE(r[2 * i], r[2 * i + 1], PAIRS_LOW);
        high[i] = SHUFFLE(r[2 * i], r[2 * i + 1], PAIRS_HIGH);
    }
    transpose_16_bytes(low);
    transpose_16_bytes(high);
    for (int i = 0; i < LANES_16; i++) {
        r[2 * i] = low[i];
        r[2 * i + 1] = high[i];
    }
}

// Transposes a square of REALs; a row has one component of LANES complex numbers.
#if REAL_BYTES == 4
INLINE void transpose_components(vector *r)
{
    wide numbers[4][LANES_16];
    for (int i = 0; i < LANES_16; i++) {
        vector *four = r + 4 * i;
        wide a = (wide)SHUFFLE(four[0], four[1], FOURS_LOW);
        wide b = (wide)SHUFFLE(four[0], four[1], FOURS_HIGH);
        wide c = (wide)SHUFFLE(four[2], four[3], FOURS_LOW);
        wide d = (wide)SHUFFLE(four[2], four[3], FOURS_HIGH);
        numbers[0][i] = SHUFFLE(a, c, PAIRS_LOW);
        numbers[1][i] = SHUFFLE(a, c, PAIRS_HIGH);
        numbers[2][i] = SHUFFLE(b, d, PAIRS_LOW);
        numbers[3][i] = SHUFFLE(b, d, PAIRS_HIGH);
    }
    for (int k = 0; k < 4; k++) {
        transpose_16_bytes(numbers[k]);
        for (int i = 0; i < LANES_16; i++)
            r[4 * i + k] = (vector)numbers[k][i];
    }
}
#else
INLINE void transpose_components(vector *r)
{
    wide numbers[LANES];
    for (int i = 0; i < LANES; i++)
        numbers[i] = (wide)r[i];
    transpose_8_bytes(numbers);
    for (int i = 0; i < LANES; i++)
        r[i] = (vector)numbers[i];
}
#endif

#define COLUMNS (LANES / 2) // complex numbers of a vector

// Transposes a square of complex numbers.
INLINE void transpose_numbers(wide *r)
{
    if (REAL_BYTES == 4)
        transpose_8_bytes(r);
    else
        transpose_16_bytes(r);
}

// Most bytes of a row for which the next row is prefetched while it is transformed:
// processors prefetch within a page alone. So rows of 64 or 256 f32 numbers take 0.8 to 0.9
// of the time; longer rows gain nothing.
#define SHORT_ROW 2048

// Prefetches the line `numbers` complex numbers behind `at` into the second-level cache. It
// may lie outside of the array.
INLINE void prefetch_behind(const REAL *at, int64_t numbers)
{
    uintptr_t line = (uintptr_t)at + (uintptr_t)numbers * 2 * sizeof(REAL);
    __builtin_prefetch((const void *)line, 0, 2);
}

// Prefetches the same line of each of the next LANES rows, if these are short.
INLINE void prefetch_rows(const REAL *at, int64_t n, int64_t stride)
{
    if (n * 2 * (int64_t)sizeof(REAL) <= SHORT_ROW)
        for (int64_t r = 0; r < LANES; r++)
            prefetch_behind(at, stride * (r + LANES));
}

// Loads COLUMNS numbers of `count` rows, a lane for each row; other lanes repeat the last
// row.
INLINE void load_block(struct lanes *to, const REAL *in, int64_t stride, int64_t count,
                       bool swaps)
{
    wide a[COLUMNS], b[COLUMNS];
    for (int64_t i = 0; i < COLUMNS; i++) {
        int64_t j = i + COLUMNS;
        a[i] = *(const loose_wide *)(in + 2 * stride * (i < count ? i : count - 1));
        b[i] = *(const loose_wide *)(in + 2 * stride * (j < count ? j : count - 1));
    }
    transpose_numbers(a);
    transpose_numbers(b);
    for (int64_t i = 0; i < COLUMNS; i++) {
        vector even = SHUFFLE((vector)a[i], (vector)b[i], EVEN);
        vector odd = SHUFFLE((vector)a[i], (vector)b[i], ODD);
        to[i] = swaps ? (struct lanes){odd, even} : (struct lanes){even, odd};
    }
}

INLINE void store_block(REAL *out, const struct lanes *from, int64_t stride, int64_t count,
                        bool swaps, REAL scale)
{
    wide a[COLUMNS], b[COLUMNS];
    for (int64_t i = 0; i < COLUMNS; i++) {
        vector even = scale * (swaps ? from[i].im : from[i].re);
        vector odd = scale * (swaps ? from[i].re : from[i].im);
        a[i] = (wide)SHUFFLE(even, odd, LOW);
        b[i] = (wide)SHUFFLE(even, odd, HIGH);
    }
    transpose_numbers(a);
    transpose_numbers(b);
    for (int64_t i = 0; i < COLUMNS; i++) {
        if (i < count)
            *(loose_wide *)(out + 2 * stride * i) = a[i];
        if (i + COLUMNS < count)
            *(loose_wide *)(out + 2 * stride * (i + COLUMNS)) = b[i];
    }
}

// Loads `count` rows of n complex numbers, a lane for each row. The last block of COLUMNS
// numbers begins within the block before it.
static void load_rows(struct lanes *to, const REAL *in, int64_t n, int64_t stride,
                      int64_t count, bool swaps)
{
    for (int64_t c = 0; c < n && n >= COLUMNS; c += COLUMNS) {
        c = c + COLUMNS <= n ? c : n - COLUMNS;
        if (count < LANES) {
            load_block(to + c, in + 2 * c, stride, count, swaps);
            continue;
        }
        load_block(to + c, in + 2 * c, stride, LANES, swaps);
        prefetch_rows(in + 2 * c, n, stride);
    }
    for (int64_t c = 0; c < n && n < COLUMNS; c++)
        for (int64_t r = 0; r < LANES; r++) {
            const REAL *from = in + 2 * (stride * (r < count ? r : count - 1) + c);
            to[c].re[r] = from[swaps];
            to[c].im[r] = from[!swaps];
        }
}

static void store_rows(REAL *out, const struct lanes *from, int64_t n, int64_t stride,
                       int64_t count, bool swaps, REAL scale)
{
    for (int64_t c = 0; c < n && n >= COLUMNS; c += COLUMNS) {
        c = c + COLUMNS <= n ? c : n - COLUMNS;
        if (count < LANES) {
            store_block(out + 2 * c, from + c, stride, count, swaps, scale);
            continue;
        }
        store_block(out + 2 * c, from + c, stride, LANES, swaps, scale);
        prefetch_rows(out + 2 * c, n, stride);
    }
    for (int64_t c = 0; c < n && n < COLUMNS; c++)
        for (int64_t r = 0; r < count; r++) {
            REAL *to = out + 2 * (stride * r + c);
            to[swaps] = scale * from[c].re[r];
            to[!swaps] = scale * from[c].im[r];
        }
}
