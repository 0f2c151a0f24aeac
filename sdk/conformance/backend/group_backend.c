// SPDX-License-Identifier: MIT
// A backend's table, and its devices: listing, description, opening and closing.
#include "../kit/fixture.h"
#include "groups.h"

enum { CYCLES = 4, MAX_ALLOCATIONS = 400 };

// --- the table -------------------------------------------------------------------------

static bool is_plain_name(const char *name)
{
    size_t size = name ? strlen(name) : 0;
    return size > 0 && size < 32 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == size;
}

static bool is_family(const char *family)
{
    const char *slash = strrchr(family, '/');
    return slash && slash > family && slash[1] && slash[1] != '0' &&
           strspn(slash + 1, "0123456789") == strlen(slash + 1);
}

static void check_backend_slots(struct kit *k, const tn_backend *t)
{
    const struct {
        const char *name;
        bool is_there;
    } slots[] = {
        {"device_count", TN_HAS(t, device_count)},
        {"device_info", TN_HAS(t, device_info)},
        {"device_open", TN_HAS(t, device_open)},
        {"device_close", TN_HAS(t, device_close)},
        {"buffer_create", TN_HAS(t, buffer_create)},
        {"buffer_destroy", TN_HAS(t, buffer_destroy)},
        {"buffer_write", TN_HAS(t, buffer_write)},
        {"buffer_read", TN_HAS(t, buffer_read)},
        {"segment_compile", TN_HAS(t, segment_compile)},
        {"executable_destroy", TN_HAS(t, executable_destroy)},
        {"submit", TN_HAS(t, submit)},
        {"wait", TN_HAS(t, wait)},
    };
    for (size_t i = 0; i < COUNT(slots); i++) {
        check_case(k);
        if (!slots[i].is_there)
            check_fail(k, "%s is NULL", slots[i].name);
    }
}

static void check_backend_families(struct kit *k, const tn_backend *t)
{
    if (!TN_HAS(t, families) || !t->families[0]) {
        check_fail(k, "it lists no kernel family");
        return;
    }
    for (const char *const *f = t->families; *f; f++) {
        if (!is_family(*f))
            check_fail(k, "kernel family \"%.60s\" is not NAME/REVISION", *f);
        for (const char *const *g = t->families; g < f; g++)
            if (strcmp(*f, *g) == 0)
                check_fail(k, "kernel family \"%.60s\" is listed twice", *f);
    }
}

static void check_backend_table(struct kit *k)
{
    static struct subject s;
    struct fake_host host;
    if (!subject_open(&s, &host, k))
        return;
    const tn_backend *t = subject_backend(&s);
    if (t && check_begin(k, "backend.table", NULL)) {
        if (t->struct_size < sizeof(t->struct_size) || !TN_HAS(t, name) ||
            !is_plain_name(t->name))
            check_fail(k,
                       "name is \"%.60s\", expected what can stand in TENON_BACKEND: "
                       "[a-z0-9-], at most 31 bytes",
                       TN_HAS(t, name) ? t->name : "NULL");
        if (t->flags & ~(uint32_t)TN_BACKEND_DEFAULT)
            check_fail(k, "flags are %#x, which these headers do not know", t->flags);
        check_backend_families(k, t);
        check_backend_slots(k, t);
        check_end(k);
    }
    subject_unload(&s, &host);
    fake_host_finish(&host);
}

static void check_backend_count(struct kit *k)
{
    static struct fixture f;
    if (!fixture_start(&f, k))
        return;
    if (check_begin(k, "backend.count", NULL)) {
        uint32_t count[2] = {77, 77};
        for (int i = 0; i < 2; i++) {
            fixture_listen(&f);
            tn_status status = f.backend->device_count(f.host.table, &count[i]);
            if (fixture_heard(&f, status, "device_count") != TN_OK && count[i] != 77)
                check_fail(k, "device_count fails, and writes its output");
            if (status != TN_OK && status != TN_ERR_NOT_FOUND)
                check_fail(k, "device_count fails with status %d: %s", status, f.host.text);
            else if (status != TN_OK)
                check_skip(k, "%s", f.host.text);
        }
        if (count[0] != count[1])
            check_fail(k, "device_count gives %u, and then %u", count[0], count[1]);
        check_end(k);
    }
    fixture_finish(&f);
}

// --- descriptions ----------------------------------------------------------------------

static tn_status backend_group_describe(struct fixture *f, unsigned char fill,
                                        tn_device_info *out)
{
    memset(out, fill, sizeof(*out));
    out->struct_size = sizeof(*out);
    fixture_listen(f);
    return fixture_heard(f, f->backend->device_info(f->host.table, f->index, out),
                         "device_info");
}

