// SPDX-License-Identifier: MIT
// Trees of files. What is written is synchronised before anybody is told of it.
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *path_join(const char *directory, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", directory, name) < 0 ? NULL : path;
}

// --- names -----------------------------------------------------------------------------

const char *name_fault(const char *name)
{
    if (!name[0] || strlen(name) > 255)
        return "a name has 1 to 255 bytes";
    if (name[0] == '/')
        return "an absolute path";
    bool starts = true; // of a part
    for (const char *at = name; *at; at++) {
        unsigned char c = (unsigned char)*at;
        if (c <= 0x20 || c >= 0x7f || c == '\\')
            return "a name is of printable ASCII without spaces and backslashes";
        if (starts && at[0] == '.' && at[1] == '.' && (!at[2] || at[2] == '/'))
            return "'..' leads out of the plugin's folder";
        if (starts && (*at == '.' || *at == '/'))
            return "hidden files and empty parts have no place in a plugin";
        starts = *at == '/';
    }
    return starts ? "it ends with a slash" : NULL;
}

// --- lists -----------------------------------------------------------------------------

// The entry of this name, letter case apart.
static const struct tree_file *find_alike(const struct tree *tree, const char *name,
                                          size_t size)
{
    for (size_t i = 0; i < tree->count; i++)
        if (strncasecmp(tree->files[i].name, name, size) == 0 && !tree->files[i].name[size])
            return &tree->files[i];
    return NULL;
}

// Whether the first `size` bytes of a name, a folder or the whole, may stand beside others.
static int check_alike(const struct tree *tree, const char *source,
                       const struct tree_file *file, size_t size)
{
    bool is_folder = file->is_folder || file->name[size];
    const struct tree_file *other = find_alike(tree, file->name, size);
    if (!other ||
        (other->is_folder && is_folder && !strncmp(other->name, file->name, size)))
        return 0;
    if (strncmp(other->name, file->name, size) != 0)
        return oops("%s: '%s' and '%s' differ in letter case only: on some systems one "
                    "would overwrite the other",
                    source, other->name, file->name);
    return oops("%s: '%s' is there twice", source, file->name);
}

static int append(struct tree *tree, const struct tree_file *file, size_t size)
{
    if (tree->count == tree->capacity) {
        size_t capacity = tree->capacity ? tree->capacity * 2 : 32;
        void *grown = realloc(tree->files, capacity * sizeof(*tree->files));
        if (!grown)
            return oops_memory();
        tree->files = grown;
        tree->capacity = capacity;
    }
    struct tree_file copy = *file;
    if (file->name[size]) // a folder that is only named by what it holds
        copy = (struct tree_file){.is_folder = true};
    copy.name = strndup(file->name, size);
    if (!copy.name)
        return oops_memory();
    tree->files[tree->count++] = copy;
    return 0;
}

int tree_add(struct tree *tree, const char *source, const struct tree_file *file)
{
    const char *fault = name_fault(file->name);
    if (fault)
        return oops("%s: '%s': %s", source, file->name, fault);
    for (size_t size = 0; file->name[size];) {
        size += file->name[size] == '/';
        size += strcspn(file->name + size, "/");
        int failed = check_alike(tree, source, file, size);
        if (failed)
            return failed;
        if (find_alike(tree, file->name, size))
            continue;
        if (tree->count == TREE_MAX_FILES)
            return oops("%s: more than %d files", source, TREE_MAX_FILES);
        failed = append(tree, file, size);
        if (failed)
            return failed;
    }
    return 0;
}

void tree_finish(struct tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        free(tree->files[i].name);
    free(tree->files);
    *tree = (struct tree){0};
}

static int by_name(const void *a, const void *b)
{
    const struct tree_file *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int list_below(const char *folder, const char *below, int depth, struct tree *out);

static int list_entry(const char *folder, const char *name, int depth, struct tree *out)
{
    struct stat info;
    char *path = path_join(folder, name);
    int failed = path ? 0 : oops_memory();
    if (!failed && lstat(path, &info))
        failed = oops("cannot read %s: %s", path, strerror(errno));
    if (!failed && !S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode))
        failed =
            oops("%s: a plugin holds files and folders only, no links or devices", path);
    if (!failed)
        failed = tree_add(out, folder,
                          &(struct tree_file){.name = (char *)name,
                                              .size = (uint64_t)info.st_size,
                                              .is_folder = S_ISDIR(info.st_mode),
                                              .is_program = info.st_mode & 0111});
    if (!failed && S_ISDIR(info.st_mode))
        failed = list_below(folder, name, depth + 1, out);
    free(path);
    return failed;
}

static int list_below(const char *folder, const char *below, int depth, struct tree *out)
{
    char *path = path_join(folder, below);
    if (!path)
        return oops_memory();
    int failed = depth > TREE_MAX_DEPTH
                     ? oops("%s: more than %d folders deep", path, TREE_MAX_DEPTH)
                     : 0;
    DIR *stream = failed ? NULL : opendir(path);
    if (!failed && !stream)
        failed = oops("cannot read %s: %s", path, strerror(errno));
    struct dirent *entry;
    while (!failed && (entry = readdir(stream))) {
        char *name = NULL;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        name = *below ? path_join(below, entry->d_name) : strdup(entry->d_name);
        failed = name ? list_entry(folder, name, depth, out) : oops_memory();
        free(name);
    }
    if (stream)
        closedir(stream);
    free(path);
    return failed;
}

