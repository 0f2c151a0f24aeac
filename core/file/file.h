// SPDX-License-Identifier: MIT
// Files of arrays. A plugin knows the format; this folder opens, maps and replaces files.
#ifndef CORE_FILE_FILE_H
#define CORE_FILE_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <tenon/file.h>
#include <tenon/format.h>
#include <tenon/graph_format.h>
#include <tenon/plugin.h>
#include "../base/runtime.h"

// The bytes of a file in memory, mapped or read. Reference-counted: arrays that lie in the
// file outlive the tn_file.
struct file_bytes {
    atomic_uint refs;
    bool is_mapped; // else of mem_alloc
    char *data;
    uint64_t size;
};
void file_bytes_release(struct file_bytes *bytes); // NULL is fine

// The bytes of the file that was opened, or of another file of its folder.
struct file_source {
    tn_format_source table; // first: the source of a callback is cast back
    tn_file *file;
    char *path;
    int fd;                   // -1: the file is mapped
    struct file_bytes *bytes; // the whole file, when mapped or no regular file
};

// An open file. Constant, but for what its format's `list` opens.
struct tn_file {
    struct file_source first; // the file, or folder, that was opened
    struct file_source **others;
    uint32_t num_others;
    bool map; // TN_FILE_MAP
    int directory;
    char *folder; // folder of `others`, for messages; `directory`: its descriptor, or -1
    tn_runtime *runtime;
    const tn_format *format;          // the plugin's interface
    const tn_host *host;              // its host table
    const tn_format_content *content; // owned: format->close
    tn_metadata_list metadata;        // of the content
};

// Array `index`; NULL behind the last one.
const tn_format_array *file_array_at(const tn_file *file, uint64_t index);

// Finds and loads the plugin for a file: by its path and, unless that is NULL, by the bytes
// of `opened`; or the plugin with the id `plugin`. A failure begins with the path.
tn_status file_find_format(tn_runtime *runtime, const char *path, const char *plugin,
                           const struct file_source *opened, const tn_format **out_format,
                           const tn_host **out_host);

// --- the bytes (source.c) --------------------------------------------------------------

// Opens file->first. Call file_source_close() after a failure, too.
tn_status file_source_open(tn_file *file, const char *path);
void file_source_close(struct file_source *source);

// The source of this number, or NULL.
struct file_source *file_source_at(const tn_file *file, uint32_t number);

// The folder of a path, with a slash behind it. mem_free() it; NULL when out of memory.
char *file_folder(const char *path);

// The table of TN_HOST_GRAPH_FORMAT (graph.c).
extern const tn_host_graph_format graph_format_service;

// Writes to a file of tn_new_file_open (replace.c).
tn_status new_file_write(tn_new_file *file, const void *data, uint64_t size);

#endif // CORE_FILE_FILE_H
