// SPDX-License-Identifier: MIT
// ELF notes in files that want to be believed.
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>
#include "stage.h"
#include "plugin/load/note.h"

// The smallest file that holds a note: headers, one segment, one note.
struct __attribute__((packed)) file {
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    struct tn_note_image note;
};

static struct file good_file(void)
{
    struct file file = {
        .header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
                   .e_type = ET_DYN,
#ifdef __aarch64__
                   .e_machine = EM_AARCH64,
#else
                   .e_machine = EM_X86_64,
#endif
                   .e_phoff = offsetof(struct file, segment),
                   .e_phentsize = sizeof(Elf64_Phdr),
                   .e_phnum = 1},
        .segment = {.p_type = PT_NOTE,
                    .p_offset = offsetof(struct file, note),
                    .p_filesz = sizeof(struct tn_note_image),
                    .p_align = 4},
        .note = {.name_size = 6,
                 .content_size = sizeof(tn_note),
                 .type = TN_NOTE_TYPE,
                 .name = TN_NOTE_NAME,
                 .content = {.magic = {(uint32_t)TN_PLUGIN_MAGIC,
                                       (uint32_t)(TN_PLUGIN_MAGIC >> 32)},
                             .struct_size = sizeof(tn_note),
                             .abi_major = 1,
                             .id = "com.acme.x",
                             .version = "1.0.0",
                             .vendor = "Acme"}},
    };
    return file;
}

static tn_status read_bytes(const void *bytes, size_t size, struct reason *reason)
{
    tn_note note;
    *reason = (struct reason){0};
    int fd = memfd_create("note", MFD_CLOEXEC);
    cr_assert(eq(i64, write(fd, bytes, size), size));
    tn_status status = note_read(fd, "/file", &note, reason);
    close(fd);
    if (status == TN_OK) {
        cr_assert(memchr(note.id, 0, sizeof(note.id)) != NULL);
        cr_assert(memchr(note.vendor, 0, sizeof(note.vendor)) != NULL);
    } else {
        check_status(status, TN_ERR_REFUSED);
        cr_assert(ne(uint, reason->code, REASON_NONE));
    }
    return status;
}

#define REFUSED(says, change)                                                              \
    do {                                                                                   \
        struct file file = good_file();                                                    \
        struct reason refused;                                                             \
        change;                                                                            \
        check_status(read_bytes(&file, sizeof(file), &refused), TN_ERR_REFUSED);           \
        if (!strstr(refused.text, says))                                                   \
            cr_fatal("'%s' lacks '%s'", refused.text, says);                               \
    } while (0)

Test(note, a_sound_note_is_read)
{
    struct file file = good_file();
    struct reason reason;
    check_status(read_bytes(&file, sizeof(file), &reason), TN_OK);
    file.segment.p_align = 0; // as some linkers write it
    check_status(read_bytes(&file, sizeof(file), &reason), TN_OK);
}

Test(note, files_of_another_kind_are_refused)
{
    struct reason reason;
    check_status(read_bytes("", 0, &reason), TN_ERR_REFUSED);
    check_status(read_bytes("#!/bin/sh\n", 10, &reason), TN_ERR_REFUSED);
    REFUSED("not an ELF file", file.header.e_ident[0] = 'x');
    REFUSED("64-bit little-endian", file.header.e_ident[EI_CLASS] = ELFCLASS32);
    REFUSED("64-bit little-endian", file.header.e_ident[EI_DATA] = ELFDATA2MSB);
    REFUSED("another processor", file.header.e_machine = EM_RISCV);
    REFUSED("not a shared object", file.header.e_type = ET_EXEC);
    REFUSED("no Tenon note", file.segment.p_type = PT_LOAD);
    REFUSED("no Tenon note", file.header.e_phnum = 0);
    REFUSED("no Tenon note", file.note.type = 2);
    REFUSED("no Tenon note", file.note.name[0] = 'X');
}

Test(note, offsets_and_sizes_that_lie_are_refused)
{
    REFUSED("unknown format", file.header.e_phentsize = 1);
    REFUSED("unknown format", file.header.e_phnum = PN_XNUM);
    REFUSED("outside the file", file.header.e_phoff = UINT64_MAX);
    REFUSED("outside the file", file.header.e_phoff = UINT64_MAX - 8);
    REFUSED("outside the file", file.header.e_phoff = INT64_MAX);
    REFUSED("outside the file", file.header.e_phoff = sizeof(file));
    REFUSED("outside the file", file.header.e_phnum = 60000);
    REFUSED("outside the file", file.segment.p_offset = UINT64_MAX - 4);
    REFUSED("outside the file", file.segment.p_offset = sizeof(file));
    REFUSED("outside the file", file.segment.p_filesz = 4096);
    REFUSED("larger than 1 MiB", file.segment.p_filesz = UINT64_MAX);
    REFUSED("past its segment", file.note.name_size = UINT32_MAX);
    REFUSED("past its segment", file.note.content_size = UINT32_MAX);
    REFUSED("past its segment", file.note.content_size = sizeof(tn_note) + 4);
    REFUSED("past its segment", file.segment.p_filesz = sizeof(file.note) - 4);
}

Test(note, contents_that_lie_are_refused)
{
    REFUSED("too short", file.note.content_size = sizeof(tn_note) - 4);
    REFUSED("contradicts", file.note.content.struct_size = 4);
    REFUSED("magic", file.note.content.magic[0] = 1);
    REFUSED("without an end", memset(file.note.content.id, 'a', 64));
    REFUSED("without an end", memset(file.note.content.vendor, 'a', 64));
    REFUSED("invalid", memcpy(file.note.content.id, "../up", 6));
    REFUSED("invalid", memcpy(file.note.content.version, "x", 2));
    REFUSED("invalid", file.note.content.abi_minor_min = 1);
}

Test(note, a_longer_note_counts_when_its_tail_is_zero)
{
    struct {
        struct file file;
        uint32_t tail[2];
    } longer = {.file = good_file()};
    struct reason reason;
    longer.file.note.content_size += 8;
    longer.file.note.content.struct_size += 8;
    longer.file.segment.p_filesz += 8;
    check_status(read_bytes(&longer, sizeof(longer), &reason), TN_OK);
    longer.tail[1] = 1;
    check_status(read_bytes(&longer, sizeof(longer), &reason), TN_ERR_REFUSED);
    check_says(reason.text, "byte 196");
    cr_assert(eq(uint, reason.code, REASON_ABI));
}

Test(note, two_notes_are_one_too_many)
{
    struct {
        struct file file;
        struct tn_note_image again;
    } both = {.file = good_file()};
    struct reason reason;
    both.again = both.file.note;
    both.file.segment.p_filesz *= 2;
    check_status(read_bytes(&both, sizeof(both), &reason), TN_ERR_REFUSED);
    check_says(reason.text, "several");
}

// Every prefix, and random changes: read or refused, never worse (ASan watches).
Test(note, cut_and_changed_files_are_survived)
{
    struct file good = good_file();
    struct reason reason;
    for (size_t size = 0; size < sizeof(good); size++)
        check_status(read_bytes(&good, size, &reason), TN_ERR_REFUSED);
    unsigned seed = 20260103;
    fprintf(stderr, "# seed %u\n", seed);
    for (int round = 0; round < 5000; round++) {
        struct file file = good;
        for (int i = 0; i < 3; i++)
            ((unsigned char *)&file)[(size_t)rand_r(&seed) % sizeof(file)] =
                (unsigned char)rand_r(&seed);
        read_bytes(&file, sizeof(file), &reason);
    }
}
