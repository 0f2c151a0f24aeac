// SPDX-License-Identifier: MIT
// Files in memory for checks of formats: sinks and sources of which one call may fail.
#ifndef CONFORMANCE_FORMAT_MEMORY_FILE_H
#define CONFORMANCE_FORMAT_MEMORY_FILE_H

#include <tenon/format.h>
#include "../kit/kit.h"

// The name that files in memory have, and with which messages about them begin.
#define MEMORY_FILE_PATH "/folder/file.of-arrays"

struct memory_file {
    tn_format_sink sink;     // first: `write` casts it back
    tn_format_source source; // of `size` bytes
    const tn_host *host;
    unsigned char *bytes; // of malloc()
    uint64_t size, capacity;
    uint64_t calls, fail_at; // of read and write; fail_at 0: none fails
    bool is_listed;          // while `list` runs: other files may be opened
    uint64_t misuses;        // calls of `open` at other times
};

void memory_file_start(struct memory_file *file, const tn_host *host);
const tn_format_source *memory_file_source(struct memory_file *file);

// Reads as a source does.
tn_status memory_file_take(const tn_format_source *source, uint64_t offset, void *data,
                           uint64_t size);

// Calls the format's list(), during which other files may be opened; there are none.
tn_status memory_file_list(struct memory_file *file, const tn_format *format,
                           const tn_format_content **out_content);

#endif // CONFORMANCE_FORMAT_MEMORY_FILE_H
