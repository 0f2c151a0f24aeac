// SPDX-License-Identifier: MIT
// Reads files, and replaces them atomically.
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// --- new files -------------------------------------------------------------------------

static int open_new(struct new_file *file, const char *path,
                    const tn_new_file_options *options)
{
    *file = (struct new_file){.path = strdup(path)};
    int failed = file->path ? 0 : oops_memory();
    if (!failed && tn_new_file_open(path, options, &file->file))
        failed = oops("%s", tn_last_error());
    int copy = failed ? -1 : fcntl(file->file->descriptor, F_DUPFD_CLOEXEC, 0);
    file->stream = copy < 0 ? NULL : fdopen(copy, "wb");
    if (!failed && !file->stream)
        failed = oops("cannot write %s: %s", path, strerror(errno));
    if (!file->stream && copy >= 0)
        close(copy);
    if (failed)
        new_file_abandon(file);
    return failed;
}

int new_file_open(struct new_file *file, const char *path)
{
    return open_new(file, path, NULL);
}

int new_file_commit(struct new_file *file)
{
    errno = 0;
    bool good = fflush(file->stream) == 0 && !ferror(file->stream);
    int reason = errno ? errno : EIO; // the stream may have met its error long ago
    if (fclose(file->stream) && good) {
        good = false;
        reason = errno;
    }
    file->stream = NULL;
    int failed = !good ? oops("cannot write %s: %s; what was there before is unchanged",
                              file->path, strerror(reason))
                 : tn_new_file_commit(file->file) ? oops("%s", tn_last_error())
                                                  : 0;
    new_file_abandon(file);
    return failed;
}

void new_file_abandon(struct new_file *file)
{
    if (file->stream)
        fclose(file->stream);
    tn_new_file_close(file->file);
    free(file->path);
    *file = (struct new_file){0};
}

static int tool_files_write_new(struct new_file *file, const void *data, size_t size)
{
    fwrite(data, 1, size, file->stream); // commit sees the stream's error
    return new_file_commit(file);
}

int file_write_at(int directory, const char *name, const char *path, const void *data,
                  size_t size)
{
    struct new_file file;
    const tn_new_file_options options = {
        .struct_size = sizeof(options), .name = name, .directory = directory};
    int failed = open_new(&file, path, &options);
    return failed ? failed : tool_files_write_new(&file, data, size);
}

int file_write(const char *path, const void *data, size_t size)
{
    if (strcmp(path, "-") == 0)
        return fwrite(data, 1, size, stdout) == size ? 0 : oops("cannot write the output");
    struct new_file file;
    int failed = new_file_open(&file, path);
    return failed ? failed : tool_files_write_new(&file, data, size);
}

int file_write_new(const char *path, mode_t mode, const void *data, size_t size)
{
    struct new_file file;
    const tn_new_file_options options = {
        .struct_size = sizeof(options), .flags = TN_NEW_FILE_ONLY, .mode = mode};
    int failed = open_new(&file, path, &options);
    if (failed)
        return failed;
    setvbuf(file.stream, NULL, _IONBF, 0); // no copy in a buffer: the data may be secret
    return tool_files_write_new(&file, data, size);
}

// --- reading ---------------------------------------------------------------------------

static int take_stream(FILE *stream, const char *path, FILE **out_stream, int64_t *out_size)
{
    struct stat info;
    if (!stream)
        return oops("cannot read %s: %s", path, strerror(errno));
    if (fstat(fileno(stream), &info) || S_ISDIR(info.st_mode)) {
        fclose(stream);
        return oops("cannot read %s: it is a directory", path);
    }
    if (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)) { // /dev/zero never ends
        fclose(stream);
        return oops("cannot read %s: it is a device, expected a file or a pipe", path);
    }
    *out_size = S_ISREG(info.st_mode) ? info.st_size : -1;
    *out_stream = stream;
    return 0;
}

int file_open(const char *path, FILE **out_stream, int64_t *out_size)
{
    return take_stream(fopen(path, "rbe"), path, out_stream, out_size);
}

static int tool_files_read_whole(FILE *stream, int64_t size, const char *path,
                                 uint64_t limit, char **out_data, uint64_t *out_size)
{
    int failed = 0;
    if (size < 0 || (uint64_t)size > limit) {
        fclose(stream);
        return oops("cannot read %s: expected a regular file of at most %" PRIu64 " bytes",
                    path, limit);
    }
    char *data = malloc((size_t)size + 1);
    if (!data)
        failed = oops_memory();
    else if (fread(data, 1, (size_t)size, stream) != (size_t)size)
        failed = oops("cannot read %s: it ends early", path);
    fclose(stream);
    if (failed) {
        free(data);
        return failed;
    }
    data[size] = '\0';
    *out_data = data;
    *out_size = (uint64_t)size;
    return 0;
}

int file_read(const char *path, uint64_t limit, char **out_data, uint64_t *out_size)
{
    FILE *stream = NULL;
    int64_t size = -1;
    int failed = file_open(path, &stream, &size);
    return failed ? failed
                  : tool_files_read_whole(stream, size, path, limit, out_data, out_size);
}

int file_read_from(int fd, const char *path, uint64_t limit, char **out_data,
                   uint64_t *out_size)
{
    FILE *stream = NULL;
    int64_t size = -1;
    int failed = take_stream(fd < 0 ? NULL : fdopen(fd, "rb"), path, &stream, &size);
    return failed ? failed
                  : tool_files_read_whole(stream, size, path, limit, out_data, out_size);
}
