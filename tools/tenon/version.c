// SPDX-License-Identifier: MIT
// Versions are compared part by part: numbers as numbers, words by their bytes.
#include "version.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct part {
    const char *text;
    size_t size;
};

// Cuts the next part off *text; size 0 at the end.
static struct part next_part(const char **text, const char *ends)
{
    struct part part = {*text, strcspn(*text, ends)};
    *text += part.size;
    if (**text == '.')
        ++*text;
    return part;
}

static bool is_number(struct part part)
{
    return strspn(part.text, "0123456789") >= part.size;
}

static int order_parts(struct part a, struct part b)
{
    bool number_a = is_number(a), number_b = is_number(b);
    if (!a.size || !b.size || number_a != number_b)
        return !a.size || !b.size ? (a.size > 0) - (b.size > 0) : number_a ? -1 : 1;
    if (number_a && a.size != b.size) // without zeros in front
        return a.size < b.size ? -1 : 1;
    int order = memcmp(a.text, b.text, a.size < b.size ? a.size : b.size);
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

static int order_lists(const char **a, const char **b, const char *ends)
{
    struct part x, y;
    do {
        x = next_part(a, ends), y = next_part(b, ends);
        int order = order_parts(x, y);
        if (order)
            return order;
    } while (x.size && y.size);
    return 0;
}

int version_order(const char *a, const char *b)
{
    int order = order_lists(&a, &b, ".-+");
    if (order || *a != '-' || *b != '-')
        return order ? order : (*b == '-') - (*a == '-');
    a++, b++;
    return order_lists(&a, &b, ".+");
}
