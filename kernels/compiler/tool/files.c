// SPDX-License-Identifier: MIT
#include "files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// More than the compiler takes: it says so.
enum { MOST_READ = 17 << 20 };

static void *tool_file_oom(void *memory)
{
    if (memory)
        return memory;
    fputs("tenon-glslc: out of memory\n", stderr);
    exit(1);
}

static char *tool_file_copy(const char *text, size_t size)
{
    char *out = tool_file_oom(malloc(size + 1));
    memcpy(out, text, size);
    out[size] = 0;
    return out;
}

// --- reading ----------------------------------------------------------------------------

static char *tool_file_read_all(FILE *stream, size_t *size)
{
    size_t capacity = 1 << 16;
    char *text = tool_file_oom(malloc(capacity));
    *size = 0;
    while (*size < MOST_READ) {
        if (*size == capacity)
            text = tool_file_oom(realloc(text, capacity *= 2));
        size_t got = fread(text + *size, 1, capacity - *size, stream);
        if (got == 0)
            break;
        *size += got;
    }
    if (!ferror(stream))
        return text;
    free(text);
    return NULL;
}

// Reads a file and keeps it. Takes the path, on success only.
static const struct file *tool_read_file(struct files *files, const char *name, char *path)
{
    bool is_input = strcmp(path, "-") == 0;
    FILE *stream = is_input ? stdin : fopen(path, "rb");
    if (!stream)
        return NULL;
    size_t size;
    char *text = tool_file_read_all(stream, &size);
    int error = errno;
    if (!is_input)
        fclose(stream);
    errno = error;
    if (!text)
        return NULL;
    struct file *file = tool_file_oom(malloc(sizeof(*file)));
    *file = (struct file){.name = tool_file_copy(name, strlen(name)),
                          .path = path,
                          .text = text,
                          .size = size};
    if (files->last)
        files->last->next = file;
    else
        files->first = file;
    files->last = file;
    return file;
}

const struct file *files_read_source(struct files *files, const char *path)
{
    char *own = tool_file_copy(path, strlen(path));
    const struct file *file =
        tool_read_file(files, strcmp(path, "-") == 0 ? "<stdin>" : path, own);
    if (!file)
        free(own);
    return file;
}

static char *tool_file_join(const char *folder, size_t size, const char *name)
{
    char *path = tool_file_oom(malloc(size + strlen(name) + 2));
    memcpy(path, folder, size);
    bool has_slash = size == 0 || folder[size - 1] == '/';
    strcpy(path + size, has_slash ? "" : "/");
    return strcat(path, name);
}

const struct file *files_find(const struct files *files, const char *name)
{
    // An error has the end of a long name.
    size_t size = strlen(name);
    for (const struct file *file = files->first; file && size > 0; file = file->next) {
        size_t own = strlen(file->name);
        if (own >= size && strcmp(file->name + own - size, name) == 0 &&
            (own == size || size == 63))
            return file;
    }
    return NULL;
}

static const struct file *read_in(struct files *files, const char *folder, size_t size,
                                  const char *name)
{
    char *path = tool_file_join(folder, size, name);
    const struct file *file = tool_read_file(files, name, path);
    if (!file)
        free(path);
    return file;
}

const char *files_include(void *context, const char *name, const char *from, size_t *size)
{
    struct files *files = context;
    const struct file *includer = *from ? files_find(files, from) : files->first;
    const char *path = includer ? includer->path : "";
    const char *slash = strrchr(path, '/');
    size_t folder = slash && name[0] != '/' ? (size_t)(slash - path) + 1 : 0;
    const struct file *file = read_in(files, path, folder, name);
    for (size_t i = 0; i < files->num_folders && !file && name[0] != '/'; i++)
        file = read_in(files, files->folders[i], strlen(files->folders[i]), name);
    if (!file)
        return NULL;
    *size = file->size;
    return file->text;
}

void files_finish(struct files *files)
{
    for (struct file *file = files->first, *next; file; file = next) {
        next = file->next;
        free(file->name);
        free(file->path);
        free(file->text);
        free(file);
    }
    *files = (struct files){0};
}

// --- writing ----------------------------------------------------------------------------

static bool tool_file_write_stream(FILE *stream, const void *data, size_t size)
{
    bool ok = fwrite(data, 1, size, stream) == size;
    return fflush(stream) == 0 && ok;
}

// Writes over what the path is: a device, a pipe.
static bool write_over(const char *path, const void *data, size_t size)
{
    FILE *stream = fopen(path, "wb");
    if (!stream)
        return false;
    bool ok = tool_file_write_stream(stream, data, size);
    return fclose(stream) == 0 && ok;
}

bool file_write(const char *path, const void *data, size_t size)
{
    if (strcmp(path, "-") == 0)
        return tool_file_write_stream(stdout, data, size);
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return write_over(path, data, size);
    size_t room = strlen(path) + 32;
    char *other = tool_file_oom(malloc(room));
    snprintf(other, room, "%s.%ld.tmp", path, (long)getpid());
    bool ok = write_over(other, data, size) && rename(other, path) == 0;
    int error = errno;
    if (!ok)
        unlink(other);
    free(other);
    errno = error;
    return ok;
}

// Appends a path as make reads it, and `end` unless it is 0.
static void tool_file_put(char **text, size_t *size, size_t *capacity, const char *path,
                          char end)
{
    for (const char *p = path;; p++) {
        if (*size + 2 >= *capacity)
            *text =
                tool_file_oom(realloc(*text, *capacity = *capacity ? *capacity * 2 : 1024));
        if (*p == ' ' || *p == '#' || *p == '$')
            (*text)[(*size)++] = *p == '$' ? '$' : '\\';
        if (*p || end)
            (*text)[(*size)++] = *p ? *p : end;
        if (!*p)
            return;
    }
}

bool files_write_dependencies(const struct files *files, const char *path,
                              const char *target)
{
    char *text = NULL;
    size_t size = 0, capacity = 0;
    tool_file_put(&text, &size, &capacity, target, ':');
    for (const struct file *file = files->first; file; file = file->next)
        if (strcmp(file->path, "-") != 0) {
            tool_file_put(&text, &size, &capacity, "", ' ');
            tool_file_put(&text, &size, &capacity, file->path, 0);
        }
    tool_file_put(&text, &size, &capacity, "", '\n');
    bool ok = file_write(path, text, size);
    free(text);
    return ok;
}
