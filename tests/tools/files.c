// SPDX-License-Identifier: MIT
// Reading .npy, .safetensors and IDX files: what is written comes back, and what is damaged
// is refused. Run under the address sanitizer this also shows that nothing is read or
// written out of bounds.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <unistd.h>

#include "file.h"
#include "idx.h"
#include "npy.h"
#include "safetensors.h"

static char folder[] = "/tmp/tenon-files-XXXXXX";
static char path[sizeof(folder) + 16];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/file", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

// SplitMix64: the same numbers on every machine.
static uint64_t random_state;

static uint64_t random_next(void)
{
    uint64_t x = random_state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static void put_file(const void *data, size_t size)
{
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(data, 1, size, stream), size);
    assert_int_equal(fclose(stream), 0);
}

// --- .npy ------------------------------------------------------------------------------

// A file of format `major` with this header and `size` bytes of elements, all 7.
static void put_npy(int major, const char *header, size_t size)
{
    char bytes[8192] = "\x93NUMPY";
    size_t length = strlen(header), at = 8;
    bytes[6] = (char)major;
    bytes[at++] = (char)(length & 0xff);
    bytes[at++] = (char)(length >> 8);
    at += major > 1 ? 2 : 0;
    memcpy(bytes + at, header, length);
    memset(bytes + at + length, 7, size);
    put_file(bytes, at + length + size);
}

static void refused_npy(int major, const char *header, size_t size, const char *why)
{
    struct host_array array = {0};
    put_npy(major, header, size);
    assert_int_not_equal(npy_read(path, &array), 0);
    if (!strstr(oops_text(), why))
        fail_msg("header %s: got '%s', expected '%s'", header, oops_text(), why);
    assert_null(array.data);
    forget_oops();
}

static void npy_arrays_come_back_in_every_dtype(void **state)
{
    (void)state;
    for (tn_dtype dtype = 1; dtype < TN_NUM_DTYPES; dtype++) {
        unsigned char bytes[6 * 8];
        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = dtype == TN_BOOL ? i & 1 : (unsigned char)(i * 37);
        const struct host_array array = {.dtype = dtype,
                                         .shape = {2, 0, {2, 3}},
                                         .data = bytes,
                                         .bytes = 6 * dtype_size(dtype)};
        if (dtype == TN_BF16) {
            assert_int_not_equal(npy_write(path, &array), 0);
            assert_non_null(strstr(oops_text(), "cast"));
            forget_oops();
            continue;
        }
        struct host_array back;
        assert_int_equal(npy_write(path, &array), 0);
        assert_int_equal(npy_read(path, &back), 0);
        assert_int_equal(back.dtype, dtype);
        assert_memory_equal(&back.shape, &array.shape, sizeof(array.shape));
        assert_int_equal(back.bytes, array.bytes);
        assert_memory_equal(back.data, bytes, array.bytes);
        host_array_finish(&back);
    }
}

static void npy_scalars_and_empty_arrays_come_back(void **state)
{
    (void)state;
    double value = 2.5;
    struct host_array back;
    struct host_array scalar = {.dtype = TN_F64, .data = &value, .bytes = 8};
    struct host_array empty = {.dtype = TN_F64, .shape = {2, 0, {0, 3}}, .data = &value};
    assert_int_equal(npy_write(path, &scalar), 0);
    assert_int_equal(npy_read(path, &back), 0);
    assert_int_equal(back.shape.rank, 0);
    assert_true(*(double *)back.data == 2.5);
    host_array_finish(&back);
    assert_int_equal(npy_write(path, &empty), 0);
    assert_int_equal(npy_read(path, &back), 0);
    assert_int_equal(back.shape.extent[1], 3);
    assert_int_equal(back.bytes, 0);
    host_array_finish(&back);
}

static void npy_fortran_order_and_big_endian_are_turned_round(void **state)
{
    (void)state;
    static const char header[] =
        "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n";
    static const unsigned char columns[] = {0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6};
    static const int16_t rows[] = {1, 2, 3, 4, 5, 6};
    char bytes[256] = "\x93NUMPY\x01";
    bytes[8] = sizeof(header) - 1;
    memcpy(bytes + 10, header, sizeof(header) - 1);
    memcpy(bytes + 10 + sizeof(header) - 1, columns, sizeof(columns));
    put_file(bytes, 10 + sizeof(header) - 1 + sizeof(columns));
    struct host_array back;
    assert_int_equal(npy_read(path, &back), 0);
    assert_memory_equal(back.data, rows, sizeof(rows));
    host_array_finish(&back);
}

