// SPDX-License-Identifier: MIT
// Reads the policy and the trusted keys, and checks signatures.
//
// The format is minisign's (https://jedisct1.github.io/minisign/). A key file has base64 of
// "Ed", the key number and the public key. A signature file has base64 of "ED" (the BLAKE2b
// hash is signed) or "Ed" (the bytes are signed), the key number and the signature; then
// the trusted comment; then a second signature, over the first signature and the trusted
// comment.
#include "signature.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <string.h>
#include <tenon/host.h>
#include <unistd.h>
#include "../../base/memory.h"
#include "installation.h"
#include "trust.h"

#define MAX_TEXT ((uint64_t)16384) // of a key or a signature
#define COMMENT "trusted comment: "

// --- lines -----------------------------------------------------------------------------

// Cuts the next line off *text; "" at the end.
static char *next_line(char **text)
{
    char *line = *text, *end = line + strcspn(line, "\n");
    *text = *end ? end + 1 : end;
    *end = 0;
    if (end > line && end[-1] == '\r')
        end[-1] = 0;
    return line;
}

// Decodes a line of base64 of exactly `size` bytes. libsodium would take a byte above 127
// for a digit.
static bool signature_decode(const char *line, void *out, size_t size)
{
    size_t got = 0;
    for (const char *c = line; *c; c++)
        if ((unsigned char)*c > 127)
            return false;
    return sodium_base642bin(out, size, line, strlen(line), NULL, &got, NULL,
                             sodium_base64_VARIANT_ORIGINAL) == 0 &&
           got == size;
}

// Prints a key number as minisign does: a little-endian integer, in hexadecimal.
static void signature_number_text(const unsigned char number[8], char text[17])
{
    uint64_t value = 0;
    for (int i = 8; i-- > 0;)
        value = value << 8 | number[i];
    snprintf(text, 17, "%016" PRIX64, value);
}

// --- keys ------------------------------------------------------------------------------

static bool parse_key(char *text, struct trust_key *out)
{
    struct {
        unsigned char algorithm[2], number[8], key[32];
    } bytes;
    next_line(&text); // the untrusted comment
    if (!signature_decode(next_line(&text), &bytes, sizeof(bytes)) ||
        memcmp(bytes.algorithm, "Ed", 2) != 0)
        return false;
    memcpy(out->number, bytes.number, sizeof(out->number));
    memcpy(out->key, bytes.key, sizeof(out->key));
    return true;
}

static tn_status signature_read_key(struct trust *trust, const struct config *config,
                                    int directory, const char *path, const char *name)
{
    char *text = NULL;
    size_t size;
    struct reason reason;
    struct trust_key key;
    tn_status status =
        trust_read_file(directory, name, MAX_TEXT, path, &text, &size, &reason);
    if (status == TN_ERR_MEMORY)
        return status;
    if (status != TN_OK || !parse_key(text, &key)) {
        log_write(config, TN_LOG_WARN, "plugin", "%s/%s is not used: %s", path, name,
                  status != TN_OK ? reason.text : "it holds no public key of minisign");
        mem_free(text);
        return TN_OK;
    }
    mem_free(text);
    status = mem_grow((void **)&trust->keys, &trust->capacity, trust->num_keys + 1,
                      sizeof(*trust->keys));
    if (status == TN_OK)
        trust->keys[trust->num_keys++] = key;
    return status;
}

static tn_status signature_read_keys(struct trust *trust, const struct config *config,
                                     const char *path)
{
    struct reason reason;
    int fd = -1;
    if (access(path, F_OK) && errno == ENOENT)
        return TN_OK;
    tn_status status = trust_open_directory(AT_FDCWD, path, path, &fd, &reason);
    if (status != TN_OK) {
        log_write(config, TN_LOG_WARN, "plugin", "no key is trusted: %s", reason.text);
        return TN_OK;
    }
    DIR *stream = fdopendir(fd);
    if (!stream) {
        close(fd);
        return fail_memory(0);
    }
    struct dirent *entry;
    while (status == TN_OK && (entry = readdir(stream))) {
        const char *dot = strrchr(entry->d_name, '.');
        if (dot && entry->d_name[0] != '.' && strcmp(dot, ".pub") == 0)
            status = signature_read_key(trust, config, fd, path, entry->d_name);
    }
    closedir(stream);
    return status;
}

static tn_status read_all_keys(struct trust *trust, const struct config *config)
{
    const char *home = config_data_home(config);
    tn_status status = TN_OK;
    if (home) {
        char *path = mem_printf("%s/tenon/trust", home);
        status = path ? signature_read_keys(trust, config, path) : TN_ERR_MEMORY;
        mem_free(path);
    }
    const char *ours = installed_directory(INSTALLED_KEYS, config_is_elevated(config));
    return status == TN_OK ? signature_read_keys(trust, config, ours) : status;
}

// --- the policy ------------------------------------------------------------------------

