// SPDX-License-Identifier: MIT
// Files of exceptions of `tenon check`.
#include "fuzz.h"
#include "kit/exceptions.h"

void fuzz_one(const uint8_t *data, size_t size)
{
    struct exceptions exceptions = {0};
    exceptions_read(&exceptions, fuzz_path(data, size));
    for (size_t i = 0; i < exceptions.count; i++)
        FUZZ_CHECK(exceptions.items[i].kind && exceptions.items[i].pattern &&
                       exceptions.items[i].reason,
                   "three fields");
    exceptions_find(&exceptions, "file.constructors", "com.acme.x");
    exceptions_finish(&exceptions);
}
