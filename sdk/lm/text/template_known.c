// SPDX-License-Identifier: MIT
// Recognises templates by the SHA-256 of their text, which a list has.
#include <nettle/sha2.h>
#include <string.h>
#include "template.h"

// A template that was run, and wrote what its family writes.
struct known_template {
    const char *sha256; // in hexadecimal
    const char *family;
    uint32_t flags; // TEMPLATE_...
};

#include "template_list.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// Finds the text of a system message within the template: between the marks of such a
// message, with no end of a literal in between. A line ends with a newline, or with the two
// characters "\n".
static void find_system(const char *jinja, uint64_t size, struct chat_template *out)
{
    static const char begin[] = "<|im_start|>system", end[] = "<|im_end|>";
    const char *limit = jinja + size, *at = jinja;
    while ((at = memmem(at, (size_t)(limit - at), begin, sizeof(begin) - 1)) != NULL) {
        at += sizeof(begin) - 1;
        size_t left = (size_t)(limit - at);
        size_t skip = left > 0 && at[0] == '\n'                   ? 1
                      : left > 1 && at[0] == '\\' && at[1] == 'n' ? 2
                                                                  : 0;
        const char *stop = memmem(at, left, end, sizeof(end) - 1);
        if (!skip || !stop)
            continue;
        const char *text = at + skip;
        size_t bytes = (size_t)(stop - text);
        if (memchr(text, '\'', bytes) || memchr(text, '"', bytes) ||
            memchr(text, '{', bytes))
            continue;
        out->system = text;
        out->system_size = bytes;
        return;
    }
}

static void template_hash(const char *text, uint64_t size, char hex[65])
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct sha256_ctx context;
    sha256_init(&context);
    sha256_update(&context, size, (const uint8_t *)text);
    sha256_digest(&context, sizeof(digest), digest);
    for (size_t i = 0; i < sizeof(digest); i++) {
        hex[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    hex[64] = '\0';
}

bool chat_template_recognise(const char *jinja, uint64_t size, struct chat_template *out)
{
    char hex[65];
    template_hash(jinja, size - (size > 0 && jinja[size - 1] == '\n'), hex);
    for (size_t i = 0; i < COUNT(known_templates); i++) {
        if (strcmp(known_templates[i].sha256, hex) != 0)
            continue;
        if (!chat_template_find(known_templates[i].family, out))
            return false;
        out->flags = known_templates[i].flags | TEMPLATE_KNOWN;
        if (chat_template_finds_system(out))
            find_system(jinja, size, out);
        return true;
    }
    return false;
}
