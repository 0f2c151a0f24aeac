// SPDX-License-Identifier: MIT
// Reading .note.tenon with pread: every offset and size in the file is taken for hostile.
#include "note.h"

#include <elf.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>
#include "names.h"

#define MAX_SEGMENT ((uint64_t)1 << 20)

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#error "notes are read on x86-64 and aarch64"
#endif

struct image {
    int fd;
    const char *path;
    struct reason *reason;
};

static tn_status refuse(const struct image *image, const char *what)
{
    return reason_record(image->reason, TN_ERR_REFUSED, REASON_ELF, image->path, "%s: %s",
                         image->path, what);
}

// False when the file does not reach so far.
static bool read_at(const struct image *image, uint64_t offset, void *out, size_t size)
{
    uint64_t end;
    if (__builtin_add_overflow(offset, size, &end) || end > INT64_MAX)
        return false;
    return pread(image->fd, out, size, (off_t)offset) == (ssize_t)size;
}

static tn_status check_header(const struct image *image, const Elf64_Ehdr *header)
{
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return refuse(image, "not an ELF file");
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
        return refuse(image, "not a 64-bit little-endian ELF file");
    if (header->e_machine != MACHINE)
        return refuse(image, "built for another processor");
    if (header->e_type != ET_DYN)
        return refuse(image, "not a shared object");
    if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum == PN_XNUM)
        return refuse(image, "its program headers have an unknown format");
    return TN_OK;
}

// --- one segment of notes --------------------------------------------------------------

static uint64_t align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

// Content of at least what a tn_note had in 1.0; what is more than we know must be zero.
static tn_status take_note(const struct image *image, const unsigned char *content,
                           uint64_t size, tn_note *out)
{
    if (size < TN_END_OF(out, vendor))
        return refuse(image, "its Tenon note is too short");
    memset(out, 0, sizeof(*out));
    memcpy(out, content, size < sizeof(*out) ? size : sizeof(*out));
    if (out->magic != TN_PLUGIN_MAGIC)
        return refuse(image, "its Tenon note has a wrong magic number");
    if (out->struct_size != size)
        return refuse(image, "its Tenon note contradicts its own size");
    for (uint64_t i = sizeof(*out); i < size; i++)
        if (content[i])
            return reason_record(image->reason, TN_ERR_REFUSED, REASON_ABI, image->path,
                                 "%s: byte %" PRIu64
                                 " of its note is set, which this version (%zu bytes) does "
                                 "not know",
                                 image->path, i, sizeof(*out));
    if (!memchr(out->id, 0, sizeof(out->id)) ||
        !memchr(out->version, 0, sizeof(out->version)) ||
        !memchr(out->vendor, 0, sizeof(out->vendor)))
        return refuse(image, "its Tenon note holds a text without an end");
    if (!id_valid(out->id) || !version_valid(out->version) ||
        out->abi_minor_min > out->abi_minor_max)
        return refuse(image, "its Tenon note holds an invalid id, version or ABI range");
    return TN_OK;
}

static tn_status scan_notes(const struct image *image, const unsigned char *notes,
                            uint64_t size, uint64_t alignment, int *found, tn_note *out)
{
    uint64_t at = 0;
    while (size - at >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr header;
        memcpy(&header, notes + at, sizeof(header));
        // 32-bit sizes in 64-bit sums: nothing overflows.
        uint64_t name = at + sizeof(header);
        uint64_t content = align_up(name + header.n_namesz, alignment);
        if (content > size || header.n_descsz > size - content)
            return refuse(image, "a note reaches past its segment");
        if (header.n_namesz == sizeof(TN_NOTE_NAME) && header.n_type == TN_NOTE_TYPE &&
            memcmp(notes + name, TN_NOTE_NAME, sizeof(TN_NOTE_NAME)) == 0) {
            if (++*found > 1)
                return refuse(image, "it has several Tenon notes");
            tn_status status = take_note(image, notes + content, header.n_descsz, out);
            if (status != TN_OK)
                return status;
        }
        at = align_up(content + header.n_descsz, alignment);
        if (at > size)
            break; // the padding of the last note may be missing
    }
    return TN_OK;
}

static tn_status read_segment(const struct image *image, const Elf64_Phdr *segment,
                              int *found, tn_note *out)
{
    if (segment->p_filesz > MAX_SEGMENT)
        return refuse(image, "a segment of notes is larger than 1 MiB");
    unsigned char *notes = mem_alloc(segment->p_filesz);
    if (!notes)
        return TN_ERR_MEMORY;
    tn_status status = read_at(image, segment->p_offset, notes, segment->p_filesz)
                           ? scan_notes(image, notes, segment->p_filesz,
                                        segment->p_align == 8 ? 8 : 4, found, out)
                           : refuse(image, "a segment of notes lies outside the file");
    mem_free(notes);
    return status;
}

tn_status note_read(int fd, const char *path, tn_note *out, struct reason *reason)
{
    struct image image = {fd, path, reason};
    Elf64_Ehdr header;
    tn_note note = {0};
    int found = 0;
    if (!read_at(&image, 0, &header, sizeof(header)))
        return refuse(&image, "not an ELF file: too short");
    tn_status status = check_header(&image, &header);
    for (uint32_t i = 0; status == TN_OK && i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        uint64_t offset;
        if (__builtin_add_overflow(header.e_phoff, i * sizeof(segment), &offset) ||
            !read_at(&image, offset, &segment, sizeof(segment)))
            return refuse(&image, "its program headers lie outside the file");
        if (segment.p_type == PT_NOTE)
            status = read_segment(&image, &segment, &found, &note);
    }
    if (status != TN_OK)
        return status;
    if (!found)
        return refuse(&image, "it has no Tenon note");
    *out = note;
    return TN_OK;
}

// --- against the manifest --------------------------------------------------------------

tn_status note_check(const tn_note *note, const struct manifest *manifest, const char *path,
                     struct reason *reason)
{
    const struct {
        const char *what, *note, *manifest;
    } texts[] = {
        {"id", note->id, manifest->id},
        {"version", note->version, manifest->version},
        {"vendor", note->vendor, manifest->vendor},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (strcmp(texts[i].note, texts[i].manifest) != 0)
            return reason_record(reason, TN_ERR_REFUSED, REASON_IDENTITY, path,
                                 "%s: its note has the %s '%s', the manifest '%s'", path,
                                 texts[i].what, texts[i].note, texts[i].manifest);
    if (note->abi_major != manifest->abi.major ||
        note->abi_minor_min != manifest->abi.minor_min ||
        note->abi_minor_max != manifest->abi.minor_max ||
        note->sanitizer != manifest->sanitizer)
        return reason_record(reason, TN_ERR_REFUSED, REASON_IDENTITY, path,
                             "%s: note and manifest differ in ABI range or sanitizer",
                             path);
    return TN_OK;
}
