// SPDX-License-Identifier: MIT
// Archives of plugins (.tnp) and of caches: a tar compressed by zstd that holds one folder.
#ifndef TOOLS_TENON_PLUGINS_TNP_H
#define TOOLS_TENON_PLUGINS_TNP_H

#include "files/folder.h"

// Limits of unpacking: bytes in all, and bytes for each byte of the archive.
#define ARCHIVE_MAX_BYTES ((uint64_t)1 << 30)
#define ARCHIVE_MAX_RATIO 200
#define ARCHIVE_FREE_BYTES ((uint64_t)16 << 20) // allowed whatever the ratio is

// Writes the files of `folder` below the name `id` to a new archive at `path`. The bytes
// depend only on names, contents, and which files are programs.
int archive_pack(const struct folder *folder, const char *id, const char *path);

// Unpacks into `target`, an empty folder. Refuses everything but plain files and folders
// below one folder, names that lead out of it or come twice, and too many bytes. `what`
// ("plugin") is for messages: 'tenon WHAT pack' makes such archives. After a failure the
// caller removes what was written.
int archive_unpack(const char *path, const struct folder *target, const char *what);

// The interface of the module tenon-archive, which exports this struct alone.
struct archive_part {
    int (*pack)(const struct folder *folder, const char *id, const char *path);
    int (*unpack)(const char *path, const struct folder *target, const char *what);
    const char *(*failure)(void); // the message of the last failure
};
extern const struct archive_part tenon_archive;

#endif // TOOLS_TENON_PLUGINS_TNP_H
