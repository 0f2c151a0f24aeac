// SPDX-License-Identifier: MIT
// ELF headers of a shared object, read without executing a byte of it. Each offset and size
// in the file is untrusted.
#ifndef CORE_PLUGIN_LOAD_ELF_FILE_H
#define CORE_PLUGIN_LOAD_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include "../find/reason.h"

struct elf {
    int fd;           // borrowed
    const char *path; // for messages
    struct reason *reason;
    Elf64_Ehdr header; // checked: a shared object of this machine
};

// Reads and checks the ELF header. *out borrows the arguments.
tn_status elf_open(int fd, const char *path, struct reason *reason, struct elf *out);

// Reads `size` bytes at `offset`; false when the file is shorter.
bool elf_read(const struct elf *elf, uint64_t offset, void *out, size_t size);

// Program header `index`; false when it lies outside the file.
bool elf_segment(const struct elf *elf, uint32_t index, Elf64_Phdr *out);

// Fills the reason with "PATH: WHAT" and returns TN_ERR_REFUSED.
tn_status elf_refuse(const struct elf *elf, const char *what);

// Whether the shared object open as `fd` lists the library `name` as needed (DT_NEEDED).
// False for a file that is no shared object of this machine.
bool elf_needs(int fd, const char *name);

#endif // CORE_PLUGIN_LOAD_ELF_FILE_H
