// SPDX-License-Identifier: MIT
// A shared object's headers, read without executing a byte of it. Every offset and size in
// the file is taken for hostile.
#ifndef CORE_PLUGIN_ELF_FILE_H
#define CORE_PLUGIN_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include "reason.h"

struct elf {
    int fd;           // borrowed
    const char *path; // for messages
    struct reason *reason;
    Elf64_Ehdr header; // of this machine
};

tn_status elf_open(int fd, const char *path, struct reason *reason, struct elf *out);

// False when the file does not reach so far.
bool elf_read(const struct elf *elf, uint64_t offset, void *out, size_t size);

// Program header `index`; false when it lies outside the file.
bool elf_segment(const struct elf *elf, uint32_t index, Elf64_Phdr *out);

tn_status elf_refuse(const struct elf *elf, const char *what);

// Whether the library `name` is among those that the dynamic linker loads for it
// (DT_NEEDED). False for what is no shared object of this machine too.
bool elf_needs(int fd, const char *name);

#endif // CORE_PLUGIN_ELF_FILE_H
