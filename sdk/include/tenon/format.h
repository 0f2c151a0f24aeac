// SPDX-License-Identifier: MIT
// Formats: plugins that read and write files of arrays, for tn_file_open, tn_load and
// tn_save of <tenon/file.h>.
//
//   static const tn_format format = {.struct_size = sizeof(format),
//                                    .list = list, .close = close, .write = write};
//   static const tn_selector selectors[] = {{TN_IFACE_FORMAT, "extension", "acme"},
//                                           {TN_IFACE_FORMAT, TN_SELECT_MAGIC,
//                                           "41434d45"}};
//
// `tenon new format` begins such a plugin; the checks `format.*` of `tenon check` try it.
//
// The plugin knows the bytes of its files and nothing else. Opening and mapping files,
// memory, and replacing a file at once or not at all are the core's. The file is chosen by
// its extension, in small letters, then by its first bytes: see <tenon/plugin.h>. A folder
// counts as a file too: it is chosen by a file that is in it.
//
// A file is untrusted: a format checks each number against the size of the source before it
// allocates or reads, and fails with TN_ERR_REFUSED and a message that begins with
// source->name and says what was got and expected.
//
// Threads. Every slot is [any]: several threads may call it at once, for one content too.
#ifndef TENON_FORMAT_H
#define TENON_FORMAT_H

#include <stddef.h>
#include <tenon/checked.h>
#include <tenon/host.h>
#include <tenon/metadata.h>
#include <tenon/status.h>
#include <tenon/types.h>

// The id by which query() is asked for a tn_format. Its kinds of selectors beside
// TN_SELECT_MAGIC are "extension" and "folder", whose value is the name of a file: folders
// with that file in them are the format's ("config.json").
#define TN_IFACE_FORMAT "tn.format/1"

// Flags of an array in a file.
enum {
    // Its bytes in the file are its elements: row-major without gaps, little-endian, a
    // TN_BOOL 0 or 1. The core reads or maps them, and does not call `read`.
    TN_FORMAT_IN_PLACE = 1,
};

// One array of a file. Of a content that `list` gives: owned by the format, constant until
// `close`. Of one that `write` gets: borrowed for the call.
//
// Elements in blocks, as quantised weights are, are no elements to the core: their array is
// one of TN_U8, its last axis the bytes of a row, and `block_format` names how they are to
// be read. <tenon/ops/quant.h> lists the names that Tenon's own plugins know.
typedef struct tn_format_array {
    const char *name; // UTF-8; "" in a file of one array without a name
    tn_type type;
    uint64_t offset;  // bytes from the file's beginning to the first element; 0 for `write`
    uint64_t size;    // bytes: in the file, or of `data`
    const void *data; // for `write`: the elements, row-major without gaps, or NULL where
                      // the content has `elements`; else NULL
    uint32_t flags;   // TN_FORMAT_...; 0 for `write`
    uint32_t file;    // the `number` of the source that the bytes lie in; 0 for `write`
    const char *block_format; // small letters, "q4_0"; NULL: elements of `type`
    int64_t columns; // elements of a row that is in blocks; else 0, and so for `write`
} tn_format_array;

// A pair of texts about a file, UTF-8.
typedef struct tn_format_text {
    const char *key;
    const char *value;
} tn_format_text;

typedef struct tn_format_content tn_format_content;

// Contents of a file: array i is at byte i * array_size of `arrays`, texts and metadata
// likewise. A text is for people, and metadata for programs: no format needs both.
struct tn_format_content {
    uint32_t struct_size; // sizeof(tn_format_content)
    uint32_t flags;       // 0
    const tn_format_array *arrays;
    const tn_format_text *texts;
    uint64_t num_arrays;
    uint64_t num_texts;
    uint32_t array_size; // sizeof(tn_format_array)
    uint32_t text_size;  // sizeof(tn_format_text)
    const tn_metadata *metadata;
    uint64_t num_metadata;
    uint32_t metadata_size; // sizeof(tn_metadata)
    uint32_t reserved;      // 0

    // For `write` of a format with TN_FORMAT_IN_TURN, else NULL: gives the elements of
    // array `index`, array->size bytes, borrowed until the next call. Each array is asked
    // for once, in order. tn_format_elements() calls this where there is a need.
    tn_status (*elements)(const tn_format_content *content, uint64_t index,
                          const void **out_data);
};

// Flags of a source.
enum {
    TN_FORMAT_FOLDER = 1, // a folder: it has no bytes, and `open` opens the files in it
};

