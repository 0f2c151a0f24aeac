// SPDX-License-Identifier: MIT
// Operators as C functions: shared by the files of `tenon header`.
#ifndef TOOLS_TENON_HEADER_HEADER_H
#define TOOLS_TENON_HEADER_HEADER_H

#include "base/tool.h"

#include <stdio.h>

#define MAX_NAME 160

// Makes an identifier of `text`: other characters become '_', and a name that C, C++ or
// <tenon/tenon.h> uses gets one more at its end.
void header_identifier(const char *text, size_t length, char out[MAX_NAME]);

// "base.add/1" of Tenon's own pack: tn_add; "random.bits/1": tn_rng_bits; "acme.axpby/1":
// acme_axpby. If there is a newer
// revision, the number of this one is added.
void header_function_name(const char *plugin, const char *id, bool newest,
                          char out[MAX_NAME]);

// Writes the function of one operator, with the struct of its attributes.
void header_emit(FILE *out, const char *plugin, const tn_primitive *primitive, bool newest);

// Writes the stub of one operator, for Python.
void header_emit_stub(FILE *out, const tn_primitive *primitive);

#endif // TOOLS_TENON_HEADER_HEADER_H
