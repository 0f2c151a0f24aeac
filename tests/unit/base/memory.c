// SPDX-License-Identifier: MIT
// Failures, memory, hashes and the map.
#include <pthread.h>
#include "../check.h"
#include <tenon/tenon.h>
#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"

// --- failures --------------------------------------------------------------------------

static void a_failure_is_recorded_and_its_context_put_in_front(void **state)
{
    (void)state;
    assert_int_equal(fail(TN_ERR_ARGUMENT, "axis %d", 7), TN_ERR_ARGUMENT);
    fail_prefix("base.%s: ", "sum");
    assert_string_equal(tn_last_error(), "base.sum: axis 7");
    fail(TN_ERR_IO, "again: %s", fail_text()); // the message in itself
    assert_string_equal(fail_text(), "again: base.sum: axis 7");
    fail_clear();
    assert_string_equal(fail_text(), "");
}

static void a_long_failure_is_cut_and_never_overflows(void **state)
{
    (void)state;
    char text[5000];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = 0;
    fail(TN_ERR_IO, "%s", text);
    size_t size = strlen(fail_text());
    assert_in_range(size, 500, 4999);
    fail_prefix("where: ");
    assert_int_equal(strlen(fail_text()), size);
    assert_memory_equal(fail_text(), "where: xxx", 10);
    fail_prefix("%s", text); // no room for both: the reason stays
    assert_memory_equal(fail_text(), "where: xxx", 10);
}

static void *fail_elsewhere(void *unused)
{
    (void)unused;
    fail(TN_ERR_IO, "elsewhere");
    return NULL;
}

static void failures_of_threads_do_not_mix(void **state)
{
    (void)state;
    pthread_t thread;
    fail(TN_ERR_IO, "here");
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
    pthread_join(thread, NULL);
    assert_string_equal(fail_text(), "here");
}

static void every_status_has_a_name(void **state)
{
    (void)state;
    for (tn_status status = TN_OK; status >= TN_ERR_INTERNAL; status--)
        assert_string_not_equal(tn_status_name(status), "unknown");
    assert_string_equal(tn_status_name(TN_ERR_NOT_FOUND), "not found");
    assert_string_equal(tn_status_name(1), "unknown");
    assert_string_equal(tn_status_name(-9), "unknown");
}

// --- memory ----------------------------------------------------------------------------

static void the_nth_allocation_fails_once(void **state)
{
    (void)state;
    mem_fail_nth(2);
    void *first = mem_alloc(10), *second = mem_zalloc(20), *third = mem_alloc(30);
    assert_non_null(first);
    assert_null(second);
    assert_non_null(third);
    assert_string_equal(fail_text(), "out of memory: 20 bytes");
    mem_fail_nth(1);
    assert_null(mem_realloc(first, 100)); // first is still there
    mem_free(first);
    mem_free(third);
    mem_fail_nth(1);
    assert_null(mem_strdup("text"));
    mem_fail_nth(1);
    assert_null(mem_printf("%d", 1));
    mem_fail_nth(1);
    assert_null(mem_alloc_aligned(8, 64));
    mem_fail_nth(1);
    mem_fail_nth(0); // off
    char *text = mem_printf("%s-%d", "n", 5);
    assert_string_equal(text, "n-5");
    mem_free(text);
}

static void aligned_memory_is_aligned(void **state)
{
    (void)state;
    for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
        void *memory = mem_alloc_aligned(100, alignment);
        assert_int_equal((uintptr_t)memory % alignment, 0);
        mem_free(memory);
    }
}

static void arrays_grow_and_huge_ones_are_refused(void **state)
{
    (void)state;
    uint32_t *array = NULL, capacity = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(mem_grow((void **)&array, &capacity, i + 1, 4), TN_OK);
        array[i] = i;
    }
    assert_in_range(capacity, 1000, 2048);
    assert_int_equal(mem_grow((void **)&array, &capacity, UINT32_MAX, (size_t)1 << 60),
                     TN_ERR_MEMORY);
    assert_int_equal(array[999], 999);
    mem_free(array);
}