static void check_backend_text(struct kit *k, const char *what, const char *a,
                               const char *b, size_t size)
{
    if (!memchr(a, 0, size) || !memchr(b, 0, size))
        check_fail(k, "%s has no NUL at its end", what);
    else if (strcmp(a, b) != 0)
        check_fail(k, "%s is \"%s\", and then \"%s\"", what, a, b);
}

static void check_backend_numbers(struct kit *k, const tn_device_info *a,
                                  const tn_device_info *b)
{
    const uint32_t known = TN_DEVICE_SOFTWARE | TN_DEVICE_HOST_MEMORY |
                           TN_DEVICE_COMPUTES_NOTHING | TN_DEVICE_ROWS |
                           TN_DEVICE_HOST_POINTS | TN_DEVICE_FUSES | TN_DEVICE_TAKES |
                           TN_DEVICE_GROUPS | TN_DEVICE_DEFERS | TN_DEVICE_COMPILES;
    if (a->flags & ~known)
        check_fail(k, "flags are %#x, which these headers do not know", a->flags);
    if (a->buffer_alignment == 0 || a->buffer_alignment & (a->buffer_alignment - 1))
        check_fail(k, "buffer_alignment is %llu, expected a power of two",
                   (unsigned long long)a->buffer_alignment);
    if (a->dtypes & ~(uint32_t)TN_ALL_DTYPES)
        check_fail(k, "dtypes are %#x, which these headers do not know", a->dtypes);
    if (a->flags != b->flags || a->buffer_alignment != b->buffer_alignment ||
        a->dtypes != b->dtypes || a->memory_size != b->memory_size ||
        a->max_buffer_size != b->max_buffer_size || a->num_queues != b->num_queues)
        check_fail(k, "asked twice it gives other numbers, or leaves some unwritten");
}

// Fields that device_info leaves unwritten differ between a description over zeros and one
// over ones.
static void check_backend_info(struct fixture *f)
{
    tn_device_info first, second;
    struct kit *k = f->kit;
    if (backend_group_describe(f, 0, &first) != TN_OK ||
        backend_group_describe(f, 0xff, &second) != TN_OK) {
        check_fail(k, "device_info fails: %s", f->host.text);
        return;
    }
    check_backend_text(k, "name", first.name, second.name, sizeof(first.name));
    check_backend_text(k, "driver", first.driver, second.driver, sizeof(first.driver));
    check_backend_text(k, "features", first.features, second.features,
                       sizeof(first.features));
    check_backend_numbers(k, &first, &second);
    if (!first.name[0])
        check_fail(k, "the device has no name");
}

// The tn_device_info of an older host is shorter.
static void check_backend_info_size(struct fixture *f)
{
    static const uint32_t sizes[] = {8, 8 + 128, 8 + 128 + 128 + 256, 536};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        tn_device_info info;
        unsigned char *bytes = (unsigned char *)&info;
        check_case(f->kit);
        memset(&info, 0x5a, sizeof(info));
        info.struct_size = sizes[i];
        if (f->backend->device_info(f->host.table, f->index, &info) != TN_OK)
            check_fail(f->kit, "into a struct of %u bytes device_info fails: %s", sizes[i],
                       f->host.text);
        for (size_t at = sizes[i]; at < sizeof(info); at++)
            if (bytes[at] != 0x5a) {
                check_fail(f->kit, "into a struct of %u bytes device_info writes byte %zu",
                           sizes[i], at);
                break;
            }
        if (info.struct_size > sizes[i])
            check_fail(f->kit, "it makes struct_size %u of %u", info.struct_size, sizes[i]);
    }
}

// --- opening ---------------------------------------------------------------------------

static void try_buffer(struct fixture *f)
{
    uint32_t word = 0x12345678, back = 0;
    tn_buffer *buffer = fixture_buffer(f, 4096);
    if (buffer && fixture_write(f, buffer, 1024, &word, 4) &&
        fixture_read(f, buffer, 1024, &back, 4) && back != word)
        check_fail(f->kit, "wrote %#x, read %#x", word, back);
}

static void check_backend_opens(struct fixture *f)
{
    tn_device *first = f->device, *second = NULL;
    f->backend->device_close(NULL);
    f->backend->buffer_destroy(first, NULL);
    f->backend->executable_destroy(first, NULL);
    tn_status status = f->backend->device_open(f->host.table, f->index, &second);
    if (status != TN_OK) {
        check_fail(f->kit, "a second time at once it cannot be opened: %s", f->host.text);
        return;
    }
    try_buffer(f);
    fixture_close(f); // closes the first device; the second must keep working
    f->device = second;
    try_buffer(f);
    fixture_close(f);
    for (int i = 0; i < CYCLES && !check_failed(f->kit); i++) {
        check_case(f->kit);
        if (fixture_open(f))
            try_buffer(f);
        fixture_close(f);
    }
}

