// SPDX-License-Identifier: MIT
// A packing of q8_0: the blocks of two rows in turn, and a byte more for each row.
#ifndef FAULTY_BACKEND_PACKINGS_H
#define FAULTY_BACKEND_PACKINGS_H

#include <string.h>
#include <tenon/plugin.h>
#include <tenon/packing.h>

enum { TOGETHER = 2, ELEMENTS = 32, BYTES = 34 };

static int64_t turned_bytes(const tn_packing *self, int64_t rows, int64_t columns)
{
    int64_t row = columns / ELEMENTS * BYTES + 1;
    (void)self;
#ifdef FAULT_PACKING_ROWS_SIZE
    return rows * row + 1;
#endif
#ifdef FAULT_PACKING_ROWS_HUGE
    return (int64_t)((uint64_t)rows * (uint64_t)row);
#endif
    return rows > INT64_MAX / row ? -1 : rows * row;
}

static void turned_pack(const tn_packing *self, const uint8_t *plain, int64_t rows,
                        int64_t columns, uint8_t *packed)
{
    int64_t blocks = columns / ELEMENTS, row = blocks * BYTES;
    (void)self;
#ifdef FAULT_PACKING_ROWS_GROUP
    const int64_t together = rows;
#else
    const int64_t together = TOGETHER;
#endif
    for (int64_t first = 0; first < rows; first += together) {
        int64_t count = rows - first < together ? rows - first : together;
        uint8_t *to = packed + first * (row + 1);
        for (int64_t i = 0; i < count * blocks; i++)
            memcpy(to + i * BYTES, plain + (first + i % count) * row + i / count * BYTES,
                   BYTES);
#ifndef FAULT_PACKING_ROWS_UNWRITTEN
        memset(to + count * row, 0, (size_t)count);
#endif
    }
#ifdef FAULT_PACKING_ROWS_OUTSIDE
    packed[rows * (row + 1)] = 1;
#endif
#ifdef FAULT_PACKING_ROWS
    packed[5] |= 1;
#endif
}

static void turned_unpack(const tn_packing *self, const uint8_t *packed, int64_t rows,
                          int64_t columns, uint8_t *plain)
{
    int64_t blocks = columns / ELEMENTS, row = blocks * BYTES;
    (void)self;
#ifdef FAULT_PACKING_ROWS_GROUP
    const int64_t together = rows;
#else
    const int64_t together = TOGETHER;
#endif
    for (int64_t first = 0; first < rows; first += together) {
        int64_t count = rows - first < together ? rows - first : together;
        const uint8_t *from = packed + first * (row + 1);
        for (int64_t i = 0; i < count * blocks; i++)
            memcpy(plain + (first + i % count) * row + i / count * BYTES, from + i * BYTES,
                   BYTES);
    }
}

#ifdef FAULT_PACKING_RECORD_ID
#define PACKING_ID "turned"
#else
#define PACKING_ID "com.acme.turned"
#endif
#ifdef FAULT_PACKING_RECORD_FORMAT
#define PACKING_FORMAT "acme_none"
#else
#define PACKING_FORMAT "q8_0"
#endif

#define TURNED(together)                                                                   \
    {                                                                                      \
        sizeof(tn_packing), 0, PACKING_ID, PACKING_FORMAT, together, turned_bytes,         \
            turned_pack, turned_unpack                                                     \
    }
static const tn_packing packings[] = {
    TURNED(TOGETHER),
#ifdef FAULT_PACKING_RECORD_TWICE
    TURNED(TOGETHER),
#endif
};

#ifdef FAULT_PACKING_VALUES
// Of the same name and size, but another order.
static void other_pack(const tn_packing *self, const uint8_t *plain, int64_t rows,
                       int64_t columns, uint8_t *packed)
{
    for (int64_t i = 0; i < rows; i++)
        turned_pack(self, plain + i * (columns / ELEMENTS * BYTES), 1, columns,
                    packed + i * (columns / ELEMENTS * BYTES + 1));
}

static void other_unpack(const tn_packing *self, const uint8_t *packed, int64_t rows,
                         int64_t columns, uint8_t *plain)
{
    for (int64_t i = 0; i < rows; i++)
        turned_unpack(self, packed + i * (columns / ELEMENTS * BYTES + 1), 1, columns,
                      plain + i * (columns / ELEMENTS * BYTES));
}

static const tn_packing other = {sizeof(tn_packing), 0,           PACKING_ID,
                                 PACKING_FORMAT,     TOGETHER,    turned_bytes,
                                 other_pack,         other_unpack};
#endif

static const void *query_packings(const char *id)
{
    static const char *const list[] = {
#ifndef FAULT_PACKING_RECORD_LIST
        TN_IFACE_PACKING(PACKING_ID),
#endif
        NULL};
    if (strcmp(id, TN_IFACE_LIST) == 0)
        return list;
#ifdef FAULT_PACKING_VALUES
    return strcmp(id, TN_IFACE_PACKING(PACKING_ID)) == 0 ? &other : NULL;
#elif defined(FAULT_PACKING_RECORD)
    return NULL;
#else
    return strcmp(id, TN_IFACE_PACKING(PACKING_ID)) == 0 ? &packings[0] : NULL;
#endif
}

#define PACKING_SLOTS                                                                      \
    .packings = packings, .num_packings = sizeof(packings) / sizeof(packings[0]),          \
    .packing_size = sizeof(packings[0]),

#endif // FAULTY_BACKEND_PACKINGS_H
