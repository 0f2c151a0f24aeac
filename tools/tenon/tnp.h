// SPDX-License-Identifier: MIT
// Archives of plugins (.tnp): a tar compressed by zstd that holds one folder, the plugin's.
#ifndef TOOLS_TENON_TNP_H
#define TOOLS_TENON_TNP_H

#include "folder.h"

// What an archive may unpack to: bytes in all, and bytes for each of its own.
#define ARCHIVE_MAX_BYTES ((uint64_t)1 << 30)
#define ARCHIVE_MAX_RATIO 200
#define ARCHIVE_FREE_BYTES ((uint64_t)16 << 20) // whatever the ratio

// Writes the files of `folder` below the name `id` to a new archive at `path`. The bytes
// depend on names, contents and on which files are programs alone.
int archive_pack(const struct folder *folder, const char *id, const char *path);

// Unpacks into `target`, an empty folder. Refuses what is no plain file or folder below one
// folder, whatever leads out of it, comes twice, or is too much; what was written until
// then is left to the caller.
int archive_unpack(const char *path, const struct folder *target);

// What does both, in a shared object of its own: its one symbol, tenon_archive.
struct archive_part {
    int (*pack)(const struct folder *folder, const char *id, const char *path);
    int (*unpack)(const char *path, const struct folder *target);
    const char *(*failure)(void); // why the last one failed
};
extern const struct archive_part tenon_archive;

#endif // TOOLS_TENON_TNP_H