tn_status trust_open(const struct config *config, struct trust *out)
{
    static const char *const words[] = {"checksummed", "signed", "any", NULL};
    const char *word = config_get(config, "TENON_TRUST");
    struct trust made = {TRUST_CHECKSUMMED, .config = config};
    while (word && words[made.level] && strcmp(word, words[made.level]) != 0)
        made.level++;
    const char *nearest = words[made.level] ? NULL : config_nearest(word, words);
    if (!words[made.level])
        return fail(TN_ERR_ARGUMENT,
                    "TENON_TRUST: got '%s', expected any, checksummed or signed%s%s%s",
                    word, nearest ? "; did you mean " : "", nearest ? nearest : "",
                    nearest ? "?" : "");
    if (made.level == TRUST_SIGNED) {
        tn_status status = read_all_keys(&made, config);
        if (status != TN_OK) {
            trust_close(&made);
            return status;
        }
    }
    *out = made;
    return TN_OK;
}

void trust_close(struct trust *trust)
{
    mem_free(trust->keys);
    *trust = (struct trust){0};
}

// --- signatures ------------------------------------------------------------------------

// The members before `global` are the decoded first line, so they stay in this order.
struct signature {
    unsigned char algorithm[2], number[8], bytes[crypto_sign_BYTES];
    unsigned char global[crypto_sign_BYTES]; // of `bytes` and the trusted comment
    const char *comment; // trusted comment, borrowed from the file's text
};

static bool signature_parse_signature(char *text, struct signature *out)
{
    next_line(&text); // the untrusted comment
    char *line = next_line(&text);
    out->comment = next_line(&text);
    if (!signature_decode(line, out, offsetof(struct signature, global)) ||
        (memcmp(out->algorithm, "ED", 2) != 0 && memcmp(out->algorithm, "Ed", 2) != 0) ||
        strncmp(out->comment, COMMENT, strlen(COMMENT)) != 0)
        return false;
    out->comment += strlen(COMMENT);
    return signature_decode(next_line(&text), out->global, sizeof(out->global));
}

// Whether `key` made both signatures, over this text and its trusted comment.
static bool signature_signs(const struct signature *signature, const struct trust_key *key,
                            const char *text, size_t size)
{
    unsigned char hash[crypto_generichash_BYTES_MAX];
    unsigned char said[crypto_sign_BYTES + MAX_TEXT];
    bool is_hashed = signature->algorithm[1] == 'D';
    crypto_generichash(hash, sizeof(hash), (const unsigned char *)text, size, NULL, 0);
    if (crypto_sign_verify_detached(signature->bytes,
                                    is_hashed ? hash : (const unsigned char *)text,
                                    is_hashed ? sizeof(hash) : size, key->key))
        return false;
    size_t comment_size = strlen(signature->comment);
    memcpy(said, signature->bytes, crypto_sign_BYTES);
    memcpy(said + crypto_sign_BYTES, signature->comment, comment_size);
    return crypto_sign_verify_detached(signature->global, said,
                                       crypto_sign_BYTES + comment_size, key->key) == 0;
}

// Key numbers are not unique: each trusted key with the signature's number is tried.
static tn_status signature_check(const struct trust *trust,
                                 const struct signature *signature, const char *path,
                                 const char *text, size_t size, struct reason *reason)
{
    bool has_key = false;
    char number[17];
    for (uint32_t i = 0; i < trust->num_keys; i++) {
        const struct trust_key *key = &trust->keys[i];
        if (memcmp(key->number, signature->number, sizeof(key->number)) != 0)
            continue;
        has_key = true;
        if (signature_signs(signature, key, text, size))
            return TN_OK;
    }
    signature_number_text(signature->number, number);
    if (has_key)
        return reason_record(reason, TN_ERR_REFUSED, REASON_SIGNATURE, path,
                             "%s: the signature by key %s is not of this plugin.json", path,
                             number);
    return reason_record(reason, TN_ERR_REFUSED, REASON_KEY, path,
                         "%s is signed by key %s, which is not among the %" PRIu32
                         " trusted",
                         path, number, trust->num_keys);
}

tn_status trust_check_signature(const struct trust *trust, int directory, const char *path,
                                const char *text, size_t size, struct reason *reason)
{
    if (trust->level != TRUST_SIGNED)
        return TN_OK;
    char *file = NULL;
    size_t file_size;
    struct signature signature;
    tn_status status = trust_read_file(directory, SIGNATURE_FILE, MAX_TEXT, path, &file,
                                       &file_size, reason);
    if (status == TN_ERR_NOT_FOUND)
        return reason_record(reason, TN_ERR_REFUSED, REASON_UNSIGNED, path,
                             "%s has no signature (" SIGNATURE_FILE
                             "), and TENON_TRUST=signed asks for one",
                             path);
    if (status == TN_OK && !signature_parse_signature(file, &signature))
        status = reason_record(reason, TN_ERR_REFUSED, REASON_SIGNATURE, path,
                               "%s/" SIGNATURE_FILE " is no signature of minisign", path);
    if (status == TN_OK)
        status = signature_check(trust, &signature, path, text, size, reason);
    mem_free(file);
    return status;
}
