// SPDX-License-Identifier: MIT
// Keys and signatures in minisign's format.
#include "keys.h"
#include "base/file.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_FILE 16384
#define BASE64(size) (((size) + 2) / 3 * 4 + 1)

// The decoded base64 of the files. Arrays of bytes only, so there is no padding.
struct secret_file {
    unsigned char algorithm[2]; // "Ed"
    unsigned char kdf[2];       // "Sc": a password, through scrypt; 0, 0: none
    unsigned char checksum[2];  // "B2": BLAKE2b
    unsigned char salt[32], operations[8], memory[8];
    struct {
        unsigned char number[8], key[64], check[32];
    } secret; // XORed with a stream from the password, if there is one
};

struct public_file {
    unsigned char algorithm[2], number[8], key[32];
};

struct signature_file {
    unsigned char algorithm[2], number[8], bytes[64];
};

// Decodes base64. Bytes above 127 are refused here: libsodium takes them for digits.
static bool plugin_keys_decode(const char *line, size_t line_size, void *out, size_t size)
{
    size_t got = 0;
    for (size_t i = 0; i < line_size; i++)
        if ((unsigned char)line[i] > 127)
            return false;
    return sodium_base642bin(out, size, line, line_size, "\r", &got, NULL,
                             sodium_base64_VARIANT_ORIGINAL) == 0 &&
           got == size;
}

static void plugin_keys_encode(const void *data, size_t size, char *out)
{
    sodium_bin2base64(out, BASE64(size), data, size, sodium_base64_VARIANT_ORIGINAL);
}

void key_number(const unsigned char number[8], char text[KEY_NUMBER_SIZE])
{
    for (int i = 0; i < 8; i++)
        snprintf(text + 2 * i, 3, "%02X", number[7 - i]);
}

// --- public ----------------------------------------------------------------------------

bool key_parse_public(const char *text, struct public_key *out)
{
    struct public_file file;
    const char *line = text, *end = strchr(text, '\n');
    if (strncmp(text, "untrusted comment:", 18) == 0)
        line = end ? end + 1 : "";
    if (!plugin_keys_decode(line, strcspn(line, "\n"), &file, sizeof(file)) ||
        memcmp(file.algorithm, "Ed", 2) != 0)
        return false;
    memcpy(out->number, file.number, sizeof(out->number));
    memcpy(out->key, file.key, sizeof(out->key));
    return true;
}

void key_text(const struct public_key *key, char text[KEY_TEXT_SIZE])
{
    struct public_file file = {.algorithm = "Ed"};
    memcpy(file.number, key->number, sizeof(file.number));
    memcpy(file.key, key->key, sizeof(file.key));
    plugin_keys_encode(&file, sizeof(file), text);
}

// --- secret ----------------------------------------------------------------------------

static void make_check(const struct secret_file *file, unsigned char out[32])
{
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, 32);
    crypto_generichash_update(&state, file->algorithm, sizeof(file->algorithm));
    crypto_generichash_update(&state, file->secret.number, sizeof(file->secret.number));
    crypto_generichash_update(&state, file->secret.key, sizeof(file->secret.key));
    crypto_generichash_final(&state, out, 32);
}

static uint64_t plugin_keys_little(const unsigned char bytes[8])
{
    uint64_t value = 0;
    for (int i = 8; i-- > 0;)
        value = value << 8 | bytes[i];
    return value;
}

static int ask_password(const char *path, char *out, size_t size)
{
    if (isatty(STDIN_FILENO)) {
        char *got = getpass("Password of the key: ");
        snprintf(out, size, "%s", got ? got : "");
        if (got)
            sodium_memzero(got, strlen(got));
        return got ? 0 : oops("no password for %s", path);
    }
    if (!fgets(out, (int)size, stdin))
        return oops("%s has a password: expected it as a line of standard input", path);
    out[strcspn(out, "\n")] = '\0';
    return 0;
}

static int remove_password(const char *path, struct secret_file *file)
{
    char password[1024];
    unsigned char stream[sizeof(file->secret)];
    int failed = ask_password(path, password, sizeof(password));
    if (!failed &&
        crypto_pwhash_scryptsalsa208sha256(
            stream, sizeof(stream), password, strlen(password), file->salt,
            plugin_keys_little(file->operations), (size_t)plugin_keys_little(file->memory)))
        failed = oops("%s: not enough memory for its password", path);
    for (size_t i = 0; !failed && i < sizeof(stream); i++)
        ((unsigned char *)&file->secret)[i] ^= stream[i];
    sodium_memzero(password, sizeof(password));
    sodium_memzero(stream, sizeof(stream));
    return failed;
}

// minisign writes no checksum for a key without a password; its two halves must match then.
static bool is_sound(const struct secret_file *file)
{
    unsigned char check[32], half[32], secret[64];
    if (!sodium_is_zero(file->secret.check, sizeof(file->secret.check)) ||
        file->kdf[0] != 0) {
        make_check(file, check);
        return sodium_memcmp(check, file->secret.check, sizeof(check)) == 0;
    }
    crypto_sign_seed_keypair(half, secret, file->secret.key);
    bool fits = sodium_memcmp(secret, file->secret.key, sizeof(secret)) == 0;
    sodium_memzero(secret, sizeof(secret));
    return fits;
}

