// SPDX-License-Identifier: MIT
// Reads ELF headers with pread; see elf_file.h.
#include "elf_file.h"

#include <string.h>
#include <tenon/checked.h>
#include "../../base/file.h"
#include "../../base/memory.h"

#define MAX_DYNAMIC ((uint64_t)1 << 16)

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#error "shared objects are read on x86-64 and aarch64"
#endif

tn_status elf_refuse(const struct elf *elf, const char *what)
{
    return reason_record(elf->reason, TN_ERR_REFUSED, REASON_ELF, elf->path, "%s: %s",
                         elf->path, what);
}

bool elf_read(const struct elf *elf, uint64_t offset, void *out, size_t size)
{
    uint64_t end;
    return tn_checked_add(offset, size, &end) && end <= INT64_MAX &&
           file_read_at(elf->fd, out, size, offset) == (ssize_t)size;
}

// Tells the fault of the header; NULL for a shared object of this machine.
static const char *fault_of(const Elf64_Ehdr *header)
{
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return "not an ELF file";
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
        return "not a 64-bit little-endian ELF file";
    if (header->e_machine != MACHINE)
        return "built for another processor";
    if (header->e_type != ET_DYN)
        return "not a shared object";
    if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum == PN_XNUM)
        return "its program headers have an unknown format";
    return NULL;
}

tn_status elf_open(int fd, const char *path, struct reason *reason, struct elf *out)
{
    struct elf elf = {.fd = fd, .path = path, .reason = reason};
    if (!elf_read(&elf, 0, &elf.header, sizeof(elf.header)))
        return elf_refuse(&elf, "not an ELF file: too short");
    const char *fault = fault_of(&elf.header);
    if (fault)
        return elf_refuse(&elf, fault);
    *out = elf;
    return TN_OK;
}

bool elf_segment(const struct elf *elf, uint32_t index, Elf64_Phdr *out)
{
    uint64_t offset;
    return tn_checked_add(elf->header.e_phoff, index * sizeof(*out), &offset) &&
           elf_read(elf, offset, out, sizeof(*out));
}

// --- needed libraries ------------------------------------------------------------------

// Converts the virtual address of loaded bytes to their offset in the file.
static bool find_address(const struct elf *elf, uint64_t address, uint64_t *out_offset)
{
    Elf64_Phdr segment;
    for (uint32_t i = 0; i < elf->header.e_phnum && elf_segment(elf, i, &segment); i++)
        if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
            address - segment.p_vaddr < segment.p_filesz)
            return tn_checked_add(address - segment.p_vaddr, segment.p_offset, out_offset);
    return false;
}

static bool is_text_at(const struct elf *elf, uint64_t offset, const char *text)
{
    char there[256];
    size_t size = strlen(text) + 1;
    return size <= sizeof(there) && elf_read(elf, offset, there, size) &&
           memcmp(there, text, size) == 0;
}

static bool elf_is_needed(const struct elf *elf, const Elf64_Dyn *entries, size_t count,
                          const char *name)
{
    uint64_t strings = 0, text;
    for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++)
        if (entries[i].d_tag == DT_STRTAB &&
            !find_address(elf, entries[i].d_un.d_ptr, &strings))
            return false;
    for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++)
        if (entries[i].d_tag == DT_NEEDED &&
            tn_checked_add(strings, entries[i].d_un.d_val, &text) &&
            is_text_at(elf, text, name))
            return true;
    return false;
}

static bool is_needed_in(const struct elf *elf, const Elf64_Phdr *dynamic, const char *name)
{
    if (dynamic->p_filesz > MAX_DYNAMIC)
        return false;
    Elf64_Dyn *entries = mem_alloc(dynamic->p_filesz);
    bool found = entries && elf_read(elf, dynamic->p_offset, entries, dynamic->p_filesz) &&
                 elf_is_needed(elf, entries, dynamic->p_filesz / sizeof(*entries), name);
    mem_free(entries);
    return found;
}

bool elf_needs(int fd, const char *name)
{
    struct elf elf = {.fd = fd};
    Elf64_Phdr segment;
    if (!elf_read(&elf, 0, &elf.header, sizeof(elf.header)) || fault_of(&elf.header))
        return false;
    for (uint32_t i = 0; i < elf.header.e_phnum && elf_segment(&elf, i, &segment); i++)
        if (segment.p_type == PT_DYNAMIC)
            return is_needed_in(&elf, &segment, name);
    return false;
}
