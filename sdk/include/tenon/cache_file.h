// SPDX-License-Identifier: MIT
// The disk cache's files, for programs that list, ship or remove them. Plugins reach the
// cache by TN_HOST_CACHE (host.h) alone.
//
// A file is one entry: a tn_cache_header, the data, and then four texts, each with its NUL:
// the plugin that stored it, and kind, name and device of tn_cache_about. Numbers are in
// the byte order of the machine. Its name is the key's SHA-256 in 64 lower-case hexadecimal
// digits. A file ".tmp-PID-NUMBER" is one that is being written; it is renamed when it is
// whole, so an entry is replaced by one rename, and may be removed at any time.
//
// Threads. None: these are types.
#ifndef TENON_CACHE_FILE_H
#define TENON_CACHE_FILE_H

#include <stdint.h>

// The first eight bytes: 1a "TCACHE" and the version, '2'.
#define TN_CACHE_MAGIC UINT64_C(0x324548434143541a)
#define TN_CACHE_MAX_ENTRY (UINT64_C(64) << 20) // bytes of an entry's data
#define TN_CACHE_MAX_TEXT 256                   // bytes of each text, with its NUL
#define TN_CACHE_NUM_TEXTS 4

// The beginning of each entry. A file is an entry only if it has 88 + size + texts_size
// bytes, the key's hash is the file's name, and the checksum is right.
typedef struct tn_cache_header {
    uint64_t magic;       // TN_CACHE_MAGIC
    uint64_t size;        // bytes of the data
    uint32_t texts_size;  // bytes of the texts behind the data
    uint32_t reserved;    // 0
    uint8_t key[32];      // SHA-256 of the key
    uint8_t checksum[32]; // SHA-256 of the header before this field, data and texts
} tn_cache_header;

#endif // TENON_CACHE_FILE_H
