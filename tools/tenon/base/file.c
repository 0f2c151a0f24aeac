// SPDX-License-Identifier: MIT
// Reads files, and replaces them atomically.
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX ".tenon-new-"

// --- new files -------------------------------------------------------------------------

// A writer locks its temporary file: a file that can be locked was left behind.
static void sweep_one(int directory, const char *name)
{
    struct stat info;
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(directory, name, 0);
    close(fd);
}

static void sweep(int directory)
{
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;
    while (stream && (entry = readdir(stream)))
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0)
            sweep_one(directory, entry->d_name);
    if (stream)
        closedir(stream);
    else if (copy >= 0)
        close(copy);
}

static bool make_name(char name[32])
{
    uint64_t number;
    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        return false;
    snprintf(name, 32, PREFIX "%016" PRIx64, number);
    return true;
}

// Opens a file without a name, which vanishes with this process unless link_file() names
// it. -1: the file system cannot.
static int open_nameless(int directory)
{
    if (access("/proc/self/fd", X_OK)) // link_file() needs this
        return -1;
    return openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
}

static int open_named(int directory, char name[32])
{
    for (int tries = 0; tries < 100; tries++) {
        struct stat info;
        int fd = make_name(name)
                     ? openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666)
                     : -1;
        if (fd < 0 && errno == EEXIST)
            continue;
        // Before it was locked, another process may have removed the file as left behind.
        if (fd < 0 || (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &info) == 0 &&
                       info.st_nlink > 0))
            return fd;
        close(fd);
    }
    errno = EEXIST;
    return -1;
}

static int open_temporary(struct new_file *file)
{
    sweep(file->directory);
    file->fd = open_nameless(file->directory);
    if (file->fd < 0)
        file->fd = open_named(file->directory, file->temporary);
    if (file->fd < 0) {
        file->temporary[0] = '\0';
        return oops("cannot write beside %s: %s", file->path, strerror(errno));
    }
    int copy = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
    file->stream = copy < 0 ? NULL : fdopen(copy, "wb");
    if (!file->stream && copy >= 0)
        close(copy);
    return file->stream ? 0 : oops("cannot write %s: %s", file->path, strerror(errno));
}

// Like new_file_open() for <directory>/<name>: a link or special file there is replaced,
// never written through.
static int new_file_open_at(struct new_file *file, int directory, const char *name,
                            const char *path)
{
    *file = (struct new_file){.path = strdup(path), .name = strdup(name), .fd = -1};
    file->directory = fcntl(directory, F_DUPFD_CLOEXEC, 0);
    int failed = !file->path || !file->name ? oops_memory()
                 : file->directory < 0 ? oops("cannot write %s: %s", path, strerror(errno))
                                       : open_temporary(file);
    if (failed)
        new_file_abandon(file);
    return failed;
}

static int open_beside(struct new_file *file, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *parent = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    if (!parent)
        return oops_memory();
    int directory = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = directory < 0 ? oops("cannot write beside %s: %s", path, strerror(errno))
                               : new_file_open_at(file, directory, name, path);
    if (directory >= 0)
        close(directory);
    free(parent);
    return failed;
}

int new_file_open(struct new_file *file, const char *path)
{
    struct stat info;
    *file = (struct new_file){.directory = -1, .fd = -1};
    if (stat(path, &info) || S_ISREG(info.st_mode))
        return open_beside(file, path);
    file->path = strdup(path);
    file->stream = file->path ? fopen(path, "wbe") : NULL;
    int failed = !file->path     ? oops_memory()
                 : !file->stream ? oops("cannot write %s: %s", path, strerror(errno))
                                 : 0;
    if (failed)
        new_file_abandon(file);
    return failed;
}

static int link_file(const struct new_file *file, const char *name)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
    return linkat(AT_FDCWD, path, file->directory, name, AT_SYMLINK_FOLLOW);
}

