// SPDX-License-Identifier: MIT
// Imported buffers: memory of the host that a device uses in place. Each case lies at the
// very end of a page, in front of an inaccessible page, so that an access to a byte behind
// the memory ends the check.
#include "../kit/fixture.h"

#include <sys/mman.h>
#include <unistd.h>
#include "groups.h"

enum { MAX_ALLOCATIONS = 100 };

// Mapped pages, of which the last one is inaccessible.
struct fenced {
    unsigned char *pages;
    size_t page, accessible; // bytes
};

static struct fenced fenced_new(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct fenced fenced = {.page = page, .accessible = 3 * page};
    fenced.pages = mmap(NULL, fenced.accessible + page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fenced.pages == MAP_FAILED ||
        mprotect(fenced.pages + fenced.accessible, page, PROT_NONE))
        abort(); // checks run in a child process: its parent reports the abort
    for (size_t i = 0; i < fenced.accessible; i++)
        fenced.pages[i] = (unsigned char)(i * 37 + i / 251);
    return fenced;
}

static void fenced_free(struct fenced *fenced)
{
    munmap(fenced->pages, fenced->accessible + fenced->page);
}

// The last `size` bytes before the fence.
static unsigned char *fenced_end(const struct fenced *fenced, size_t size)
{
    return fenced->pages + fenced->accessible - size;
}

static tn_status import_group_import(struct fixture *f, unsigned char *memory,
                                     uint64_t size, uint32_t flags, tn_buffer **out_buffer)
{
    uint64_t address = (uint64_t)(uintptr_t)memory;
    const tn_buffer_import import = {
        .struct_size = sizeof(import),
        .flags = flags,
        .memory = memory,
        .size = size,
        .alignment = address & (~address + 1),
    };
    fixture_listen(f);
    tn_status status = f->backend->buffer_import(f->device, &import, out_buffer);
    fixture_heard(f, status, "buffer_import");
    if (status != TN_OK && status != TN_ERR_UNSUPPORTED)
        check_fail(f->kit, "buffer_import of %llu bytes at %p returns %d: %s",
                   (unsigned long long)size, (void *)memory, status, f->host.text);
    return status;
}

static void expect_bytes(struct fixture *f, tn_buffer *buffer, const unsigned char *memory,
                         uint64_t size)
{
    unsigned char *seen = malloc(size);
    if (!seen)
        abort(); // checks run in a child process: its parent reports the abort
    if (fixture_read(f, buffer, 0, seen, size) && memcmp(seen, memory, size) != 0)
        check_fail(f->kit, "buffer_read of %llu imported bytes gives others",
                   (unsigned long long)size);
    free(seen);
    if (TN_HAS(f->backend, buffer_map) && (f->info.flags & TN_DEVICE_HOST_MEMORY)) {
        const void *mapped = f->backend->buffer_map(f->device, buffer);
        if (mapped != memory)
            check_fail(f->kit, "buffer_map gives %p for memory imported at %p", mapped,
                       (const void *)memory);
    }
}

// One size at one protection: imports, reads and destroys, and checks that nothing changed.
static void import_once(struct fixture *f, struct fenced *fenced, size_t size, bool sealed)
{
    unsigned char *memory = fenced_end(fenced, size), *before = malloc(size);
    tn_buffer *buffer = NULL;
    if (!before)
        abort(); // checks run in a child process: its parent reports the abort
    memcpy(before, memory, size);
    check_case(f->kit);
    mprotect(fenced->pages, fenced->accessible,
             sealed ? PROT_READ : PROT_READ | PROT_WRITE);
    if (import_group_import(f, memory, size, sealed ? 0 : TN_IMPORT_WRITABLE, &buffer) ==
        TN_OK) {
        expect_bytes(f, buffer, memory, size);
        f->backend->buffer_destroy(f->device, buffer);
    }
    if (memcmp(before, memory, size) != 0)
        check_fail(f->kit, "importing and destroying changes %zu bytes of the host's",
                   size);
    free(before);
}

static bool has_import(struct fixture *f)
{
    if (TN_HAS(f->backend, buffer_import))
        return true;
    check_skip(f->kit, "it has no buffer_import");
    return false;
}

static void check_import(struct fixture *f)
{
    // From whole pages to one byte; an odd size begins at an odd address.
    static const size_t sizes[] = {8192, 4096, 1024, 96, 72, 68, 20, 6, 7, 1};
    if (!has_import(f))
        return;
    struct fenced fenced = fenced_new();
    for (size_t i = 0; i < 2 * COUNT(sizes) && !check_failed(f->kit); i++)
        import_once(f, &fenced, sizes[i / 2], i % 2);
    fenced_free(&fenced);
}

static void check_import_memory(struct fixture *f)
{
    if (!has_import(f))
        return;
    struct fenced fenced = fenced_new();
    for (uint64_t n = 1; n < MAX_ALLOCATIONS && !check_failed(f->kit); n++) {
        tn_buffer *buffer = NULL;
        uint64_t live = f->host.live;
        const tn_buffer_import import = {.struct_size = sizeof(import),
                                         .memory = fenced.pages,
                                         .size = 64,
                                         .alignment = fenced.page};
        check_case(f->kit);
        f->host.fail_at = f->host.allocations + n;
        fixture_listen(f);
        tn_status status = f->backend->buffer_import(f->device, &import, &buffer);
        bool was_met = f->host.allocations >= f->host.fail_at;
        f->host.fail_at = 0;
        if (fixture_heard(f, status, "buffer_import") == TN_OK)
            f->backend->buffer_destroy(f->device, buffer);
        else if (status != TN_ERR_MEMORY && status != TN_ERR_UNSUPPORTED)
            check_fail(f->kit, "allocation %llu fails, and buffer_import returns %d",
                       (unsigned long long)n, status);
        if (f->host.live > live)
            check_fail(f->kit,
                       "allocation %llu fails, and buffer_import leaves %llu blocks",
                       (unsigned long long)n, (unsigned long long)(f->host.live - live));
        if (!was_met)
            break;
    }
    fenced_free(&fenced);
}

static const struct fixture_check checks[] = {
    {"import.bytes", check_import},
    {"import.memory", check_import_memory},
};

void group_import(struct kit *k)
{
    fixture_run(k, checks, COUNT(checks));
}
