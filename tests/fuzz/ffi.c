// SPDX-License-Identifier: MIT
// Manifests of C functions. No library is opened.
#include "fuzz.h"
#include "pack.h"

void fuzz_one(const uint8_t *data, size_t size)
{
    struct ffi_pack pack;
    struct problem problem = {0};
    char *text = fuzz_text(data, size);
    pack_init(&pack, NULL, 0);
    tn_status status = pack_read(text, size, "pack.json", false, &pack, &problem);
    FUZZ_CHECK(status == problem.status, "one status");
    FUZZ_CHECK(status == TN_OK ? pack.num_functions > 0 : problem.text[0],
               "a failure has a text, a pack has functions");
    FUZZ_CHECK(status != TN_OK || !memchr(text, 0, size), "JSON has no NUL");
    pack_finish(&pack);
    free(text);
}
