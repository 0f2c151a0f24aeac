// SPDX-License-Identifier: MIT
// GPT-2's alphabet: bytes that Latin-1 can print are themselves; the others are the
// characters from U+0100 on, in order.
#include "bpe.h"

static bool bpe_alphabet_is_printed(unsigned c)
{
    return (c >= 0x21 && c <= 0x7e) || (c >= 0xa1 && c <= 0xac) || (c >= 0xae && c <= 0xff);
}

static unsigned character_of(uint8_t byte)
{
    unsigned others = 0;
    if (bpe_alphabet_is_printed(byte))
        return byte;
    for (unsigned i = 0; i < byte; i++)
        others += !bpe_alphabet_is_printed(i);
    return 0x100 + others;
}

uint64_t alphabet_write(uint8_t byte, char *out)
{
    unsigned c = character_of(byte);
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    out[0] = (char)(unsigned char)(0xc0 | c >> 6);
    out[1] = (char)(unsigned char)(0x80 | (c & 0x3f));
    return 2;
}

int alphabet_read(const char *text, uint64_t size, uint64_t *out_size)
{
    unsigned first = (unsigned char)text[0];
    unsigned c = first;
    if (first >= 0x80) {
        unsigned second = size > 1 ? (unsigned char)text[1] : 0;
        if (first < 0xc2 || first > 0xc5 || (second & 0xc0) != 0x80)
            return -1;
        c = (first & 0x1f) << 6 | (second & 0x3f);
    }
    *out_size = first < 0x80 ? 1 : 2;
    if (c < 0x100)
        return bpe_alphabet_is_printed(c) ? (int)c : -1;
    unsigned others = 0;
    for (int byte = 0; byte < 256; byte++)
        if (!bpe_alphabet_is_printed((unsigned)byte) && others++ == c - 0x100)
            return byte;
    return -1;
}

// Decodes a text; characters that are not in the alphabet stay as they are.
uint64_t alphabet_decode(const char *text, uint64_t size, char *out)
{
    uint64_t written = 0, read = 0;
    for (uint64_t i = 0; i < size; i += read) {
        int byte = alphabet_read(text + i, size - i, &read);
        if (byte < 0)
            read = 1;
        out[written++] = byte < 0 ? text[i] : (char)(unsigned char)byte;
    }
    return written;
}
