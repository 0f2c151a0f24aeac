// SPDX-License-Identifier: MIT
// Memory of a device that others share: exports and imports by file descriptor, on one
// device and on a second one of the same index; and copies on the device.
#include "../kit/fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "groups.h"

enum { MOST = 70000, MAX_ALLOCATIONS = 100, ROUNDS = 40 };

static int count_fds(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
        abort(); // checks run in a child process: its parent reports the abort
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void share_group_fill(unsigned char *bytes, uint64_t size, uint64_t seed)
{
    for (uint64_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 31 + i / 256 + seed * 101);
}

static bool has_sharing(struct fixture *f)
{
    static const uint8_t none[sizeof(f->info.share_id)];
    bool has_id = memcmp(f->info.share_id, none, sizeof(none)) != 0;
    bool has_slots = fixture_shares(f);
    if (has_id && !has_slots)
        check_fail(f->kit, "the device has a share_id, and no buffer_export_fd and "
                           "buffer_import_fd");
    else if (!has_slots)
        check_skip(f->kit, "the device shares no memory");
    return has_slots;
}

// --- an export and its imports ---------------------------------------------------------

static bool share_group_export(struct fixture *f, tn_buffer *buffer, uint64_t offset,
                               uint64_t size, tn_buffer_fd *out)
{
    *out = (tn_buffer_fd){.struct_size = sizeof(*out), .fd = -1};
    fixture_listen(f);
    tn_status status = f->backend->buffer_export_fd(f->device, buffer, offset, size, out);
    if (fixture_heard(f, status, "buffer_export_fd") != TN_OK) {
        check_fail(f->kit, "buffer_export_fd of %llu bytes fails: %s",
                   (unsigned long long)size, f->host.text);
        return false;
    }
    if (fcntl(out->fd, F_GETFD) != FD_CLOEXEC)
        check_fail(f->kit,
                   "the file descriptor %d of an export is not open, or exec() "
                   "leaves it open",
                   out->fd);
    if (out->offset > out->size || out->size - out->offset < size)
        check_fail(f->kit, "%llu bytes are exported at %llu of %llu",
                   (unsigned long long)size, (unsigned long long)out->offset,
                   (unsigned long long)out->size);
    return !check_failed(f->kit);
}

static tn_buffer *share_import(struct fixture *f, tn_device *device,
                               const tn_buffer_fd *memory)
{
    tn_buffer *buffer = NULL;
    tn_buffer_fd mine = *memory;
    mine.flags = TN_IMPORT_WRITABLE;
    fixture_listen(f);
    tn_status status = f->backend->buffer_import_fd(device, &mine, &buffer);
    if (fixture_heard(f, status, "buffer_import_fd") != TN_OK)
        check_fail(f->kit, "buffer_import_fd of an export fails: %s", f->host.text);
    if (fcntl(memory->fd, F_GETFD) < 0)
        check_fail(f->kit, "buffer_import_fd closes the file descriptor that it borrows");
    return buffer;
}

static void share_expect(struct fixture *f, tn_device *device, tn_buffer *buffer,
                         uint64_t offset, uint64_t size, uint64_t seed, const char *what)
{
    unsigned char want[MOST], got[MOST];
    share_group_fill(want, size, seed);
    memset(got, 0, size);
    if (f->backend->buffer_read(device, buffer, offset, got, size) != TN_OK)
        check_fail(f->kit, "%s: buffer_read fails: %s", what, f->host.text);
    else if (memcmp(got, want, size) != 0)
        check_fail(f->kit, "%s: %llu bytes at %llu are others", what,
                   (unsigned long long)size, (unsigned long long)offset);
}

static void share_group_write_bytes(struct fixture *f, tn_buffer *buffer, uint64_t offset,
                                    uint64_t size, uint64_t seed)
{
    unsigned char bytes[MOST];
    share_group_fill(bytes, size, seed);
    fixture_write(f, buffer, offset, bytes, size);
}

static uint64_t share_group_used(const struct fixture *f)
{
    tn_memory_info info = {.struct_size = sizeof(info)};
    return TN_HAS(f->backend, memory_info) &&
                   f->backend->memory_info(f->device, &info) == TN_OK
               ? info.used
               : 0;
}

// All imports read the bytes that one import writes, imports of an import's own export too.
static void check_share_same(struct fixture *f, tn_device *other,
                             const tn_buffer_fd *memory, uint64_t size)
{
    tn_buffer_fd again;
    uint64_t part = memory->offset + size / 2, rest = size - size / 2;
    tn_buffer *first = share_import(f, f->device, memory), *second = NULL, *third = NULL;
    if (first && share_group_export(f, first, part, rest, &again)) {
        if (again.size != memory->size || again.offset != part)
            check_fail(f->kit, "what an import exports is other memory, or elsewhere");
        third = share_import(f, f->device, &again);
        close(again.fd);
    }
    second = share_import(f, other, memory);
    close(memory->fd);
    if (first && second && third) {
        share_expect(f, f->device, first, memory->offset, size, 1, "imported");
        share_expect(f, other, second, memory->offset, size, 1,
                     "imported by a second device");
        share_group_write_bytes(f, first, memory->offset, size, 2);
        share_expect(f, other, second, memory->offset, size, 2,
                     "written by the other import");
        share_group_write_bytes(f, first, part, rest, 5);
        share_expect(f, f->device, third, part, rest, 5,
                     "written by an import, read by an import of its export");
    }
    f->backend->buffer_destroy(f->device, first);
    f->backend->buffer_destroy(other, second);
    f->backend->buffer_destroy(f->device, third);
}

static void share_once(struct fixture *f, tn_device *other, uint64_t offset, uint64_t size)
{
    tn_buffer_fd memory;
    tn_buffer *buffer = fixture_buffer(f, offset + size);
    uint64_t before = share_group_used(f);
    check_case(f->kit);
    if (!buffer)
        return;
    share_group_write_bytes(f, buffer, 0, offset + size, 3);
    share_group_write_bytes(f, buffer, offset, size, 1);
    if (!share_group_export(f, buffer, offset, size, &memory))
        return;
    share_group_write_bytes(f, buffer, offset, size, 4); // must not reach the export's copy
    check_share_same(f, other, &memory, size);
    share_expect(f, f->device, buffer, offset, size, 4, "the buffer that was exported");
    if (share_group_used(f) != before)
        check_fail(f->kit, "memory_info counts memory that is shared");
    fixture_destroy(f, buffer);
}

static void check_share_fd(struct fixture *f)
{
    static const uint64_t cases[][2] = {
        {0, 1}, {0, 7}, {4, 64}, {256, 4099}, {1000, 69000}};
    tn_device *other = NULL;
    if (!has_sharing(f))
        return;
    if (f->backend->device_open(f->host.table, f->index, &other) != TN_OK) {
        check_skip(f->kit, "a second device cannot be opened");
        return;
    }
    share_once(f, other, 0, 16);
    int before = count_fds();
    for (size_t i = 0; i < COUNT(cases) && !check_failed(f->kit); i++)
        share_once(f, other, cases[i][0], cases[i][1]);
    if (!check_failed(f->kit) && count_fds() != before)
        check_fail(f->kit, "exporting and importing leaves file descriptors open");
    f->backend->device_close(other);
}

// --- wrong descriptions of memory ------------------------------------------------------

static void share_refuse(struct fixture *f, const tn_buffer_fd *memory, const char *what)
{
    tn_buffer *buffer = NULL;
    bool is_open = fcntl(memory->fd, F_GETFD) >= 0;
    check_case(f->kit);
    fixture_listen(f);
    tn_status status = f->backend->buffer_import_fd(f->device, memory, &buffer);
    if (fixture_heard(f, status, "buffer_import_fd") != TN_ERR_ARGUMENT)
        check_fail(f->kit, "buffer_import_fd of %s gives status %d, expected %d", what,
                   status, TN_ERR_ARGUMENT);
    if (status == TN_OK)
        f->backend->buffer_destroy(f->device, buffer);
    if (is_open && fcntl(memory->fd, F_GETFD) < 0)
        check_fail(f->kit, "buffer_import_fd of %s closes the file descriptor", what);
}

static void check_share_bad(struct fixture *f)
{
    tn_buffer_fd good, bad;
    tn_buffer *buffer = has_sharing(f) ? fixture_buffer(f, 5000) : NULL;
    if (!buffer || !share_group_export(f, buffer, 0, 5000, &good))
        return;
    share_refuse(f,
                 &(tn_buffer_fd){.struct_size = sizeof(good), .fd = -1, .size = good.size},
                 "no file descriptor");
    int before = count_fds(), null = open("/dev/null", O_RDWR | O_CLOEXEC),
        small = memfd_create("small", MFD_CLOEXEC);
    bad = good;
    bad.fd = null;
    share_refuse(f, &bad, "/dev/null");
    bad.fd = small;
    share_refuse(f, &bad, "an empty file");
    bad = good;
    bad.size = 0;
    share_refuse(f, &bad, "memory of no bytes");
    bad.size = good.size + (UINT64_C(1) << 30);
    share_refuse(f, &bad, "memory as if it were larger");
    bad.size = UINT64_MAX;
    share_refuse(f, &bad, "memory as if it were without end");
    bad = good;
    bad.kind = UINT32_MAX;
    share_refuse(f, &bad, "memory of a kind that cannot be");
    close(null);
    close(small);
    if (count_fds() != before)
        check_fail(f->kit, "refusing memory leaves file descriptors open, or closes some");
    close(good.fd);
}

// --- when memory runs out --------------------------------------------------------------

// Exports and imports. Gives the first status that is not TN_OK.
static tn_status share_group_share(struct fixture *f, tn_buffer *buffer)
{
    tn_buffer_fd memory = {.struct_size = sizeof(memory), .fd = -1};
    tn_buffer *imported = NULL;
    fixture_listen(f);
    tn_status status = f->backend->buffer_export_fd(f->device, buffer, 0, 64, &memory);
    if (fixture_heard(f, status, "buffer_export_fd") == TN_OK)
        status =
            fixture_heard(f, f->backend->buffer_import_fd(f->device, &memory, &imported),
                          "buffer_import_fd");
    if (status == TN_OK)
        f->backend->buffer_destroy(f->device, imported);
    if (memory.fd >= 0)
        close(memory.fd);
    return status;
}

static void check_share_memory(struct fixture *f)
{
    tn_buffer *buffer = has_sharing(f) ? fixture_buffer(f, 64) : NULL;
    if (!buffer || share_group_share(f, buffer) != TN_OK)
        return;
    int fds = count_fds();
    for (uint64_t n = 1; n < MAX_ALLOCATIONS && !check_failed(f->kit); n++) {
        uint64_t live = f->host.live;
        check_case(f->kit);
        f->host.fail_at = f->host.allocations + n;
        tn_status status = share_group_share(f, buffer);
        bool was_met = f->host.allocations >= f->host.fail_at;
        f->host.fail_at = 0;
        if (status != TN_OK && status != TN_ERR_MEMORY)
            check_fail(f->kit, "allocation %llu fails, and sharing memory gives status %d",
                       (unsigned long long)n, status);
        if (f->host.live > live)
            check_fail(f->kit,
                       "allocation %llu fails, and sharing memory leaves %llu blocks",
                       (unsigned long long)n, (unsigned long long)(f->host.live - live));
        if (!was_met)
            break;
    }
    if (count_fds() != fds)
        check_fail(f->kit, "sharing memory that fails leaves file descriptors open");
}

// --- copies on the device --------------------------------------------------------------

static void check_share_copy(struct fixture *f)
{
    enum { SIZE = 5000 };
    static unsigned char from[SIZE], to[SIZE], got[SIZE];
    if (!TN_HAS(f->backend, buffer_copy)) {
        check_skip(f->kit, "it has no buffer_copy");
        return;
    }
    tn_buffer *source = fixture_buffer(f, SIZE), *target = fixture_buffer(f, SIZE);
    share_group_fill(from, SIZE, 1);
    share_group_fill(to, SIZE, 2);
    if (!source || !target || !fixture_write(f, source, 0, from, SIZE) ||
        !fixture_write(f, target, 0, to, SIZE))
        return;
    for (int i = 0; i < ROUNDS && !check_failed(f->kit); i++) {
        uint64_t size = 1 + random_below(f->kit, i % 2 ? 9 : SIZE);
        uint64_t at = random_below(f->kit, SIZE - size + 1);
        uint64_t there = random_below(f->kit, SIZE - size + 1);
        check_case(f->kit);
        memcpy(to + there, from + at, size);
        fixture_listen(f);
        tn_status status =
            f->backend->buffer_copy(f->device, source, at, target, there, size);
        if (fixture_heard(f, status, "buffer_copy") != TN_OK)
            check_fail(f->kit, "buffer_copy fails: %s", f->host.text);
        if (fixture_read(f, target, 0, got, SIZE) && memcmp(got, to, SIZE) != 0)
            check_fail(f->kit, "%llu bytes from %llu to %llu are copied to others",
                       (unsigned long long)size, (unsigned long long)at,
                       (unsigned long long)there);
        if (fixture_read(f, source, 0, got, SIZE) && memcmp(got, from, SIZE) != 0)
            check_fail(f->kit, "buffer_copy changes what it copies");
    }
}

// --- in place --------------------------------------------------------------------------

// Finds where a buffer lies, with its memory; false: the memory cannot be exported, or a
// failure.
static bool export_find(struct fixture *f, tn_buffer *buffer, tn_buffer_export *out)
{
    *out = (tn_buffer_export){.struct_size = sizeof(*out), .fd = -1};
    fixture_listen(f);
    tn_status status =
        f->backend->buffer_export(f->device, buffer, TN_EXPORT_MEMORY_FD, out);
    if (fixture_heard(f, status, "buffer_export") == TN_OK)
        return true;
    if (status == TN_ERR_UNSUPPORTED)
        check_skip(f->kit, "%s", f->host.text);
    else
        check_fail(f->kit, "buffer_export fails: %s", f->host.text);
    return false;
}

// Reads bytes that were written through the buffer through an import of its memory.
static void export_read(struct fixture *f, tn_buffer *buffer, uint64_t size,
                        const tn_buffer_export *export)
{
    const tn_buffer_fd memory = {
        .struct_size = sizeof(memory), .fd = export->fd, .size = export->size};
    if (fcntl(export->fd, F_GETFD) != FD_CLOEXEC)
        check_fail(f->kit,
                   "the file descriptor of a buffer's memory is left open by exec()");
    if (!export->memory || export->offset > export->size ||
        export->size - export->offset < size)
        check_fail(f->kit, "a buffer of %llu bytes lies at %llu of %llu in memory %llu",
                   (unsigned long long)size, (unsigned long long)export->offset,
                   (unsigned long long)export->size, (unsigned long long)export->memory);
    tn_buffer *same = check_failed(f->kit) ? NULL : share_import(f, f->device, &memory);
    if (!same)
        return;
    share_group_write_bytes(f, buffer, 0, size, 7);
    share_expect(f, f->device, same, export->offset, size, 7, "through its memory");
    f->backend->buffer_destroy(f->device, same);
}

static void check_share_export(struct fixture *f)
{
    enum { SIZE = 66000 };
    tn_buffer_export first, second;
    const tn_point reached = {0};
    if (!TN_HAS(f->backend, buffer_export)) {
        check_skip(f->kit, "it has no buffer_export");
        return;
    }
    tn_buffer *buffer = fixture_buffer(f, SIZE), *other = fixture_buffer(f, SIZE);
    if (!buffer || !other || !export_find(f, buffer, &first))
        return;
    export_read(f, buffer, SIZE, &first);
    close(first.fd);
    if (!export_find(f, other, &second))
        return;
    close(second.fd);
    uint64_t apart = first.offset > second.offset ? first.offset - second.offset
                                                  : second.offset - first.offset;
    if (first.memory == second.memory && apart < SIZE)
        check_fail(f->kit, "two buffers of %d bytes lie %llu bytes apart", SIZE,
                   (unsigned long long)apart);
    tn_status status = TN_HAS(f->backend, point_export_fd)
                           ? f->backend->point_export_fd(f->device, reached, NULL)
                           : TN_ERR_UNSUPPORTED;
    if (status != TN_OK && status != TN_ERR_UNSUPPORTED)
        check_fail(f->kit, "point_export_fd of a point that is reached gives status %d",
                   status);
}

static const struct fixture_check checks[] = {
    {"share.export", check_share_export}, {"share.fd", check_share_fd},
    {"share.bad", check_share_bad},       {"share.memory", check_share_memory},
    {"share.copy", check_share_copy},
};

void group_share(struct kit *k)
{
    fixture_run(k, checks, COUNT(checks));
}
