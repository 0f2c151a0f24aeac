// SPDX-License-Identifier: MIT
#include "entry.h"
#include "base/file.h"
#include "files/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/cache_file.h>
#include <unistd.h>

#define STALE_SECONDS 3600 // as core/plugin/cache/cache.c has it
#define MAX_FILE                                                                           \
    (sizeof(tn_cache_header) + TN_CACHE_MAX_ENTRY + TN_CACHE_NUM_TEXTS * TN_CACHE_MAX_TEXT)

const char *cache_state_name(int state)
{
    static const char *const names[] = {[CACHE_SOUND] = "sound",
                                        [CACHE_DAMAGED] = "damaged",
                                        [CACHE_VERSION] = "another version",
                                        [CACHE_WRITING] = "being written",
                                        [CACHE_LEFT] = "left over",
                                        [CACHE_UNKNOWN] = "unknown"};
    return names[state];
}

// --- the folder ------------------------------------------------------------------------

// The library uses the folder only when this user alone can change it.
static int check_private(const struct folder *folder)
{
    struct stat info;
    if (fstat(folder->fd, &info))
        return oops("cannot read %s: %s", folder->path, strerror(errno));
    if (!is_own(&info) || info.st_mode & 022)
        return oops("%s is not used: others can change it (user %u, mode %04o); make it "
                    "yours alone: chmod 0700 '%s'",
                    folder->path, (unsigned)info.st_uid, (unsigned)info.st_mode & 07777,
                    folder->path);
    return 0;
}

int cache_reach(bool make, struct folder *out)
{
    struct stat info;
    *out = (struct folder){.fd = -1};
    if (!user_cache(&out->path))
        return oops("there is no cache: HOME is unset, and TENON_CACHE_DIR names no "
                    "folder");
    if (!out->path)
        return oops_memory();
    bool absent = stat(out->path, &info) != 0 && errno == ENOENT;
    if (absent && !make)
        return 0;
    char *path = out->path;
    int failed = absent ? folder_reach(path, true, out) : folder_open(path, out);
    free(path);
    if (failed)
        return failed;
    if (absent)
        fchmod(out->fd, 0700);
    failed = check_private(out);
    if (failed)
        folder_close(out);
    return failed;
}

// --- one file --------------------------------------------------------------------------

bool cache_is_name(const char *name)
{
    return strlen(name) == 64 && strspn(name, "0123456789abcdef") == 64;
}

static bool is_key(const char *name, const uint8_t key[32])
{
    char hex[65];
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", key[i]);
    return strcmp(name, hex) == 0;
}

static bool cache_entry_is_sum(const tn_cache_header *header, const char *data,
                               uint64_t size)
{
    struct sha256_ctx state;
    uint8_t digest[32];
    sha256_init(&state);
    sha256_update(&state, offsetof(tn_cache_header, checksum), (const uint8_t *)header);
    sha256_update(&state, size, (const uint8_t *)data);
    sha256_digest(&state, 32, digest);
    return memcmp(digest, header->checksum, 32) == 0;
}

// Sets the entry's fields from its texts, each ended by NUL. False: texts are missing.
static bool take_texts(struct cache_entry *entry, const char *texts, uint32_t size)
{
    const char **out[TN_CACHE_NUM_TEXTS] = {&entry->plugin, &entry->kind, &entry->kernel,
                                            &entry->device};
    size_t at = 0;
    entry->texts = malloc(size + 1);
    if (!entry->texts)
        return false;
    memcpy(entry->texts, texts, size);
    entry->texts[size] = '\0';
    for (size_t i = 0; i < TN_CACHE_NUM_TEXTS; i++) {
        if (at >= size)
            return false;
        *out[i] = entry->texts + at;
        at += strlen(entry->texts + at) + 1;
    }
    return at == size;
}

