// SPDX-License-Identifier: MIT
// Parsing the signatures of callbacks; <tenon/ffi.h> has the language.
#ifndef FFI_SIGNATURE_H
#define FFI_SIGNATURE_H

#include <jansson.h>
#include "arena.h"

// Gives the function as a manifest's JSON object, without a name. The caller owns a
// reference (json_decref). NULL on failure, whose text has the column.
json_t *signature_parse(const char *text, struct problem *problem);

#endif // FFI_SIGNATURE_H
