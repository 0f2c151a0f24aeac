// SPDX-License-Identifier: MIT
// Folders by descriptor: reaching, staging and removing them.
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OPEN_FOLDER (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define MAX_LINKS 40
#define MAX_OPEN_DEPTH 32 // folders held open while a tree is removed
#define STAGE_DIGITS 12

char *path_join(const char *directory, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", directory, name) < 0 ? NULL : path;
}

bool is_own(const struct stat *info)
{
    return info->st_uid == geteuid();
}

// Makes a folder of `fd` and `path`; takes both, also on failure. -1: errno is the reason.
static int folder_init(int fd, char *path, struct folder *out)
{
    int failed = !path    ? oops_memory()
                 : fd < 0 ? oops("cannot open %s: %s", path, strerror(errno))
                          : 0;
    if (!failed) {
        *out = (struct folder){fd, path};
        return 0;
    }
    if (fd >= 0)
        close(fd);
    free(path);
    return failed;
}

int folder_open(const char *path, struct folder *out)
{
    return folder_init(open(path, OPEN_FOLDER), strdup(path), out);
}

void folder_close(struct folder *folder)
{
    if (folder->fd >= 0)
        close(folder->fd);
    free(folder->path);
    *folder = (struct folder){.fd = -1};
}

void folder_about(const struct folder *folder, const char *instead)
{
    if (folder->fd < 0)
        return;
    char *whole = realpath(folder->path, NULL);
    if (whole) // as the library's messages name it
        oops_about(whole, instead);
    oops_about(folder->path, instead);
    free(whole);
}

// --- below a folder --------------------------------------------------------------------

int open_below(int at, const char *name, int flags, mode_t mode)
{
    int folder = at;
    for (const char *slash; folder >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
        char part[NAME_MAX + 1];
        snprintf(part, sizeof(part), "%.*s", (int)(slash - name), name);
        int next = openat(folder, part, OPEN_FOLDER | O_NOFOLLOW);
        int reason = errno;
        if (folder != at)
            close(folder);
        errno = reason;
        folder = next;
    }
    if (folder < 0)
        return -1;
    int fd = openat(folder, name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
    int reason = errno;
    if (folder != at)
        close(folder);
    errno = reason;
    return fd;
}

int folder_enter(const struct folder *at, const char *name, struct folder *out)
{
    return folder_init(open_below(at->fd, name, OPEN_FOLDER, 0), path_join(at->path, name),
                       out);
}

// Reads all names first, because visitors move and remove entries.
int folder_each(const struct folder *at, folder_visitor *visit, void *context)
{
    struct dirent **names = NULL;
    int failed = 0, count = scandirat(at->fd, ".", &names, NULL, alphasort);
    if (count < 0)
        return oops("cannot read %s: %s", at->path, strerror(errno));
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        if (!failed && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
            failed = visit(at, name, context);
        free(names[i]);
    }
    free(names);
    return failed;
}

// --- reaching --------------------------------------------------------------------------

// A walk along a path: the folder reached, and the rest of the path.
struct folder_walk {
    const char *whole; // for messages
    int fd;            // of the folder reached
    char *rest;        // owned
    int links;         // followed
    bool make;
};

// Continues at the target of the link `part`, which has to be root's or this user's.
// `behind` is the path after the link.
static int folder_follow(struct folder_walk *walk, int link, const char *part,
                         const char *behind)
{
    struct stat info;
    char target[PATH_MAX], *rest = NULL;
    ssize_t size = readlinkat(link, "", target, sizeof(target) - 1);
    if (fstat(link, &info) || size < 0)
        return oops("cannot open %s: %s: %s", walk->whole, part, strerror(errno));
    if (info.st_uid != 0 && !is_own(&info))
        return oops("%s: '%s' is a symbolic link of user %u, neither root nor this user "
                    "(%u): give the path that it leads to",
                    walk->whole, part, (unsigned)info.st_uid, (unsigned)geteuid());
    if (++walk->links > MAX_LINKS)
        return oops("cannot open %s: %s", walk->whole, strerror(ELOOP));
    if (asprintf(&rest, "%.*s/%s", (int)size, target, behind) < 0)
        return oops_memory();
    free(walk->rest);
    walk->rest = rest;
    if (rest[0] != '/')
        return 0;
    int root = open("/", OPEN_FOLDER);
    if (root < 0)
        return oops("cannot open %s: %s", walk->whole, strerror(errno));
    close(walk->fd);
    walk->fd = root;
    return 0;
}

// Enters the folder `part`, or follows the link of this name. `behind` is the path after
// `part`.
static int folder_step(struct folder_walk *walk, const char *part, const char *behind)
{
    struct stat info;
    if (walk->make && mkdirat(walk->fd, part, 0755) && errno != EEXIST && errno != EROFS &&
        errno != EACCES)
        return oops("cannot make %s: %s: %s", walk->whole, part, strerror(errno));
    int fd = openat(walk->fd, part, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info))
        return oops("cannot open %s: %s", walk->whole, strerror(errno));
    if (S_ISLNK(info.st_mode)) {
        int failed = folder_follow(walk, fd, part, behind);
        close(fd);
        return failed;
    }
    close(walk->fd);
    walk->fd = fd;
    if (!S_ISDIR(info.st_mode))
        return oops("cannot open %s: %s", walk->whole, strerror(ENOTDIR));
    memmove(walk->rest, behind, strlen(behind) + 1);
    return 0;
}

static int step_on(struct folder_walk *walk)
{
    char part[NAME_MAX + 1];
    const char *start = walk->rest + strspn(walk->rest, "/");
    size_t size = strcspn(start, "/");
    if (size > NAME_MAX)
        return oops("cannot open %s: %s", walk->whole, strerror(ENAMETOOLONG));
    memcpy(part, start, size);
    part[size] = '\0';
    if (size)
        return folder_step(walk, part, start + size);
    walk->rest[0] = '\0';
    return 0;
}

int folder_reach(const char *path, bool make, struct folder *out)
{
    struct folder_walk walk = {.whole = path, .rest = strdup(path), .make = make};
    walk.fd = open(path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int failed = !walk.rest    ? oops_memory()
                 : walk.fd < 0 ? oops("cannot open %s: %s", path, strerror(errno))
                               : 0;
    while (!failed && walk.rest[0])
        failed = step_on(&walk);
    if (!failed)
        failed = folder_init(openat(walk.fd, ".", OPEN_FOLDER), strdup(path), out);
    if (walk.fd >= 0)
        close(walk.fd);
    free(walk.rest);
    return failed;
}

int folder_make(const char *path)
{
    struct folder folder;
    int failed = folder_reach(path, true, &folder);
    if (!failed)
        folder_close(&folder);
    return failed;
}

// True when there is an access list: the group's bits are then the list's mask.
static bool has_access_list(int fd)
{
    return fgetxattr(fd, "system.posix_acl_access", NULL, 0) > 0;
}

int folder_check_private(const struct folder *folder)
{
    struct stat info;
    if (fstat(folder->fd, &info))
        return oops("cannot read %s: %s", folder->path, strerror(errno));
    if (info.st_uid != 0 && !is_own(&info))
        return oops("%s belongs to user %u, who could put other files in the place of "
                    "these: install as that user, or make it this user's: chown %u '%s'",
                    folder->path, (unsigned)info.st_uid, (unsigned)geteuid(), folder->path);
    // Distributions give each user a private group with the user's own number.
    bool is_private = info.st_gid == getegid() && info.st_gid == geteuid();
    bool by_list = info.st_mode & S_IWGRP && has_access_list(folder->fd);
    if (by_list)
        return oops("%s can be changed by others (its access list): setfacl -b '%s'; chmod "
                    "go-w '%s'",
                    folder->path, folder->path, folder->path);
    if (info.st_mode & S_IWOTH || (info.st_mode & S_IWGRP && !is_private))
        return oops("%s can be changed by %s (mode %04o), who could put other files in the "
                    "place of these: chmod go-w '%s'",
                    folder->path, info.st_mode & S_IWOTH ? "everybody" : "its group",
                    (unsigned)info.st_mode & 07777, folder->path);
    return 0;
}

// --- removing --------------------------------------------------------------------------

// Removal of a tree. Folders too deep to be held open are moved to the tree's top.
struct removal {
    struct folder top;
    dev_t device; // other file systems mounted in the tree stay
    unsigned moved;
};

static int remove_deep(struct removal *removal, int at, const char *name, int depth);

static void remove_all(struct removal *removal, int fd, int depth)
{
    int copy = openat(fd, ".", OPEN_FOLDER);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;
    while (stream && (entry = readdir(stream)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            remove_deep(removal, fd, entry->d_name, depth);
    if (stream)
        closedir(stream);
    else if (copy >= 0)
        close(copy);
}

static int move_up(struct removal *removal, int at, const char *name)
{
    char fresh[32];
    snprintf(fresh, sizeof(fresh), ".deep-%u", removal->moved++);
    return renameat(at, name, removal->top.fd, fresh);
}

static int remove_deep(struct removal *removal, int at, const char *name, int depth)
{
    struct stat info;
    if (unlinkat(at, name, 0) == 0 || unlinkat(at, name, AT_REMOVEDIR) == 0)
        return 0;
    if (depth >= MAX_OPEN_DEPTH)
        return move_up(removal, at, name);
    int fd = openat(at, name, OPEN_FOLDER | O_NOFOLLOW);
    if (fd < 0)
        return -1;
    if (fstat(fd, &info) == 0 && is_own(&info) && info.st_dev == removal->device) {
        fchmod(fd, 0700); // entries of a read-only folder cannot be removed
        remove_all(removal, fd, depth + 1);
    }
    close(fd);
    return unlinkat(at, name, AT_REMOVEDIR);
}

// Removes everything in an open folder of this user.
static void folder_empty(const struct folder *folder)
{
    struct stat info;
    if (fstat(folder->fd, &info) || !is_own(&info))
        return;
    struct removal removal = {.top = *folder, .device = info.st_dev};
    unsigned before;
    do { // folders that were moved to the top are removed in the next round
        before = removal.moved;
        remove_all(&removal, folder->fd, 0);
    } while (removal.moved != before);
}

void folder_remove(const struct folder *at, const char *name)
{
    struct stat info;
    struct folder folder = {.fd = openat(at->fd, name, OPEN_FOLDER | O_NOFOLLOW)};
    if (folder.fd >= 0) {
        folder_empty(&folder);
        close(folder.fd);
    }
    if (fstatat(at->fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && is_own(&info))
        unlinkat(at->fd, name, S_ISDIR(info.st_mode) ? AT_REMOVEDIR : 0);
}

// --- staging ---------------------------------------------------------------------------

// True for names that folder_stage() makes; other programs have folders of this prefix too.
static bool is_stage(const char *name, const char *prefix)
{
    size_t size = strlen(prefix);
    return strncmp(name, prefix, size) == 0 && strlen(name) == size + STAGE_DIGITS &&
           strspn(name + size, "0123456789abcdef") == STAGE_DIGITS;
}

static int folder_sweep_one(const struct folder *at, const char *name, void *context)
{
    const char *prefix = context;
    struct stat info;
    if (!is_stage(name, prefix))
        return 0;
    int fd = openat(at->fd, name, OPEN_FOLDER | O_NOFOLLOW);
    bool is_left = fd >= 0 && fstat(fd, &info) == 0 && is_own(&info) &&
                   flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (is_left)
        folder_remove(at, name);
    if (fd >= 0)
        close(fd);
    return 0;
}

void folder_sweep(const struct folder *at, const char *prefix)
{
    if (folder_each(at, folder_sweep_one, (void *)prefix))
        forget_oops(); // a folder that cannot be read is not swept
}

// Makes a name that nobody can foresee.
static bool folder_make_name(const char *prefix, char name[NAME_MAX + 1])
{
    unsigned char bytes[STAGE_DIGITS / 2];
    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        return false;
    size_t used = (size_t)snprintf(name, NAME_MAX + 1, "%s", prefix);
    if (used + STAGE_DIGITS > NAME_MAX)
        return false;
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(name + used + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

int folder_stage(const struct folder *at, const char *prefix, struct folder *out)
{
    char name[NAME_MAX + 1];
    folder_sweep(at, prefix);
    for (int tries = 0; tries < 100; tries++) {
        struct stat info;
        if (!folder_make_name(prefix, name))
            return oops("no name for a folder in %s", at->path);
        int made = mkdirat(at->fd, name, 0700);
        if (made && errno == EEXIST)
            continue;
        if (made)
            break;
        int fd = openat(at->fd, name, OPEN_FOLDER | O_NOFOLLOW);
        // Before it was locked, another process may have removed the folder as left behind.
        bool is_held = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
                       fstat(fd, &info) == 0 && is_own(&info) && info.st_nlink > 0;
        if (is_held)
            return folder_init(fd, path_join(at->path, name), out);
        if (fd < 0 && errno != ENOENT)
            break;
        if (fd >= 0)
            close(fd);
    }
    return oops("cannot make a folder in %s: %s", at->path, strerror(errno));
}

void folder_discard(struct folder *folder)
{
    if (folder->fd < 0)
        return;
    folder_empty(folder);
    rmdir(folder->path); // fails unless the folder is empty
    folder_close(folder);
}
