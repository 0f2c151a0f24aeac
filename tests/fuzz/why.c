// SPDX-License-Identifier: MIT
// The file that TENON_WHY names, told by `tenon why last`.
#include "fuzz.h"
#include "base/tool.h"
#include "why/why.h"

void fuzz_one(const uint8_t *data, size_t size)
{
    if (!size)
        return;
    forget_oops();
    if (why_last(fuzz_path(data + 1, size - 1), data[0] & 1, data[0] & 2, data[0] & 4))
        FUZZ_CHECK(oops_text()[0], "a failure has a text");
}
