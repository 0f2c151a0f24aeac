// SPDX-License-Identifier: MIT
// Validates names in manifests, and orders versions by the rules of semver.org.
#include "names.h"

#include <string.h>
#include <tenon/plugin.h>

static bool plugin_names_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

// Parts of [a-z0-9-] between single dots.
bool id_valid(const char *id)
{
    size_t size = strlen(id);
    if (size == 0 || size > 63 || !(is_lower(id[0]) || plugin_names_is_digit(id[0])))
        return false;
    for (size_t i = 0; i < size; i++) {
        bool plain = is_lower(id[i]) || plugin_names_is_digit(id[i]) || id[i] == '-';
        bool dot = id[i] == '.' && id[i + 1] != '.' && id[i + 1] != 0;
        if (!plain && !dot)
            return false;
    }
    return true;
}

// --- versions --------------------------------------------------------------------------

// Reads one number of at most 9 digits; NULL when there is none.
static const char *plugin_names_read_number(const char *text, unsigned *out_number)
{
    const char *start = text;
    unsigned number = 0;
    for (; plugin_names_is_digit(*text) && text - start < 9; text++)
        number = number * 10 + (unsigned)(*text - '0');
    *out_number = number;
    return text == start || plugin_names_is_digit(*text) ? NULL : text;
}

static const char *read_core(const char *version, unsigned numbers[3])
{
    for (int i = 0; i < 3; i++) {
        version = plugin_names_read_number(version, &numbers[i]);
        if (!version || (i < 2 && *version++ != '.'))
            return NULL;
    }
    return version;
}

bool version_valid(const char *version)
{
    unsigned numbers[3];
    if (strlen(version) > 31)
        return false;
    const char *rest = read_core(version, numbers);
    if (!rest || (*rest && *rest != '-' && *rest != '+'))
        return false;
    if (*rest && !rest[1])
        return false;
    for (; *rest; rest++) {
        char c = *rest;
        if (!is_lower(c) && !(c >= 'A' && c <= 'Z') && !plugin_names_is_digit(c) &&
            c != '.' && c != '-' && c != '+')
            return false;
    }
    return true;
}

// Size of one identifier of a pre-release, up to the next dot, '+' or the end.
static size_t part_size(const char *text)
{
    return strcspn(text, ".+");
}

static bool is_numeric(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!plugin_names_is_digit(text[i]))
            return false;
    return size > 0;
}

static int compare_parts(const char *a, size_t size_a, const char *b, size_t size_b)
{
    bool numeric_a = is_numeric(a, size_a), numeric_b = is_numeric(b, size_b);
    if (numeric_a != numeric_b)
        return numeric_a ? -1 : 1; // numbers come before words
    if (numeric_a && size_a != size_b)
        return size_a < size_b ? -1 : 1;
    int order = memcmp(a, b, size_a < size_b ? size_a : size_b);
    return order ? order : (size_a > size_b) - (size_a < size_b);
}

static int compare_prereleases(const char *a, const char *b)
{
    bool has_a = *a == '-', has_b = *b == '-';
    if (has_a != has_b)
        return has_a ? -1 : 1; // 1.0.0-rc comes before 1.0.0
    if (!has_a)
        return 0;
    do {
        a++, b++;
        size_t size_a = part_size(a), size_b = part_size(b);
        int order = compare_parts(a, size_a, b, size_b);
        if (order)
            return order;
        a += size_a, b += size_b;
    } while (*a == '.' && *b == '.');
    return (*a == '.') - (*b == '.'); // the longer one is higher
}

int version_compare(const char *a, const char *b)
{
    unsigned numbers_a[3], numbers_b[3];
    const char *rest_a = read_core(a, numbers_a), *rest_b = read_core(b, numbers_b);
    for (int i = 0; i < 3; i++)
        if (numbers_a[i] != numbers_b[i])
            return numbers_a[i] < numbers_b[i] ? -1 : 1;
    return compare_prereleases(rest_a, rest_b);
}

// --- files and primitives --------------------------------------------------------------

bool file_name_valid(const char *name)
{
    size_t size = strlen(name);
    if (size == 0 || size > 255)
        return false;
    bool starts = true; // at the first character of a path component
    for (size_t i = 0; i < size; i++) {
        char c = name[i];
        if (c < 0x20 || c == 0x7f || c == '\\')
            return false;
        if (starts && (c == '.' || c == '/'))
            return false; // hidden, ".", "..", absolute or "a//b"
        starts = c == '/';
    }
    return !starts;
}

bool primitive_matches(const char *name, const char *id)
{
    size_t size = strcspn(id, "/");
    const char *last = id;
    for (const char *at = id; at < id + size; at++)
        if (*at == '.')
            last = at + 1;
    const char *start = strchr(name, '.') ? id : last;
    if (strchr(name, '/'))
        return strcmp(name, start) == 0;
    size_t wanted = (size_t)(id + size - start);
    return strlen(name) == wanted && memcmp(name, start, wanted) == 0;
}

// --- selectors -------------------------------------------------------------------------

// The value of a hexadecimal digit, -1 for another character.
static int plugin_names_hex_digit(char c)
{
    return plugin_names_is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool magic_valid(const char *value)
{
    size_t size = strlen(value);
    bool fixed = false; // a pattern of "??" alone would match every file
    for (size_t i = 0; i + 1 < size; i += 2) {
        bool is_any = value[i] == '?' && value[i + 1] == '?';
        if (!is_any && (plugin_names_hex_digit(value[i]) < 0 ||
                        plugin_names_hex_digit(value[i + 1]) < 0))
            return false;
        fixed |= !is_any;
    }
    return fixed && size % 2 == 0;
}

bool selector_valid(const char *kind, const char *value)
{
    size_t size = strlen(value);
    if (!is_lower(kind[0]) || strlen(kind) > 31 || size == 0 || size > 127)
        return false;
    for (const char *c = kind; *c; c++)
        if (!is_lower(*c) && !plugin_names_is_digit(*c) && *c != '-')
            return false;
    for (const char *c = value; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return false;
    return strcmp(kind, TN_SELECT_MAGIC) != 0 || magic_valid(value);
}

size_t magic_matches(const char *value, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    size_t count = strlen(value) / 2;
    if (count > size)
        return 0;
    for (size_t i = 0; i < count; i++) {
        int high = plugin_names_hex_digit(value[2 * i]),
            low = plugin_names_hex_digit(value[2 * i + 1]);
        if (value[2 * i] != '?' && bytes[i] != (high << 4 | low))
            return 0;
    }
    return count;
}
