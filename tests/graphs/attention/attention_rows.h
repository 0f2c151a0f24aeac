// SPDX-License-Identifier: MIT
// The cases of attention.c.
#ifndef TESTS_GRAPHS_ATTENTION_ROWS_H
#define TESTS_GRAPHS_ATTENTION_ROWS_H

#include <stdbool.h>
#include <tenon/tenon.h>

#define BATCHES 2
#define MOST (1 << 19) // elements of an operand

enum masks {
    NO_MASK,
    SEEN,
    SEEN_BY_KEY,
    SEEN_BY_HEAD,
    ADDED,
    ADDED_BY_QUERY,
    NOTHING_SEEN
};
enum layouts { PLAIN, CACHE, COLUMNS, ODD_OFFSET };

// Each tile, number of columns, dtype and way to load is a shader, which software compiles
// for most of a second: rows keep to few. `half` names what GPUs run a row in beside f32,
// and what the second of them, which has the same kernels, runs alone.
struct row {
    int64_t heads, groups, queries, keys, depth, width;
    enum masks mask;
    enum layouts layout; // of k and v; COLUMNS: of q too
    int64_t num_lengths, lengths[BATCHES];
    tn_dtype length_dtype;
    const char *attrs[4];
    tn_dtype half;
    bool on_matrices; // of a device that has the units; halves alone
    bool may_round;   // there are enough multiplications for these in other tests, too
};

