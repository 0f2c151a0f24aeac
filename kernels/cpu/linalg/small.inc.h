// SPDX-License-Identifier: MIT
// The loops of small.h for numbers NUMBER, as wide as integers BITS.

typedef NUMBER OF(vector) __attribute__((vector_size(SMALL_VECTOR)));
typedef BITS OF(mask) __attribute__((vector_size(SMALL_VECTOR)));
#define VECTOR OF(vector)
#define MASK OF(mask)
#define COUNT ((int64_t)(SMALL_VECTOR / sizeof(NUMBER)))

static VECTOR *OF(row_of)(const struct small_group *group, int64_t i)
{
    return (VECTOR *)group->work + i * (group->n + group->k);
}

static inline VECTOR OF(choose)(MASK condition, VECTOR yes, VECTOR no)
{
    return (VECTOR)((condition & (MASK)yes) | (~condition & (MASK)no));
}

static inline VECTOR OF(size_of)(VECTOR v)
{
    return OF(choose)(v < 0, -v, v);
}

// --- memory ----------------------------------------------------------------------------

// Loads elements [0, count) of each lane's memory to vectors at `to`, by squares, since all
// lanes' memory may compete for the same lines of the first-level cache.
static void OF(load_run)(VECTOR *to, const struct small_matrices *from, int64_t offset,
                         int64_t count)
{
    NUMBER square[SMALL_VECTOR / sizeof(NUMBER)][SMALL_VECTOR / sizeof(NUMBER)];
    for (int64_t begin = 0; begin < count; begin += COUNT) {
        int64_t some = count - begin < COUNT ? count - begin : COUNT;
        for (int64_t lane = 0; lane < COUNT; lane++) {
            const char *at = from->at[lane] + (offset + begin) * (int64_t)sizeof(NUMBER);
            memcpy(square[lane], at, (size_t)some * sizeof(NUMBER));
        }
        for (int64_t i = 0; i < some; i++)
            for (int64_t lane = 0; lane < COUNT; lane++)
                to[begin + i][lane] = square[lane][i];
    }
}

static void OF(store_run)(const VECTOR *from, const struct small_matrices *to,
                          int64_t offset, int64_t count, int64_t lanes)
{
    NUMBER square[SMALL_VECTOR / sizeof(NUMBER)][SMALL_VECTOR / sizeof(NUMBER)];
    for (int64_t begin = 0; begin < count; begin += COUNT) {
        int64_t some = count - begin < COUNT ? count - begin : COUNT;
        for (int64_t i = 0; i < some; i++)
            for (int64_t lane = 0; lane < COUNT; lane++)
                square[lane][i] = from[begin + i][lane];
        for (int64_t lane = 0; lane < lanes; lane++) {
            char *at = to->at[lane] + (offset + begin) * (int64_t)sizeof(NUMBER);
            memcpy(at, square[lane], (size_t)some * sizeof(NUMBER));
        }
    }
}

static void OF(load)(const struct small_group *group, const struct small_matrices *from,
                     int64_t first, int64_t columns)
{
    for (int64_t i = 0; i < group->n; i++) {
        VECTOR *to = OF(row_of)(group, i) + first;
        if (from->column == 1) {
            OF(load_run)(to, from, i * from->row, columns);
            continue;
        }
        for (int64_t j = 0; j < columns; j++)
            for (int64_t lane = 0; lane < COUNT; lane++)
                to[j][lane] =
                    ((const NUMBER *)from->at[lane])[i * from->row + j * from->column];
    }
}

static void OF(load_identity)(const struct small_group *group, int64_t first)
{
    for (int64_t i = 0; i < group->n; i++)
        for (int64_t j = 0; j < group->n; j++)
            OF(row_of)(group, i)[first + j] = (VECTOR){0} + (NUMBER)(i == j);
}

static void OF(store)(const struct small_group *group, const struct small_matrices *to,
                      int64_t first, int64_t columns, int64_t count)
{
    for (int64_t i = 0; i < group->n; i++) {
        const VECTOR *from = OF(row_of)(group, i) + first;
        if (to->column == 1) {
            OF(store_run)(from, to, i * to->row, columns, count);
            continue;
        }
        for (int64_t j = 0; j < columns; j++)
            for (int64_t lane = 0; lane < count; lane++)
                ((NUMBER *)to->at[lane])[i * to->row + j * to->column] = from[j][lane];
    }
}

// --- factors ---------------------------------------------------------------------------

// row -= factor * other, for vectors [begin, end).
static inline void OF(subtract)(VECTOR *row, const VECTOR *other, VECTOR factor,
                                int64_t begin, int64_t end)
{
    for (int64_t j = begin; j < end; j++)
        row[j] -= factor * other[j];
}

