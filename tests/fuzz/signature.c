// SPDX-License-Identifier: MIT
// Signatures of plugins: none is accepted but the one that was made. The first byte says
// whether the rest is a signature, or a file of a trusted key.
#include "fuzz.h"
#include "base/memory.h"
#include "plugin/find/signature.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

static const char manifest[] = "{\"format\": 1}";
static struct trust_key key = {.number = "fuzzkey"};
static char hashed[200], plain[200]; // the lines of the two good signatures
static int folder = -1;

static void sign(const char *algorithm, const void *data, size_t size,
                 const unsigned char secret[64], char line[200])
{
    struct {
        unsigned char algorithm[2], number[8], bytes[64];
    } signature = {.number = "fuzzkey"};
    memcpy(signature.algorithm, algorithm, 2);
    crypto_sign_detached(signature.bytes, NULL, data, size, secret);
    sodium_bin2base64(line, 200, (const unsigned char *)&signature, sizeof(signature),
                      sodium_base64_VARIANT_ORIGINAL);
}

// ed25519 is deterministic: the corpus holds the good signatures as files.
static void make_key(void)
{
    unsigned char seed[32] = "a seed of the fuzzer", secret[64], hash[64];
    crypto_sign_seed_keypair(key.key, secret, seed);
    crypto_generichash(hash, sizeof(hash), (const unsigned char *)manifest,
                       sizeof(manifest) - 1, NULL, 0);
    sign("ED", hash, sizeof(hash), secret, hashed);
    sign("Ed", manifest, sizeof(manifest) - 1, secret, plain);
}

static void prepare(void)
{
    char path[128];
    make_key();
    setenv("XDG_DATA_HOME", fuzz_folder(), 1);
    snprintf(path, sizeof(path), "%s/tenon", fuzz_folder());
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/tenon/trust", fuzz_folder());
    mkdir(path, 0700);
    folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FUZZ_CHECK(folder >= 0, "%s: %s", path, strerror(errno));
}

static void put(const char *name, const uint8_t *data, size_t size)
{
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0, "%s",
               strerror(errno));
}

static void check_signature(const uint8_t *data, size_t size)
{
    struct trust trust = {.level = TRUST_SIGNED, .keys = &key, .num_keys = 1};
    struct reason reason = {0};
    put(SIGNATURE_FILE, data, size);
    if (trust_check_signature(&trust, folder, "here", manifest, sizeof(manifest) - 1,
                              &reason) == TN_OK)
        FUZZ_CHECK(memmem(data, size, hashed, strlen(hashed)) ||
                       memmem(data, size, plain, strlen(plain)),
                   "only what we signed is accepted");
    else
        FUZZ_CHECK(reason.text[0], "a refusal has a reason");
}

static void read_keys(const uint8_t *data, size_t size)
{
    static const char *const variables[] = {"TENON_TRUST=signed", "TENON_LOG=off", NULL};
    struct config *config = NULL;
    struct trust trust = {0};
    put("fuzz.pub", data, size);
    FUZZ_CHECK(config_create(variables, &config) == TN_OK &&
                   trust_open(config, &trust) == TN_OK,
               "%s", fail_text());
    FUZZ_CHECK(trust.num_keys <= 1, "%u keys of one file", trust.num_keys);
    trust_close(&trust);
    config_destroy(config);
}

void fuzz_one(const uint8_t *data, size_t size)
{
    if (folder < 0)
        prepare();
    if (size && data[0] & 1)
        read_keys(data + 1, size - 1);
    else if (size)
        check_signature(data + 1, size - 1);
}
