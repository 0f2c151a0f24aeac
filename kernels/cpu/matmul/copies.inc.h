// SPDX-License-Identifier: MIT
// Copies of blocks of operands, widened to T: rows at a pitch, columns as panels. Included
// behind panels.inc.h, with SIDE defined, the elements of a `square`, and transpose(),
// which transposes SIDE vectors of type `square`. PACK(KIND, SIZE) defines copies of
// elements of SIZE bytes, which one_KIND, side_KIND and many_KIND load: one, SIDE and
// LANES of them.

// Panels that are copied together, so that more of each page of memory is read at a time.
#define GROUP 8

#define PACK(KIND, SIZE)                                                                   \
    /* Transposes SIDE lines of adjacent elements. */                                      \
    INLINE void turn_##KIND(const char *from, int64_t line, int64_t length, int64_t pitch, \
                            T *to)                                                         \
    {                                                                                      \
        int64_t p = 0;                                                                     \
        for (; p + SIDE <= length; p += SIDE) {                                            \
            square x[SIDE];                                                                \
            for (int i = 0; i < SIDE; i++)                                                 \
                x[i] = side_##KIND(from + i * line + p * SIZE);                            \
            transpose(x);                                                                  \
            for (int i = 0; i < SIDE; i++)                                                 \
                *(square_loose *)(void *)(to + (p + i) * pitch) = x[i];                    \
        }                                                                                  \
        for (; p < length; p++)                                                            \
            for (int i = 0; i < SIDE; i++)                                                 \
                to[p * pitch + i] = one_##KIND(from + i * line + p * SIZE);                \
    }                                                                                      \
    static void rows_##KIND(const struct panel_lines *l, int64_t pitch, T *to)             \
    {                                                                                      \
        int64_t first = 0;                                                                 \
        if (l->line == SIZE && l->step != SIZE)                                            \
            for (; first + SIDE <= l->length; first += SIDE)                               \
                turn_##KIND(l->from + first * l->step, l->step, l->count, pitch,           \
                            to + first);                                                   \
        for (int64_t i = 0; i < l->count; i++, to += pitch) {                              \
            const char *from = l->from + i * l->line;                                      \
            int64_t p = first;                                                             \
            if (l->step == SIZE)                                                           \
                for (; p + LANES <= l->length; p += LANES)                                 \
                    *(loose *)(void *)(to + p) = many_##KIND(from + p * SIZE);             \
            for (; p < l->length; p++)                                                     \
                to[p] = one_##KIND(from + p * l->step);                                    \
        }                                                                                  \
    }                                                                                      \
    /* Copies columns with any strides to one panel. */                                    \
    static void panel_##KIND(const struct panel_lines *l, const char *from, int64_t count, \
                             T *to)                                                        \
    {                                                                                      \
        int64_t first = 0;                                                                 \
        if (l->step == SIZE)                                                               \
            for (; first + SIDE <= count; first += SIDE)                                   \
                turn_##KIND(from + first * l->line, l->line, l->length, COLUMNS,           \
                            to + first);                                                   \
        for (int64_t p = 0; p < l->length && first < count; p++)                           \
            for (int64_t i = first; i < count; i++)                                        \
                to[p * COLUMNS + i] = one_##KIND(from + i * l->line + p * l->step);        \
    }                                                                                      \
    static void columns_##KIND(const struct panel_lines *l, T *to)                         \
    {                                                                                      \
        int64_t j = 0;                                                                     \
        if (l->line == SIZE)                                                               \
            for (int64_t step; j + COLUMNS <= l->count; j += step) {                       \
                step = (l->count - j) / COLUMNS * COLUMNS;                                 \
                step = step < GROUP * COLUMNS ? step : GROUP * COLUMNS;                    \
                for (int64_t p = 0; p < l->length; p++)                                    \
                    for (int64_t i = 0; i < step; i += LANES)                              \
                        *(loose *)(void *)(to + (j + i) / COLUMNS * COLUMNS * l->length +  \
                                           p * COLUMNS + i % COLUMNS) =                    \
                            many_##KIND(l->from + (j + i) * SIZE + p * l->step);           \
            }                                                                              \
        for (; j < l->count; j += COLUMNS)                                                 \
            panel_##KIND(l, l->from + j * l->line,                                         \
                         l->count - j < COLUMNS ? l->count - j : COLUMNS,                  \
                         to + j * l->length);                                              \
    }
