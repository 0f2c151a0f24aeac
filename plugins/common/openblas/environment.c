// SPDX-License-Identifier: MIT
// Copies of the environment are never freed, since another thread's getenv() may still be
// reading one. A list keeps them reachable for leak checkers.
#include "environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct environment_copy {
    struct environment_copy *next;
    char *pointers[]; // ended by NULL; the added strings follow in the same allocation
};
static struct environment_copy *copies;

// Index of the entry of variable `name`, or of the NULL that ends the list.
static size_t openblas_environment_find(char *const *list, const char *name)
{
    size_t length = strlen(name), i = 0;
    while (list[i] && (strncmp(list[i], name, length) != 0 || list[i][length] != '='))
        i++;
    return i;
}

static char **openblas_environment_current(void)
{
    static char *none[] = {NULL};
    char **now = __atomic_load_n(&environ, __ATOMIC_ACQUIRE);
    return now ? now : none;
}

const char *environment_get(const char *name)
{
    const char *entry = openblas_environment_current()[openblas_environment_find(
        openblas_environment_current(), name)];
    return entry ? entry + strlen(name) + 1 : NULL;
}

static bool is_added(const struct variable *variable)
{
    return variable->value && (variable->replaces || !environment_get(variable->name));
}

struct environment environment_add(const struct variable *variables, size_t count)
{
    char **original = openblas_environment_current();
    size_t entries = 0, text = 0;
    while (original[entries])
        entries++;
    for (size_t i = 0; i < count; i++)
        if (is_added(&variables[i]))
            text += strlen(variables[i].name) + strlen(variables[i].value) + 2;
    size_t pointers = (entries + count + 1) * sizeof(char *);
    struct environment_copy *copy = text ? malloc(sizeof(*copy) + pointers + text) : NULL;
    if (!copy)
        return (struct environment){0};
    char *at = (char *)copy->pointers + pointers, *end = at + text;
    memcpy(copy->pointers, original, (entries + 1) * sizeof(char *));
    for (size_t i = 0; i < count; i++) {
        if (!is_added(&variables[i]))
            continue;
        size_t index = openblas_environment_find(copy->pointers, variables[i].name);
        if (!copy->pointers[index])
            copy->pointers[index + 1] = NULL;
        copy->pointers[index] = at;
        at += snprintf(at, (size_t)(end - at), "%s=%s", variables[i].name,
                       variables[i].value) +
              1;
    }
    copy->next = copies;
    copies = copy;
    struct environment environment = {environ, copy->pointers};
    __atomic_store_n(&environ, environment.extended, __ATOMIC_RELEASE);
    return environment;
}

void environment_restore(const struct environment *environment)
{
    char **expected = environment->extended;
    if (expected)
        __atomic_compare_exchange_n(&environ, &expected, environment->original, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}
