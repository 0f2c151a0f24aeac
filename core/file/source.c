// SPDX-License-Identifier: MIT
// The bytes of files: opened, read or mapped, and other files of the same folder.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../base/fail.h"
#include "../base/file.h"
#include "../base/memory.h"
#include "file.h"

void file_bytes_release(struct file_bytes *bytes)
{
    if (!bytes || atomic_fetch_sub(&bytes->refs, 1) != 1)
        return;
    if (bytes->is_mapped)
        munmap(bytes->data, bytes->size);
    else
        mem_free(bytes->data);
    mem_free(bytes);
}

char *file_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? mem_printf("%.*s", (int)(slash - path) + 1, path) : mem_strdup("./");
}

static tn_status file_source_cannot_read(const struct file_source *source)
{
    return fail(TN_ERR_IO, "cannot read %s: %s", source->path, strerror(errno));
}

static tn_status read_source(const tn_format_source *table, uint64_t offset, void *data,
                             uint64_t size)
{
    const struct file_source *source = (const void *)table;
    if (offset > table->size || size > table->size - offset)
        return fail(TN_ERR_REFUSED, "%s: truncated: bytes %llu to %llu of %llu",
                    source->path, (unsigned long long)offset,
                    (unsigned long long)(offset + size), (unsigned long long)table->size);
    if (size == 0)
        return TN_OK;
    if (source->bytes) {
        memcpy(data, source->bytes->data + offset, size);
        return TN_OK;
    }
    ssize_t got = file_read_at(source->fd, data, size, offset);
    if (got < 0)
        return file_source_cannot_read(source);
    if ((uint64_t)got < size)
        return fail(TN_ERR_IO, "cannot read %s: it was shortened meanwhile", source->path);
    return TN_OK;
}

// Bytes that a pipe may give, which are copied as their memory grows.
static uint64_t most_piped(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size / 2 : SIZE_MAX / 2;
}

// Reads all of a pipe: its size is known at its end only.
static tn_status read_pipe(struct file_source *source)
{
    struct file_bytes *bytes = source->bytes = mem_zalloc(sizeof(*bytes));
    uint64_t room = 0;
    if (!bytes)
        return TN_ERR_MEMORY;
    atomic_init(&bytes->refs, 1);
    for (;;) {
        if (bytes->size == room) {
            room = room ? 2 * room : 65536;
            if (room > most_piped())
                return fail(TN_ERR_REFUSED,
                            "%s: the pipe gives more than half of this machine's memory: "
                            "write it to a file first",
                            source->path);
            char *more = mem_realloc(bytes->data, room);
            if (!more)
                return fail(TN_ERR_MEMORY, "%s: out of memory: %llu bytes", source->path,
                            (unsigned long long)room);
            bytes->data = more;
        }
        ssize_t got = read(source->fd, bytes->data + bytes->size, room - bytes->size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return file_source_cannot_read(source);
        if (got == 0)
            break;
        bytes->size += (uint64_t)got;
    }
    source->table.size = bytes->size;
    return TN_OK;
}

static tn_status map_source(struct file_source *source)
{
    struct file_bytes *bytes = mem_zalloc(sizeof(*bytes));
    if (!bytes)
        return TN_ERR_MEMORY;
    uint64_t size = source->table.size;
    void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, source->fd, 0);
    if (data == MAP_FAILED) { // such as on some network file systems: reading works
        mem_free(bytes);
        return TN_OK;
    }
    *bytes = (struct file_bytes){.is_mapped = true, .data = data, .size = size};
    atomic_init(&bytes->refs, 1);
    source->bytes = bytes;
    close(source->fd); // a model may be hundreds of files
    source->fd = -1;
    return TN_OK;
}

static tn_status open_sibling(const tn_format_source *table, const char *name,
                              const tn_format_source **out_source);

