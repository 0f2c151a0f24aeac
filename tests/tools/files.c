// SPDX-License-Identifier: MIT
// Reading .npy, .safetensors and IDX files: what is written comes back, and what is damaged
// is refused. Run under the address sanitizer this also shows that nothing is read or
// written out of bounds.
#include "check.h"
#include <unistd.h>

#include "base/file.h"
#include "formats.h"

static char folder[] = "/tmp/tenon-files-XXXXXX";
static char path[sizeof(folder) + 16];

static void make_folder(void)
{
    cr_assert(ne(ptr, mkdtemp(folder), NULL));
    snprintf(path, sizeof(path), "%s/file", folder);
}

static void remove_folder(void)
{
    unlink(path);
    cr_assert(eq(int, rmdir(folder), 0));
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
    cr_assert(ne(ptr, stream, NULL));
    cr_assert(eq(sz, fwrite(data, 1, size, stream), size));
    cr_assert(eq(int, fclose(stream), 0));
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
    cr_assert(ne(int, npy_read(path, &array), 0));
    if (!strstr(oops_text(), why))
        cr_fatal("header %s: got '%s', expected '%s'", header, oops_text(), why);
    cr_assert(eq(ptr, array.data, NULL));
    forget_oops();
}

TestSuite(files, .init = make_folder, .fini = remove_folder);

Test(files, npy_arrays_come_back_in_every_dtype)
{
    for (tn_dtype dtype = 1; dtype < TN_NUM_DTYPES; dtype++) {
        unsigned char bytes[6 * 16];
        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = dtype == TN_BOOL ? i & 1 : (unsigned char)(i * 37);
        const struct host_array array = {.dtype = dtype,
                                         .shape = {2, 0, {2, 3}},
                                         .data = bytes,
                                         .bytes = 6 * dtype_size(dtype)};
        if (dtype == TN_BF16 || tn_dtype_in(dtype, TN_FLOAT8_DTYPES)) {
            cr_assert(ne(int, npy_write(path, &array), 0));
            check_says(oops_text(), "cast");
            forget_oops();
            continue;
        }
        struct host_array back;
        cr_assert(eq(int, npy_write(path, &array), 0));
        cr_assert(eq(int, npy_read(path, &back), 0));
        cr_assert(eq(int, back.dtype, dtype));
        cr_assert(eq(mem, bytes_of(&back.shape, sizeof(array.shape)),
                     bytes_of(&array.shape, sizeof(array.shape))));
        cr_assert(eq(u64, back.bytes, array.bytes));
        cr_assert(eq(mem, bytes_of(back.data, array.bytes), bytes_of(bytes, array.bytes)));
        host_array_finish(&back);
    }
}

Test(files, npy_scalars_and_empty_arrays_come_back)
{
    double value = 2.5;
    struct host_array back;
    struct host_array scalar = {.dtype = TN_F64, .data = &value, .bytes = 8};
    struct host_array empty = {.dtype = TN_F64, .shape = {2, 0, {0, 3}}, .data = &value};
    cr_assert(eq(int, npy_write(path, &scalar), 0));
    cr_assert(eq(int, npy_read(path, &back), 0));
    cr_assert(eq(int, back.shape.rank, 0));
    cr_assert(eq(dbl, *(double *)back.data, 2.5));
    host_array_finish(&back);
    cr_assert(eq(int, npy_write(path, &empty), 0));
    cr_assert(eq(int, npy_read(path, &back), 0));
    cr_assert(eq(i64, back.shape.extent[1], 3));
    cr_assert(eq(u64, back.bytes, 0));
    host_array_finish(&back);
}

Test(files, npy_fortran_order_and_big_endian_are_turned_round)
{
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
    cr_assert(eq(int, npy_read(path, &back), 0));
    cr_assert(eq(mem, bytes_of(back.data, sizeof(rows)), bytes_of(rows, sizeof(rows))));
    host_array_finish(&back);
}

Test(files, npy_formats_two_and_three_are_read)
{
    for (int major = 2; major <= 3; major++) {
        struct host_array back;
        put_npy(major, "{'shape': (3,), 'fortran_order': False, 'descr': '|u1'}", 3);
        cr_assert(eq(int, npy_read(path, &back), 0));
        cr_assert(eq(u64, back.bytes, 3));
        host_array_finish(&back);
    }
}

