// SPDX-License-Identifier: MIT
// The manifest at the end of a pack.
#include "fuzz.h"
#include "make.h"
#include "pack.h"

void fuzz_one(const uint8_t *data, size_t size)
{
    struct problem problem = {0};
    char *text = NULL;
    size_t length = 0;
    if (pack_find(fuzz_path(data, size), &text, &length, &problem))
        FUZZ_CHECK(problem.text[0] && !text, "a failure has a text");
    else if (text)
        FUZZ_CHECK(length + 16 <= size && memmem(data, size, text, length),
                   "the manifest is the file's");
    free(text);
}
