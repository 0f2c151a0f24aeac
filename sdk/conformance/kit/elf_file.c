// SPDX-License-Identifier: MIT
// Reads ELF files: headers, the dynamic section, dynamic symbols and notes.
#include "elf_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tenon/checked.h>

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#error "plugins are checked on x86-64 and aarch64"
#endif

#define MAX_FILE ((uint64_t)1 << 30)

// Returns `count` entries of `each` bytes at `offset`, or NULL when they lie outside of the
// file or `offset` is not a multiple of 8.
static const void *elf_part(const struct elf_file *elf, uint64_t offset, uint64_t count,
                            uint64_t each)
{
    uint64_t size, end;
    if (!tn_checked_multiply(count, each, &size) || !tn_checked_add(offset, size, &end) ||
        end > elf->size || offset % 8)
        return NULL;
    return elf->bytes + offset;
}

static const char *kit_elf_slurp(struct elf_file *elf, const char *path)
{
    struct stat info;
    FILE *file = fopen(path, "rb");
    if (!file)
        return strerror(errno);
    bool ok = fstat(fileno(file), &info) == 0 && S_ISREG(info.st_mode) &&
              (uint64_t)info.st_size < MAX_FILE;
    elf->bytes = ok ? malloc((size_t)info.st_size + 1) : NULL;
    elf->size = elf->bytes ? fread(elf->bytes, 1, (size_t)info.st_size, file) : 0;
    fclose(file);
    return elf->bytes ? NULL : "not a file of less than 1 GiB";
}

static const char *kit_elf_read_header(struct elf_file *elf)
{
    const Elf64_Ehdr *header = elf_part(elf, 0, 1, sizeof(*header));
    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return "not an ELF file";
    if (header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_machine != MACHINE)
        return "built for another processor";
    if (header->e_type != ET_DYN || header->e_phentsize != sizeof(Elf64_Phdr))
        return "not a shared object";
    elf->num_segments = header->e_phnum;
    elf->segments = elf_part(elf, header->e_phoff, header->e_phnum, sizeof(Elf64_Phdr));
    return elf->segments ? NULL : "its program headers lie outside the file";
}

// Converts a virtual address to a file offset.
static bool offset_of(const struct elf_file *elf, uint64_t address, uint64_t *out_offset)
{
    for (uint32_t i = 0; i < elf->num_segments; i++) {
        const Elf64_Phdr *s = &elf->segments[i];
        if (s->p_type != PT_LOAD || address < s->p_vaddr ||
            address - s->p_vaddr >= s->p_filesz)
            continue;
        return tn_checked_add(s->p_offset, address - s->p_vaddr, out_offset);
    }
    return false;
}

static const char *read_dynamic(struct elf_file *elf)
{
    uint64_t address, offset, size;
    for (uint32_t i = 0; i < elf->num_segments; i++) {
        const Elf64_Phdr *s = &elf->segments[i];
        if (s->p_type == PT_INTERP)
            return "an executable, not a shared object";
        if (s->p_type != PT_DYNAMIC)
            continue;
        elf->num_dynamic = s->p_filesz / sizeof(Elf64_Dyn);
        elf->dynamic = elf_part(elf, s->p_offset, elf->num_dynamic, sizeof(Elf64_Dyn));
    }
    if (!elf->dynamic)
        return "it has no dynamic section";
    if (!elf_dynamic(elf, DT_STRTAB, &address) || !elf_dynamic(elf, DT_STRSZ, &size) ||
        !offset_of(elf, address, &offset) || offset > elf->size || size == 0 ||
        size > elf->size - offset || elf->bytes[offset + size - 1] != 0)
        return "its table of names lies outside the file";
    elf->strings = (const char *)elf->bytes + offset;
    elf->strings_size = size;
    return NULL;
}

// Only the section headers tell the number of dynamic symbols directly (the alternative is
// to walk the hash table), so a file without them is refused.
static const char *kit_elf_read_symbols(struct elf_file *elf)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)elf->bytes;
    const Elf64_Shdr *sections =
        header->e_shentsize == sizeof(*sections)
            ? elf_part(elf, header->e_shoff, header->e_shnum, sizeof(*sections))
            : NULL;
    for (uint32_t i = 0; sections && i < header->e_shnum; i++)
        if (sections[i].sh_type == SHT_DYNSYM) {
            elf->num_symbols = sections[i].sh_size / sizeof(Elf64_Sym);
            elf->symbols =
                elf_part(elf, sections[i].sh_offset, elf->num_symbols, sizeof(Elf64_Sym));
        }
    return elf->symbols ? NULL : "it has no section of dynamic symbols";
}

const char *elf_read(struct elf_file *elf, const char *path)
{
    *elf = (struct elf_file){0};
    const char *wrong = kit_elf_slurp(elf, path);
    if (!wrong)
        wrong = kit_elf_read_header(elf);
    if (!wrong)
        wrong = read_dynamic(elf);
    if (!wrong)
        wrong = kit_elf_read_symbols(elf);
    return wrong;
}

void elf_finish(struct elf_file *elf)
{
    free(elf->bytes);
    *elf = (struct elf_file){0};
}

bool elf_dynamic(const struct elf_file *elf, int64_t tag, uint64_t *out_value)
{
    for (uint64_t i = 0; i < elf->num_dynamic && elf->dynamic[i].d_tag != DT_NULL; i++)
        if (elf->dynamic[i].d_tag == tag) {
            *out_value = elf->dynamic[i].d_un.d_val;
            return true;
        }
    return false;
}

const char *elf_string(const struct elf_file *elf, uint64_t at)
{
    return at < elf->strings_size ? elf->strings + at : "";
}

const char *elf_needed(const struct elf_file *elf, uint64_t *at)
{
    for (; *at < elf->num_dynamic && elf->dynamic[*at].d_tag != DT_NULL; ++*at)
        if (elf->dynamic[*at].d_tag == DT_NEEDED)
            return elf_string(elf, elf->dynamic[(*at)++].d_un.d_val);
    return NULL;
}

// --- notes -----------------------------------------------------------------------------

static uint64_t kit_elf_align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

static int notes_of_segment(const struct elf_file *elf, const Elf64_Phdr *segment,
                            tn_note *out)
{
    uint64_t alignment = segment->p_align == 8 ? 8 : 4, at = 0, size = segment->p_filesz;
    int found = 0;
    if (segment->p_offset > elf->size || size > elf->size - segment->p_offset)
        return 0;
    const unsigned char *notes = elf->bytes + segment->p_offset;
    while (at < size && size - at >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr header;
        memcpy(&header, notes + at, sizeof(header));
        uint64_t name = at + sizeof(header);
        uint64_t content = kit_elf_align_up(name + header.n_namesz, alignment);
        if (content > size || header.n_descsz > size - content)
            break;
        if (header.n_namesz == sizeof(TN_NOTE_NAME) && header.n_type == TN_NOTE_TYPE &&
            memcmp(notes + name, TN_NOTE_NAME, sizeof(TN_NOTE_NAME)) == 0) {
            uint64_t known =
                header.n_descsz < sizeof(*out) ? header.n_descsz : sizeof(*out);
            found++;
            *out = (tn_note){0};
            memcpy(out, notes + content, known);
        }
        at = kit_elf_align_up(content + header.n_descsz, alignment);
    }
    return found;
}

int elf_notes(const struct elf_file *elf, tn_note *out)
{
    int found = 0;
    for (uint32_t i = 0; i < elf->num_segments; i++)
        if (elf->segments[i].p_type == PT_NOTE)
            found += notes_of_segment(elf, &elf->segments[i], out);
    return found;
}
