// SPDX-License-Identifier: MIT
// A quick sort and a selection of unsigned words in vectors, in ascending order. Included
// for each width by quick.c, which defines
//   WORD, VECTOR     the type of a word, and of LANES of them
//   SIGNED, BITS, FLOAT    a word with a sign, its width, and a float of it
//   NAME(word)       the names of this file's functions
//   COUNT(mask)      the number of lanes in a mask
//   BELOW(a, b, or_equal)  the mask of lanes in which a is below b (or equal to it)
//   COMPRESS(v, mask)      the lanes of `mask` at the front, anything behind them
//
// Words are partitioned by a pivot: lesser words move to the front in place, the others to
// other memory, from where they are copied behind the lesser ones. Stores are full vectors,
// whose surplus lanes the next store overwrites.

typedef VECTOR NAME(loose) __attribute__((aligned(sizeof(WORD)), may_alias));

// The middle one of three.
static inline WORD NAME(middle)(WORD a, WORD b, WORD c)
{
    WORD least = a < b ? a : b, most = a < b ? b : a;
    WORD bounded = c < most ? c : most;
    return bounded < least ? least : bounded;
}

static inline WORD NAME(pivot)(const WORD *x, int64_t n)
{
    int64_t step = n / 10;
    const WORD *at = x + step;
    if (n < 128)
        return NAME(middle)(x[step], x[n / 2], x[n - step - 1]);
    WORD a = NAME(middle)(at[0], at[step], at[2 * step]);
    WORD b = NAME(middle)(at[3 * step], at[4 * step], at[5 * step]);
    WORD c = NAME(middle)(at[6 * step], at[7 * step], at[8 * step]);
    return NAME(middle)(a, b, c);
}

// Moves words below the pivot (or equal to it) to the front, and gives their number.
static int64_t NAME(part)(WORD *x, WORD *other, int64_t n, WORD pivot, bool or_equal)
{
    const VECTOR pivots = (VECTOR){0} + pivot;
    int64_t first = 0, second = 0, i = 0;
    for (; i + LANES <= n; i += LANES) {
        VECTOR v = *(const NAME(loose) *)(x + i);
        uint32_t mask = BELOW(v, pivots, or_equal);
        *(NAME(loose) *)(x + first) = COMPRESS(v, mask);
        *(NAME(loose) *)(other + second) = COMPRESS(v, ~mask);
        int64_t count = COUNT(mask);
        first += count;
        second += LANES - count;
    }
    for (; i < n; i++) {
        WORD word = x[i];
        bool is_first = or_equal ? word <= pivot : word < pivot;
        x[first] = word;
        other[second] = word;
        first += is_first;
        second += !is_first;
    }
    memcpy(x + first, other, (size_t)second * sizeof(WORD));
    return first;
}

// Sorts at most FEW words: each goes to the position that equals the number of lesser
// words. Equal words share one position; a running maximum copies them to the positions
// behind it.
static void NAME(sort_few)(WORD *x, int64_t n)
{
    WORD from[FEW], to[FEW] = {0}, most = 0;
    VECTOR v[FEW / LANES];
    int64_t vectors = (n + LANES - 1) / LANES;
    memset(from, 0xff, sizeof(from));
    memcpy(from, x, (size_t)n * sizeof(WORD));
    memcpy(v, from, sizeof(v));
    for (int64_t i = 0; i < n; i++) {
        const VECTOR own = (VECTOR){0} + from[i];
        int64_t rank = 0;
        for (int64_t k = 0; k < vectors; k++)
            rank += COUNT(BELOW(v[k], own, false));
        to[rank] = from[i];
    }
    for (int64_t i = 0; i < n; i++)
        x[i] = most = to[i] > most ? to[i] : most;
}

// Sorts runs, and merges them in pairs.
static void NAME(merge)(WORD *x, WORD *other, int64_t n)
{
    WORD *from = x, *to = other;
    for (int64_t i = 0; i < n; i += FEW)
        NAME(sort_few)(x + i, n - i < FEW ? n - i : FEW);
    for (int64_t width = FEW; width < n; width *= 2) {
        for (int64_t i = 0; i < n; i += 2 * width) {
            int64_t a = i, middle = n - i < width ? n : i + width, b = middle;
            int64_t end = n - middle < width ? n : middle + width;
            for (int64_t k = i; k < end; k++)
                to[k] =
                    a < middle && (b == end || from[a] <= from[b]) ? from[a++] : from[b++];
        }
        WORD *swap = from;
        from = to;
        to = swap;
    }
    if (from != x)
        memcpy(x, from, (size_t)n * sizeof(WORD));
}

#if LANES > 1

