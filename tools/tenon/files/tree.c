// SPDX-License-Identifier: MIT
// Trees of files. Written files are synchronised before success is reported.
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT(number) #number
#define TEXT_OF(number) TEXT(number)
#define DEPTH_TEXT TEXT_OF(TREE_MAX_DEPTH)

// --- names -----------------------------------------------------------------------------

const char *name_fault(const char *name)
{
    if (!name[0] || strlen(name) > 255)
        return "a name has 1 to 255 bytes";
    if (name[0] == '/')
        return "an absolute path";
    bool starts = true; // at the start of a part
    int depth = 0;
    for (const char *at = name; *at; at++) {
        unsigned char c = (unsigned char)*at;
        if (c <= 0x20 || c >= 0x7f || c == '\\')
            return "a name is of printable ASCII without spaces and backslashes";
        if (starts && at[0] == '.' && at[1] == '.' && (!at[2] || at[2] == '/'))
            return "'..' leads out of the plugin's folder";
        if (starts && (*at == '.' || *at == '/'))
            return "hidden files and empty parts have no place in a plugin";
        starts = *at == '/';
        depth += starts;
    }
    if (depth > TREE_MAX_DEPTH)
        return "more than " DEPTH_TEXT " folders deep";
    return starts ? "it ends with a slash" : NULL;
}

// --- lists -----------------------------------------------------------------------------

