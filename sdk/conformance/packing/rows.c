// SPDX-License-Identifier: MIT
// A packing's functions on their own: sizes, and bytes that are packed, unpacked and packed
// again.
#include "packing.h"

enum { GUARD = 65, MAX_ROWS = 100 }; // GUARD is odd: packed bytes need not be aligned

// Packed bytes between two guards.
struct guarded {
    uint8_t *bytes; // owned; `size` of them from byte GUARD on
    int64_t size;
    uint8_t fill;
};

static bool guarded_make(struct kit *k, int64_t size, uint8_t fill, struct guarded *out)
{
    *out = (struct guarded){malloc((size_t)size + 2 * GUARD), size, fill};
    if (!out->bytes)
        check_fail(k, "the kit is out of memory");
    else
        memset(out->bytes, fill, (size_t)size + 2 * GUARD);
    return out->bytes != NULL;
}

static void guarded_check(struct kit *k, const struct guarded *g, const char *what)
{
    const uint8_t *behind = g->bytes + GUARD + g->size;
    for (int i = 0; i < GUARD; i++)
        if (g->bytes[i] != g->fill || behind[i] != g->fill) {
            check_fail(k, "%s writes outside of its %lld bytes", what, (long long)g->size);
            return;
        }
}

// --- sizes ------------------------------------------------------------------------------

static int64_t rows_count_bytes(const struct packing *p, int64_t rows, int64_t columns)
{
    return rows > 0 ? p->record->rows_bytes(p->record, rows, columns) : 0;
}

static void rows_check_sizes(const struct packing *p, int64_t rows)
{
    int64_t block = p->format->block, group = p->record->group, before = 0;
    for (int64_t columns = block; columns <= 5 * block; columns += block) {
        int64_t bytes = rows_count_bytes(p, rows, columns);
        check_case(p->kit);
        if (bytes < rows || bytes % rows)
            check_fail(
                p->kit,
                "%lld rows of %lld elements have %lld bytes, expected as many for each",
                (long long)rows, (long long)columns, (long long)bytes);
        if (bytes <= before)
            check_fail(p->kit,
                       "%lld rows of %lld elements have %lld bytes, %lld with a block less",
                       (long long)rows, (long long)columns, (long long)bytes,
                       (long long)before);
        int64_t sum = group > 0 ? rows / group * rows_count_bytes(p, group, columns) +
                                      rows_count_bytes(p, rows % group, columns)
                                : bytes;
        if (sum != bytes)
            check_fail(p->kit,
                       "%lld rows of %lld elements have %lld bytes, in groups of %lld they "
                       "have %lld",
                       (long long)rows, (long long)columns, (long long)bytes,
                       (long long)group, (long long)sum);
        before = bytes;
    }
    int64_t most = rows_count_bytes(p, INT64_MAX, 2 * block);
    if (most != -1)
        check_fail(p->kit, "2^63 - 1 rows of two blocks have %lld bytes, expected -1",
                   (long long)most);
}

// --- bytes ------------------------------------------------------------------------------

static void rows_pack(const struct packing *p, const uint8_t *plain, int64_t rows,
                      int64_t columns, uint8_t *packed)
{
    p->record->pack(p->record, plain, rows, columns, packed);
}

// Groups that are packed one by one must give the bytes of all rows packed at once.
static void rows_check_groups(const struct packing *p, const uint8_t *plain, int64_t rows,
                              int64_t columns, const struct guarded *whole)
{
    int64_t group = p->record->group, at = 0;
    int64_t row = columns / p->format->block * p->format->bytes;
    struct guarded parts;
    if (group == 0 || !guarded_make(p->kit, whole->size, 0x11, &parts))
        return;
    for (int64_t first = 0; first < rows; first += group) {
        int64_t count = rows - first < group ? rows - first : group;
        int64_t bytes = rows_count_bytes(p, count, columns);
        if (bytes > 0 && bytes <= whole->size - at)
            rows_pack(p, plain + first * row, count, columns, parts.bytes + GUARD + at);
        at += bytes;
    }
    if (memcmp(parts.bytes + GUARD, whole->bytes + GUARD, (size_t)whole->size) != 0)
        check_fail(p->kit, "%lld rows are packed otherwise than in groups of %lld",
                   (long long)rows, (long long)group);
    free(parts.bytes);
}

static void rows_check_bytes(const struct packing *p, const uint8_t *plain, int64_t rows,
                             int64_t columns)
{
    struct kit *k = p->kit;
    int64_t size = rows * (columns / p->format->block * p->format->bytes);
    int64_t bytes = rows_count_bytes(p, rows, columns);
    struct guarded packed = {0}, again = {0}, back = {0};
    check_case(k);
    if (bytes > 0 && guarded_make(k, bytes, 0x5a, &packed) &&
        guarded_make(k, bytes, 0xa5, &again) && guarded_make(k, size, 0x77, &back)) {
        rows_pack(p, plain, rows, columns, packed.bytes + GUARD);
        rows_pack(p, plain, rows, columns, again.bytes + GUARD);
        guarded_check(k, &packed, "pack");
        if (memcmp(packed.bytes + GUARD, again.bytes + GUARD, (size_t)bytes) != 0)
            check_fail(k, "%lld rows of %lld elements: pack leaves bytes unwritten",
                       (long long)rows, (long long)columns);
        p->record->unpack(p->record, packed.bytes + GUARD, rows, columns,
                          back.bytes + GUARD);
        guarded_check(k, &back, "unpack");
        if (memcmp(back.bytes + GUARD, plain, (size_t)size) != 0)
            check_fail(k, "%lld rows of %lld elements come back otherwise", (long long)rows,
                       (long long)columns);
        rows_check_groups(p, plain, rows, columns, &packed);
        // Unpacks bytes that no `pack` has written.
        for (int64_t i = 0; i < bytes; i++)
            again.bytes[GUARD + i] = (uint8_t)random_bits(k);
        p->record->unpack(p->record, again.bytes + GUARD, rows, columns,
                          back.bytes + GUARD);
        guarded_check(k, &back, "unpack of any bytes");
        guarded_check(k, &again, "unpack");
    }
    free(packed.bytes);
    free(again.bytes);
    free(back.bytes);
}

// Packs rows whose bits are all 1, all 0, and random.
static void rows_check_fills(const struct packing *p, int64_t rows, int64_t columns)
{
    int64_t size = rows * (columns / p->format->block * p->format->bytes);
    uint8_t *plain = malloc((size_t)size);
    for (int fill = 0; plain && fill < 3 && !check_failed(p->kit); fill++) {
        for (int64_t i = 0; i < size; i++)
            plain[i] = fill == 0 ? 0 : fill == 1 ? 0xff : (uint8_t)random_bits(p->kit);
        rows_check_bytes(p, plain, rows, columns);
    }
    free(plain);
}

void packing_check_rows(const struct packing *p)
{
    int64_t group = p->record->group, block = p->format->block;
    const int64_t rows[] = {1, 2, 3, 7, 16, 17, 33, group, group + 1, 2 * group + 3};
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (rows[i] < 1 || rows[i] > MAX_ROWS)
            continue;
        rows_check_sizes(p, rows[i]);
        for (int64_t blocks = 1; blocks <= 3 && !check_failed(p->kit); blocks++)
            rows_check_fills(p, rows[i], blocks * block);
    }
}
