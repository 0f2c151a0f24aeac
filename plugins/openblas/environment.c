// SPDX-License-Identifier: MIT
// Copies are kept for ever, in a list.
#include "environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct copy {
    struct copy *next;
    char *pointers[]; // ended by NULL; behind it the added texts
};
static struct copy *copies;

static size_t find(char *const *list, const char *name)
{
    size_t length = strlen(name), i = 0;
    while (list[i] && (strncmp(list[i], name, length) != 0 || list[i][length] != '='))
        i++;
    return i;
}

static char **current(void)
{
    static char *none[] = {NULL};
    char **now = __atomic_load_n(&environ, __ATOMIC_ACQUIRE);
    return now ? now : none;
}

const char *environment_get(const char *name)
{
    const char *entry = current()[find(current(), name)];
    return entry ? entry + strlen(name) + 1 : NULL;
}

static bool is_added(const struct variable *variable)
{
    return variable->value && (variable->replaces || !environment_get(variable->name));
}

struct environment environment_add(const struct variable *variables, size_t count)
{
    char **before = current();
    size_t entries = 0, text = 0;
    while (before[entries])
        entries++;
    for (size_t i = 0; i < count; i++)
        if (is_added(&variables[i]))
            text += strlen(variables[i].name) + strlen(variables[i].value) + 2;
    size_t pointers = (entries + count + 1) * sizeof(char *);
    struct copy *copy = text ? malloc(sizeof(*copy) + pointers + text) : NULL;
    if (!copy)
        return (struct environment){0};
    char *at = (char *)copy->pointers + pointers, *end = at + text;
    memcpy(copy->pointers, before, (entries + 1) * sizeof(char *));
    for (size_t i = 0; i < count; i++) {
        if (!is_added(&variables[i]))
            continue;
        size_t place = find(copy->pointers, variables[i].name);
        if (!copy->pointers[place])
            copy->pointers[place + 1] = NULL;
        copy->pointers[place] = at;
        at += snprintf(at, (size_t)(end - at), "%s=%s", variables[i].name,
                       variables[i].value) +
              1;
    }
    copy->next = copies;
    copies = copy;
    struct environment environment = {environ, copy->pointers};
    __atomic_store_n(&environ, environment.with, __ATOMIC_RELEASE);
    return environment;
}

void environment_restore(const struct environment *environment)
{
    char **expected = environment->with;
    if (expected)
        __atomic_compare_exchange_n(&environ, &expected, environment->before, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}
