// SPDX-License-Identifier: MIT
// Operators as C functions: what the files of `tenon header` share.
#ifndef TOOLS_TENON_HEADER_H
#define TOOLS_TENON_HEADER_H

#include "tool.h"

#include <stdio.h>

#define MAX_NAME 160

// An identifier made of `text`: other characters become '_', and what C or <tenon/tenon.h>
// has taken gets one more.
void header_identifier(const char *text, size_t length, char out[MAX_NAME]);

// "base.add/1" of our own pack: tn_add; "acme.axpby/1": acme_axpby. An older revision that
// a newer one stands beside has its number added.
void header_function_name(const char *plugin, const char *id, bool newest,
                          char out[MAX_NAME]);

// Writes the function of one operator, with what it needs.
void header_emit(FILE *out, const char *plugin, const tn_primitive *primitive, bool newest);

#endif // TOOLS_TENON_HEADER_H
