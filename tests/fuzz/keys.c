// SPDX-License-Identifier: MIT
// Keys in minisign's files. The first byte says of which kind. Standard input is empty, so
// that no password is tried.
#include "fuzz.h"
#include "plugins/keys.h"

static void public_key(const char *text)
{
    struct public_key key, again;
    char line[KEY_TEXT_SIZE];
    if (!key_parse_public(text, &key))
        return;
    key_text(&key, line);
    FUZZ_CHECK(key_parse_public(line, &again) && memcmp(&key, &again, sizeof(key)) == 0,
               "'%s'", line);
}

static void secret_key(const uint8_t *data, size_t size)
{
    struct secret_key key;
    char *text = NULL;
    forget_oops();
    if (key_read_secret(fuzz_path(data, size), &key)) {
        FUZZ_CHECK(oops_text()[0], "a failure has a text");
        return;
    }
    FUZZ_CHECK(key_sign(&key, "abc", 3, "comment", &text) == 0 && text, "%s", oops_text());
    free(text);
    key_forget(&key);
}

void fuzz_one(const uint8_t *data, size_t size)
{
    static bool is_closed;
    if (!is_closed)
        is_closed = freopen("/dev/null", "r", stdin);
    if (!size)
        return;
    char *text = fuzz_text(data + 1, size - 1);
    if (data[0] & 1)
        secret_key(data + 1, size - 1);
    else
        public_key(text);
    free(text);
}
