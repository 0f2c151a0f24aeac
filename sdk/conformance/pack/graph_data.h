// SPDX-License-Identifier: MIT
// Arrays of the kit as arrays of a graph.
#ifndef CONFORMANCE_PACK_GRAPH_DATA_H
#define CONFORMANCE_PACK_GRAPH_DATA_H

#include <tenon/tenon.h>
#include "../kit/array.h"

// Uploads `array` in row-major order.
tn_array *graph_data(tn_scope *scope, const struct array *array);
// Like graph_data, as a view of memory laid out as `kind`. REPEATED keeps only row 0 and
// broadcasts it. Needs the pack `base`.
tn_array *graph_laid_out(tn_scope *scope, const struct array *array, enum layout_kind kind);

#endif // CONFORMANCE_PACK_GRAPH_DATA_H
