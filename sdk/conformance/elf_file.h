// SPDX-License-Identifier: MIT
// A shared object as bytes: every offset and size in it is taken for hostile.
#ifndef CONFORMANCE_ELF_FILE_H
#define CONFORMANCE_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenon/plugin.h>

struct elf_file {
    unsigned char *bytes; // owned
    uint64_t size;
    const Elf64_Phdr *segments;
    uint32_t num_segments;
    const Elf64_Dyn *dynamic;
    uint64_t num_dynamic;
    const Elf64_Sym *symbols;
    uint64_t num_symbols;
    const char *strings; // of dynamic and symbols; ends with NUL
    uint64_t strings_size;
};

// Reads the file at `path`. NULL, or why it is not a shared object for this machine.
const char *elf_read(struct elf_file *elf, const char *path);
void elf_finish(struct elf_file *elf);

// The value of a dynamic entry; false when there is none.
bool elf_dynamic(const struct elf_file *elf, int64_t tag, uint64_t *out_value);
// A text of the string table; "" when it lies outside.
const char *elf_string(const struct elf_file *elf, uint64_t at);
// The next DT_NEEDED after *at (start with 0), or NULL.
const char *elf_needed(const struct elf_file *elf, uint64_t *at);

// How many Tenon notes there are; the last one is copied.
int elf_notes(const struct elf_file *elf, tn_note *out);

#endif // CONFORMANCE_ELF_FILE_H