// Judges the `size` bytes of a file with an entry's name.
static int cache_entry_state_of(struct cache_entry *entry, const char *bytes, uint64_t size)
{
    tn_cache_header header;
    const uint64_t version = UINT64_C(0xff) << 56;
    if (size < sizeof(header))
        return CACHE_DAMAGED;
    memcpy(&header, bytes, sizeof(header));
    if (header.magic != TN_CACHE_MAGIC)
        return (header.magic ^ TN_CACHE_MAGIC) & ~version ? CACHE_DAMAGED : CACHE_VERSION;
    uint64_t rest = size - sizeof(header);
    if (header.size > rest || header.texts_size != rest - header.size ||
        !is_key(entry->name, header.key) ||
        !cache_entry_is_sum(&header, bytes + sizeof(header), rest))
        return CACHE_DAMAGED;
    return take_texts(entry, bytes + sizeof(header) + header.size, header.texts_size)
               ? CACHE_SOUND
               : CACHE_DAMAGED;
}

// Reads a regular file with an entry's name. A file that is gone meanwhile, or that cannot
// be read, is a damaged entry.
static char *cache_entry_read_file(const struct folder *folder, const char *name,
                                   uint64_t *out_size)
{
    char *data = NULL;
    int fd = open_below(folder->fd, name, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return NULL;
    if (file_read_from(fd, name, MAX_FILE, &data, out_size))
        forget_oops();
    return data;
}

int cache_read(const struct folder *folder, const char *name, struct cache_entry *out,
               char **out_data)
{
    struct stat info = {0};
    *out = (struct cache_entry){.name = strdup(name), .state = CACHE_UNKNOWN};
    out->plugin = out->kind = out->kernel = out->device = "";
    if (out_data)
        *out_data = NULL;
    if (!out->name)
        return oops_memory();
    if (fstatat(folder->fd, name, &info, AT_SYMLINK_NOFOLLOW) || !S_ISREG(info.st_mode))
        return 0;
    out->bytes = (uint64_t)info.st_size;
    out->used = info.st_mtim;
    if (strncmp(name, ".tmp-", 5) == 0)
        out->state =
            time(NULL) - info.st_mtime > STALE_SECONDS ? CACHE_LEFT : CACHE_WRITING;
    if (!cache_is_name(name))
        return 0;
    uint64_t size = 0;
    char *data = cache_entry_read_file(folder, name, &size);
    out->state = data ? cache_entry_state_of(out, data, size) : CACHE_DAMAGED;
    if (out->state != CACHE_SOUND)
        out->plugin = out->kind = out->kernel = out->device = "";
    if (out->state == CACHE_SOUND && out_data)
        *out_data = data;
    else
        free(data);
    return 0;
}

void cache_entry_finish(struct cache_entry *entry)
{
    free(entry->name);
    free(entry->texts);
    *entry = (struct cache_entry){0};
}

bool cache_is_note(const struct cache_entry *entry)
{
    return strcmp(entry->kind, "quarantine") == 0;
}

// --- all files -------------------------------------------------------------------------

static int cache_entry_add(const struct folder *at, const char *name, void *context)
{
    struct cache_list *list = context;
    struct cache_entry entry;
    int failed = cache_read(at, name, &entry, NULL);
    struct cache_entry *more =
        failed ? NULL : reallocarray(list->entries, list->count + 1, sizeof(*more));
    if (!more) {
        cache_entry_finish(&entry);
        return failed ? failed : oops_memory();
    }
    list->entries = more;
    list->entries[list->count++] = entry;
    if (entry.state == CACHE_SOUND) {
        list->sound++;
        list->sound_bytes += entry.bytes;
    }
    return 0;
}

int cache_list(const struct folder *folder, struct cache_list *out)
{
    *out = (struct cache_list){0};
    int failed = folder->fd < 0 ? 0 : folder_each(folder, cache_entry_add, out);
    if (failed)
        cache_list_finish(out);
    return failed;
}

void cache_list_finish(struct cache_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        cache_entry_finish(&list->entries[i]);
    free(list->entries);
    *list = (struct cache_list){0};
}
