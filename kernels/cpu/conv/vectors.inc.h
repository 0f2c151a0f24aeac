// SPDX-License-Identifier: MIT
// The loops of vectors.h for one type. Included by vectors.c, which defines REAL, WIDTH
// (elements of a vector), and NAME(word), the names of this file's functions.
//
// A tile of TILE rows of outputs keeps TILE rows of x in registers: each v[j] reads one row
// more, which replaces the oldest. Sums of PART products are added to the outputs, so that
// no sum has many roundings.

typedef REAL NAME(vector) __attribute__((vector_size(WIDTH * sizeof(REAL))));

// Adds `count` terms, a multiple of TILE, to TILE rows of out; x, v and out point to the
// first row and term.
static inline void NAME(tile)(const NAME(vector) * x, const REAL *v, NAME(vector) * out,
                              int64_t count)
{
    NAME(vector) acc[TILE] = {0}, row[TILE];
    UNROLL
    for (int k = 0; k + 1 < TILE; k++)
        row[k] = x[k];
    for (int64_t j = 0; j < count; j += TILE) {
        UNROLL
        for (int u = 0; u < TILE; u++) {
            row[(u + TILE - 1) % TILE] = x[j + u + TILE - 1];
            UNROLL
            for (int k = 0; k < TILE; k++)
                acc[k] += row[(u + k) % TILE] * v[j + u];
        }
    }
    UNROLL
    for (int k = 0; k < TILE; k++)
        out[k] += acc[k];
}

static void NAME(sum)(const struct cpu_windows *w, int64_t begin, int64_t end)
{
    const NAME(vector) *x = w->rows;
    const REAL *v = w->v;
    NAME(vector) *out = w->out;
    for (int64_t r = begin; r < end; r++)
        out[r] = (NAME(vector)){0};
    for (int64_t first = 0; first < w->m; first += PART) {
        int64_t count = w->m - first < PART ? w->m - first : PART;
        int64_t whole = count / TILE * TILE, r = begin;
        for (; r + TILE <= end; r += TILE) {
            NAME(tile)(x + r + first, v + first, out + r, whole);
            for (int64_t j = first + whole; j < first + count; j++)
                for (int k = 0; k < TILE; k++)
                    out[r + k] += x[r + k + j] * v[j];
        }
        for (; r < end; r++)
            for (int64_t j = first; j < first + count; j++)
                out[r] += x[r + j] * v[j];
    }
}
