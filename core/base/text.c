// SPDX-License-Identifier: MIT
// Escapes control and format characters and invalid UTF-8, so that foreign text cannot move
// the cursor, change colours, or hide and reorder what a terminal shows.
#include "text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// Control and format characters: these move, hide, reorder or colour the text around them.
static const struct text_range {
    uint32_t first, last;
} unsafe[] = {
    {0x0000, 0x001f},   // controls, ESC among them
    {0x007f, 0x009f},   // DEL and C1, where CSI is a single character
    {0x00ad, 0x00ad},   // soft hyphen
    {0x061c, 0x061c},   // Arabic letter mark
    {0x180e, 0x180e},   // Mongolian vowel separator
    {0x200b, 0x200b},   // zero width space
    {0x200e, 0x200f},   // left-to-right and right-to-left marks
    {0x2028, 0x202e},   // line and paragraph separators, embeddings and overrides
    {0x2060, 0x206f},   // word joiner, invisible operators, isolates
    {0xfeff, 0xfeff},   // byte order mark
    {0xfff9, 0xfffb},   // interlinear annotations
    {0xe0000, 0xe0fff}, // tags and further variation selectors
};

static bool is_unsafe(uint32_t point, uint32_t flags)
{
    if (point == '\n' || point == '\t')
        return flags & TN_TEXT_ONE_LINE;
    for (size_t i = 0; i < sizeof(unsafe) / sizeof(*unsafe); i++)
        if (point >= unsafe[i].first && point <= unsafe[i].last)
            return true;
    return false;
}

// Decodes the first character of `text` to its code point. Its bytes; 0: invalid UTF-8.
static size_t base_text_decode(const unsigned char *text, uint32_t *out_point)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least; // smaller code points have a shorter form
    } forms[] = {
        {0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (size_t size = 1; size <= 4; size++) {
        if ((text[0] & forms[size - 1].mask) != forms[size - 1].lead)
            continue;
        uint32_t point = text[0] & (unsigned char)~forms[size - 1].mask;
        for (size_t i = 1; i < size; i++) {
            if ((text[i] & 0xc0) != 0x80) // also at the NUL that ends the text
                return 0;
            point = point << 6 | (text[i] & 0x3f);
        }
        bool is_character = point >= forms[size - 1].least && point <= 0x10ffff &&
                            !(point >= 0xd800 && point <= 0xdfff);
        *out_point = point;
        return is_character ? size : 0;
    }
    return 0;
}

size_t text_valid(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    uint32_t point;
    for (size_t size = 1; *at && size; at += size)
        size = base_text_decode(at, &point);
    return (size_t)(at - (const unsigned char *)text);
}

// Printable ASCII, the fast path.
static bool text_is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x7f;
}

// Writes the printable form, at most 10 bytes, of the character at `text`. Gives the bytes
// that the character takes in `text`.
static size_t text_show(const unsigned char *text, uint32_t flags, char shown[16])
{
    uint32_t point = 0;
    size_t size = base_text_decode(text, &point);
    if (size == 0)
        snprintf(shown, 16, "\\x%02x", text[0]);
    else if (point == '\n' && flags & TN_TEXT_INDENT && !(flags & TN_TEXT_ONE_LINE))
        // Further lines are indented by two spaces, unless these begin with a space
        // already.
        snprintf(shown, 16, text[1] == ' ' || !text[1] ? "\n" : "\n  ");
    else if (!is_unsafe(point, flags))
        snprintf(shown, 16, "%.*s", (int)size, (const char *)text);
    else if (point < 0x100)
        snprintf(shown, 16, "\\x%02x", (unsigned)point);
    else
        snprintf(shown, 16, point < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)point);
    return size ? size : 1;
}

uint64_t tn_text_printable(const char *text, uint32_t flags, char *out, uint64_t size)
{
    uint64_t used = 0, whole = 0; // bytes needed, and bytes written in whole characters
    for (const unsigned char *at = (const unsigned char *)text; at && *at;) {
        char shown[16];
        const unsigned char *from = at;
        while (text_is_plain(*at))
            at++;
        size_t length = (size_t)(at - from), fits = length;
        if (length > 0) {
            uint64_t room = used < size ? size - used - 1 : 0;
            fits = length < room ? length : (size_t)room;
        } else {
            at += text_show(at, flags, shown);
            from = (const unsigned char *)shown;
            length = strlen(shown);
            fits = length < size && used < size - length ? length : 0;
        }
        if (whole == used && fits > 0) {
            memcpy(out + used, from, fits);
            whole += fits;
        }
        used += length;
    }
    if (size)
        out[whole] = '\0';
    return used;
}

void text_make_printable(char *text, size_t size, unsigned flags)
{
    char shown[4096];
    const char *at = text;
    while (text_is_plain((unsigned char)*at))
        at++;
    if (!*at)
        return;
    if (size > sizeof(shown))
        size = sizeof(shown);
    tn_text_printable(text, flags, shown, size);
    memcpy(text, shown, strlen(shown) + 1);
}
