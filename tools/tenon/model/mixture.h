// SPDX-License-Identifier: MIT
// Mixtures: which array of a model gets which format when the model is quantised.
//
// A mixture is named like a format, and most arrays get that format; those on which the
// output depends most get more bits. The same names give the same formats in llama.cpp, so
// that files are of the size that people know them by. docs/model-files.md has the table.
#ifndef TOOLS_TENON_MODEL_MIXTURE_H
#define TOOLS_TENON_MODEL_MIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Facts that the choice depends on beside the name.
struct mixture_model {
    int64_t layers;
    int64_t sharing; // heads of queries that share one of keys and values
    int64_t experts; // 0: none
    bool has_output; // an output matrix of its own, not the embedding
};

struct mixture;

// The mixture of this name ("q4_k_m"), or NULL.
const struct mixture *mixture_find(const char *name);
// Lists the known ones: "q4_0, q4_1, ...". Returns `text`.
const char *mixture_known(char *text, size_t size);

const char *mixture_name(const struct mixture *mixture);
// The number under general.file_type.
int64_t mixture_number(const struct mixture *mixture);

// The format of a matrix of this name: a name of <tenon/ops/quant.h>. NULL: it stays as it
// is, since it is small and of weight: norms, biases, the routers of experts.
const char *mixture_format(const struct mixture *mixture, const struct mixture_model *model,
                           const char *name);

// Replaces a format whose blocks do not divide rows of `columns`: the format itself where
// they do, and "f16" where no block does.
const char *mixture_fallback(const char *format, int64_t columns);

#endif // TOOLS_TENON_MODEL_MIXTURE_H
