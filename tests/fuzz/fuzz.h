// SPDX-License-Identifier: MIT
// Fuzz targets: one a parser. A target reads hostile bytes and checks what must hold beyond
// "does not crash": that what was read is printed and read again as the same, say.
//
// Each is a program of libFuzzer's (-Dfuzz=true, clang), and with every other compiler one
// that replays the corpus (replay.c).
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The target's: called once for each input, one after the other.
void fuzz_one(const uint8_t *data, size_t size);

// Standard error, though libFuzzer closes it for what is tested. Not buffered.
FILE *fuzz_report(void);

// Ends the program, and so the search, with the reason; the input is kept by libFuzzer.
#define FUZZ_CHECK(condition, ...)                                                         \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(fuzz_report(), "%s:%d: %s does not hold: ", __FILE__, __LINE__,        \
                    #condition);                                                           \
            fprintf(fuzz_report(), __VA_ARGS__);                                           \
            fputc('\n', fuzz_report());                                                    \
            abort();                                                                       \
        }                                                                                  \
    } while (0)

// A copy that ends with NUL. free() it.
char *fuzz_text(const uint8_t *data, size_t size);

// A file in memory that holds the bytes: its descriptor, at offset 0, and a path. Both are
// valid until the next call.
int fuzz_file(const uint8_t *data, size_t size);
const char *fuzz_path(const uint8_t *data, size_t size);

// A folder of this process alone, in memory where there is such a place; it is removed at
// the end.
const char *fuzz_folder(void);

#endif // TESTS_FUZZ_FUZZ_H
