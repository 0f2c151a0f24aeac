// SPDX-License-Identifier: MIT
// Extents: their steps keep a stack of the size that is promised.
#include "fuzz.h"
#include "extent.h"

static int lookup(void *context, const char *name)
{
    (void)context;
    return name[0] && !name[1] && name[0] >= 'a' && name[0] <= 'd' ? name[0] - 'a' : -1;
}

void fuzz_one(const uint8_t *data, size_t size)
{
    static const int64_t values[][4] = {
        {0, 1, 2, 3}, {-1, INT64_MAX, INT64_MIN, 7}, {1 << 20, 3, INT64_MAX, -1}};
    struct ffi_arena arena = {0};
    struct problem problem = {0};
    struct extent extent;
    char *text = fuzz_text(data, size);
    tn_status status = extent_parse(&arena, text, lookup, NULL, &extent, &problem);
    FUZZ_CHECK(status == TN_OK || problem.text[0], "a failure has a text");
    for (int i = 0; status == TN_OK && i < 3; i++) {
        struct problem fault = {0};
        int64_t value = 0;
        if (extent_eval(&extent, values[i], &value, &fault) != TN_OK)
            FUZZ_CHECK(fault.text[0], "a failure has a text");
        FUZZ_CHECK(extent_variable(&extent) < 4, "a variable that is there");
    }
    arena_finish(&arena);
    free(text);
}