// Takes `path`; `name` is opened in the folder `directory`.
static tn_status open_source(tn_file *file, struct file_source *source, char *path,
                             int directory, const char *name, int flags)
{
    struct stat info;
    source->table = (tn_format_source){.struct_size = sizeof(source->table),
                                       .name = path,
                                       .read = read_source,
                                       .number = file->num_others,
                                       .open = open_sibling};
    source->file = file;
    source->path = path;
    source->fd = -1;
    if (!path)
        return TN_ERR_MEMORY;
    source->fd = file_open(directory, name, O_RDONLY | flags, 0);
    if (source->fd < 0 || fstat(source->fd, &info)) {
        bool is_absent = errno == ENOENT && flags;
        tn_status status = file_source_cannot_read(source);
        return is_absent ? TN_ERR_NOT_FOUND : status;
    }
    if (S_ISDIR(info.st_mode) && !flags) {
        source->table.flags = TN_FORMAT_FOLDER;
        return TN_OK;
    }
    if (S_ISFIFO(info.st_mode) && !flags)
        return read_pipe(source);
    if (!S_ISREG(info.st_mode)) // /dev/zero never ends
        return fail(TN_ERR_REFUSED, "%s: expected a regular file%s", path,
                    flags ? "" : ", a folder or a pipe");
    source->table.size = (uint64_t)info.st_size;
    return file->map && info.st_size > 0 ? map_source(source) : TN_OK;
}

tn_status file_source_open(tn_file *file, const char *path)
{
    return open_source(file, &file->first, mem_strdup(path), AT_FDCWD, path, 0);
}

void file_source_close(struct file_source *source)
{
    file_bytes_release(source->bytes);
    if (source->fd >= 0)
        close(source->fd);
    mem_free(source->path);
}

struct file_source *file_source_at(const tn_file *file, uint32_t number)
{
    if (number == 0)
        return (struct file_source *)(uintptr_t)&file->first;
    return number <= file->num_others ? file->others[number - 1] : NULL;
}

// --- other files of the folder ----------------------------------------------------------

// Opens the folder once: the one that was opened as a file, or that of the file.
static tn_status file_source_open_folder(tn_file *file)
{
    if (file->directory >= 0)
        return TN_OK;
    const char *path = file->first.path;
    mem_free(file->folder);
    file->folder = file->first.table.flags & TN_FORMAT_FOLDER ? mem_printf("%s/", path)
                                                              : file_folder(path);
    if (!file->folder)
        return TN_ERR_MEMORY;
    file->directory = file_open(AT_FDCWD, file->folder, O_RDONLY | O_DIRECTORY, 0);
    return file->directory < 0 ? file_source_cannot_read(&file->first) : TN_OK;
}

static tn_status add_sibling(tn_file *file, const char *name,
                             const tn_format_source **out_source)
{
    uint64_t count = file->num_others;
    struct file_source **others = mem_realloc(file->others, (count + 1) * sizeof(*others));
    if (!others)
        return TN_ERR_MEMORY;
    file->others = others;
    struct file_source *source = mem_zalloc(sizeof(*source));
    if (!source)
        return TN_ERR_MEMORY;
    file->others[file->num_others++] = source;
    // A file without a reader, such as a pipe, is opened at once and refused.
    tn_status status = open_source(file, source, mem_printf("%s%s", file->folder, name),
                                   file->directory, name, O_NONBLOCK);
    if (status == TN_OK) {
        *out_source = &source->table;
        return TN_OK;
    }
    file->num_others--;
    file_source_close(source);
    mem_free(source);
    return status;
}

static tn_status open_sibling(const tn_format_source *table, const char *name,
                              const tn_format_source **out_source)
{
    const struct file_source *from = (const void *)table;
    tn_file *file = from->file;
    if (file->content)
        return fail(TN_ERR_ARGUMENT, "%s: other files are opened by `list` alone",
                    file->first.path);
    if (!*name || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return fail(TN_ERR_REFUSED,
                    "%s: it names the file '%s', expected one of its own folder",
                    from->path, name);
    tn_status status = file_source_open_folder(file);
    if (status != TN_OK)
        return status;
    for (uint32_t i = 0; i <= file->num_others; i++) {
        const struct file_source *known = file_source_at(file, i);
        const char *slash = strrchr(known->path, '/');
        if (!(known->table.flags & TN_FORMAT_FOLDER) &&
            strcmp(slash ? slash + 1 : known->path, name) == 0) {
            *out_source = &known->table;
            return TN_OK;
        }
    }
    return add_sibling(file, name, out_source);
}
