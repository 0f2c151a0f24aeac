// SPDX-License-Identifier: MIT
// Exif's orientation: read from the first directory, and applied.
#include "orientation.h"
#include <string.h>

enum { ORIENTATION = 0x0112, SHORT = 3, ENTRY = 12, CHANNELS = 3 };

// A header of TIFF and what follows, from `data` on.
struct tiff {
    const uint8_t *data;
    uint64_t size;
    int32_t is_big_endian;
};

// The number of `bytes` bytes, 2 or 4, at an offset; 0 beyond the end.
static uint64_t tiff_number(const struct tiff *t, uint64_t at, uint64_t bytes)
{
    uint64_t number = 0;
    if (t->size < bytes || at > t->size - bytes)
        return 0;
    for (uint64_t i = 0; i < bytes; i++)
        number = number << 8 | t->data[at + (t->is_big_endian ? i : bytes - 1 - i)];
    return number;
}

int32_t orientation_read(const uint8_t *data, uint64_t size)
{
    static const uint8_t begin[] = {'E', 'x', 'i', 'f', 0, 0};
    if (size < sizeof(begin) + 8 || memcmp(data, begin, sizeof(begin)) != 0)
        return 1;
    struct tiff t = {data + sizeof(begin), size - sizeof(begin), 0};
    t.is_big_endian = t.data[0] == 'M';
    uint64_t first = tiff_number(&t, 4, 4), count = tiff_number(&t, first, 2);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t entry = first + 2 + i * ENTRY, value = tiff_number(&t, entry + 8, 2);
        if (tiff_number(&t, entry, 2) == ORIENTATION &&
            tiff_number(&t, entry + 2, 2) == SHORT)
            return value >= 1 && value <= 8 ? (int32_t)value : 1;
    }
    return 1;
}

// Changes of rows and columns, in this order: exchanged, then read from the end.
static const struct {
    int32_t swaps, flips_rows, flips_columns; // of the stored image
} orientations[9] = {[2] = {0, 0, 1}, [3] = {0, 1, 1}, [4] = {0, 1, 0}, [5] = {1, 0, 0},
                     [6] = {1, 1, 0}, [7] = {1, 1, 1}, [8] = {1, 0, 1}};

int32_t orientation_swaps(int32_t orientation)
{
    return orientations[orientation].swaps;
}

void orientation_apply(int32_t orientation, const uint8_t *from, int64_t height,
                       int64_t width, uint8_t *out)
{
    int32_t swaps = orientations[orientation].swaps;
    int64_t rows = swaps ? width : height, columns = swaps ? height : width;
    for (int64_t y = 0; y < rows; y++)
        for (int64_t x = 0; x < columns; x++, out += CHANNELS) {
            int64_t row = swaps ? x : y, column = swaps ? y : x;
            row = orientations[orientation].flips_rows ? height - 1 - row : row;
            column = orientations[orientation].flips_columns ? width - 1 - column : column;
            memcpy(out, from + (row * width + column) * CHANNELS, CHANNELS);
        }
}
