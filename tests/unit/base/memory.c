// SPDX-License-Identifier: MIT
// Failures, memory, hashes and the map.
#include <pthread.h>
#include "check.h"
#include <tenon/tenon.h>
#include "base/counts.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"

// --- failures --------------------------------------------------------------------------

Test(memory, a_failure_is_recorded_and_its_context_put_in_front)
{
    check_status(fail(TN_ERR_ARGUMENT, "axis %d", 7), TN_ERR_ARGUMENT);
    fail_prefix("base.%s: ", "sum");
    cr_assert(eq(str, tn_last_error(), "base.sum: axis 7"));
    fail(TN_ERR_IO, "again: %s", fail_text()); // the message in itself
    cr_assert(eq(str, fail_text(), "again: base.sum: axis 7"));
    fail_clear();
    cr_assert(eq(str, fail_text(), ""));
}

Test(memory, a_long_failure_is_cut_and_never_overflows)
{
    char text[5000];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = 0;
    fail(TN_ERR_IO, "%s", text);
    size_t size = strlen(fail_text());
    check_within(u64, size, 500, 4999);
    fail_prefix("where: ");
    cr_assert(eq(sz, strlen(fail_text()), size));
    cr_assert(eq(mem, bytes_of(fail_text(), 10), bytes_of("where: xxx", 10)));
    fail_prefix("%s", text); // no room for both: the reason stays
    cr_assert(eq(mem, bytes_of(fail_text(), 10), bytes_of("where: xxx", 10)));
}

static void *fail_elsewhere(void *unused)
{
    (void)unused;
    fail(TN_ERR_IO, "elsewhere");
    return NULL;
}

Test(memory, failures_of_threads_do_not_mix)
{
    pthread_t thread;
    fail(TN_ERR_IO, "here");
    cr_assert(eq(int, pthread_create(&thread, NULL, fail_elsewhere, NULL), 0));
    pthread_join(thread, NULL);
    cr_assert(eq(str, fail_text(), "here"));
}

Test(memory, every_status_has_a_name)
{
    for (tn_status status = TN_OK; status >= TN_ERR_INTERNAL; status--)
        cr_assert(ne(str, tn_status_name(status), "unknown"));
    cr_assert(eq(str, tn_status_name(TN_ERR_NOT_FOUND), "not found"));
    cr_assert(eq(str, tn_status_name(1), "unknown"));
    cr_assert(eq(str, tn_status_name(-9), "unknown"));
}

// --- memory ----------------------------------------------------------------------------

Test(memory, the_nth_allocation_fails_once)
{
    mem_fail_nth(2);
    void *first = mem_alloc(10), *second = mem_zalloc(20), *third = mem_alloc(30);
    cr_assert(ne(ptr, first, NULL));
    cr_assert(eq(ptr, second, NULL));
    cr_assert(ne(ptr, third, NULL));
    cr_assert(eq(str, fail_text(), "out of memory: 20 bytes"));
    mem_fail_nth(1);
    cr_assert(eq(ptr, mem_realloc(first, 100), NULL)); // first is still there
    mem_free(first);
    mem_free(third);
    mem_fail_nth(1);
    cr_assert(eq(ptr, mem_strdup("text"), NULL));
    mem_fail_nth(1);
    cr_assert(eq(ptr, mem_printf("%d", 1), NULL));
    mem_fail_nth(1);
    cr_assert(eq(ptr, mem_alloc_aligned(8, 64), NULL));
    mem_fail_nth(1);
    mem_fail_nth(0); // off
    char *text = mem_printf("%s-%d", "n", 5);
    cr_assert(eq(str, text, "n-5"));
    mem_free(text);
}

Test(memory, aligned_memory_is_aligned)
{
    for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
        void *memory = mem_alloc_aligned(100, alignment);
        cr_assert(eq(u64, (uintptr_t)memory % alignment, 0));
        mem_free(memory);
    }
}

Test(memory, arrays_grow_and_huge_ones_are_refused)
{
    uint32_t *array = NULL, capacity = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        check_status(mem_grow((void **)&array, &capacity, i + 1, 4), TN_OK);
        array[i] = i;
    }
    check_within(uint, capacity, 1000, 2048);
    check_status(mem_grow((void **)&array, &capacity, UINT32_MAX, (size_t)1 << 60),
                 TN_ERR_MEMORY);
    cr_assert(eq(uint, array[999], 999));
    mem_free(array);
}

Test(memory, arenas_give_cleared_aligned_memory)
{
    struct arena arena = {0};
    unsigned seed = 1;
    for (int i = 0; i < 2000; i++) {
        size_t size = i % 100 ? (size_t)rand_r(&seed) % 300 : 40000;
        unsigned char *memory = arena_alloc(&arena, size);
        cr_assert(eq(u64, (uintptr_t)memory % 16, 0));
        for (size_t j = 0; j < size; j++)
            cr_assert(eq(u8, memory[j], 0));
        memset(memory, 0xff, size);
    }
    cr_assert(eq(str, arena_strdup(&arena, "kept"), "kept"));
    cr_assert(eq(ptr, arena_alloc(&arena, SIZE_MAX - 8), NULL));
    arena_finish(&arena);
    cr_assert(eq(ptr, arena.blocks, NULL));
}