// Names the file unless the name exists. Some file systems have no hard links, others no
// RENAME_NOREPLACE, so both are tried.
static bool name_anew(const struct new_file *file)
{
    int at = file->directory;
    return linkat(at, file->temporary, at, file->name, 0) == 0 ||
           (errno != EEXIST &&
            renameat2(at, file->temporary, at, file->name, RENAME_NOREPLACE) == 0);
}

// Gives the written file its name. False: errno is the reason.
static bool put_in_place(struct new_file *file)
{
    if (!file->temporary[0]) {
        if (link_file(file, file->name) == 0)
            return true;
        // The name exists: only a rename replaces the older file atomically.
        char name[32];
        if (file->replaces_none || errno != EEXIST || !make_name(name))
            return false;
        flock(file->fd, LOCK_EX | LOCK_NB);
        if (link_file(file, name))
            return false;
        memcpy(file->temporary, name, sizeof(name));
    }
    if (file->replaces_none)
        return name_anew(file); // new_file_abandon removes the temporary name
    if (renameat(file->directory, file->temporary, file->directory, file->name))
        return false;
    file->temporary[0] = '\0'; // nothing to remove
    return true;
}

int new_file_commit(struct new_file *file)
{
    bool good = fflush(file->stream) == 0 && !ferror(file->stream);
    if (good && file->name)
        good = fsync(fileno(file->stream)) == 0;
    int reason = errno;
    if (fclose(file->stream) && good) {
        good = false;
        reason = errno;
    }
    file->stream = NULL;
    if (good && file->name && !put_in_place(file)) {
        good = false;
        reason = errno;
    }
    if (good && file->name)
        fsync(file->directory); // the name is durable once the directory is on the disk
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
    if (file->temporary[0])
        unlinkat(file->directory, file->temporary, 0);
    if (file->fd >= 0)
        close(file->fd);
    if (file->directory >= 0)
        close(file->directory);
    free(file->name);
    free(file->path);
    *file = (struct new_file){.directory = -1, .fd = -1};
}

static int write_new(struct new_file *file, const void *data, size_t size)
{
    fwrite(data, 1, size, file->stream); // commit sees the stream's error
    return new_file_commit(file);
}

int file_write_at(int directory, const char *name, const char *path, const void *data,
                  size_t size)
{
    struct new_file file;
    int failed = new_file_open_at(&file, directory, name, path);
    return failed ? failed : write_new(&file, data, size);
}

int file_write(const char *path, const void *data, size_t size)
{
    if (strcmp(path, "-") == 0)
        return fwrite(data, 1, size, stdout) == size ? 0 : oops("cannot write the output");
    struct new_file file;
    int failed = new_file_open(&file, path);
    return failed ? failed : write_new(&file, data, size);
}

int file_write_new(const char *path, mode_t mode, const void *data, size_t size)
{
    struct new_file file;
    int failed = open_beside(&file, path);
    if (failed)
        return failed;
    file.replaces_none = true;
    setvbuf(file.stream, NULL, _IONBF, 0); // no copy in a buffer: the data may be secret
    if (fchmod(file.fd, mode) == 0)
        return write_new(&file, data, size);
    failed = oops("cannot write %s: %s", path, strerror(errno));
    new_file_abandon(&file);
    return failed;
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
    *out_size = S_ISREG(info.st_mode) ? info.st_size : -1;
    *out_stream = stream;
    return 0;
}

int file_open(const char *path, FILE **out_stream, int64_t *out_size)
{
    return take_stream(fopen(path, "rbe"), path, out_stream, out_size);
}

static int read_whole(FILE *stream, int64_t size, const char *path, uint64_t limit,
                      char **out_data, uint64_t *out_size)
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
    FILE *stream;
    int64_t size;
    int failed = file_open(path, &stream, &size);
    return failed ? failed : read_whole(stream, size, path, limit, out_data, out_size);
}

int file_read_from(int fd, const char *path, uint64_t limit, char **out_data,
                   uint64_t *out_size)
{
    FILE *stream;
    int64_t size;
    int failed = take_stream(fd < 0 ? NULL : fdopen(fd, "rb"), path, &stream, &size);
    return failed ? failed : read_whole(stream, size, path, limit, out_data, out_size);
}
