// SPDX-License-Identifier: MIT
// Writing a model's file anew: other formats of its arrays, other metadata, one file of
// what were several. An array at a time is in memory, and some rows of it as floats.
//
//   struct rewrite r;
//   int failed = rewrite_open(&r, in, out);  // each array as it is
//   for (...) r.arrays[i].to = "q4_0";
//   failed = rewrite_save(&r);
//   rewrite_close(&r);                       // after a failure too
#ifndef TOOLS_TENON_MODEL_REWRITE_H
#define TOOLS_TENON_MODEL_REWRITE_H

#include <tenon/file.h>

#include "base/tool.h"

struct rewrite_array {
    const char *name;      // borrowed
    const tn_type *type;   // in the file; NULL: `made`
    const char *from, *to; // a block format, or a dtype's name
    int64_t rows, columns; // columns: the last axis; rows: all others together
    int64_t heads;         // > 0: rows of so many heads are put in GGUF's order
    const float *made;     // elements that the file does not have: `columns` of them
    float *importance;     // owned, [matrices, columns]; NULL: none
    int64_t matrices;      // number of matrices that the rows belong to
    bool is_told;          // a note about NaN or infinities was printed
};

struct rewrite {
    const char *in, *out;
    tn_runtime *runtime; // with the CPU alone
    tn_file *file;
    struct rewrite_array *arrays;
    uint64_t count;
    bool is_gguf;   // `out` is a GGUF file, else safetensors
    int64_t rotary; // elements of a head that the rotary embedding rotates

    // Metadata that is written.
    tn_metadata *pairs;
    uint64_t num_pairs;
    int64_t numbers[2]; // the values of general.file_type and general.quantization_version
    double *floats;     // rounded to f32
    float factors[256]; // rewrite_factors(), which GGUF has as an array
};

// Opens the file or folder `in`; `out` ends with .gguf or .safetensors. Arrays are in the
// file's order; those of one axis become f32, as readers of GGUF expect. Borrows the texts.
int rewrite_open(struct rewrite *r, const char *in, const char *out);
// The dtype of this name; TN_DTYPE_NONE: it is a format of blocks, or none.
tn_dtype rewrite_dtype(const char *name);
// The number under general.file_type of files whose matrices are f32, f16 or bf16; -1 for
// another name. Those of mixtures are in mixture.c.
int64_t rewrite_file_type(const char *dtype);
// Sets general.file_type.
void rewrite_set_type(struct rewrite *r, int64_t number);
// Writes the file. Prints notes on lost information on standard error, and progress where
// that is a terminal.
int rewrite_save(struct rewrite *r);
void rewrite_close(struct rewrite *r);

// Reads the importance of the arrays' columns from a file of imatrix: importance.c.
int rewrite_importance(struct rewrite *r, const char *path);

// An integer under ARCHITECTURE + `key`, of the first layer where it is a list;
// `otherwise` where there is none.
int64_t rewrite_number(const struct rewrite *r, const char *key, int64_t otherwise);

// A sentence on standard error: "tenon: note: ...".
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Fills `pairs`: rewrite_metadata.c.
int rewrite_metadata(struct rewrite *r);
// Gives the factors by which a scaling divides frequencies, where GGUF has an array for it;
// 0: it has none.
int64_t rewrite_factors(const struct rewrite *r, float factors[256]);

#endif // TOOLS_TENON_MODEL_REWRITE_H
