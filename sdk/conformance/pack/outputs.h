// SPDX-License-Identifier: MIT
// The outputs of a sample.
#ifndef CONFORMANCE_PACK_OUTPUTS_H
#define CONFORMANCE_PACK_OUTPUTS_H

#include "sample.h"

// Gives new arrays for the outputs of `s`, filled with `poison`.
void outputs_new(const struct sample *s, enum layout_kind kind, unsigned char poison,
                 struct array out[MAX_OUT]);
void outputs_free(struct array out[MAX_OUT]);

// NULL when all outputs agree to within `tolerance`, else a message.
const char *outputs_compare(const struct sample *s, const struct array *got,
                            const struct array *want, double tolerance);

#endif // CONFORMANCE_PACK_OUTPUTS_H
