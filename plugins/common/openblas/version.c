// SPDX-License-Identifier: MIT
// glibc searches LD_LIBRARY_PATH and the folders that the calling object names, then
// ld.so.cache, then the system's folders. dlinfo() lists the folders, but not the position
// of the cache among them: folders below /lib and /usr/lib are assumed to come after the
// cache.
#include "version.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

uint32_t blas_version_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *mark = strstr(name, "-r");
    unsigned major, minor, patch;
    if (strncmp(name, "libopenblas", 11) != 0 || !mark ||
        sscanf(mark, "-r%3u.%3u.%3u", &major, &minor, &patch) != 3 || major > 255 ||
        minor > 255 || patch > 255)
        return 0;
    return BLAS_VERSION(major, minor, patch);
}

// --- the cache -------------------------------------------------------------------------

#define CACHE_MAGIC "glibc-ld.so.cache1.1"

struct cache_head {
    char magic[sizeof(CACHE_MAGIC) - 1];
    uint32_t num_entries, string_bytes, flags_and_more[5];
};

struct version_entry {
    int32_t flags;
    uint32_t name, path; // byte offsets of strings from the head on
    uint32_t os_version;
    uint64_t hardware;
};

#if defined(__x86_64__) && defined(__LP64__)
#define CACHE_FLAGS 0x0303 // FLAG_X8664_LIB64 and FLAG_ELF_LIBC6 of glibc
#else
#define CACHE_FLAGS (-1) // matches nothing: OPENBLAS_CORETYPE is set on x86-64 only
#endif

// The string at offset `at`, or NULL if it does not end within the bytes.
static const char *openblas_version_text_at(const char *bytes, size_t size, uint32_t at)
{
    return at < size && memchr(bytes + at, 0, size - at) ? bytes + at : NULL;
}

const char *blas_path_in_cache(const void *cache, size_t size, const char *name,
                               uint32_t *position)
{
    struct cache_head head;
    struct version_entry entry;
    const char *bytes = cache;
    if (size < sizeof(head))
        return NULL;
    memcpy(&head, bytes, sizeof(head));
    if (memcmp(head.magic, CACHE_MAGIC, sizeof(head.magic)) != 0 ||
        head.num_entries > (size - sizeof(head)) / sizeof(entry))
        return NULL;
    while (*position < head.num_entries) {
        memcpy(&entry, bytes + sizeof(head) + (*position)++ * sizeof(entry), sizeof(entry));
        const char *of = openblas_version_text_at(bytes, size, entry.name);
        const char *path = openblas_version_text_at(bytes, size, entry.path);
        if (entry.flags == CACHE_FLAGS && of && path && strcmp(of, name) == 0)
            return path;
    }
    return NULL;
}

// --- candidates ------------------------------------------------------------------------

struct candidates {
    uint32_t oldest;
    bool is_found;
};

// Adds a file to the candidates; false if it does not exist. A file name without a version
// counts as version 0, the oldest.
static bool add_file(struct candidates *all, const char *path)
{
    char *real = realpath(path, NULL);
    if (!real)
        return false;
    uint32_t version = blas_version_of(real);
    if (!all->is_found || version < all->oldest)
        all->oldest = version;
    all->is_found = true;
    free(real);
    return true;
}

static void add_from_cache(struct candidates *all, const char *name)
{
    struct stat about;
    uint32_t position = 0;
    int file = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    size_t size = fstat(file, &about) == 0 ? (size_t)about.st_size : 0;
    void *bytes = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    if (bytes != MAP_FAILED) {
        const char *path;
        while ((path = blas_path_in_cache(bytes, size, name, &position)))
            add_file(all, path);
        munmap(bytes, size);
    }
    close(file);
}

static bool comes_after_the_cache(const char *folder)
{
    return strncmp(folder, "/lib", 4) == 0 || strncmp(folder, "/usr/lib", 8) == 0;
}

// Adds the first file that exists. Returns whether the cache may hold a file that takes
// precedence.
static bool add_first_of(struct candidates *all, const Dl_serinfo *folders,
                         const char *name)
{
    char path[PATH_MAX];
    for (unsigned i = 0; i < folders->dls_cnt; i++) {
        const char *folder = folders->dls_serpath[i].dls_name;
        int length = snprintf(path, sizeof(path), "%s/%s", folder, name);
        if (length > 0 && (size_t)length < sizeof(path) && add_file(all, path))
            return comes_after_the_cache(folder);
    }
    return true;
}

static bool add_from_folders(struct candidates *all, const char *name)
{
    static const char here[] = "in this object";
    bool goes_on = true;
    Dl_info info;
    Dl_serinfo size = {0}, *folders = NULL;
    struct link_map *map = NULL; // glibc accepts a link_map as dlinfo()'s handle
    if (dladdr1(here, &info, (void **)&map, RTLD_DL_LINKMAP) && map &&
        dlinfo(map, RTLD_DI_SERINFOSIZE, &size) == 0)
        folders = malloc(size.dls_size);
    if (folders && dlinfo(map, RTLD_DI_SERINFOSIZE, folders) == 0 &&
        dlinfo(map, RTLD_DI_SERINFO, folders) == 0)
        goes_on = add_first_of(all, folders, name);
    free(folders);
    return goes_on;
}

uint32_t blas_version_find(const char *name)
{
    struct candidates all = {0};
    if (strchr(name, '/'))
        add_file(&all, name);
    else if (add_from_folders(&all, name))
        add_from_cache(&all, name);
    return all.oldest;
}
