// SPDX-License-Identifier: MIT
// The disk cache as files: its folder, and what each file in it is. The format is that of
// <tenon/cache_file.h>; nothing in a file is believed before its checksum.
#ifndef TOOLS_TENON_CACHE_ENTRY_H
#define TOOLS_TENON_CACHE_ENTRY_H

#include <time.h>
#include "files/folder.h"

enum cache_state {
    CACHE_SOUND,
    CACHE_DAMAGED, // an entry's name, but not its content
    CACHE_VERSION, // an entry of another version of the format
    CACHE_WRITING, // a temporary file that may have a writer
    CACHE_LEFT,    // a temporary file whose writer is gone
    CACHE_UNKNOWN, // no file of the cache
};
// "sound", "damaged".
const char *cache_state_name(int state);

struct cache_entry {
    char *name; // of the file; owned
    int state;
    uint64_t bytes; // of the file
    struct timespec used;
    char *texts; // owned; the next four are parts of it, and "" unless the entry is sound
    const char *plugin, *kind, *kernel, *device;
};

struct cache_list {
    struct cache_entry *entries; // in the order of their names
    size_t count;
    size_t sound;         // number of sound entries
    uint64_t sound_bytes; // bytes of sound entries
};

// Opens the cache's folder, as the library does: TENON_CACHE_DIR, or the user's. Fails when
// there can be none, and when others can change it, so that it is not used. With `make`,
// makes it. Else out->fd is -1 when there is none yet; its path is set all the same, and
// folder_close() is due.
int cache_reach(bool make, struct folder *out);

// Lists the files of the folder, which may be absent. cache_list_finish() frees the list.
int cache_list(const struct folder *folder, struct cache_list *out);
void cache_list_finish(struct cache_list *list);

// Whether the file's name is that of an entry.
bool cache_is_name(const char *name);
// Reads the file `name` and says what it is. *out_data, unless NULL, is the whole file when
// that is a sound entry, else NULL: free it. `out` is freed by cache_entry_finish().
int cache_read(const struct folder *folder, const char *name, struct cache_entry *out,
               char **out_data);
void cache_entry_finish(struct cache_entry *entry);

// Whether the entry is a note of a plugin that crashed, which is of this machine alone.
bool cache_is_note(const struct cache_entry *entry);

#endif // TOOLS_TENON_CACHE_ENTRY_H
