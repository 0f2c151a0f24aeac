// SPDX-License-Identifier: MIT
// Texts that are not UTF-8 are repaired as llama.cpp does, so that the same bytes have the
// same tokens.
#include "bpe.h"

#define REPLACEMENT 0xfffdu // stands for a byte that encodes no character
#define PRIVATE 0xe000u     // a character of 3 bytes that no expression names
#define LAST 0x10ffffu

static bool is_surrogate(uint32_t c)
{
    return c >= 0xd800 && c <= 0xdfff;
}

// Returns the character at the beginning of a text, and its size in *out_size. An invalid
// byte is REPLACEMENT, of size 1.
static uint32_t bpe_utf8_read_character(const char *text, uint64_t size, uint64_t *out_size)
{
    unsigned char first = (unsigned char)text[0];
    uint64_t bytes = character_bytes(text[0]);
    uint32_t c = bytes == 1 ? first : first & (0x7fu >> bytes);
    *out_size = 1;
    if (bytes == 1)
        return first < 0x80 ? c : REPLACEMENT;
    if (first >= 0xf8 || size < bytes)
        return REPLACEMENT;
    for (uint64_t i = 1; i < bytes; i++) {
        unsigned char next = (unsigned char)text[i];
        if ((next & 0xc0) != 0x80)
            return REPLACEMENT;
        c = c << 6 | (next & 0x3f);
    }
    if (c > LAST)
        return REPLACEMENT;
    *out_size = bytes;
    return c;
}

static uint64_t bytes_needed(uint32_t c)
{
    return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

// Writes c in UTF-8; returns its size.
static uint64_t write_character(uint32_t c, char *out)
{
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    uint64_t bytes = bytes_needed(c);
    for (uint64_t left = bytes; left > 1; left--) {
        out[left - 1] = (char)(unsigned char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    out[0] = (char)(unsigned char)(marks[bytes] | c);
    return bytes;
}

// Whether the text is UTF-8 without surrogates.
static bool is_clean(const char *text, uint64_t size)
{
    for (uint64_t i = 0, bytes; i < size; i += bytes) {
        bytes = 1;
        if (!((unsigned char)text[i] & 0x80))
            continue;
        uint32_t c = bpe_utf8_read_character(text + i, size - i, &bytes);
        if (bytes == 1 || bytes != bytes_needed(c) || is_surrogate(c))
            return false;
    }
    return true;
}

tn_status clean_text(const tn_host *host, const char *text, uint64_t size,
                     struct clean_text *out)
{
    *out = (struct clean_text){.text = text, .pattern = text, .size = size};
    if (is_clean(text, size))
        return TN_OK;
    uint64_t most = 3 * size; // each byte may become a replacement
    char *memory = host->alloc(host, 2 * most, 0);
    uint64_t written = 0;
    if (!memory)
        return TN_ERR_MEMORY;
    for (uint64_t i = 0, bytes; i < size; i += bytes) {
        uint32_t c = bpe_utf8_read_character(text + i, size - i, &bytes);
        write_character(is_surrogate(c) ? PRIVATE : c, memory + most + written);
        written += write_character(c, memory + written);
    }
    *out = (struct clean_text){
        .text = memory, .pattern = memory + most, .size = written, .memory = memory};
    return TN_OK;
}
