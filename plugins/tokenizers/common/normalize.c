// SPDX-License-Identifier: MIT
// Unicode's normal forms, and classes of characters. utf8proc has the data of characters;
// marks behind a letter are sorted here, in linear time for any number of them.
#include <string.h>
#include <utf8proc.h>
#include "pipeline.h"

// --- characters ------------------------------------------------------------------------

// Returns the character at the beginning of a text, and its size in *out_size; -1, of size
// 1, for an invalid byte.
static int32_t tokenizer_normalize_read_character(const char *text, uint64_t size,
                                                  uint64_t *out_size)
{
    utf8proc_int32_t c;
    utf8proc_ssize_t most = size < 4 ? (utf8proc_ssize_t)size : 4;
    utf8proc_ssize_t bytes =
        utf8proc_iterate((const utf8proc_uint8_t *)(const void *)text, most, &c);
    *out_size = bytes > 0 ? (uint64_t)bytes : 1;
    return bytes > 0 ? c : -1;
}

// Returns the last character of a text of at least one byte, as read_character does.
static int32_t read_last(const char *text, uint64_t size, uint64_t *out_size)
{
    uint64_t back = 1;
    while (back < 4 && back < size && ((unsigned char)text[size - back] & 0xc0) == 0x80)
        back++;
    int32_t c = tokenizer_normalize_read_character(text + size - back, back, out_size);
    if (*out_size == back)
        return c;
    *out_size = 1;
    return -1;
}

static bool tokenizer_normalize_is_space(int32_t c)
{
    if ((c >= '\t' && c <= '\r') || c == 0x85)
        return true;
    utf8proc_category_t category = c < 0 ? UTF8PROC_CATEGORY_CN : utf8proc_category(c);
    return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
           category == UTF8PROC_CATEGORY_ZP;
}

// \w as defined by Unicode's report on regular expressions.
static bool tokenizer_normalize_is_word(int32_t c)
{
    if (c == 0x200c || c == 0x200d || (c >= 0x24b6 && c <= 0x24e9) ||
        (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) ||
        (c >= 0x1f170 && c <= 0x1f189))
        return true; // joiners, and symbols that count as letters
    switch (c < 0 ? UTF8PROC_CATEGORY_CN : utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
        return true;
    default:
        return false;
    }
}

uint64_t spaces_before(const char *text, uint64_t size)
{
    uint64_t left = size, bytes;
    while (left && tokenizer_normalize_is_space(read_last(text, left, &bytes)))
        left -= bytes;
    return size - left;
}

uint64_t spaces_behind(const char *text, uint64_t size)
{
    uint64_t at = 0, bytes;
    while (at < size && tokenizer_normalize_is_space(tokenizer_normalize_read_character(
                            text + at, size - at, &bytes)))
        at += bytes;
    return at;
}

bool is_alone(const char *text, uint64_t size, uint64_t from, uint64_t to)
{
    uint64_t bytes;
    return (from == 0 || !tokenizer_normalize_is_word(read_last(text, from, &bytes))) &&
           (to == size || !tokenizer_normalize_is_word(tokenizer_normalize_read_character(
                              text + to, size - to, &bytes)));
}

// --- normal forms ----------------------------------------------------------------------

static const struct {
    uint32_t way;
    int decompose; // options of utf8proc
    bool composes;
} forms[] = {
    {WAY_NFC, UTF8PROC_DECOMPOSE, true},
    {WAY_NFD, UTF8PROC_DECOMPOSE, false},
    {WAY_NFKC, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, true},
    {WAY_NFKD, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, false},
};

static int combining_class(int32_t c)
{
    return utf8proc_get_property(c)->combining_class;
}

// Invalid bytes become surrogates meanwhile, which UTF-8 does not have.
enum { NO_CHARACTER = 0xdc00 };