static void OF(find_nan)(const struct small_group *group, struct small_answer *out)
{
    MASK found = {0};
    for (int64_t i = 0; i < group->n; i++)
        for (int64_t j = 0; j < group->n; j++) {
            VECTOR v = OF(row_of)(group, i)[j];
            found |= v != v;
        }
    for (int64_t lane = 0; lane < COUNT; lane++)
        out->nan[lane] = found[lane] != 0;
}

// Exchanges in each lane row k for the row, from k on, with the greatest element of column
// k.
static void OF(exchange)(const struct small_group *group, int64_t k,
                         struct small_answer *out)
{
    int64_t width = group->n + group->k;
    VECTOR *row = OF(row_of)(group, k), most = OF(size_of)(row[k]);
    MASK chosen = (MASK){0} + (BITS)k;
    for (int64_t i = k + 1; i < group->n; i++) {
        VECTOR size = OF(size_of)(OF(row_of)(group, i)[k]);
        MASK greater = size > most;
        most = OF(choose)(greater, size, most);
        chosen = (greater & ((MASK){0} + (BITS)i)) | (~greater & chosen);
    }
    for (int64_t lane = 0; lane < COUNT; lane++) {
        if (chosen[lane] == k)
            continue;
        NUMBER *a = (NUMBER *)row + lane;
        NUMBER *b = (NUMBER *)OF(row_of)(group, chosen[lane]) + lane;
        for (int64_t j = 0; j < width; j++) {
            NUMBER other = a[j * COUNT];
            a[j * COUNT] = b[j * COUNT];
            b[j * COUNT] = other;
        }
        out->sign[lane] = -out->sign[lane];
    }
}

static void OF(factor)(const struct small_group *group, struct small_answer *out)
{
    int64_t n = group->n, width = n + group->k;
    OF(find_nan)(group, out);
    for (int64_t lane = 0; lane < COUNT; lane++) {
        out->zero[lane] = 0;
        out->sign[lane] = 1;
    }
    for (int64_t k = 0; k < n; k++) {
        OF(exchange)(group, k, out);
        const VECTOR *row = OF(row_of)(group, k);
        for (int64_t lane = 0; lane < COUNT; lane++)
            if (row[k][lane] == 0 && out->zero[lane] == 0)
                out->zero[lane] = (int)(k + 1);
        // All elements below a pivot of 0 are zeros; dividing them by 1 keeps them.
        VECTOR pivot = OF(choose)(row[k] == 0, (VECTOR){0} + 1, row[k]);
        for (int64_t i = k + 1; i < n; i++) {
            VECTOR *other = OF(row_of)(group, i), share = other[k] / pivot;
            other[k] = share;
            OF(subtract)(other, row, share, k + 1, width);
        }
    }
}

static void OF(solve)(const struct small_group *group, bool lower, bool unit_diagonal)
{
    int64_t n = group->n, width = n + group->k;
    for (int64_t step = 0; step < n; step++) {
        int64_t i = lower ? step : n - 1 - step;
        VECTOR *row = OF(row_of)(group, i);
        for (int64_t k = lower ? 0 : i + 1; k < (lower ? i : n); k++)
            OF(subtract)(row, OF(row_of)(group, k), row[k], n, width);
        for (int64_t j = n; j < width && !unit_diagonal; j++)
            row[j] /= row[i];
    }
}

static void OF(cholesky)(const struct small_group *group, struct small_answer *out)
{
    int64_t n = group->n;
    memset(out->zero, 0, sizeof(out->zero));
    memset(out->nan, 0, sizeof(out->nan));
    for (int64_t k = 0; k < n; k++) {
        VECTOR *row = OF(row_of)(group, k), root;
        for (int64_t lane = 0; lane < COUNT; lane++) {
            if (!(row[k][lane] > 0) && out->zero[lane] == 0)
                out->zero[lane] = (int)(k + 1);
            root[lane] = ROOT(row[k][lane]);
        }
        row[k] = root;
        for (int64_t i = k + 1; i < n; i++)
            OF(row_of)(group, i)[k] /= root;
        for (int64_t i = k + 1; i < n; i++) {
            VECTOR *other = OF(row_of)(group, i), share = other[k];
            for (int64_t j = k + 1; j <= i; j++)
                other[j] -= share * OF(row_of)(group, j)[k];
        }
        for (int64_t j = k + 1; j < n; j++)
            row[j] = (VECTOR){0};
    }
}

static void OF(diagonal)(const struct small_group *group, int64_t i, double *out)
{
    for (int64_t lane = 0; lane < COUNT; lane++)
        out[lane] = (double)OF(row_of)(group, i)[i][lane];
}

const struct small_kernels KERNELS = {
    .lanes = COUNT,
    .load = OF(load),
    .load_identity = OF(load_identity),
    .store = OF(store),
    .factor = OF(factor),
    .solve = OF(solve),
    .cholesky = OF(cholesky),
    .diagonal = OF(diagonal),
};
#undef VECTOR
#undef MASK
#undef COUNT
