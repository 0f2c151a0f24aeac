// SPDX-License-Identifier: MIT
// Texts from outside reach a terminal harmless: what it would obey is spelled out.
#include "base/text.h"

#include "check.h"
#include <tenon/tenon.h>
#include "base/fail.h"

static const struct {
    const char *text, *shown;
    uint32_t flags;
} cases[] = {
    {"", "", 0},
    {"plain \\ text, 100 % of it", "plain \\ text, 100 % of it", 0},
    {"a\nb\tc", "a\nb\tc", 0},
    {"a\nb\tc", "a\\x0ab\\x09c", TN_TEXT_ONE_LINE},
    {"a\ntenon: b\n  c\n", "a\n  tenon: b\n  c\n", TN_TEXT_INDENT},
    {"a\nb", "a\\x0ab", TN_TEXT_INDENT | TN_TEXT_ONE_LINE},
    {"\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m", 0},
    {"\x1b]0;title\x07", "\\x1b]0;title\\x07", 0},
    {"one\rtwo\b\b\x7f", "one\\x0dtwo\\x08\\x08\\x7f", 0},
    {"\xc2\x9b"
     "31m",
     "\\x9b31m", 0}, // CSI, one character of C1
    {"\x9b"
     "31m",
     "\\x9b31m", 0}, // the same as a byte
    {"caf\xc3\xa9 \xe2\x80\xa6 \xf0\x9f\x99\x82",
     "caf\xc3\xa9 \xe2\x80\xa6 \xf0\x9f\x99\x82", 0},
    {"\xe2\x80\xae"
     "gpj.exe",
     "\\u202egpj.exe", 0}, // right-to-left override
    {"\xe2\x81\xa6\xe2\x81\xa9\xd8\x9c", "\\u2066\\u2069\\u061c", 0},
    {"\xe2\x80\x8b\xef\xbb\xbf\xc2\xad", "\\u200b\\ufeff\\xad", 0},
    {"\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029", 0},
    {"\xf3\xa0\x80\x81", "\\U000e0001", 0},
    {"\xc3", "\\xc3", 0}, // cut
    {"\xe2\x80", "\\xe2\\x80", 0},
    {"\xc3(", "\\xc3(", 0},
    {"\xc0\x9b\xe0\x80\x9b", "\\xc0\\x9b\\xe0\\x80\\x9b", 0}, // longer than need be
    {"\xed\xa0\x80", "\\xed\\xa0\\x80", 0},                   // half a pair
    {"\xf4\x90\x80\x80\xff\xfe", "\\xf4\\x90\\x80\\x80\\xff\\xfe", 0},
};

Test(text, texts_are_shown_and_not_obeyed)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char out[128], again[128];
        uint64_t size = tn_text_printable(cases[i].text, cases[i].flags, out, sizeof(out));
        cr_assert(eq(str, out, cases[i].shown));
        cr_assert(eq(sz, size, strlen(out)));
        tn_text_printable(out, cases[i].flags, again, sizeof(again));
        cr_assert(eq(str, again, out)); // what is harmless stays as it is
    }
    cr_assert(eq(u64, tn_text_printable(NULL, 0, NULL, 0), 0));
}

// However little room there is, no escape and no character is cut in two.
Test(text, texts_are_cut_between_characters)
{
    const char *text = "a\x1b\xc3\xa9z";
    for (uint64_t size = 0; size <= 10; size++) {
        char out[16];
        memset(out, '#', sizeof(out));
        cr_assert(eq(sz, tn_text_printable(text, 0, out, size), 8));
        const char *wanted = size >= 9   ? "a\\x1b\xc3\xa9z"
                             : size >= 8 ? "a\\x1b\xc3\xa9"
                             : size >= 6 ? "a\\x1b"
                             : size >= 2 ? "a"
                                         : "";
        if (size)
            cr_assert(eq(str, out, wanted));
        cr_assert(eq(chr, out[size], '#'));
    }
}

Test(text, messages_are_printable)
{
    fail(TN_ERR_ARGUMENT, "got '%s'", "\x1b[2J\xff");
    cr_assert(eq(str, fail_text(), "got '\\x1b[2J\\xff'"));
    fail_prefix("%s: ", "\xe2\x80\xaex");
    cr_assert(eq(str, fail_text(), "\\u202ex: got '\\x1b[2J\\xff'"));
    char full[4096]; // the longest message, of bytes that each need four
    memset(full, 0x1b, sizeof(full));
    full[sizeof(full) - 1] = '\0';
    fail(TN_ERR_ARGUMENT, "%s", full);
    cr_assert(strlen(fail_text()) > 1000);
    cr_assert(eq(ptr, strchr(fail_text(), 0x1b), NULL));
}