static int open_secret(const char *path, const char *text, struct secret_file *file)
{
    const char *line = strchr(text, '\n');
    if (!line ||
        !plugin_keys_decode(line + 1, strcspn(line + 1, "\n"), file, sizeof(*file)) ||
        memcmp(file->algorithm, "Ed", 2) != 0 || memcmp(file->checksum, "B2", 2) != 0)
        return oops("%s holds no secret key of minisign", path);
    bool has_password = memcmp(file->kdf, "Sc", 2) == 0;
    int failed = has_password ? remove_password(path, file) : 0;
    if (failed || is_sound(file))
        return failed;
    return has_password ? oops("%s: the password is wrong", path)
                        : oops("%s is damaged: its checksum differs", path);
}

int key_read_secret(const char *path, struct secret_key *out)
{
    char *text = NULL;
    uint64_t size;
    struct secret_file file;
    int failed = file_read(path, MAX_FILE, &text, &size);
    if (failed)
        return failed;
    failed = open_secret(path, text, &file);
    if (!failed) {
        memcpy(out->number, file.secret.number, sizeof(out->number));
        memcpy(out->key, file.secret.key, sizeof(out->key));
    }
    sodium_memzero(&file, sizeof(file));
    sodium_memzero(text, (size_t)size);
    free(text);
    return failed;
}

void key_forget(struct secret_key *key)
{
    sodium_memzero(key, sizeof(*key));
}

// --- new -------------------------------------------------------------------------------

static int plugin_keys_write_new(const char *path, mode_t mode, const char *comment,
                                 const char *line)
{
    char *text = NULL;
    int size = asprintf(&text, "untrusted comment: %s\n%s\n", comment, line);
    if (size < 0)
        return oops_memory();
    int failed = file_write_new(path, mode, text, (size_t)size);
    sodium_memzero(text, (size_t)size);
    free(text);
    return failed;
}

int key_make(const char *secret_path, const char *public_path, struct public_key *out)
{
    struct secret_file file = {.algorithm = "Ed", .checksum = "B2"};
    char secret[BASE64(sizeof(file))], text[KEY_TEXT_SIZE], comment[80],
        number[KEY_NUMBER_SIZE];
    if (sodium_init() < 0)
        return oops("no random numbers");
    randombytes_buf(file.secret.number, sizeof(file.secret.number));
    crypto_sign_keypair(out->key, file.secret.key);
    make_check(&file, file.secret.check);
    memcpy(out->number, file.secret.number, sizeof(out->number));
    plugin_keys_encode(&file, sizeof(file), secret);
    key_text(out, text);
    key_number(out->number, number);
    snprintf(comment, sizeof(comment), "minisign public key %s", number);
    int failed = plugin_keys_write_new(public_path, 0644, comment, text);
    if (!failed &&
        (failed = plugin_keys_write_new(secret_path, 0600, "minisign secret key", secret)))
        unlink(public_path);
    sodium_memzero(&file, sizeof(file));
    sodium_memzero(secret, sizeof(secret));
    return failed;
}

// --- signing ---------------------------------------------------------------------------

bool key_of_signature(const char *text, unsigned char number[8])
{
    struct signature_file file;
    const char *line = strchr(text, '\n');
    if (!line ||
        !plugin_keys_decode(line + 1, strcspn(line + 1, "\n"), &file, sizeof(file)))
        return false;
    memcpy(number, file.number, sizeof(file.number));
    return true;
}

int key_sign(const struct secret_key *key, const void *data, size_t size,
             const char *comment, char **out_text)
{
    struct signature_file file = {.algorithm = "ED"};
    unsigned char hash[crypto_generichash_BYTES_MAX], global[crypto_sign_BYTES];
    char line[BASE64(sizeof(file))], second[BASE64(sizeof(global))];
    size_t comment_size = strlen(comment);
    unsigned char *said = malloc(sizeof(file.bytes) + comment_size);
    if (!said)
        return oops_memory();
    memcpy(file.number, key->number, sizeof(file.number));
    crypto_generichash(hash, sizeof(hash), data, size, NULL, 0);
    crypto_sign_detached(file.bytes, NULL, hash, sizeof(hash), key->key);
    memcpy(said, file.bytes, sizeof(file.bytes));
    memcpy(said + sizeof(file.bytes), comment, comment_size);
    crypto_sign_detached(global, NULL, said, sizeof(file.bytes) + comment_size, key->key);
    free(said);
    plugin_keys_encode(&file, sizeof(file), line);
    plugin_keys_encode(global, sizeof(global), second);
    return asprintf(out_text,
                    "untrusted comment: signature of a Tenon plugin\n%s\n"
                    "trusted comment: %s\n%s\n",
                    line, comment, second) < 0
               ? oops_memory()
               : 0;
}
