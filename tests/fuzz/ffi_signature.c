// SPDX-License-Identifier: MIT
// Signatures of callbacks.
#include "fuzz.h"
#include "signature.h"

void fuzz_one(const uint8_t *data, size_t size)
{
    struct problem problem = {0};
    char *text = fuzz_text(data, size);
    json_t *function = signature_parse(text, &problem);
    FUZZ_CHECK(function ? json_is_object(function) : problem.text[0],
               "a failure has a text, a function is an object");
    json_decref(function);
    free(text);
}
