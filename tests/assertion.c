// SPDX-License-Identifier: MIT
// What a failed assertion says, given to Criterion.
#include "assertion.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Both sides of the last comparison that did not hold.
static _Thread_local struct {
    char *a, *b;
} compared;

static bool compared_set(char *a, char *b)
{
    free(compared.a);
    free(compared.b);
    compared.a = a;
    compared.b = b;
    return false;
}

__attribute__((format(printf, 1, 2))) static char *text_printed(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    return length < 0 ? NULL : text;
}

bool assertion_signed(long long a, long long b)
{
    return compared_set(text_printed("%lld", a), text_printed("%lld", b));
}

bool assertion_unsigned(unsigned long long a, unsigned long long b)
{
    return compared_set(text_printed("%llu", a), text_printed("%llu", b));
}

bool assertion_real(double a, double b)
{
    return compared_set(text_printed("%.17g", a), text_printed("%.17g", b));
}

bool assertion_pointers(const void *a, const void *b)
{
    return compared_set(text_printed("%p", a), text_printed("%p", b));
}

static char *text_quoted(const char *text)
{
    return text ? text_printed("\"%s\"", text) : text_printed("NULL");
}

bool assertion_texts(const char *a, const char *b)
{
    return compared_set(text_quoted(a), text_quoted(b));
}

static char *bytes_printed(struct cr_mem bytes)
{
    char *text = malloc(bytes.size * 3 + 1);
    if (!text)
        return NULL;
    text[0] = 0;
    for (size_t i = 0; i < bytes.size; i++)
        snprintf(text + i * 3, 4, "%02x ", ((const unsigned char *)bytes.data)[i]);
    return text;
}

bool assertion_bytes(struct cr_mem a, struct cr_mem b)
{
    return compared_set(bytes_printed(a), bytes_printed(b));
}

int assertion_order_texts(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

int assertion_order_bytes(struct cr_mem a, struct cr_mem b)
{
    size_t least = a.size < b.size ? a.size : b.size;
    int order = least > 0 ? memcmp(a.data, b.data, least) : 0;
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

void assertion_send(const char *file, size_t line, const char *condition,
                    const char *format, ...)
{
    char *message = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&message, format, args);
    va_end(args);

    char *values[] = {compared.a, compared.b};
    bool shows = compared.a && compared.b;
    if (!shows && condition && length <= 1) {
        free(length < 0 ? NULL : message);
        length = asprintf(&message, " %s", condition);
    }
    struct cri_assert_node root, child;
    cri_assert_node_init(&root);
    root.message =
        length > 1 ? cri_assert_message("x%s", message + 1) : cri_assert_message("x");
    if (shows) {
        cri_assert_node_init(&child);
        child.repr = condition;
        for (int i = 0; i < 2; i++) {
            child.params[i].name = i == 0 ? "actual" : "reference";
            child.params[i].data = values[i];
            child.params[i].type = CRI_ASSERT_RT_STR;
        }
        cri_assert_node_add(&root, &child);
    }
    cri_assert_node_send(file, line, &root);
    // Criterion frees the values with the nodes.
    compared.a = compared.b = NULL;
    cri_assert_node_term(&root);
    free(length < 0 ? NULL : message);
}
