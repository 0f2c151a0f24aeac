// SPDX-License-Identifier: MIT
// What a module shows to the outside, as lines of text in alphabetical order: capabilities,
// extensions, entry point, local size, specialisation constants with their defaults,
// bindings and push constants with the layout of their blocks, shared memory, built-ins.
// Names and the numbers of ids are not among it, nor what no backend can see.
#ifndef TESTS_COMPILER_INTERFACE_H
#define TESTS_COMPILER_INTERFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interface {
    char **lines;
    size_t count;
};

// Of valid SPIR-V. Ends the program when out of memory.
struct interface interface_read(const uint32_t *words, size_t count);
void interface_free(struct interface *interface);

// Calls `tell` for each line that only one of both has. A capability, built-in or variable
// in shared memory that `other` lacks is not told, nor is another line that `needed` lacks,
// too: the interface of the oracle's module without what it does not need.
void interface_compare(const struct interface *oracle, const struct interface *needed,
                       const struct interface *other,
                       void (*tell)(void *context, const char *what, const char *line),
                       void *context);

#endif // TESTS_COMPILER_INTERFACE_H