int tree_list(const char *folder, struct tree *out)
{
    struct tree tree = {0};
    int failed = list_below(folder, "", 0, &tree);
    if (failed) {
        tree_finish(&tree);
        return failed;
    }
    if (tree.count)
        qsort(tree.files, tree.count, sizeof(*tree.files), by_name);
    *out = tree;
    return 0;
}

// --- writing ---------------------------------------------------------------------------

int folder_make(const char *path)
{
    char *copy = strdup(path);
    int failed = copy ? 0 : oops_memory();
    for (char *at = copy; !failed && at; at = strchr(at + 1, '/')) {
        char *slash = strchr(at + 1, '/');
        if (slash)
            *slash = '\0';
        if (mkdir(copy, 0755) && errno != EEXIST)
            failed = oops("cannot make %s: %s", copy, strerror(errno));
        if (slash)
            *slash = '/';
    }
    free(copy);
    return failed;
}

// The mode is set whatever the user's mask: others have to be able to use a plugin.
int tree_make_folder(const char *target, const char *name)
{
    char *path = path_join(target, name);
    if (!path)
        return oops_memory();
    int failed = 0;
    if (mkdir(path, 0755) || chmod(path, 0755))
        failed = oops("cannot write %s: %s", path, strerror(errno));
    free(path);
    return failed;
}

int tree_make_file(const char *target, const char *name, bool is_program, int *out_fd)
{
    char *path = path_join(target, name);
    if (!path)
        return oops_memory();
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int failed = 0;
    if (fd < 0 || fchmod(fd, is_program ? 0755 : 0644))
        failed = oops("cannot write %s: %s", path, strerror(errno));
    if (failed && fd >= 0)
        close(fd);
    free(path);
    *out_fd = fd;
    return failed;
}

int write_whole(int fd, const void *data, size_t size, const char *path)
{
    for (size_t done = 0; done < size;) {
        ssize_t put = write(fd, (const char *)data + done, size - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return oops("cannot write %s: %s", path, strerror(errno));
        done += (size_t)put;
    }
    return 0;
}

static int copy_bytes(int from, int to, const char *name)
{
    char block[1 << 16];
    ssize_t got;
    while ((got = read(from, block, sizeof(block))) > 0) {
        int failed = write_whole(to, block, (size_t)got, name);
        if (failed)
            return failed;
    }
    return got < 0 ? oops("cannot read %s: %s", name, strerror(errno)) : 0;
}

static int copy_file(const char *source, const char *target, const struct tree_file *file)
{
    char *path = path_join(source, file->name);
    int from = path ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1, to = -1;
    int failed = !path      ? oops_memory()
                 : from < 0 ? oops("cannot read %s: %s", path, strerror(errno))
                            : tree_make_file(target, file->name, file->is_program, &to);
    if (!failed) {
        failed = copy_bytes(from, to, file->name);
        if (close(to) && !failed)
            failed = oops("cannot write %s: %s", file->name, strerror(errno));
    }
    if (from >= 0)
        close(from);
    free(path);
    return failed;
}

int tree_copy(const char *source, const char *target)
{
    struct tree tree;
    int failed = tree_list(source, &tree);
    if (failed)
        return failed;
    if (mkdir(target, 0755) || chmod(target, 0755))
        failed = oops("cannot write %s: %s", target, strerror(errno));
    for (size_t i = 0; !failed && i < tree.count;
         i++) // folders stand before what they hold
        failed = tree.files[i].is_folder ? tree_make_folder(target, tree.files[i].name)
                                         : copy_file(source, target, &tree.files[i]);
    tree_finish(&tree);
    return failed;
}

int folder_sync(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_CLOEXEC);
    // Some file systems cannot synchronise folders (EINVAL): then there is nothing to wait
    // for.
    int failed = fd < 0 || (fsync(fd) && errno != EINVAL)
                     ? oops("cannot write %s: %s", folder, strerror(errno))
                     : 0;
    if (fd >= 0)
        close(fd);
    return failed;
}

int tree_sync(const char *folder)
{
    struct tree tree;
    int failed = tree_list(folder, &tree);
    if (failed)
        return failed;
    for (size_t i = 0; !failed && i < tree.count; i++) {
        char *path = path_join(folder, tree.files[i].name);
        failed = path ? folder_sync(path) : oops_memory();
        free(path);
    }
    tree_finish(&tree);
    return failed ? failed : folder_sync(folder);
}

// --- removing --------------------------------------------------------------------------

static void remove_below(const char *path, int depth)
{
    DIR *stream = depth < 64 ? opendir(path) : NULL;
    struct dirent *entry;
    while (stream && (entry = readdir(stream))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        char *inner = path_join(path, entry->d_name);
        struct stat info;
        if (inner && lstat(inner, &info) == 0 && S_ISDIR(info.st_mode))
            remove_below(inner, depth + 1);
        else if (inner)
            unlink(inner);
        free(inner);
    }
    if (stream)
        closedir(stream);
    rmdir(path);
}

void tree_remove(const char *path)
{
    remove_below(path, 0);
}
