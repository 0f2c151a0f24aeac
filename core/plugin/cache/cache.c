// SPDX-License-Identifier: MIT
// The disk cache: one file per entry, named by the SHA-256 of its key.
//
// A file is written under a temporary name and renamed, so that readers see a whole entry
// or none. A crash may leave a damaged entry, which its checksum reveals. No failure of the
// cache is an error of the caller: without an entry, code is compiled again.
#include "cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tenon/cache_file.h>
#include <time.h>
#include <unistd.h>
#include "../../base/fail.h"
#include "../../base/file.h"
#include "../../base/memory.h"
#include "../../base/sha256.h"

#define STALE_SECONDS 3600 // a temporary file of this age has no writer any more
#define NAME_SIZE 65

// --- the directory ---------------------------------------------------------------------

// Makes the directory and its missing parents, for this user alone.
static void make_directories(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    mkdir(path, 0700);
}

// Opens the cache's directory; -1 when there is none, or when another user can change it.
static int open_directory(const struct config *config, bool create)
{
    const char *given = config_get(config, "TENON_CACHE_DIR");
    const char *home = config_cache_home(config);
    if (!given && !home)
        return -1;
    char *path = given ? mem_strdup(given) : mem_printf("%s/tenon", home);
    if (!path)
        return -1;
    int fd = -1;
    if (path[0] == '/') {
        if (create)
            make_directories(path);
        fd = file_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    }
    struct stat info;
    if (fd >= 0 && (fstat(fd, &info) || info.st_uid != geteuid() || info.st_mode & 022)) {
        log_write(config, TN_LOG_INFO, "cache", "%s is not used: others can change it",
                  path);
        close(fd);
        fd = -1;
    }
    mem_free(path);
    return fd;
}

static void entry_name(const unsigned char key[32], char name[NAME_SIZE])
{
    sodium_bin2hex(name, NAME_SIZE, key, 32);
}

static void plugin_cache_checksum(const tn_cache_header *header, const void *data,
                                  uint64_t size, const void *texts, unsigned char out[32])
{
    struct sha256_ctx context;
    sha256_init(&context);
    sha256_update(&context, offsetof(tn_cache_header, checksum), (const uint8_t *)header);
    sha256_update(&context, size, data);
    sha256_update(&context, header->texts_size, texts);
    sha256_digest(&context, 32, out);
}

// --- reading ---------------------------------------------------------------------------

// Whether a file of `size` bytes can be an entry with this header.
static bool plugin_cache_is_whole(const tn_cache_header *header, int64_t size)
{
    return header->magic == TN_CACHE_MAGIC && header->size <= TN_CACHE_MAX_ENTRY &&
           header->texts_size <= TN_CACHE_NUM_TEXTS * TN_CACHE_MAX_TEXT &&
           sizeof(*header) + header->size + header->texts_size == (uint64_t)size;
}

// Gives the data of a valid entry, or NULL. *out_damaged: the file is not a valid entry for
// `key`.
static void *plugin_cache_read_entry(int fd, const unsigned char key[32],
                                     uint64_t *out_size, bool *out_damaged)
{
    tn_cache_header header;
    struct stat info;
    unsigned char found[32];
    *out_damaged = true;
    if (fstat(fd, &info) || !S_ISREG(info.st_mode) ||
        file_read_at(fd, &header, sizeof(header), 0) != sizeof(header) ||
        !plugin_cache_is_whole(&header, info.st_size) || memcmp(header.key, key, 32) != 0)
        return NULL;
    uint64_t size = header.size + header.texts_size;
    unsigned char *data = mem_alloc(size);
    if (!data) {
        *out_damaged = false;
        return NULL;
    }
    bool sound = file_read_at(fd, data, size, sizeof(header)) == (ssize_t)size;
    if (sound) {
        plugin_cache_checksum(&header, data, header.size, data + header.size, found);
        sound = memcmp(found, header.checksum, 32) == 0;
    }
    if (!sound) {
        mem_free(data);
        return NULL;
    }
    *out_damaged = false;
    *out_size = header.size;
    return data;
}

int cache_open(const struct config *config)
{
    return open_directory(config, false);
}

