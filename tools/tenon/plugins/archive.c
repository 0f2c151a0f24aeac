// SPDX-License-Identifier: MIT
// Packs and unpacks archives of plugins by libarchive. This module is loaded only for
// archives, because libarchive brings some twenty libraries. Archives are not trusted:
// names, kinds, modes and sizes are checked before anything is written, and sizes again as
// bytes are read.
#include "tnp.h"
#include "base/file.h"
#include "files/tree.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 65536

// --- packing ---------------------------------------------------------------------------

static int pack_bytes(struct archive *to, const struct folder *folder, const char *name)
{
    char block[BLOCK];
    ssize_t got = -1;
    int fd = open_below(folder->fd, name, O_RDONLY | O_NONBLOCK, 0), failed = 0;
    while (fd >= 0 && !failed && (got = read(fd, block, sizeof(block))) > 0)
        if (archive_write_data(to, block, (size_t)got) != got)
            failed = oops("cannot pack %s: %s", name, archive_error_string(to));
    if (!failed && got < 0)
        failed = oops("cannot read %s/%s: %s", folder->path, name, strerror(errno));
    if (fd >= 0)
        close(fd);
    return failed;
}

// Owner, time and mode are fixed, so that the same files give the same bytes.
static int pack_entry(struct archive *to, const struct folder *folder, const char *id,
                      const struct tree_file *file)
{
    struct archive_entry *entry = archive_entry_new();
    char *name = file ? path_join(id, file->name) : strdup(id);
    bool is_folder = !file || file->is_folder;
    int failed = entry && name ? 0 : oops_memory();
    const char *fault = failed ? NULL : name_fault(name);
    if (fault) // unpacking would refuse the name
        failed = oops("cannot pack '%s': %s", name, fault);
    if (!failed) {
        archive_entry_set_pathname(entry, name);
        archive_entry_set_filetype(entry, is_folder ? AE_IFDIR : AE_IFREG);
        archive_entry_set_perm(entry, is_folder || file->is_program ? 0755 : 0644);
        archive_entry_set_size(entry, is_folder ? 0 : (int64_t)file->size);
        archive_entry_set_mtime(entry, 0, 0);
        archive_entry_set_uid(entry, 0);
        archive_entry_set_gid(entry, 0);
        if (archive_write_header(to, entry) != ARCHIVE_OK)
            failed = oops("cannot pack %s: %s", name, archive_error_string(to));
    }
    if (!failed && !is_folder)
        failed = pack_bytes(to, folder, file->name);
    archive_entry_free(entry);
    free(name);
    return failed;
}

static int pack_tree(struct archive *to, const struct folder *folder, const char *id)
{
    struct file_tree tree;
    int failed = tree_list(folder, &tree);
    if (failed)
        return failed;
    failed = tree.count < TREE_MAX_FILES // one entry is for the folder itself
                 ? pack_entry(to, folder, id, NULL)
                 : oops("%s: more than %d files", folder->path, TREE_MAX_FILES - 1);
    for (size_t i = 0; !failed && i < tree.count; i++)
        failed = pack_entry(to, folder, id, &tree.files[i]);
    tree_finish(&tree);
    return failed;
}

static int open_writer(struct archive *to, FILE *stream)
{
    bool good = archive_write_set_format_pax_restricted(to) == ARCHIVE_OK &&
                archive_write_add_filter_zstd(to) == ARCHIVE_OK &&
                archive_write_set_filter_option(to, "zstd", "compression-level", "19") ==
                    ARCHIVE_OK &&
                archive_write_set_bytes_in_last_block(to, 1) == ARCHIVE_OK &&
                archive_write_open_FILE(to, stream) == ARCHIVE_OK;
    return good ? 0 : oops("cannot pack: %s", archive_error_string(to));
}

static int plugin_archive_pack(const struct folder *folder, const char *id,
                               const char *path)
{
    struct new_file file;
    int failed = new_file_open(&file, path);
    if (failed)
        return failed;
    struct archive *to = archive_write_new();
    failed = to ? open_writer(to, file.stream) : oops_memory();
    if (!failed)
        failed = pack_tree(to, folder, id);
    if (!failed && archive_write_close(to) != ARCHIVE_OK)
        failed = oops("cannot write %s: %s", path, archive_error_string(to));
    archive_write_free(to);
    if (!failed)
        failed = new_file_commit(&file);
    else
        new_file_abandon(&file);
    return failed;
}

// --- unpacking -------------------------------------------------------------------------

struct plugin_archive_unpacking {
    struct archive *from;
    const char *path, *what;
    const struct folder *target;
    struct file_tree tree;
    uint64_t bytes, limit; // of all files
    uint32_t num_entries;
};

static const char *kind_fault(struct archive_entry *entry)
{
    if (archive_entry_hardlink(entry))
        return "a hard link";
    switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
    case AE_IFDIR:
        break;
    case AE_IFLNK:
        return "a symbolic link";
    case AE_IFIFO:
        return "a pipe";
    case AE_IFSOCK:
        return "a socket";
    default:
        return "a device";
    }
    return archive_entry_perm(entry) & 07000 ? "setuid, setgid or sticky" : NULL;
}

static int too_much(const struct plugin_archive_unpacking *self, const char *name)
{
    return oops("%s: '%s' makes more than %" PRIu64 " bytes of it: an archive may unpack "
                "to %d times its size and %d MiB, and to 1 GiB at most",
                self->path, name, self->limit, ARCHIVE_MAX_RATIO,
                (int)(ARCHIVE_FREE_BYTES >> 20));
}

