// SPDX-License-Identifier: MIT
// Shared objects as `tenon check` reads them.
#include "fuzz.h"
#include "kit/elf_file.h"

static void read_all(const struct elf_file *elf)
{
    uint64_t at = 0, value;
    const char *name;
    size_t bytes = 0;
    tn_note note;
    while ((name = elf_needed(elf, &at)))
        bytes += strlen(name);
    for (uint64_t i = 0; i < elf->num_symbols; i++)
        bytes += strlen(elf_string(elf, elf->symbols[i].st_name));
    if (elf_dynamic(elf, DT_RUNPATH, &value))
        bytes += strlen(elf_string(elf, value));
    FUZZ_CHECK(elf_notes(elf, &note) >= 0 && bytes < SIZE_MAX, "names end");
}

void fuzz_one(const uint8_t *data, size_t size)
{
    struct elf_file elf;
    if (!elf_read(&elf, fuzz_path(data, size)))
        read_all(&elf);
    elf_finish(&elf);
}
