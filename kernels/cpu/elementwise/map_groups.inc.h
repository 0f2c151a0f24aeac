// SPDX-License-Identifier: MIT
// Loops over elements of type T in groups, for functions with one formula for common
// operands and another for rare ones. The file that includes this defines T and WORD, an
// integer type of T's size.

// Elements of a group. A formula is computed for all elements of a group, or for none.
#define RARE_GROUP 32

// Defines a cpu_map_fn that computes `expression` for all groups, and for a group in which
// `common` does not hold for all elements also `rare`; both are vector loops.
#define MAP1_GROUPS(name, common, expression, rare)                                        \
    static void name##_group(T *result, const T *a)                                        \
    {                                                                                      \
        WORD all = 1;                                                                      \
        for (int64_t i = 0; i < RARE_GROUP; i++) {                                         \
            T x = a[i];                                                                    \
            all &= (common);                                                               \
            result[i] = (expression);                                                      \
        }                                                                                  \
        for (int64_t i = 0; !all && i < RARE_GROUP; i++) {                                 \
            T x = a[i], other = (rare);                                                    \
            result[i] = (common) ? result[i] : other;                                      \
        }                                                                                  \
    }                                                                                      \
    static void name(void *out, const void *const *in, int64_t n, uint32_t scalars)        \
    {                                                                                      \
        T rest[RARE_GROUP] = {0}, result[RARE_GROUP];                                      \
        size_t bytes = sizeof(T) * (size_t)(n % RARE_GROUP);                               \
        int64_t at = 0;                                                                    \
        (void)scalars;                                                                     \
        for (; at + RARE_GROUP <= n; at += RARE_GROUP) {                                   \
            name##_group(result, (const T *)in[0] + at);                                   \
            memcpy((T *)out + at, result, sizeof(result));                                 \
        }                                                                                  \
        if (bytes == 0)                                                                    \
            return;                                                                        \
        memcpy(rest, (const T *)in[0] + at, bytes);                                        \
        name##_group(result, rest);                                                        \
        memcpy((T *)out + at, result, bytes);                                              \
    }