// clang-format off
static const struct row rows[] = {
    // heads, groups, queries, keys, depth, width: edges of tiles of 4, 8 and 64 rows, of 64 and
    // 128 keys, of slices of 16 and 32, of 64, 128 and 256 columns
    {1, 1, 1, 1, 1, 1, 0, 0, 0, {0}, 0, {0}, 0},
    {2, 1, 2, 65, 8, 8, 0, 0, 0, {0}, 0, {0}, 0},
    {2, 2, 4, 127, 7, 5, 0, 0, 0, {0}, 0, {0}, 0},
    {4, 1, 2, 129, 20, 64, 0, 0, 0, {0}, 0, {0}, 0},
    {2, 2, 33, 63, 16, 64, 0, 0, 0, {0}, 0, {0}, 0},
    {4, 2, 32, 65, 65, 66, 0, 0, 0, {0}, 0, {0}, 0},
    {2, 1, 65, 130, 64, 128, 0, 0, 0, {0}, 0, {0}, 0},
    {1, 1, 70, 20, 300, 256, 0, 0, 0, {0}, 0, {0}, 0},
    // on the tiles of processors: 32 rows and keys, a part of 64 rows, several blocks of 256 keys
    {4, 2, 45, 530, 32, 64, SEEN, CACHE, 0, {0}, 0, {"is_causal", "true", "window", "300"}, 0},
    {2, 1, 9, 70, 128, 200, 0, 0, 0, {0}, 0, {0}, 0},
    // keys in parts
    {8, 2, 1, 300, 32, 64, 0, 0, 0, {0}, 0, {0}, TN_F16},
    {2, 2, 1, 515, 32, 33, 0, 0, 0, {0}, 0, {0}, TN_BF16},
    {2, 2, 80, 1030, 8, 16, 0, 0, 0, {0}, 0, {"is_causal", "true"}, TN_BF16, false, true},
    {64, 64, 33, 20, 4, 4, 0, 0, 0, {0}, 0, {"is_causal", "true"}, 0},
    // so many rows of queries and of keys that derivatives hold whole rows in shared memory
    {64, 32, 33, 66, 12, 20, 0, 0, 0, {0}, 0, {"is_causal", "true"}, 0},
    // few rows by lines: lines of 4 to 64 invocations; so many keys that workgroups have 8, 3
    // and 7 rows
    {8, 1, 1, 300, 128, 128, 0, 0, 0, {0}, 0, {0}, TN_F16},
    {6, 2, 1, 200, 40, 56, ADDED, CACHE, 2, {150, 97}, TN_I64, {"is_causal", "true"}, TN_F16},
    {1, 1, 20, 150, 16, 24, SEEN, 0, 0, {0}, 0, {"is_causal", "true"}, TN_BF16},
    {2, 2, 1, 130, 256, 128, 0, 0, 0, {0}, 0, {0}, 0},
    {8, 1, 4, 2050, 64, 64, 0, 0, 0, {0}, 0, {"is_causal", "true"}, TN_F16},
    {6, 2, 1, 3000, 40, 40, ADDED, CACHE, 2, {2900, 97}, TN_I64, {"is_causal", "true"}, TN_F16},
    {1, 1, 20, 6600, 16, 24, SEEN, 0, 0, {0}, 0, {"is_causal", "true"}, TN_BF16},
    // places
    {2, 2, 70, 70, 16, 16, 0, 0, 0, {0}, 0, {"is_causal", "true"}, 0},
    {4, 2, 20, 40, 16, 16, 0, 0, 0, {0}, 0, {"is_causal", "true", "window", "7"}, 0},
    {1, 1, 5, 300, 16, 16, 0, 0, 1, {290}, TN_I64, {"window", "70"}, 0},
    {1, 1, 2, 3, 4, 4, 0, 0, 0, {0}, 0, {"window", "4611686018427387904"}, 0},
    // lengths: none, part of, all, and more than there are
    {4, 2, 1, 300, 16, 16, 0, CACHE, 2, {0, 300}, TN_I64, {"is_causal", "true"}, TN_F16},
    {4, 2, 1, 300, 16, 16, 0, CACHE, 2, {1, 129}, TN_U8, {"is_causal", "true"}, 0},
    {4, 2, 3, 40, 16, 16, 0, CACHE, 2, {2, 77}, TN_I16, {"is_causal", "true"}, 0},
    {2, 1, 40, 90, 16, 16, 0, CACHE, 2, {35, 60}, TN_U32, {"is_causal", "true", "window", "9"}, 0},
    {1, 1, 2, 9, 4, 4, 0, 0, 2, {-5, 8}, TN_I8, {0}, 0},
    {1, 1, 2, 9, 4, 4, 0, 0, 2, {INT64_MIN, INT64_MAX}, TN_I64, {0}, 0},
    {1, 1, 2, 9, 4, 4, 0, 0, 1, {INT64_C(1) << 40}, TN_U64, {"window", "5"}, 0},
    {1, 1, 2, 9, 4, 4, 0, 0, 1, {5}, TN_I32, {"is_causal", "true"}, 0},
    // scores
    {2, 1, 5, 9, 12, 4, 0, 0, 0, {0}, 0, {"scale", "-1.5"}, 0},
    {2, 1, 5, 9, 12, 4, 0, 0, 0, {0}, 0, {"soft_cap", "0.7", "scale", "2"}, 0},
    {2, 1, 5, 600, 12, 4, ADDED, 0, 0, {0}, 0, {"soft_cap", "3"}, 0},
    {2, 1, 5, 69, 12, 4, SEEN, 0, 0, {0}, 0, {0}, 0},
    {4, 2, 5, 69, 12, 4, SEEN_BY_HEAD, 0, 0, {0}, 0, {"is_causal", "true"}, 0},
    {2, 2, 40, 69, 12, 4, SEEN_BY_KEY, 0, 0, {0}, 0, {"soft_cap", "3"}, TN_BF16},
    {2, 1, 3, 300, 12, 4, ADDED, 0, 1, {280}, TN_I32, {"is_causal", "true"}, 0},
    {2, 1, 40, 6, 12, 4, ADDED_BY_QUERY, 0, 0, {0}, 0, {"soft_cap", "2"}, 0},
    {2, 1, 2, 300, 12, 4, NOTHING_SEEN, 0, 0, {0}, 0, {0}, TN_F16},
    {2, 2, 40, 30, 12, 4, NOTHING_SEEN, CACHE, 0, {0}, 0, {0}, 0},
    // layouts
    {4, 2, 4, 70, 32, 64, 0, CACHE, 0, {0}, 0, {0}, 0},
    {2, 1, 17, 70, 16, 24, 0, COLUMNS, 0, {0}, 0, {0}, TN_F16},
    {2, 1, 40, 30, 16, 12, 0, ODD_OFFSET, 0, {0}, 0, {0}, 0},
    {4, 2, 36, 40, 16, 16, ADDED, CACHE, 2, {36, 38}, TN_I64, {"is_causal", "true", "window", "30"}, TN_BF16},
    // matrix units: edges of tiles of 64 and 128 rows and of 32 and 64 keys, of up to 64 and 128
    // columns; rows of several heads in a tile; keys in parts
    {8, 2, 64, 130, 64, 64, 0, 0, 0, {0}, 0, {0}, 0, true},
    {8, 2, 65, 127, 64, 64, 0, 0, 0, {0}, 0, {"is_causal", "true"}, 0, true},
    {2, 2, 128, 128, 128, 128, 0, 0, 0, {0}, 0, {"is_causal", "true"}, 0, true},
    {4, 1, 129, 193, 128, 128, 0, CACHE, 0, {0}, 0, {"scale", "-0.3"}, 0, true},
    {6, 2, 100, 150, 40, 56, 0, 0, 0, {0}, 0, {"is_causal", "true", "window", "70"}, 0, true},
    {6, 2, 100, 150, 72, 24, 0, 0, 0, {0}, 0, {"soft_cap", "0.7"}, 0, true},
    {4, 2, 96, 200, 80, 128, SEEN, 0, 0, {0}, 0, {0}, 0, true},
    {4, 2, 96, 200, 64, 64, ADDED, CACHE, 2, {150, 97}, TN_I64, {"is_causal", "true"}, 0, true},
    {4, 4, 100, 170, 64, 64, ADDED_BY_QUERY, 0, 0, {0}, 0, {"soft_cap", "2"}, 0, true},
    {4, 4, 100, 170, 128, 128, SEEN_BY_KEY, 0, 0, {0}, 0, {"is_causal", "true"}, 0, true},
    {4, 2, 100, 200, 64, 64, NOTHING_SEEN, 0, 0, {0}, 0, {0}, 0, true},
    {4, 2, 100, 200, 64, 64, 0, CACHE, 2, {0, 200}, TN_I64, {"window", "33"}, 0, true},
    {2, 1, 70, 1100, 64, 64, 0, 0, 0, {0}, 0, {0}, 0, true},
    {2, 1, 70, 1100, 128, 64, 0, 0, 0, {0}, 0, {"is_causal", "true"}, 0, true},
    // and what they do not take
    {4, 2, 100, 200, 60, 64, 0, 0, 0, {0}, 0, {0}, 0, true},
    {4, 2, 100, 200, 64, 64, 0, COLUMNS, 0, {0}, 0, {0}, 0, true},
    {4, 2, 100, 200, 64, 64, 0, ODD_OFFSET, 0, {0}, 0, {0}, 0, true},
};
// clang-format on

#endif // TESTS_GRAPHS_ATTENTION_ROWS_H