// Decomposes a text into characters; returns their number. Characters beyond `room` are
// counted only.
static uint64_t take_apart(const char *text, uint64_t size, int options, int32_t *out,
                           uint64_t room)
{
    uint64_t count = 0, bytes;
    for (uint64_t at = 0; at < size; at += bytes) {
        int32_t c = tokenizer_normalize_read_character(text + at, size - at, &bytes);
        uint64_t left = room > count ? room - count : 0;
        int boundary = 0;
        if (c < 0)
            c = NO_CHARACTER | (unsigned char)text[at];
        utf8proc_ssize_t n =
            utf8proc_decompose_char(c, left ? out + count : NULL, (utf8proc_ssize_t)left,
                                    (utf8proc_option_t)options, &boundary);
        count += n > 0 ? (uint64_t)n : 0;
    }
    return count;
}

// Sorts the marks behind a letter by their classes, stably. `spare` has room for as many.
static void sort_marks(int32_t *run, uint64_t count, int32_t *spare)
{
    bool sorted = true;
    for (uint64_t i = 1; sorted && i < count; i++)
        sorted = combining_class(run[i - 1]) <= combining_class(run[i]);
    if (sorted)
        return;
    memcpy(spare, run, count * sizeof(*run));
    for (int class = 1, left = 0; class < 256; class ++)
        for (uint64_t i = 0; i < count; i++)
            if (combining_class(spare[i]) == class)
                run[left++] = spare[i];
}

static void sort_all_marks(int32_t *characters, uint64_t count, int32_t *spare)
{
    for (uint64_t i = 0, begin = 0; i <= count; i++)
        if (i == count || combining_class(characters[i]) == 0) {
            if (i - begin > 1)
                sort_marks(characters + begin, i - begin, spare);
            begin = i + 1;
        }
}

static uint64_t write_characters(const int32_t *characters, uint64_t count, char *out)
{
    uint64_t size = 0;
    for (uint64_t i = 0; i < count; i++)
        if ((characters[i] & ~0xff) == NO_CHARACTER)
            out[size++] = (char)(unsigned char)characters[i];
        else
            size += (uint64_t)utf8proc_encode_char(
                characters[i], (utf8proc_uint8_t *)(void *)(out + size));
    return size;
}

static tn_status write_form(const tn_host *host, uint32_t form, const char *text,
                            uint64_t size, char **out_text, uint64_t *out_size)
{
    uint64_t count = take_apart(text, size, forms[form].decompose, NULL, 0);
    int32_t *characters = clear_alloc(host, count, 2 * sizeof(*characters));
    char *out = characters ? clear_alloc(host, count, 4) : NULL;
    if (out) {
        take_apart(text, size, forms[form].decompose, characters, count);
        sort_all_marks(characters, count, characters + count);
        if (forms[form].composes)
            count = (uint64_t)utf8proc_normalize_utf32(characters, (utf8proc_ssize_t)count,
                                                       UTF8PROC_COMPOSE | UTF8PROC_STABLE);
        *out_size = write_characters(characters, count, out);
        *out_text = out;
    }
    host->free(host, characters);
    return out ? TN_OK : TN_ERR_MEMORY;
}

static bool is_ascii(const char *text, uint64_t size)
{
    unsigned char all = 0;
    for (uint64_t i = 0; i < size; i++)
        all |= (unsigned char)text[i];
    return all < 0x80;
}

tn_status normalize(const tn_host *host, uint32_t ways, const char *text, uint64_t size,
                    char **out_text, uint64_t *out_size)
{
    char *formed = NULL;
    uint64_t formed_size = size;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < COUNT(forms); i++)
        if (ways & forms[i].way && !is_ascii(text, size))
            status = write_form(host, i, text, size, &formed, &formed_size);
    text = formed ? formed : text;
    if (status == TN_OK && ways & WAY_REPLACE) {
        status = encode_spaces(host, text, formed_size, size && ways & WAY_PREPEND,
                               out_text, out_size);
        host->free(host, formed);
    } else if (status == TN_OK) {
        *out_text = formed;
        *out_size = formed_size;
    }
    return status;
}
