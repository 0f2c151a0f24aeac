// SPDX-License-Identifier: MIT
// Entries of the disk cache. With an odd first byte the input is made the data of an entry
// that is sound but for one byte, which the second to fourth bytes choose and change.
#include "fuzz.h"
#include "base/memory.h"
#include "plugin/cache/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <tenon/cache_file.h>
#include <unistd.h>

static const char key[] = "fuzz";
static char name[65];
static unsigned char digest[32];
static int folder = -1;

static void prepare(void)
{
    crypto_hash_sha256(digest, (const unsigned char *)key, sizeof(key));
    sodium_bin2hex(name, sizeof(name), digest, 32);
    folder = open(fuzz_folder(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FUZZ_CHECK(folder >= 0, "%s", strerror(errno));
}

// Gives the entry's size in bytes. Its last byte is the texts'.
static size_t make_entry(const uint8_t *data, size_t size, unsigned char *out)
{
    tn_cache_header header = {.magic = TN_CACHE_MAGIC};
    crypto_hash_sha256_state state;
    header.texts_size = size > 4;
    header.size = size - 4 - header.texts_size;
    memcpy(header.key, digest, 32);
    crypto_hash_sha256_init(&state);
    crypto_hash_sha256_update(&state, (const unsigned char *)&header,
                              offsetof(tn_cache_header, checksum));
    crypto_hash_sha256_update(&state, data + 4, size - 4);
    crypto_hash_sha256_final(&state, header.checksum);
    memcpy(out, &header, sizeof(header));
    memcpy(out + sizeof(header), data + 4, size - 4);
    size_t whole = sizeof(header) + size - 4;
    out[(data[1] | (size_t)data[2] << 8) % whole] ^= data[3];
    return whole;
}

static void load(const uint8_t *entry, size_t size, bool must)
{
    void *data = NULL;
    uint64_t got = 0;
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_CHECK(fd >= 0 && write(fd, entry, size) == (ssize_t)size && close(fd) == 0, "%s",
               strerror(errno));
    bool found = cache_load_from(folder, key, sizeof(key), &data, &got) == TN_OK;
    FUZZ_CHECK(!must || found, "a sound entry is found");
    if (found)
        FUZZ_CHECK(got + sizeof(tn_cache_header) <= size &&
                       memcmp(data, entry + sizeof(tn_cache_header), got) == 0,
                   "the entry's data");
    else
        FUZZ_CHECK(faccessat(folder, name, F_OK, 0), "a damaged entry is removed");
    mem_free(data);
}

void fuzz_one(const uint8_t *data, size_t size)
{
    if (folder < 0)
        prepare();
    if (size < 4 || !(data[0] & 1)) {
        load(data, size, false);
        return;
    }
    unsigned char *entry = malloc(sizeof(tn_cache_header) + size);
    FUZZ_CHECK(entry, "out of memory");
    size_t whole = make_entry(data, size, entry);
    load(entry, whole, data[3] == 0);
    free(entry);
}
