// SPDX-License-Identifier: MIT
// Tables from files, by the first byte: IDX and text, plain or gzipped, or CSV.
#include "fuzz.h"

#include <stdio.h>
#include <tenon/train.h>
#include <unistd.h>

// The bytes as a file whose name ends in `end`.
static const char *named(const uint8_t *data, size_t size, const char *end)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/table%s", fuzz_folder(), end);
    FILE *file = fopen(path, "wb");
    FUZZ_CHECK(file && fwrite(data, 1, size, file) == size && fclose(file) == 0,
               "%s is written", path);
    return path;
}

void fuzz_one(const uint8_t *data, size_t size)
{
    tn_table table = {0};
    bool is_csv = size && data[0] % 4 == 3;
    data += size > 0;
    size -= size > 0;
    const char *path = is_csv ? named(data, size, ".csv") : fuzz_path(data, size);
    if (tn_table_read(NULL, path, &table)) {
        FUZZ_CHECK(tn_train_error()[0] && !table.data, "a failure has a text and no table");
        return;
    }
    uint64_t elements = 1;
    for (int32_t i = 0; i < table.shape.rank; i++)
        elements *= (uint64_t)table.shape.extent[i];
    FUZZ_CHECK(table.shape.rank >= 1 && table.data, "a table has rows");
    volatile unsigned char sum = 0; // each byte is there
    for (uint64_t i = 0; i < elements * (uint64_t)tn_dtype_bytes(table.dtype); i++)
        sum = (unsigned char)(sum ^ ((unsigned char *)table.data)[i]);
    tn_table_finish(&table);
}
