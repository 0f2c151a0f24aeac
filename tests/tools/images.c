// SPDX-License-Identifier: MIT
// Hostile IDX files are refused by what `tenon train` runs.
#include "fail.h"
#include "images.h"

#include <unistd.h>
#include "check.h"

static char path[] = "/tmp/tenon-images-XXXXXX";

static void make_file(void)
{
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    close(fd);
}

static void remove_file(void)
{
    cr_assert(eq(int, unlink(path), 0));
}

static void put_file(const void *data, size_t size)
{
    FILE *stream = fopen(path, "wb");
    cr_assert(ne(ptr, stream, NULL));
    cr_assert(eq(sz, fwrite(data, 1, size, stream), size));
    cr_assert(eq(int, fclose(stream), 0));
}

TestSuite(images, .init = make_file, .fini = remove_file);

Test(images, hostile_idx_files_are_refused)
{
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
        struct bytes array = {0};
        put_file(cases[i].bytes, cases[i].size);
        int failed = idx_read(path, 1, &array);
        cr_assert(eq(int, failed != 0, cases[i].why != NULL));
        if (cases[i].why)
            check_says(failure_text(), cases[i].why);
        bytes_finish(&array);
        forget_failure();
    }
}