static int unpack_bytes(struct plugin_archive_unpacking *self, const char *name, int fd)
{
    char block[BLOCK];
    la_ssize_t got;
    while ((got = archive_read_data(self->from, block, sizeof(block))) > 0) {
        self->bytes += (uint64_t)got;
        if (self->bytes > self->limit)
            return too_much(self, name);
        int failed = write_whole(fd, block, (size_t)got, name);
        if (failed)
            return failed;
    }
    return got < 0
               ? oops("%s: '%s': %s", self->path, name, archive_error_string(self->from))
               : 0;
}

static int unpack_file(struct plugin_archive_unpacking *self, const struct tree_file *file)
{
    int fd;
    if (file->size > self->limit - self->bytes)
        return too_much(self, file->name);
    int failed = tree_make_file(self->target, file->name, file->is_program, &fd);
    if (failed)
        return failed;
    failed = unpack_bytes(self, file->name, fd);
    if (close(fd) && !failed)
        failed = oops("cannot write %s: %s", file->name, strerror(errno));
    return failed;
}

// All entries lie in one folder, which the first entry names.
static int check_root(const struct plugin_archive_unpacking *self,
                      const struct tree_file *file)
{
    const char *root = self->tree.count ? self->tree.files[0].name : file->name;
    size_t size = strcspn(root, "/");
    bool is_below = strncmp(file->name, root, size) == 0 &&
                    (file->name[size] == '/' || (!file->name[size] && file->is_folder));
    return is_below ? 0
                    : oops("%s: '%s' is not in a folder with the rest: 'tenon %s pack' "
                           "packs one folder",
                           self->path, file->name, self->what);
}

static int unpack_named(struct plugin_archive_unpacking *self, const struct tree_file *file)
{
    size_t before = self->tree.count;
    int failed = tree_add(&self->tree, self->path, file);
    if (!failed)
        failed = check_root(self, file);
    for (size_t i = before; !failed && i < self->tree.count; i++)
        if (self->tree.files[i].is_folder)
            failed = tree_make_folder(self->target, self->tree.files[i].name);
    return failed || file->is_folder ? failed : unpack_file(self, file);
}

static int unpack_entry(struct plugin_archive_unpacking *self, struct archive_entry *entry)
{
    const char *given = archive_entry_pathname(entry), *fault = kind_fault(entry);
    if (!given)
        return oops("%s: a name that is no text", self->path);
    if (++self->num_entries > TREE_MAX_FILES) // a folder may be listed twice
        return oops("%s: more than %d files", self->path, TREE_MAX_FILES);
    if (fault)
        return oops("%s: '%s' is %s: a %s holds plain files and folders only", self->path,
                    given, fault, self->what);
    char *name = strdup(given);
    if (!name)
        return oops_memory();
    bool is_folder = archive_entry_filetype(entry) == AE_IFDIR;
    size_t size = strlen(name);
    if (is_folder && size > 1 && name[size - 1] == '/')
        name[size - 1] = '\0';
    int64_t bytes = archive_entry_size(entry);
    struct tree_file file = {.name = name,
                             .is_folder = is_folder,
                             .size = bytes < 0 ? UINT64_MAX : (uint64_t)bytes,
                             .is_program = archive_entry_perm(entry) & 0111};
    int failed = unpack_named(self, &file);
    free(name);
    return failed;
}

static int unpack_all(struct plugin_archive_unpacking *self)
{
    struct archive_entry *entry;
    int status;
    while ((status = archive_read_next_header(self->from, &entry)) == ARCHIVE_OK) {
        int failed = unpack_entry(self, entry);
        if (failed)
            return failed;
    }
    if (status != ARCHIVE_EOF)
        return oops("%s is no whole %s archive (a tar, compressed by zstd): %s", self->path,
                    self->what, archive_error_string(self->from));
    return self->tree.count ? 0 : oops("%s is empty", self->path);
}

static int open_reader(struct plugin_archive_unpacking *self)
{
    struct stat info;
    if (stat(self->path, &info))
        return oops("cannot read %s: %s", self->path, strerror(errno));
    uint64_t size = (uint64_t)info.st_size;
    self->limit = size < ARCHIVE_MAX_BYTES / ARCHIVE_MAX_RATIO
                      ? size * ARCHIVE_MAX_RATIO + ARCHIVE_FREE_BYTES
                      : ARCHIVE_MAX_BYTES;
    if (self->limit > ARCHIVE_MAX_BYTES)
        self->limit = ARCHIVE_MAX_BYTES;
    self->from = archive_read_new();
    if (!self->from)
        return oops_memory();
    if (archive_read_support_format_tar(self->from) != ARCHIVE_OK ||
        archive_read_support_filter_zstd(self->from) != ARCHIVE_OK ||
        archive_read_open_filename(self->from, self->path, BLOCK) != ARCHIVE_OK)
        return oops("%s is no %s archive (a tar, compressed by zstd): %s", self->path,
                    self->what, archive_error_string(self->from));
    if (archive_filter_code(self->from, 0) != ARCHIVE_FILTER_ZSTD)
        return oops("%s is no %s archive: it is not compressed by zstd", self->path,
                    self->what);
    return 0;
}

static int plugin_archive_unpack(const char *path, const struct folder *target,
                                 const char *what)
{
    struct plugin_archive_unpacking self = {.path = path, .what = what, .target = target};
    int failed = open_reader(&self);
    if (!failed)
        failed = unpack_all(&self);
    archive_read_free(self.from);
    tree_finish(&self.tree);
    return failed;
}

__attribute__((visibility("default"))) const struct archive_part tenon_archive = {
    .pack = plugin_archive_pack, .unpack = plugin_archive_unpack, .failure = oops_text};
