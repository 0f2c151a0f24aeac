// SPDX-License-Identifier: MIT
// The loops of small.h for one matrix: rows of numbers, with the operations of small.inc.h
// in the same order, so that results have the bits of a lane.

static NUMBER *OF(one_row)(const struct small_group *group, int64_t i)
{
    return (NUMBER *)group->work + i * (group->n + group->k);
}

static void OF(load_one)(const struct small_group *group, const struct small_matrices *from,
                         int64_t first, int64_t columns)
{
    for (int64_t i = 0; i < group->n; i++) {
        NUMBER *to = OF(one_row)(group, i) + first;
        const NUMBER *at = (const NUMBER *)from->at[0] + i * from->row;
        for (int64_t j = 0; j < columns; j++)
            to[j] = at[j * from->column];
    }
}

static void OF(load_one_identity)(const struct small_group *group, int64_t first)
{
    for (int64_t i = 0; i < group->n; i++)
        for (int64_t j = 0; j < group->n; j++)
            OF(one_row)(group, i)[first + j] = (NUMBER)(i == j);
}

static void OF(store_one)(const struct small_group *group, const struct small_matrices *to,
                          int64_t first, int64_t columns, int64_t count)
{
    (void)count;
    for (int64_t i = 0; i < group->n; i++) {
        const NUMBER *from = OF(one_row)(group, i) + first;
        NUMBER *at = (NUMBER *)to->at[0] + i * to->row;
        for (int64_t j = 0; j < columns; j++)
            at[j * to->column] = from[j];
    }
}

// to -= factor * from, for `count` numbers.
static inline void OF(subtract_one)(NUMBER *restrict to, const NUMBER *restrict from,
                                    NUMBER factor, int64_t count)
{
    for (int64_t j = 0; j < count; j++)
        to[j] -= factor * from[j];
}

static void OF(exchange_one)(const struct small_group *group, int64_t k,
                             struct small_answer *out)
{
    int64_t width = group->n + group->k, chosen = k;
    NUMBER *row = OF(one_row)(group, k), most = row[k] < 0 ? -row[k] : row[k];
    for (int64_t i = k + 1; i < group->n; i++) {
        NUMBER v = OF(one_row)(group, i)[k], size = v < 0 ? -v : v;
        chosen = size > most ? i : chosen;
        most = size > most ? size : most;
    }
    if (chosen == k)
        return;
    NUMBER *restrict other = OF(one_row)(group, chosen);
    for (int64_t j = 0; j < width; j++) {
        NUMBER v = row[j];
        row[j] = other[j];
        other[j] = v;
    }
    out->sign[0] = -out->sign[0];
}

static void OF(factor_one)(const struct small_group *group, struct small_answer *out)
{
    int64_t n = group->n, width = n + group->k;
    int nan = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            nan |= OF(one_row)(group, i)[j] != OF(one_row)(group, i)[j];
    out->nan[0] = nan;
    out->zero[0] = 0;
    out->sign[0] = 1;
    for (int64_t k = 0; k < n; k++) {
        OF(exchange_one)(group, k, out);
        const NUMBER *row = OF(one_row)(group, k);
        if (row[k] == 0 && out->zero[0] == 0)
            out->zero[0] = (int)(k + 1);
        NUMBER pivot = row[k] == 0 ? 1 : row[k];
        for (int64_t i = k + 1; i < n; i++) {
            NUMBER *other = OF(one_row)(group, i), share = other[k] / pivot;
            other[k] = share;
            OF(subtract_one)(other + k + 1, row + k + 1, share, width - k - 1);
        }
    }
}

static void OF(solve_one)(const struct small_group *group, bool lower, bool unit_diagonal)
{
    int64_t n = group->n;
    for (int64_t step = 0; step < n; step++) {
        int64_t i = lower ? step : n - 1 - step;
        NUMBER *row = OF(one_row)(group, i);
        for (int64_t k = lower ? 0 : i + 1; k < (lower ? i : n); k++)
            OF(subtract_one)(row + n, OF(one_row)(group, k) + n, row[k], group->k);
        for (int64_t j = 0; j < group->k && !unit_diagonal; j++)
            row[n + j] /= row[i];
    }
}

// Computes rows of the adjoint factor in the upper triangle, and copies them to the lower
// triangle at the end.
static void OF(cholesky_one)(const struct small_group *group, struct small_answer *out)
{
    int64_t n = group->n;
    out->zero[0] = 0;
    out->nan[0] = false;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            OF(one_row)(group, j)[i] = OF(one_row)(group, i)[j];
    for (int64_t k = 0; k < n; k++) {
        NUMBER *row = OF(one_row)(group, k);
        if (!(row[k] > 0) && out->zero[0] == 0)
            out->zero[0] = (int)(k + 1);
        row[k] = ROOT(row[k]);
        for (int64_t j = k + 1; j < n; j++)
            row[j] /= row[k];
        for (int64_t i = k + 1; i < n; i++) {
            int64_t first = i - i % 8; // whole vectors: columns before i are overwritten
            OF(subtract_one)(OF(one_row)(group, i) + first, row + first, row[i], n - first);
        }
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++) {
            OF(one_row)(group, j)[i] = OF(one_row)(group, i)[j];
            OF(one_row)(group, i)[j] = 0;
        }
}

static void OF(diagonal_one)(const struct small_group *group, int64_t i, double *out)
{
    out[0] = (double)OF(one_row)(group, i)[i];
}

const struct small_kernels ONE = {
    .lanes = 1,
    .load = OF(load_one),
    .load_identity = OF(load_one_identity),
    .store = OF(store_one),
    .factor = OF(factor_one),
    .solve = OF(solve_one),
    .cholesky = OF(cholesky_one),
    .diagonal = OF(diagonal_one),
};