static void arenas_give_cleared_aligned_memory(void **state)
{
    (void)state;
    struct arena arena = {0};
    unsigned seed = 1;
    for (int i = 0; i < 2000; i++) {
        size_t size = i % 100 ? (size_t)rand_r(&seed) % 300 : 40000;
        unsigned char *memory = arena_alloc(&arena, size);
        assert_int_equal((uintptr_t)memory % 16, 0);
        for (size_t j = 0; j < size; j++)
            assert_int_equal(memory[j], 0);
        memset(memory, 0xff, size);
    }
    assert_string_equal(arena_strdup(&arena, "kept"), "kept");
    assert_null(arena_alloc(&arena, SIZE_MAX - 8));
    arena_finish(&arena);
    assert_null(arena.blocks);
}

// --- hashes and the map ----------------------------------------------------------------

static void hashes_tell_order_length_and_content_apart(void **state)
{
    (void)state;
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
            assert_int_not_equal(different[i].lo, different[j].lo);
            assert_int_not_equal(different[i].hi, different[j].hi);
        }
}

static void hashes_are_the_same_in_every_process(void **state)
{
    (void)state;
    struct hash h = hash_text(hash_u64(hash_start(7), 42), "base.add/1");
    assert_true(h.lo == UINT64_C(0xb38305bfb06ed9e6) &&
                h.hi == UINT64_C(0x05186e11d45e726f));
}

// Each of the 128 bits flips in about half of the pairs that differ in one input bit.
static void one_bit_of_input_changes_half_of_the_hash(void **state)
{
    (void)state;
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
        assert_in_range(flips[i], pairs * 2 / 5, pairs * 3 / 5);
}

static void the_map_agrees_with_an_array(void **state)
{
    (void)state;
    enum { KEYS = 500 };
    static int values[KEYS];
    bool present[KEYS] = {false};
    struct map map = {0};
    unsigned seed = 20260102;
    print_message("# seed %u\n", seed);
    assert_null(map_get(&map, hash_start(0)));
    map_remove(&map, hash_start(0));
    for (int round = 0; round < 20000; round++) {
        int key = rand_r(&seed) % KEYS;
        // Few different homes, so that runs of entries are long and wrap around.
        struct hash hash = {(uint64_t)(key % 40) * 13 + UINT32_MAX, (uint64_t)key};
        assert_ptr_equal(map_get(&map, hash), present[key] ? &values[key] : NULL);
        if (rand_r(&seed) % 2) {
            assert_int_equal(map_put(&map, hash, &values[key]), TN_OK);
            present[key] = true;
        } else {
            map_remove(&map, hash);
            present[key] = false;
        }
    }
    uint32_t count = 0;
    for (int i = 0; i < KEYS; i++)
        count += present[i];
    assert_int_equal(map.count, count);
    map_finish(&map);
}

static void a_map_that_cannot_grow_is_unchanged(void **state)
{
    (void)state;
    struct map map = {0};
    int value;
    mem_fail_nth(1);
    assert_int_equal(map_put(&map, hash_start(1), &value), TN_ERR_MEMORY);
    assert_null(map_get(&map, hash_start(1)));
    assert_int_equal(map_put(&map, hash_start(1), &value), TN_OK);
    assert_ptr_equal(map_get(&map, hash_start(1)), &value);
    map_finish(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_is_recorded_and_its_context_put_in_front),
        cmocka_unit_test(a_long_failure_is_cut_and_never_overflows),
        cmocka_unit_test(failures_of_threads_do_not_mix),
        cmocka_unit_test(every_status_has_a_name),
        cmocka_unit_test(the_nth_allocation_fails_once),
        cmocka_unit_test(aligned_memory_is_aligned),
        cmocka_unit_test(arrays_grow_and_huge_ones_are_refused),
        cmocka_unit_test(arenas_give_cleared_aligned_memory),
        cmocka_unit_test(hashes_tell_order_length_and_content_apart),
        cmocka_unit_test(hashes_are_the_same_in_every_process),
        cmocka_unit_test(one_bit_of_input_changes_half_of_the_hash),
        cmocka_unit_test(the_map_agrees_with_an_array),
        cmocka_unit_test(a_map_that_cannot_grow_is_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
