// SPDX-License-Identifier: MIT
// Signatures of callbacks, read.
#ifndef FFI_SIGNATURE_H
#define FFI_SIGNATURE_H

#include <jansson.h>
#include "arena.h"

// Gives a manifest's function without its name; free it with json_decref. NULL on failure,
// which has the column.
json_t *signature_parse(const char *text, struct problem *problem);

#endif // FFI_SIGNATURE_H