tn_status cache_load_from(int directory, const void *key, uint64_t key_size,
                          void **out_data, uint64_t *out_size)
{
    unsigned char digest[32];
    char name[NAME_SIZE];
    if (directory < 0)
        return TN_ERR_NOT_FOUND;
    sha256_of(key, key_size, digest);
    entry_name(digest, name);
    int fd = file_open(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return TN_ERR_NOT_FOUND;
    bool damaged = false;
    void *data = plugin_cache_read_entry(fd, digest, out_size, &damaged);
    futimens(fd, NULL); // marks the entry as most recently used
    close(fd);
    if (damaged)
        unlinkat(directory, name, 0);
    if (!data)
        return TN_ERR_NOT_FOUND;
    *out_data = data;
    return TN_OK;
}

tn_status cache_load(const struct config *config, const void *key, uint64_t key_size,
                     void **out_data, uint64_t *out_size)
{
    int directory = cache_open(config);
    tn_status status = cache_load_from(directory, key, key_size, out_data, out_size);
    if (directory >= 0)
        close(directory);
    return status;
}

// --- the size cap ----------------------------------------------------------------------

struct plugin_cache_entry {
    char name[NAME_SIZE];
    uint64_t size;
    struct timespec used;
};

static int oldest_first(const void *a, const void *b)
{
    const struct timespec *x = &((const struct plugin_cache_entry *)a)->used;
    const struct timespec *y = &((const struct plugin_cache_entry *)b)->used;
    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static bool is_entry_name(const char *name)
{
    return strlen(name) == NAME_SIZE - 1 &&
           strspn(name, "0123456789abcdef") == NAME_SIZE - 1;
}

// Lists the entries and sums their bytes. Removes stale temporary files on the way.
static uint32_t list_entries(int directory, struct plugin_cache_entry **out_entries,
                             uint64_t *out_total)
{
    struct plugin_cache_entry *entries = NULL;
    uint32_t count = 0, capacity = 0;
    int copy = file_open(directory, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    *out_total = 0;
    struct dirent *file;
    while (stream && (file = readdir(stream))) {
        struct stat info;
        if (fstatat(directory, file->d_name, &info, AT_SYMLINK_NOFOLLOW) ||
            !S_ISREG(info.st_mode))
            continue;
        if (strncmp(file->d_name, ".tmp-", 5) == 0 &&
            time(NULL) - info.st_mtime > STALE_SECONDS)
            unlinkat(directory, file->d_name, 0);
        if (!is_entry_name(file->d_name) ||
            mem_grow((void **)&entries, &capacity, count + 1, sizeof(*entries)) != TN_OK)
            continue;
        entries[count] = (struct plugin_cache_entry){.size = (uint64_t)info.st_size,
                                                     .used = info.st_mtim};
        memcpy(entries[count++].name, file->d_name, NAME_SIZE);
        *out_total += (uint64_t)info.st_size;
    }
    if (stream)
        closedir(stream);
    else if (copy >= 0)
        close(copy);
    *out_entries = entries;
    return count;
}

uint64_t cache_prune(int directory, uint64_t max_total)
{
    struct plugin_cache_entry *entries;
    uint64_t total;
    uint32_t count = list_entries(directory, &entries, &total);
    if (total > max_total) {
        qsort(entries, count, sizeof(*entries), oldest_first);
        // Evicts a quarter at once, so that the next stores need not scan the directory.
        for (uint32_t i = 0; i < count && total > max_total / 4 * 3; i++)
            if (unlinkat(directory, entries[i].name, 0) == 0)
                total -= entries[i].size;
    }
    mem_free(entries);
    return total;
}

// Bytes that this process has stored since its last scan of the directory. The initial
// value makes the first store scan, and leaves room for additions without overflow.
static _Atomic uint64_t since_prune = UINT64_MAX / 2;

static void prune_if_due(int directory, uint64_t stored)
{
    if (atomic_fetch_add(&since_prune, stored) + stored < CACHE_MAX_TOTAL / 8)
        return;
    atomic_store(&since_prune, 0);
    cache_prune(directory, CACHE_MAX_TOTAL);
}

// --- writing ---------------------------------------------------------------------------

// Writes the four texts of an entry, each cut where it is too long. Gives their bytes.
static uint32_t write_texts(const char *plugin, const tn_cache_about *about, char *out)
{
    const char *texts[TN_CACHE_NUM_TEXTS] = {plugin};
    size_t at = 0;
    if (about && about->struct_size >= TN_END_OF(about, device)) {
        texts[1] = about->kind;
        texts[2] = about->name;
        texts[3] = about->device;
    }
    for (size_t i = 0; i < TN_CACHE_NUM_TEXTS; i++) {
        size_t size = texts[i] ? strnlen(texts[i], TN_CACHE_MAX_TEXT - 1) : 0;
        memcpy(out + at, size ? texts[i] : "", size);
        at += size;
        out[at++] = '\0';
    }
    return (uint32_t)at;
}

static bool plugin_cache_write_entry(int directory, const char *name,
                                     const tn_cache_header *header, const void *data,
                                     const char *texts)
{
    static _Atomic uint32_t number;
    char temporary[64];
    snprintf(temporary, sizeof(temporary), ".tmp-%ld-%" PRIu32, (long)getpid(),
             atomic_fetch_add(&number, 1));
    int fd =
        file_open(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd < 0)
        return false;
    bool written = file_write(fd, header, sizeof(*header)) &&
                   file_write(fd, data, header->size) &&
                   file_write(fd, texts, header->texts_size);
    written = close(fd) == 0 && written;
    written = written && renameat(directory, temporary, directory, name) == 0;
    if (!written)
        unlinkat(directory, temporary, 0);
    return written;
}

bool cache_store(const struct config *config, const void *key, uint64_t key_size,
                 const void *data, uint64_t size, const char *plugin,
                 const tn_cache_about *about)
{
    tn_cache_header header = {.magic = TN_CACHE_MAGIC, .size = size};
    char name[NAME_SIZE], texts[TN_CACHE_NUM_TEXTS * TN_CACHE_MAX_TEXT];
    int directory = size > TN_CACHE_MAX_ENTRY ? -1 : open_directory(config, true);
    if (directory < 0)
        return false;
    header.texts_size = write_texts(plugin, about, texts);
    sha256_of(key, key_size, header.key);
    plugin_cache_checksum(&header, data, size, texts, header.checksum);
    entry_name(header.key, name);
    bool stored = plugin_cache_write_entry(directory, name, &header, data, texts);
    if (stored)
        prune_if_due(directory, size + header.texts_size + sizeof(header));
    else
        log_write(config, TN_LOG_INFO, "cache", "an entry was not stored: %s",
                  strerror(errno));
    close(directory);
    return stored;
}

void cache_remove(const struct config *config, const void *key, uint64_t key_size)
{
    unsigned char digest[32];
    char name[NAME_SIZE];
    sha256_of(key, key_size, digest);
    entry_name(digest, name);
    int directory = open_directory(config, false);
    if (directory < 0)
        return;
    unlinkat(directory, name, 0);
    close(directory);
}

int cache_nameless_file(const struct config *config)
{
    int directory = open_directory(config, true);
    if (directory < 0)
        return -1;
    int fd = file_open(directory, ".", O_TMPFILE | O_RDWR, 0600);
    close(directory);
    return fd;
}