// Within a block, over blocks, and back to the empty arena, which keeps its first block.
Test(memory, arenas_give_cleared_memory_after_a_rewind)
{
    struct arena arena = {0};
    unsigned seed = 2;
    for (int i = 0; i < 300; i++) {
        struct arena_mark marks[8];
        const int depth = i % 8;
        for (int k = 0; k <= depth; k++) {
            marks[k] = arena_mark(&arena);
            for (int n = (int)((unsigned)rand_r(&seed) % 6); n > 0; n--) {
                size_t size = (size_t)rand_r(&seed) % (n == 5 ? 3000 : 200);
                unsigned char *memory = arena_alloc(&arena, size);
                for (size_t j = 0; j < size; j++)
                    cr_assert(eq(u8, memory[j], 0));
                memset(memory, 0xff, size);
            }
        }
        for (int k = depth; k >= 0 && (k > 0 || i % 3); k--)
            arena_rewind(&arena, marks[k]);
    }
    arena_finish(&arena);
}

// --- counts ------------------------------------------------------------------------------

static void *count_often(void *counts)
{
    for (int i = 0; i < 2000; i++) {
        counts_add(counts, 0, 3);
        counts_add(counts, MAX_COUNTS - 1, -1);
    }
    return NULL;
}

// More threads than parts, at the same time: some have a part of their own.
Test(memory, counts_of_many_threads_lose_nothing)
{
    static struct counts counts;
    pthread_t threads[2 * COUNT_PARTS];
    const int64_t n = 2 * COUNT_PARTS;
    for (int64_t i = 0; i < n; i++)
        cr_assert(eq(int, pthread_create(&threads[i], NULL, count_often, &counts), 0));
    for (int64_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    cr_assert(eq(i64, counts_sum(&counts, 0), n * 2000 * 3));
    cr_assert(eq(i64, counts_sum(&counts, 1), 0));
    cr_assert(eq(i64, counts_sum(&counts, MAX_COUNTS - 1), -n * 2000));
}

// --- hashes and the map ----------------------------------------------------------------

Test(memory, hashes_tell_order_length_and_content_apart)
{
    struct hash start = hash_start(0);
    struct hash different[] = {
        start,
        hash_start(1),
        hash_u64(start, 1),
        hash_u64(hash_u64(start, 1), 2),
        hash_u64(hash_u64(start, 2), 1),
        hash_bytes(start, "", 0),
        hash_bytes(start, "\0", 1),
        hash_bytes(start, "a", 1),
        hash_bytes(start, "a\0", 2),
        hash_bytes(start, "abcdefgh", 8),
        hash_bytes(start, "abcdefgh\0", 9),
        hash_text(hash_text(start, "a"), "bc"),
        hash_text(hash_text(start, "ab"), "c"),
        hash_join(start, hash_start(1)),
        hash_join(hash_start(1), start),
    };
    size_t count = sizeof(different) / sizeof(different[0]);
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++) {
            cr_assert(ne(u64, different[i].lo, different[j].lo));
            cr_assert(ne(u64, different[i].hi, different[j].hi));
        }
}

Test(memory, hashes_are_the_same_in_every_process)
{
    struct hash h = hash_text(hash_u64(hash_start(7), 42), "base.add/1");
    cr_assert(h.lo == UINT64_C(0xb38305bfb06ed9e6) && h.hi == UINT64_C(0x05186e11d45e726f));
}

// Each of the 128 bits flips in about half of the pairs that differ in one input bit.
Test(memory, one_bit_of_input_changes_half_of_the_hash)
{
    int flips[128] = {0}, pairs = 0;
    for (uint64_t value = 0; value < 64; value++)
        for (int bit = 0; bit < 64; bit++, pairs++) {
            struct hash a = hash_u64(hash_start(3), value);
            struct hash b = hash_u64(hash_start(3), value ^ UINT64_C(1) << bit);
            for (int i = 0; i < 64; i++) {
                flips[i] += (int)((a.lo ^ b.lo) >> i & 1);
                flips[64 + i] += (int)((a.hi ^ b.hi) >> i & 1);
            }
        }
    for (int i = 0; i < 128; i++)
        check_within(int, flips[i], pairs * 2 / 5, pairs * 3 / 5);
}

Test(memory, the_map_agrees_with_an_array)
{
    enum { KEYS = 500 };
    static int values[KEYS];
    bool present[KEYS] = {false};
    struct map map = {0};
    unsigned seed = 20260102;
    fprintf(stderr, "# seed %u\n", seed);
    cr_assert(eq(ptr, map_get(&map, hash_start(0)), NULL));
    map_remove(&map, hash_start(0));
    for (int round = 0; round < 20000; round++) {
        int key = rand_r(&seed) % KEYS;
        // Few different homes, so that runs of entries are long and wrap around.
        struct hash hash = {(uint64_t)(key % 40) * 13 + UINT32_MAX, (uint64_t)key};
        cr_assert(eq(ptr, map_get(&map, hash), present[key] ? &values[key] : NULL));
        if (rand_r(&seed) % 2) {
            check_status(map_put(&map, hash, &values[key]), TN_OK);
            present[key] = true;
        } else {
            map_remove(&map, hash);
            present[key] = false;
        }
    }
    uint32_t count = 0;
    for (int i = 0; i < KEYS; i++)
        count += present[i];
    cr_assert(eq(uint, map.count, count));
    map_finish(&map);
}

Test(memory, a_map_that_cannot_grow_is_unchanged)
{
    struct map map = {0};
    int value;
    mem_fail_nth(1);
    check_status(map_put(&map, hash_start(1), &value), TN_ERR_MEMORY);
    cr_assert(eq(ptr, map_get(&map, hash_start(1)), NULL));
    check_status(map_put(&map, hash_start(1), &value), TN_OK);
    cr_assert(eq(ptr, map_get(&map, hash_start(1)), &value));
    map_finish(&map);
}