static void npy_formats_two_and_three_are_read(void **state)
{
    (void)state;
    for (int major = 2; major <= 3; major++) {
        struct host_array back;
        put_npy(major, "{'shape': (3,), 'fortran_order': False, 'descr': '|u1'}", 3);
        assert_int_equal(npy_read(path, &back), 0);
        assert_int_equal(back.bytes, 3);
        host_array_finish(&back);
    }
}

#define NPY(descr, shape)                                                                  \
    "{'descr': '" descr "', 'fortran_order': False, 'shape': " shape "}"

static void hostile_npy_files_are_refused(void **state)
{
    (void)state;
    refused_npy(1, NPY("<f4", "(4,)"), 15, "needs 16 bytes, 15 are there");
    refused_npy(1, NPY("<f8", "(4611686018427387904, 8)"), 8, "overflow");
    refused_npy(1, NPY("<f4", "(0, 9223372036854775807)"), 0, "overflow");
    refused_npy(1, NPY("<f4", "(1152921504606846976,)"), 8, "needs");
    refused_npy(1, NPY("<f4", "(99999999999999999999,)"), 8, "extent");
    refused_npy(1, NPY("<f4", "(-1,)"), 8, "extent");
    refused_npy(1, NPY("<f4", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), 4, "axes");
    refused_npy(1, NPY("<f4", "(1 2)"), 8, "','");
    refused_npy(1, NPY("<V2", "(2,)"), 4, "bf16");
    refused_npy(1, NPY("|O", "(2,)"), 4, "not supported");
    refused_npy(1, NPY("<f16", "(2,)"), 32, "not supported");
    refused_npy(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", 4,
                "structured");
    refused_npy(1, "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False}", 4, "twice");
    refused_npy(1, "{'descr': '<f4', 'shape': (1,)}", 4, "expected descr");
    refused_npy(1, "{'descr': '<f4", 4, "short string");
    refused_npy(1, "", 4, "'{'");
    refused_npy(1, NPY("<f4", "(1,)") "x", 4, "the end");
    refused_npy(4, NPY("<f4", "(1,)"), 4, "format 4");
    put_file("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12);
    struct host_array array;
    assert_int_not_equal(npy_read(path, &array), 0);
    assert_non_null(strstr(oops_text(), "header of"));
    forget_oops();
}

// --- .safetensors ----------------------------------------------------------------------

static void put_safetensors(const char *header, size_t size)
{
    static char bytes[1 << 20];
    uint64_t length = strlen(header);
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(length >> 8 * i);
    memcpy(bytes + 8, header, length);
    memset(bytes + 8 + length, 1, size);
    put_file(bytes, 8 + length + size);
}

static void refused_safetensors(const char *header, size_t size, const char *why)
{
    struct safetensors file = {0};
    put_safetensors(header, size);
    assert_int_not_equal(safetensors_read(path, &file), 0);
    if (!strstr(oops_text(), why))
        fail_msg("header %.80s: got '%s', expected '%s'", header, oops_text(), why);
    assert_null(file.items);
    forget_oops();
}

static void add_sample(struct safetensors *file, const char *name, tn_dtype dtype)
{
    struct host_array array = {
        .dtype = dtype, .shape = {2, 0, {2, 3}}, .bytes = 6 * dtype_size(dtype)};
    array.data = malloc(array.bytes);
    assert_non_null(array.data);
    memset(array.data, 1, array.bytes);
    assert_int_equal(safetensors_add(file, name, &array), 0);
}

static void safetensors_come_back_in_every_dtype(void **state)
{
    (void)state;
    struct safetensors file = {0}, back;
    for (tn_dtype dtype = 1; dtype < TN_NUM_DTYPES; dtype++)
        add_sample(&file, dtype_name(dtype), dtype);
    assert_int_equal(safetensors_note(&file, "step", "%d", 42), 0);
    assert_int_equal(safetensors_write(path, &file), 0);
    assert_int_equal(safetensors_read(path, &back), 0);
    assert_int_equal(back.count, file.count);
    assert_string_equal(json_string_value(json_object_get(back.metadata, "step")), "42");
    for (tn_dtype dtype = 1; dtype < TN_NUM_DTYPES; dtype++) {
        const struct host_array *array = safetensors_find(&back, dtype_name(dtype));
        assert_non_null(array);
        assert_int_equal(array->dtype, dtype);
        assert_int_equal(array->bytes, 6 * dtype_size(dtype));
        assert_int_equal(((unsigned char *)array->data)[array->bytes - 1], 1);
    }
    safetensors_finish(&file);
    safetensors_finish(&back);
}

#define ENTRY(name, dtype, shape, begin, end)                                              \
    "\"" name "\": {\"dtype\": \"" dtype "\", \"shape\": " shape                           \
    ", \"data_offsets\": [" begin ", " end "]}"

static void hostile_safetensors_are_refused(void **state)
{
    (void)state;
    refused_safetensors("{" ENTRY("a", "F32", "[2]", "0", "8") "}", 7, "the file has 7");
    refused_safetensors("{" ENTRY("a", "F32", "[2]", "0", "8") "}", 9, "cover 8");
    refused_safetensors("{" ENTRY("a", "F32", "[2]", "4", "12") "}", 12, "expected 0");
    refused_safetensors("{" ENTRY("a", "F32", "[2]", "0", "8") ", " //
                        ENTRY("b", "F32", "[2]", "4", "12") "}",
                        12, "no overlaps");
    refused_safetensors("{" ENTRY("a", "F32", "[3]", "0", "8") "}", 8, "needs 12 bytes");
    refused_safetensors("{" ENTRY("a", "F32", "[2]", "8", "0") "}", 8, "growing");
    refused_safetensors("{" ENTRY("a", "F32", "[2]", "-8", "0") "}", 8, "growing");
    refused_safetensors("{" ENTRY("a", "F32", "[2]", "0", "99999999999999999999") "}", 8,
                        "damaged header");
    refused_safetensors("{" ENTRY("a", "F32", "[4611686018427387904, 8]", "0", "8") "}", 8,
                        "overflow");
    refused_safetensors("{" ENTRY("a", "F32", "[-1]", "0", "8") "}", 8, "extent 0");
    refused_safetensors("{" ENTRY("a", "F32", "[1,1,1,1,1,1,1,1,1]", "0", "4") "}", 4,
                        "9 axes");
    refused_safetensors("{" ENTRY("a", "F7", "[1]", "0", "4") "}", 4, "not supported");
    refused_safetensors("{\"a\": 3}", 0, "expected dtype");
    refused_safetensors("{\"__metadata__\": {\"x\": 3}}", 0, "no string");
    refused_safetensors("{\"a\": {}, \"a\": {}}", 0, "duplicate");
    refused_safetensors("[]", 0, "JSON object");
    refused_safetensors("{", 0, "damaged header");
}

static void deep_and_long_safetensors_headers_are_refused(void **state)
{
    (void)state;
    static char deep[200001];
    memset(deep, '[', sizeof(deep) - 1);
    refused_safetensors(deep, 0, "damaged header");
    struct safetensors file;
    put_file("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10);
    assert_int_not_equal(safetensors_read(path, &file), 0);
    assert_non_null(strstr(oops_text(), "truncated"));
    forget_oops();
    put_file("abc", 3);
    assert_int_not_equal(safetensors_read(path, &file), 0);
    forget_oops();
}

static void a_failed_write_leaves_the_old_file(void **state)
{
    (void)state;
    struct new_file file;
    put_file("old", 3);
    assert_int_equal(new_file_open(&file, path), 0);
    fputs("new and incomplete", file.stream);
    new_file_abandon(&file);
    char *text;
    uint64_t size;
    assert_int_equal(file_read(path, 100, &text, &size), 0);
    assert_string_equal(text, "old");
    free(text);
}

// --- IDX -------------------------------------------------------------------------------

static void hostile_idx_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        char bytes[16];
        size_t size;
        const char *why;
    } cases[] = {
        {"\0\0\x08\x01\0\0\0\x03"
         "abc",
         11, NULL},
        {"\0\0\x08\x01\0\0\0\x03"
         "ab",
         10, "truncated"},
        {"\0\0\x08\x01\0\0\0\x03"
         "abcd",
         12, "more behind"},
        {"\0\0\x08\x01\xff\xff\xff\xff", 8, "more than"},
        {"\0\0\x0d\x01\0\0\0\x03", 8, "0x0d"},
        {"\0\0\x08\x03\0\0\0\x03", 8, "3 axes"},
        {"\0\0\x08\x01\0\0", 6, "truncated"},
        {"PNG", 3, "not an IDX"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct host_array array = {0};
        put_file(cases[i].bytes, cases[i].size);
        int failed = idx_read(path, 1, &array);
        assert_int_equal(failed != 0, cases[i].why != NULL);
        if (cases[i].why)
            assert_non_null(strstr(oops_text(), cases[i].why));
        host_array_finish(&array);
        forget_oops();
    }
}

// --- mutations -------------------------------------------------------------------------

typedef void attempt(void);

static void attempt_npy(void)
{
    struct host_array array;
    if (npy_read(path, &array) == 0)
        host_array_finish(&array);
}

static void attempt_safetensors(void)
{
    struct safetensors file;
    if (safetensors_read(path, &file) == 0)
        safetensors_finish(&file);
}

// Writes copies of the file with a few bytes changed, added or cut off, and reads each.
static void mutate(attempt *read_it, int rounds)
{
    char *good;
    uint64_t size;
    assert_int_equal(file_read(path, 1 << 16, &good, &size), 0);
    char *bad = malloc(size);
    assert_non_null(bad);
    for (int round = 0; round < rounds; round++) {
        memcpy(bad, good, size);
        for (uint64_t n = random_next() % 4 + 1; n; n--) {
            uint64_t at = random_next() % (random_next() & 1 ? size : 64) % size;
            bad[at] = random_next() & 1 ? (char)random_next()
                                        : "0123456789[]{}'\",-"[random_next() % 18];
        }
        put_file(bad, random_next() % 4 ? size : random_next() % size);
        read_it();
        forget_oops();
    }
    free(bad);
    free(good);
}

static void mutated_files_are_read_or_refused(void **state)
{
    (void)state;
    const char *given = getenv("TENON_TEST_SEED");
    random_state = given ? strtoull(given, NULL, 0) : 20240601;
    print_message("# TENON_TEST_SEED=%llu\n", (unsigned long long)random_state);
    float values[6] = {1, 2, 3, 4, 5, 6};
    const struct host_array array = {
        .dtype = TN_F32, .shape = {2, 0, {2, 3}}, .data = values, .bytes = sizeof(values)};
    assert_int_equal(npy_write(path, &array), 0);
    mutate(attempt_npy, 2000);
    struct safetensors file = {0};
    add_sample(&file, "weight", TN_F32);
    add_sample(&file, "bias", TN_F16);
    assert_int_equal(safetensors_note(&file, "step", "1"), 0);
    assert_int_equal(safetensors_write(path, &file), 0);
    safetensors_finish(&file);
    mutate(attempt_safetensors, 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npy_arrays_come_back_in_every_dtype),
        cmocka_unit_test(npy_scalars_and_empty_arrays_come_back),
        cmocka_unit_test(npy_fortran_order_and_big_endian_are_turned_round),
        cmocka_unit_test(npy_formats_two_and_three_are_read),
        cmocka_unit_test(hostile_npy_files_are_refused),
        cmocka_unit_test(safetensors_come_back_in_every_dtype),
        cmocka_unit_test(hostile_safetensors_are_refused),
        cmocka_unit_test(deep_and_long_safetensors_headers_are_refused),
        cmocka_unit_test(a_failed_write_leaves_the_old_file),
        cmocka_unit_test(hostile_idx_files_are_refused),
        cmocka_unit_test(mutated_files_are_read_or_refused),
    };
    return cmocka_run_group_tests_name("files", tests, make_folder, remove_folder);
}