// The position in `order` of the first `size` bytes of a name, ignoring letter case.
static size_t file_tree_position_of(const struct file_tree *tree, const char *name,
                                    size_t size, bool *out_found)
{
    size_t low = 0, high = tree->count;
    *out_found = false;
    while (low < high && !*out_found) {
        size_t middle = low + (high - low) / 2;
        const char *other = tree->files[tree->order[middle]].name;
        int compared = strncasecmp(other, name, size);
        *out_found = compared == 0 && !other[size];
        if (compared < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return *out_found ? high : low;
}

// The entry of this name, ignoring letter case.
static const struct tree_file *find_alike(const struct file_tree *tree, const char *name,
                                          size_t size)
{
    bool found;
    size_t position = file_tree_position_of(tree, name, size, &found);
    return found ? &tree->files[tree->order[position]] : NULL;
}

// Fails when the first `size` bytes of a name, a parent folder or the whole name, collide
// with another entry.
static int file_tree_check_alike(const struct file_tree *tree, const char *source,
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

static bool file_tree_make_room(struct file_tree *tree)
{
    if (tree->count < tree->capacity)
        return true;
    size_t capacity = tree->capacity ? tree->capacity * 2 : 32;
    void *files = realloc(tree->files, capacity * sizeof(*tree->files));
    if (files)
        tree->files = files;
    void *order = files ? realloc(tree->order, capacity * sizeof(*tree->order)) : NULL;
    if (!order)
        return false;
    tree->order = order;
    tree->capacity = capacity;
    return true;
}

static int file_tree_append(struct file_tree *tree, const struct tree_file *file,
                            size_t size)
{
    struct tree_file copy = *file;
    bool found;
    if (file->name[size]) // a parent folder without an entry of its own
        copy = (struct tree_file){.is_folder = true};
    copy.name = file_tree_make_room(tree) ? strndup(file->name, size) : NULL;
    if (!copy.name)
        return oops_memory();
    size_t position = file_tree_position_of(tree, copy.name, size, &found);
    memmove(tree->order + position + 1, tree->order + position,
            (tree->count - position) * sizeof(*tree->order));
    tree->order[position] = tree->count;
    tree->files[tree->count++] = copy;
    return 0;
}

int tree_add(struct file_tree *tree, const char *source, const struct tree_file *file)
{
    const char *fault = name_fault(file->name);
    if (fault)
        return oops("%s: '%s': %s", source, file->name, fault);
    for (size_t size = 0; file->name[size];) {
        size += file->name[size] == '/';
        size += strcspn(file->name + size, "/");
        int failed = file_tree_check_alike(tree, source, file, size);
        if (failed)
            return failed;
        if (find_alike(tree, file->name, size))
            continue;
        if (tree->count == TREE_MAX_FILES)
            return oops("%s: more than %d files", source, TREE_MAX_FILES);
        failed = file_tree_append(tree, file, size);
        if (failed)
            return failed;
    }
    return 0;
}

void tree_finish(struct file_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        free(tree->files[i].name);
    free(tree->files);
    free(tree->order);
    *tree = (struct file_tree){0};
}

static int file_tree_by_name(const void *a, const void *b)
{
    const struct tree_file *x = a, *y = b;
    return strcmp(x->name, y->name);
}

// The state of tree_list().
struct file_tree_listing {
    struct file_tree *tree;
    const char *source; // for messages
    const char *below;  // "", or the name of the folder that is being listed
};

static int list_entry(const struct folder *at, const char *entry, void *context);

static int list_below(const struct folder *at, const char *name,
                      const struct file_tree_listing *listing)
{
    struct folder inner;
    struct file_tree_listing mine = *listing;
    mine.below = name;
    int failed =
        folder_enter(at, strrchr(name, '/') ? strrchr(name, '/') + 1 : name, &inner);
    if (failed)
        return failed;
    failed = folder_each(&inner, list_entry, &mine);
    folder_close(&inner);
    return failed;
}

static int list_named(const struct folder *at, const char *entry, const char *name,
                      const struct file_tree_listing *listing)
{
    struct stat info;
    if (fstatat(at->fd, entry, &info, AT_SYMLINK_NOFOLLOW))
        return oops("cannot read %s/%s: %s", at->path, entry, strerror(errno));
    if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode))
        return oops("%s/%s: a plugin holds files and folders only, no links or devices",
                    at->path, entry);
    int failed = tree_add(listing->tree, listing->source,
                          &(struct tree_file){.name = (char *)name,
                                              .size = (uint64_t)info.st_size,
                                              .is_folder = S_ISDIR(info.st_mode),
                                              .is_program = info.st_mode & 0111});
    if (!failed && S_ISDIR(info.st_mode))
        failed = list_below(at, name, listing);
    return failed;
}

static int list_entry(const struct folder *at, const char *entry, void *context)
{
    const struct file_tree_listing *listing = context;
    char *name = *listing->below ? path_join(listing->below, entry) : strdup(entry);
    int failed = name ? list_named(at, entry, name, listing) : oops_memory();
    free(name);
    return failed;
}

int tree_list(const struct folder *folder, struct file_tree *out)
{
    struct file_tree tree = {0};
    struct file_tree_listing listing = {&tree, folder->path, ""};
    int failed = folder_each(folder, list_entry, &listing);
    if (failed) {
        tree_finish(&tree);
        return failed;
    }
    if (tree.count)
        qsort(tree.files, tree.count, sizeof(*tree.files), file_tree_by_name);
    *out = tree;
    return 0;
}

// --- writing ---------------------------------------------------------------------------

static int file_tree_cannot_write(const struct folder *target, const char *name)
{
    return oops("cannot write %s/%s: %s", target->path, name, strerror(errno));
}

// Makes the folder `name`, whose parent exists. -1: errno is the reason.
static int make_below(const struct folder *target, const char *name)
{
    const char *slash = strrchr(name, '/');
    char parent[256];
    if (!slash)
        return mkdirat(target->fd, name, 0755);
    snprintf(parent, sizeof(parent), "%.*s", (int)(slash - name), name);
    int at = open_below(target->fd, parent, O_RDONLY | O_DIRECTORY, 0);
    int status = at < 0 ? -1 : mkdirat(at, slash + 1, 0755);
    int reason = errno;
    if (at >= 0)
        close(at);
    errno = reason;
    return status;
}

// Sets the mode whatever the umask is: other users have to be able to read a plugin.
int tree_make_folder(const struct folder *target, const char *name)
{
    int fd = make_below(target, name)
                 ? -1
                 : open_below(target->fd, name, O_RDONLY | O_DIRECTORY, 0);
    int failed = fd < 0 || fchmod(fd, 0755) ? file_tree_cannot_write(target, name) : 0;
    if (fd >= 0)
        close(fd);
    return failed;
}

int tree_make_file(const struct folder *target, const char *name, bool is_program,
                   int *out_fd)
{
    int fd = open_below(target->fd, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    int failed = fd < 0 || fchmod(fd, is_program ? 0755 : 0644)
                     ? file_tree_cannot_write(target, name)
                     : 0;
    if (failed && fd >= 0)
        close(fd);
    *out_fd = failed ? -1 : fd;
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

static int file_tree_copy_bytes(int from, int to, const char *name)
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

static int tree_copy_file(const struct folder *source, const struct folder *target,
                          const struct tree_file *file)
{
    int from = open_below(source->fd, file->name, O_RDONLY | O_NONBLOCK, 0), to = -1;
    if (from < 0)
        return oops("cannot read %s/%s: %s", source->path, file->name, strerror(errno));
    int failed = tree_make_file(target, file->name, file->is_program, &to);
    if (!failed) {
        failed = file_tree_copy_bytes(from, to, file->name);
        if (close(to) && !failed)
            failed = file_tree_cannot_write(target, file->name);
    }
    close(from);
    return failed;
}

static int copy_all(const struct folder *source, const struct folder *target,
                    const struct file_tree *tree)
{
    int failed = 0;
    for (size_t i = 0; !failed && i < tree->count; i++) // folders come before their files
        failed = tree->files[i].is_folder ? tree_make_folder(target, tree->files[i].name)
                                          : tree_copy_file(source, target, &tree->files[i]);
    return failed;
}

int tree_copy(const struct folder *source, const struct folder *at, const char *name)
{
    struct file_tree tree;
    struct folder target;
    int failed = tree_list(source, &tree);
    if (failed)
        return failed;
    failed = tree_make_folder(at, name);
    if (!failed)
        failed = folder_enter(at, name, &target);
    if (!failed) {
        failed = copy_all(source, &target, &tree);
        folder_close(&target);
    }
    tree_finish(&tree);
    return failed;
}

// EINVAL: the file system cannot synchronise folders, so there is nothing to wait for.
static int sync_one(int fd, const char *path)
{
    return fsync(fd) && errno != EINVAL ? oops("cannot write %s: %s", path, strerror(errno))
                                        : 0;
}

int folder_sync(const struct folder *folder)
{
    return sync_one(folder->fd, folder->path);
}

int tree_sync(const struct folder *folder)
{
    struct file_tree tree;
    int failed = tree_list(folder, &tree);
    if (failed)
        return failed;
    for (size_t i = 0; !failed && i < tree.count; i++) {
        int fd = open_below(folder->fd, tree.files[i].name, O_RDONLY | O_NONBLOCK, 0);
        failed = fd < 0 ? file_tree_cannot_write(folder, tree.files[i].name)
                        : sync_one(fd, tree.files[i].name);
        if (fd >= 0)
            close(fd);
    }
    tree_finish(&tree);
    return failed ? failed : folder_sync(folder);
}