// Starts another instance of the plugin and uses its device. The caller calls
// fixture_finish.
static bool backend_group_live(struct fixture *f, struct kit *k, uint32_t index)
{
    if (!fixture_start(f, k))
        return false;
    f->index = index;
    const char *why;
    if (fixture_count(f, &why) > index && fixture_open(f))
        try_buffer(f);
    return true;
}

static void check_backend_frees(struct fixture *f)
{
    static struct fixture own;
    uint64_t after[2] = {0};
    if (!backend_group_live(&own, f->kit, f->index))
        return;
    for (int i = 0; i < CYCLES && !check_failed(f->kit); i++) {
        fixture_close(&own);
        after[i > 0] = own.host.live;
        if (fixture_open(&own))
            try_buffer(&own);
    }
    fixture_close(&own);
    if (after[1] > after[0])
        check_fail(f->kit, "%llu blocks of the host's are left each time it is closed",
                   (unsigned long long)(after[1] - after[0]));
    uint64_t left = fixture_finish(&own);
    if (left)
        check_fail(f->kit, "after device_close and deinit %llu blocks are left",
                   (unsigned long long)left);
}

static void check_backend_threads(struct fixture *f)
{
    static struct fixture own;
    fixture_close(f);
    int before = count_threads();
    // Threads that a driver keeps after the first life are allowed; a second life must not
    // add any.
    for (int i = 0; i < 2; i++) {
        if (!backend_group_live(&own, f->kit, f->index))
            return;
        fixture_finish(&own);
        int left = threads_beyond(before);
        before += i == 0 ? left : 0;
        if (i > 0 && left)
            check_fail(f->kit, "each time it is opened and closed %d threads are left",
                       left);
    }
}

static void check_backend_config(struct fixture *f)
{
    static const char *const values[] = {"", "-1", "99999999999999999999", "\xc3\xa9,;:/",
                                         "nan"};
    static struct fixture own;
    for (size_t i = 0; i < COUNT(values); i++) {
        check_case(f->kit);
        if (!fixture_start(&own, f->kit))
            return;
        own.index = f->index;
        own.host.config = values[i];
        fixture_listen(&own);
        // A backend may refuse an invalid value, which is the user's error.
        uint32_t count = 0;
        tn_status status = own.backend->device_count(own.host.table, &count);
        if (status == TN_OK && count > f->index)
            status = own.backend->device_open(own.host.table, f->index, &own.device);
        if (fixture_heard(&own, status, "opening it with odd variables") != TN_OK)
            own.device = NULL;
        fixture_finish(&own);
    }
}

// Opens the device while the n-th allocation fails. False: there was no n-th allocation.
static bool open_poorly(struct fixture *f, uint64_t n)
{
    uint64_t live_before = f->host.live;
    check_case(f->kit);
    f->host.fail_at = f->host.allocations + n;
    fixture_listen(f);
    tn_status status = f->backend->device_open(f->host.table, f->index, &f->device);
    bool was_met = f->host.allocations >= f->host.fail_at;
    f->host.fail_at = 0;
    if (fixture_heard(f, status, "device_open") != TN_OK) {
        f->device = NULL;
        if (status != TN_ERR_MEMORY || !was_met)
            check_fail(f->kit,
                       "allocation %llu fails, and device_open returns %d, "
                       "expected %d",
                       (unsigned long long)n, status, TN_ERR_MEMORY);
        if (f->host.live > live_before)
            check_fail(f->kit, "allocation %llu fails, and device_open leaves %llu blocks",
                       (unsigned long long)n,
                       (unsigned long long)(f->host.live - live_before));
    }
    fixture_close(f);
    return was_met;
}

static void check_backend_memory(struct fixture *f)
{
    fixture_close(f);
    for (uint64_t n = 1; n < MAX_ALLOCATIONS && open_poorly(f, n); n++)
        if (check_failed(f->kit))
            return;
    if (fixture_open(f))
        try_buffer(f);
}

static const struct fixture_check checks[] = {
    {"backend.info", check_backend_info},
    {"backend.info-size", check_backend_info_size},
    {"backend.opens", check_backend_opens},
    {"backend.frees", check_backend_frees},
    {"backend.threads", check_backend_threads},
    {"backend.config", check_backend_config},
    {"backend.memory", check_backend_memory},
};

void group_backend(struct kit *k)
{
    check_backend_table(k);
    check_backend_count(k);
    fixture_run(k, checks, COUNT(checks));
}
