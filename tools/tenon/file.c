// SPDX-License-Identifier: MIT
// Reading and replacing files.
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_temporary(struct new_file *file)
{
    if (asprintf(&file->temporary, "%s.XXXXXX", file->path) < 0) {
        file->temporary = NULL;
        return oops_memory();
    }
    int fd = mkstemp(file->temporary);
    if (fd < 0) {
        int failed = oops("cannot write beside %s: %s", file->path, strerror(errno));
        free(file->temporary);
        file->temporary = NULL;
        return failed;
    }
    mode_t mask = umask(0);
    umask(mask);
    fchmod(fd, 0666 & ~mask);
    file->stream = fdopen(fd, "wb");
    if (!file->stream)
        close(fd);
    return file->stream ? 0 : oops_memory();
}

int new_file_open(struct new_file *file, const char *path)
{
    struct stat info;
    *file = (struct new_file){.path = strdup(path)};
    if (!file->path)
        return oops_memory();
    int failed;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        file->stream = fopen(path, "wb");
        failed = file->stream ? 0 : oops("cannot write %s: %s", path, strerror(errno));
    } else {
        failed = open_temporary(file);
    }
    if (failed)
        new_file_abandon(file);
    return failed;
}

// The rename itself lasts only once the directory is on the disk.
static void sync_directory(const char *path)
{
    char *copy = strdup(path);
    char *slash = copy ? strrchr(copy, '/') : NULL;
    if (slash)
        slash[slash == copy] = '\0';
    int fd = open(slash ? copy : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(copy);
}

int new_file_commit(struct new_file *file)
{
    bool good = fflush(file->stream) == 0 && !ferror(file->stream);
    if (good && file->temporary)
        good = fsync(fileno(file->stream)) == 0;
    int reason = errno;
    if (fclose(file->stream) && good) {
        good = false;
        reason = errno;
    }
    file->stream = NULL;
    if (good && file->temporary && rename(file->temporary, file->path)) {
        good = false;
        reason = errno;
    }
    if (good && file->temporary) {
        sync_directory(file->path);
        free(file->temporary);
        file->temporary = NULL; // nothing to remove
    }
    int failed = good ? 0
                      : oops("cannot write %s: %s; what was there before is unchanged",
                             file->path, strerror(reason));
    new_file_abandon(file);
    return failed;
}

void new_file_abandon(struct new_file *file)
{
    if (file->stream)
        fclose(file->stream);
    if (file->temporary)
        unlink(file->temporary);
    free(file->temporary);
    free(file->path);
    *file = (struct new_file){0};
}

int file_write(const char *path, const void *data, size_t size)
{
    if (strcmp(path, "-") == 0)
        return fwrite(data, 1, size, stdout) == size ? 0 : oops("cannot write the output");
    struct new_file file;
    int failed = new_file_open(&file, path);
    if (failed)
        return failed;
    fwrite(data, 1, size, file.stream); // commit sees the stream's error
    return new_file_commit(&file);
}

int file_open(const char *path, FILE **out_stream, int64_t *out_size)
{
    struct stat info;
    FILE *stream = fopen(path, "rbe");
    if (!stream)
        return oops("cannot read %s: %s", path, strerror(errno));
    if (fstat(fileno(stream), &info) || S_ISDIR(info.st_mode)) {
        fclose(stream);
        return oops("cannot read %s: it is a directory", path);
    }
    *out_size = S_ISREG(info.st_mode) ? info.st_size : -1;
    *out_stream = stream;
    return 0;
}

int file_read(const char *path, uint64_t limit, char **out_data, uint64_t *out_size)
{
    FILE *stream;
    int64_t size;
    int failed = file_open(path, &stream, &size);
    if (failed)
        return failed;
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