#define NPY(descr, shape)                                                                  \
    "{'descr': '" descr "', 'fortran_order': False, 'shape': " shape "}"

Test(files, hostile_npy_files_are_refused)
{
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
    cr_assert(ne(int, npy_read(path, &array), 0));
    check_says(oops_text(), "header of");
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
    cr_assert(ne(int, safetensors_read(path, &file), 0));
    if (!strstr(oops_text(), why))
        cr_fatal("header %.80s: got '%s', expected '%s'", header, oops_text(), why);
    cr_assert(eq(ptr, file.items, NULL));
    forget_oops();
}

static void add_sample(struct safetensors *file, const char *name, tn_dtype dtype)
{
    struct host_array array = {
        .dtype = dtype, .shape = {2, 0, {2, 3}}, .bytes = 6 * dtype_size(dtype)};
    array.data = malloc(array.bytes);
    cr_assert(ne(ptr, array.data, NULL));
    memset(array.data, 1, array.bytes);
    cr_assert(eq(int, safetensors_add(file, name, &array), 0));
}

Test(files, safetensors_come_back_in_every_dtype)
{
    struct safetensors file = {0}, back;
    for (tn_dtype dtype = 1; dtype < TN_NUM_DTYPES; dtype++)
        if (dtype != TN_COMPLEX128) // the format has no name for it
            add_sample(&file, dtype_name(dtype), dtype);
    cr_assert(eq(int, safetensors_write(path, &file), 0));
    cr_assert(eq(int, safetensors_read(path, &back), 0));
    cr_assert(eq(u64, back.count, file.count));
    for (tn_dtype dtype = 1; dtype < TN_NUM_DTYPES; dtype++) {
        const struct host_array *array = safetensors_find(&back, dtype_name(dtype));
        if (dtype == TN_COMPLEX128)
            continue;
        cr_assert(ne(ptr, array, NULL));
        cr_assert(eq(int, array->dtype, dtype));
        cr_assert(eq(u64, array->bytes, 6 * dtype_size(dtype)));
        cr_assert(eq(u8, ((unsigned char *)array->data)[array->bytes - 1], 1));
    }
    safetensors_finish(&file);
    safetensors_finish(&back);
}

#define ENTRY(name, dtype, shape, begin, end)                                              \
    "\"" name "\": {\"dtype\": \"" dtype "\", \"shape\": " shape                           \
    ", \"data_offsets\": [" begin ", " end "]}"

Test(files, hostile_safetensors_are_refused)
{
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

Test(files, deep_and_long_safetensors_headers_are_refused)
{
    static char deep[200001];
    memset(deep, '[', sizeof(deep) - 1);
    refused_safetensors(deep, 0, "damaged header");
    struct safetensors file;
    put_file("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10);
    cr_assert(ne(int, safetensors_read(path, &file), 0));
    check_says(oops_text(), "truncated");
    forget_oops();
    put_file("abc", 3);
    cr_assert(ne(int, safetensors_read(path, &file), 0));
    forget_oops();
}

Test(files, a_failed_write_leaves_the_old_file)
{
    struct new_file file;
    put_file("old", 3);
    cr_assert(eq(int, new_file_open(&file, path), 0));
    fputs("new and incomplete", file.stream);
    new_file_abandon(&file);
    char *text;
    uint64_t size;
    cr_assert(eq(int, file_read(path, 100, &text, &size), 0));
    cr_assert(eq(str, text, "old"));
    free(text);
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
    cr_assert(eq(int, file_read(path, 1 << 16, &good, &size), 0));
    char *bad = malloc(size);
    cr_assert(ne(ptr, bad, NULL));
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

Test(files, mutated_files_are_read_or_refused)
{
    random_state = check_seed(20240601);
    float values[6] = {1, 2, 3, 4, 5, 6};
    const struct host_array array = {
        .dtype = TN_F32, .shape = {2, 0, {2, 3}}, .data = values, .bytes = sizeof(values)};
    cr_assert(eq(int, npy_write(path, &array), 0));
    mutate(attempt_npy, 2000);
    struct safetensors file = {0};
    add_sample(&file, "weight", TN_F32);
    add_sample(&file, "bias", TN_F16);
    cr_assert(eq(int, safetensors_write(path, &file), 0));
    safetensors_finish(&file);
    mutate(attempt_safetensors, 2000);
}
