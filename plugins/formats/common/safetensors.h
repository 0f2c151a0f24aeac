// SPDX-License-Identifier: MIT
// The header of a safetensors file, for the formats made of such files: 8 bytes of header
// length, the header (JSON), and the data, which arrays cover without holes or overlaps.
//
// Nothing in the file is trusted: each size is checked against the file's size.
#ifndef FORMATS_COMMON_SAFETENSORS_H
#define FORMATS_COMMON_SAFETENSORS_H

#include <jansson.h>
#include <tenon/format.h>

#define SAFETENSORS_METADATA "__metadata__" // the key of the file's metadata

// A header that was read. Names and texts point into `header`.
struct safetensors {
    const tn_host *host;
    const tn_format_source *source;
    json_t *header;
    tn_format_array *arrays; // sorted by offset; all but bools are TN_FORMAT_IN_PLACE
    tn_format_text *texts;
    size_t num_arrays, num_texts;
    uint64_t data_begin, data_size; // bytes
};

// safetensors' names of dtypes; NULL: it has none.
extern const char *const safetensors_dtypes[TN_NUM_DTYPES];

// Reads the header of r->source. safetensors_finish frees the contents of `r`, also after a
// failure.
tn_status safetensors_read_header(struct safetensors *r);
void safetensors_finish(struct safetensors *r);

// Gives the elements of an array of bools, 0 or 1 each.
tn_status safetensors_read_bools(const tn_format_source *source,
                                 const tn_format_array *array, void *data);

#endif // FORMATS_COMMON_SAFETENSORS_H
