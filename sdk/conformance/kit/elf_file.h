// SPDX-License-Identifier: MIT
// A shared object in memory. Every offset and size in the file is untrusted.
#ifndef CONFORMANCE_KIT_ELF_FILE_H
#define CONFORMANCE_KIT_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenon/plugin.h>

// All pointers point into `bytes`.
struct elf_file {
    unsigned char *bytes; // owned
    uint64_t size;
    const Elf64_Phdr *segments;
    uint32_t num_segments;
    const Elf64_Dyn *dynamic;
    uint64_t num_dynamic;
    const Elf64_Sym *symbols;
    uint64_t num_symbols;
    const char *strings; // string table of `dynamic` and `symbols`; ends with NUL
    uint64_t strings_size;
};

// Reads the file at `path`. Returns NULL, or why it is not a shared object for this
// machine.
const char *elf_read(struct elf_file *elf, const char *path);
void elf_finish(struct elf_file *elf);

// Value of the first dynamic entry with this tag. False: there is no such entry.
bool elf_dynamic(const struct elf_file *elf, int64_t tag, uint64_t *out_value);
// String at offset `at` of the string table; "" when outside of it.
const char *elf_string(const struct elf_file *elf, uint64_t at);
// Name in the next DT_NEEDED entry at or after index *at (start with 0); NULL: no more.
const char *elf_needed(const struct elf_file *elf, uint64_t *at);

// Counts the Tenon notes in the file; copies the last to *out.
int elf_notes(const struct elf_file *elf, tn_note *out);

#endif // CONFORMANCE_KIT_ELF_FILE_H
