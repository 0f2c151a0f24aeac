// SPDX-License-Identifier: MIT
// GGUF files: "GGUF", a version, pairs of metadata, records of tensors, and, aligned, the
// elements; all little-endian. Versions 2 and 3, between which Tenon needs no distinction.
// A model may be split over several files, NAME-00001-of-00003.gguf and so on.
//
// Nothing in a file is trusted: each count, size and offset is checked against the file's
// size before memory is allocated.
#ifndef FORMATS_GGUF_H
#define FORMATS_GGUF_H

#include <stdbool.h>
#include <tenon/format.h>

#define GGUF_MAX_RANK 4   // axes
#define GGUF_MAX_NAME 63  // bytes of a tensor's name, which readers have room for
#define GGUF_ALIGNMENT 32 // of elements, where the file has no "general.alignment"
#define GGUF_KEY_ALIGNMENT "general.alignment"

// Types of metadata values in a file.
enum gguf_value {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_TEXT,
    GGUF_LIST,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    NUM_GGUF_VALUES
};

// A type of tensors: elements of a dtype, or blocks.
struct gguf_type {
    const char *block_format; // NULL: elements of `dtype`
    tn_dtype dtype;           // TN_U8 for blocks
    int64_t elements, bytes;  // of a block; of plain elements 1 and their bytes
    uint32_t number;          // in the file
};

// The type with this number. False: Tenon cannot read it; *out_name is then its name in
// ggml's documents, or NULL.
bool gguf_type_of_number(uint32_t number, struct gguf_type *out_type,
                         const char **out_name);
// The type of an array. False: GGUF has none for it.
bool gguf_type_of_array(const tn_format_array *array, struct gguf_type *out_type);

// Whether the bytes are UTF-8 without zero bytes.
bool gguf_is_text(const tn_text *text);

// --- the header of one file (header.c) --------------------------------------------------

struct gguf_part {
    struct gguf_part *next; // the next file of a split model
    const tn_host *host;
    const tn_format_source *source;
    unsigned char *data; // the file's first `loaded` bytes; owns keys, names and texts
    uint64_t loaded, at;
    tn_metadata *metadata;
    tn_format_array *arrays;
    char *values;                                 // values of the metadata
    uint64_t num_metadata, num_arrays, num_bytes; // num_bytes: of `values`
};

// Reads a header. gguf_part_finish frees the contents of the part, also after a failure.
tn_status gguf_part_read(struct gguf_part *part);
void gguf_part_finish(struct gguf_part *part);

// The metadata of a part.
tn_metadata_list gguf_part_metadata(const struct gguf_part *part);

// --- writing (write.c) -------------------------------------------------------------------

tn_status gguf_write(const tn_host *host, const tn_format_content *content,
                     const tn_format_sink *sink);

// Gives the alignment that the metadata ask for, a power of two. A failure begins with
// `name`.
tn_status gguf_alignment(const tn_host *host, const char *name,
                         const tn_metadata_list *metadata, uint64_t *out_alignment);

#endif // FORMATS_GGUF_H