// The bytes of a file that is read. Filled by the core, borrowed for the call.
typedef struct tn_format_source tn_format_source;
struct tn_format_source {
    uint32_t struct_size; // sizeof(tn_format_source) as the core was compiled
    uint32_t flags;       // TN_FORMAT_FOLDER, or 0
    uint64_t size;        // bytes; 0 of a folder
    const char *name;     // the path, for messages

    // Copies `size` bytes from byte `offset` on. Fails, with the reason recorded, when they
    // are not all there. [any-thread]
    tn_status (*read)(const tn_format_source *source, uint64_t offset, void *data,
                      uint64_t size);

    // Number of the file: 0 for the file that was opened; 1, 2, ... for others that `open`
    // gave.
    uint32_t number;
    uint32_t reserved; // 0

    // Gives the source of another regular file in the same folder; for a file that was
    // opened already, the same source. The core closes it behind `close`, so a content may
    // keep it. For `list` alone, and one call at a time. `file` is its name, without a
    // slash, and as untrusted as the file that it comes from: TN_ERR_REFUSED for "..", say.
    // TN_ERR_NOT_FOUND when there is no such file.
    tn_status (*open)(const tn_format_source *source, const char *file,
                      const tn_format_source **out_source);
};

// Where a file is written to. Filled by the core, borrowed for the call.
typedef struct tn_format_sink tn_format_sink;
struct tn_format_sink {
    uint32_t struct_size; // sizeof(tn_format_sink) as the core was compiled
    uint32_t flags;       // 0
    const char *name;     // the path, for messages

    // Appends bytes. Fails, with the reason recorded, when they cannot be written.
    tn_status (*write)(const tn_format_sink *sink, const void *data, uint64_t size);
};

// Flags of a format.
enum {
    TN_FORMAT_SINGLE = 1,   // a file holds exactly one array, without a name and texts
    TN_FORMAT_METADATA = 2, // `write` takes metadata
    TN_FORMAT_BLOCKS = 4,   // `write` takes arrays with a block_format
    TN_FORMAT_IN_TURN = 8,  // `write` asks for elements by tn_format_elements, in order
};

// The interface of a format.
typedef struct tn_format {
    uint32_t struct_size;
    uint32_t flags; // TN_FORMAT_SINGLE, ..., or 0

    // Reads what is in the file, not the elements. Gives a content, which `close` takes
    // back. Arrays have names of their own, and metadata keys of their own. [any]
    tn_status (*list)(const tn_host *host, const tn_format_source *source,
                      const tn_format_content **out_content);
    void (*close)(const tn_host *host, const tn_format_content *content);

    // Optional: gives the elements of array `index`, which is not TN_FORMAT_IN_PLACE, in
    // `data`: row-major without gaps, in the byte order of the host. [any]
    tn_status (*read)(const tn_host *host, const tn_format_source *source,
                      const tn_format_content *content, uint64_t index, void *data);

    // Optional: writes a file. TN_ERR_UNSUPPORTED, before anything is written, for what the
    // format cannot hold, such as a dtype, a name or a block format. Messages begin with
    // sink->name. [any]
    tn_status (*write)(const tn_host *host, const tn_format_content *content,
                       const tn_format_sink *sink);
} tn_format;

// Gives the elements of array `index` of a content that `write` got: those that are there,
// or those that the content gives in their turn. Fails, with the reason recorded, when they
// cannot be had.
static inline tn_status tn_format_elements(const tn_format_content *content, uint64_t index,
                                           const void **out_data)
{
    const tn_format_array *array =
        (const tn_format_array *)(const void *)((const char *)(const void *)
                                                    content->arrays +
                                                index * content->array_size);
    if (!array->data && TN_HAS(content, elements))
        return content->elements(content, index, out_data);
    *out_data = array->data;
    return TN_OK;
}

// The bytes of an array of this type, for sizes that a file states: 1, or 0 where they do
// not fit 63 bits. An extent of 0 counts as 1 for that, as the core counts.
static inline int32_t tn_format_bytes(const tn_type *type, uint64_t *out_bytes)
{
    uint64_t most = (uint64_t)tn_dtype_bytes(type->dtype), bytes = most;
    for (int32_t i = 0; i < type->rank; i++) {
        uint64_t extent = (uint64_t)type->extent[i];
        if (!tn_checked_multiply(most, extent ? extent : 1, &most) || most > INT64_MAX)
            return 0;
        bytes *= extent;
    }
    *out_bytes = bytes;
    return 1;
}

#endif // TENON_FORMAT_H