// Quick sort; beyond recursion depth `depth`, because of bad pivots, merge sort.
static void NAME(quick)(WORD *x, WORD *other, int64_t n, int depth)
{
    for (; n > FEW && depth > 0; depth--) {
        WORD pivot = NAME(pivot)(x, n);
        int64_t first = NAME(part)(x, other, n, pivot, false);
        if (first == 0) { // the pivot is the least: words equal to it come first
            first = NAME(part)(x, other, n, pivot, true);
        } else if (first <= n - first) {
            NAME(quick)(x, other, first, depth - 1);
        } else {
            NAME(quick)(x + first, other, n - first, depth - 1);
            n = first;
            continue;
        }
        x += first;
        n -= first;
    }
    if (n > FEW)
        NAME(merge)(x, other, n);
    else
        NAME(sort_few)(x, n);
}

static void NAME(sort)(WORD *x, WORD *other, int64_t n)
{
    NAME(quick)(x, other, n, 2 * (64 - __builtin_clzll((uint64_t)n | 1)));
}

#endif

// --- selection -------------------------------------------------------------------------

// Returns the word that a sort puts at position `kth`; leaves x in any order.
static WORD NAME(select)(WORD *x, WORD *other, int64_t n, int64_t kth)
{
    for (int depth = 2 * (64 - __builtin_clzll((uint64_t)n | 1)); n > FEW; depth--) {
        if (depth == 0) {
            NAME(merge)(x, other, n);
            return x[kth];
        }
        WORD pivot = NAME(pivot)(x, n);
        int64_t first = NAME(part)(x, other, n, pivot, false);
        if (first == 0) { // the pivot is the least
            first = NAME(part)(x, other, n, pivot, true);
            if (kth < first)
                return pivot;
        }
        if (kth < first) {
            n = first;
        } else {
            x += first;
            n -= first;
            kth -= first;
        }
    }
    NAME(sort_few)(x, n);
    return x[kth];
}

// Copies words of `from`, in their order, to `before` if their keys are below the pivot or
// among the first `ties` equal to it; the next equal one to *own, others to `behind`.
static void NAME(split)(const WORD *keys, const WORD *from, int64_t n, WORD pivot,
                        int64_t ties, WORD *before, WORD *own, WORD *behind)
{
    const VECTOR pivots = (VECTOR){0} + pivot;
    int64_t first = 0, second = 0, equal = 0;
    for (int64_t i = 0; i < n;) {
        int64_t end = n - i < LANES ? n : i + LANES;
        if (end - i == LANES) {
            VECTOR key = *(const NAME(loose) *)(keys + i);
            uint32_t mask = BELOW(key, pivots, false);
            if (mask == (uint32_t)BELOW(key, pivots, true)) {
                VECTOR v = *(const NAME(loose) *)(from + i);
                *(NAME(loose) *)(before + first) = COMPRESS(v, mask);
                *(NAME(loose) *)(behind + second) = COMPRESS(v, ~mask);
                int64_t count = COUNT(mask);
                first += count;
                second += LANES - count;
                i = end;
                continue;
            }
        }
        for (; i < end; i++) {
            int64_t tie = keys[i] == pivot ? equal++ : n;
            if (keys[i] < pivot || tie < ties)
                before[first++] = from[i];
            else if (tie == ties)
                *own = from[i];
            else
                behind[second++] = from[i];
        }
    }
}

// --- keys ------------------------------------------------------------------------------

#define SIGN ((WORD)1 << (BITS - 1))

static bool NAME(keys)(const struct cpu_keys *of, const void *x_, WORD *keys, int64_t n)
{
    const WORD *x = x_, flip = of->descending ? ~(WORD)0 : 0;
    const WORD change = flip ^ (of->is_signed ? SIGN : 0);
    SIGNED rare = 0;
    if (!of->is_float) {
        for (int64_t i = 0; i < n; i++)
            keys[i] = x[i] ^ change;
        return true;
    }
    for (int64_t i = 0; i < n; i++) {
        FLOAT f = ((const FLOAT *)x_)[i];
        rare |= (f != f) | (x[i] == SIGN);
        keys[i] = x[i] ^ ((WORD)((SIGNED)x[i] >> (BITS - 1)) | SIGN) ^ flip;
    }
    return !rare;
}

#if LANES > 1

static void NAME(elements)(const struct cpu_keys *of, const WORD *keys, void *x_,
                           int64_t step, int64_t n)
{
    WORD *x = x_;
    const WORD flip = of->descending ? ~(WORD)0 : 0;
    const WORD change = flip ^ (of->is_signed ? SIGN : 0);
    for (int64_t i = 0; i < n && !of->is_float; i++)
        x[i * step] = keys[i] ^ change;
    for (int64_t i = 0; i < n && of->is_float; i++) {
        WORD key = keys[i] ^ flip;
        x[i * step] = key ^ (~(WORD)((SIGNED)key >> (BITS - 1)) | SIGN);
    }
}

#endif

#undef SIGN
