// SPDX-License-Identifier: MIT
// Reads .note.tenon with pread. Each offset and size in the file is untrusted.
#include "note.h"

#include <inttypes.h>
#include <string.h>
#include "elf_file.h"
#include "../find/names.h"

#define MAX_SEGMENT ((uint64_t)1 << 20)

// --- one segment of notes --------------------------------------------------------------

static uint64_t elf_note_align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

// Checks and copies the note's content: at least the fields of ABI 1.0, and zero in all
// bytes that this version does not know.
static tn_status take_note(const struct elf *elf, const unsigned char *content,
                           uint64_t size, tn_note *out)
{
    if (size < TN_END_OF(out, vendor))
        return elf_refuse(elf, "its Tenon note is too short");
    memset(out, 0, sizeof(*out));
    memcpy(out, content, size < sizeof(*out) ? size : sizeof(*out));
    if (out->magic != TN_PLUGIN_MAGIC)
        return elf_refuse(elf, "its Tenon note has a wrong magic number");
    if (out->struct_size != size)
        return elf_refuse(elf, "its Tenon note contradicts its own size");
    for (uint64_t i = sizeof(*out); i < size; i++)
        if (content[i])
            return reason_record(elf->reason, TN_ERR_REFUSED, REASON_ABI, elf->path,
                                 "%s: byte %" PRIu64
                                 " of its note is set, which this version (%zu bytes) does "
                                 "not know",
                                 elf->path, i, sizeof(*out));
    if (!memchr(out->id, 0, sizeof(out->id)) ||
        !memchr(out->version, 0, sizeof(out->version)) ||
        !memchr(out->vendor, 0, sizeof(out->vendor)))
        return elf_refuse(elf, "its Tenon note holds a text without an end");
    if (!id_valid(out->id) || !version_valid(out->version) ||
        out->abi_minor_min > out->abi_minor_max)
        return elf_refuse(elf, "its Tenon note holds an invalid id, version or ABI range");
    return TN_OK;
}

static tn_status scan_notes(const struct elf *elf, const unsigned char *notes,
                            uint64_t size, uint64_t alignment, int *found, tn_note *out)
{
    uint64_t at = 0;
    while (size - at >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr header;
        memcpy(&header, notes + at, sizeof(header));
        // 64-bit sums of 32-bit sizes do not overflow.
        uint64_t name = at + sizeof(header);
        uint64_t content = elf_note_align_up(name + header.n_namesz, alignment);
        if (content > size || header.n_descsz > size - content)
            return elf_refuse(elf, "a note reaches past its segment");
        if (header.n_namesz == sizeof(TN_NOTE_NAME) && header.n_type == TN_NOTE_TYPE &&
            memcmp(notes + name, TN_NOTE_NAME, sizeof(TN_NOTE_NAME)) == 0) {
            if (++*found > 1)
                return elf_refuse(elf, "it has several Tenon notes");
            tn_status status = take_note(elf, notes + content, header.n_descsz, out);
            if (status != TN_OK)
                return status;
        }
        at = elf_note_align_up(content + header.n_descsz, alignment);
        if (at > size)
            break; // the padding of the last note may be missing
    }
    return TN_OK;
}

static tn_status read_segment(const struct elf *elf, const Elf64_Phdr *segment, int *found,
                              tn_note *out)
{
    if (segment->p_filesz > MAX_SEGMENT)
        return elf_refuse(elf, "a segment of notes is larger than 1 MiB");
    unsigned char *notes = mem_alloc(segment->p_filesz);
    if (!notes)
        return TN_ERR_MEMORY;
    tn_status status = elf_read(elf, segment->p_offset, notes, segment->p_filesz)
                           ? scan_notes(elf, notes, segment->p_filesz,
                                        segment->p_align == 8 ? 8 : 4, found, out)
                           : elf_refuse(elf, "a segment of notes lies outside the file");
    mem_free(notes);
    return status;
}

tn_status note_read(int fd, const char *path, tn_note *out, struct reason *reason)
{
    struct elf elf;
    tn_note note = {0};
    int found = 0;
    tn_status status = elf_open(fd, path, reason, &elf);
    for (uint32_t i = 0; status == TN_OK && i < elf.header.e_phnum; i++) {
        Elf64_Phdr segment;
        if (!elf_segment(&elf, i, &segment))
            status = elf_refuse(&elf, "its program headers lie outside the file");
        else if (segment.p_type == PT_NOTE)
            status = read_segment(&elf, &segment, &found, &note);
    }
    if (status != TN_OK)
        return status;
    if (!found)
        return elf_refuse(&elf, "it has no Tenon note");
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
