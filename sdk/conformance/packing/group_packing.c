// SPDX-License-Identifier: MIT
// The packings of quantised weights that a backend lists: their records, their functions on
// their own, and operators under a runtime.
#include "groups.h"
#include "packing.h"

// --- records ----------------------------------------------------------------------------

static bool packing_has_id(const char *id)
{
    size_t size = id ? strlen(id) : 0;
    return size > 0 && size <= TN_PACKING_MAX_ID && strchr(id, '.') && id[0] != '.' &&
           strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789_.-") == size;
}

static const tn_packing *packing_at(const struct fixture *f, uint32_t index)
{
    const char *records = (const char *)f->backend->packings;
    return (const void *)(records + (size_t)index * f->backend->packing_size);
}

// Finds the plain format: in the table, in the plugin, or in another installed plugin.
static const tn_quant_format *packing_find_format(const char *name, tn_runtime *runtime)
{
    char id[TN_QUANT_MAX_NAME + 32];
    const tn_host *host;
    const void *found = NULL;
    const tn_quant_format *format = tn_quant_find(name);
    if (format || strlen(name) > TN_QUANT_MAX_NAME || !runtime)
        return format;
    format_text(id, sizeof(id), TN_IFACE_QUANT_FORMAT("%s"), name);
    return tn_interface_find(runtime, id, &found, &host) == TN_OK ? found : NULL;
}

static bool packing_is_listed(const struct fixture *f, const char *interface)
{
    const char *const *name = f->subject.entry->query(TN_IFACE_LIST);
    while (name && *name && strcmp(*name, interface) != 0)
        name++;
    return name && *name;
}

// A packing of the plugin's own has to be an interface, by which pack "quant" finds it.
static void packing_check_interface(struct fixture *f, const tn_packing *record)
{
    char id[TN_PACKING_MAX_ID + 32];
    format_text(id, sizeof(id), TN_IFACE_PACKING("%s"), record->id);
    const tn_packing *own = f->subject.entry->query(id);
    if (tn_quant_packing_find(record->id))
        return;
    if (!own || !packing_is_listed(f, id))
        check_fail(f->kit, "query(\"%s\") gives %s, and its TN_IFACE_LIST %s it", id,
                   own ? "something" : "NULL", packing_is_listed(f, id) ? "has" : "lacks");
    else if (own->struct_size < sizeof(*own) || strcmp(own->id, record->id) != 0 ||
             strcmp(own->format, record->format) != 0 || own->group != record->group)
        check_fail(f->kit, "query(\"%s\") gives a record of another packing", id);
}

static void packing_check_record(struct fixture *f, uint32_t index, tn_runtime *runtime)
{
    const tn_packing *record = packing_at(f, index);
    if (record->struct_size != sizeof(*record) ||
        f->backend->packing_size != sizeof(*record))
        check_fail(f->kit, "it has %u bytes in a list of %u for each, expected %zu",
                   record->struct_size, f->backend->packing_size, sizeof(*record));
    else if (!packing_has_id(record->id))
        check_fail(
            f->kit,
            "its id is \"%.80s\", expected [a-z0-9_.-] with a \".\", at most %d bytes",
            record->id ? record->id : "NULL", TN_PACKING_MAX_ID);
    else if (!record->format || !packing_find_format(record->format, runtime))
        check_fail(f->kit, "no plugin has its plain format \"%.40s\"",
                   record->format ? record->format : "NULL");
    else if (!record->rows_bytes || !record->pack || !record->unpack || record->group < 0)
        check_fail(f->kit, "a function is NULL, or its group of %lld rows is none",
                   (long long)record->group);
    else if (record->flags & ~(uint32_t)TN_PACKING_STACKED)
        check_fail(f->kit, "flags are %#x, which these headers do not know", record->flags);
    else
        packing_check_interface(f, record);
    for (uint32_t i = 0; i < index && !check_failed(f->kit); i++)
        if (strcmp(packing_at(f, i)->id, record->id) == 0)
            check_fail(f->kit, "it is listed twice");
}

// --- the group --------------------------------------------------------------------------

// Gives a runtime of the backend's first device that compares each launch with its
// definition. NULL: *out_why is the reason.
static tn_runtime *packing_open_device(struct fixture *f, const char **out_why)
{
    char backend[256];
    const char *const variables[] = {backend, "TENON_FALLBACK=allow", "TENON_CHECK=1",
                                     NULL};
    format_text(backend, sizeof(backend), "TENON_BACKEND=%s:0%s%s", f->backend->name,
                f->kit->with ? "," : "", f->kit->with ? f->kit->with : "");
    if (fixture_count(f, out_why) == 0)
        return NULL;
    tn_device_info info = {.struct_size = sizeof(info)};
    *out_why = "its first device computes nothing, or is none of --devices";
    if (f->backend->device_info(f->host.table, 0, &info) != TN_OK ||
        info.flags & TN_DEVICE_COMPUTES_NOTHING || !fixture_is_wanted(f))
        return NULL;
    tn_runtime *runtime = subject_runtime_with(f->kit, variables, out_why);
    if (!runtime || tn_primitive_find(runtime, "quant.pack/1"))
        return runtime;
    *out_why = "the pack quant is not installed";
    tn_runtime_close(runtime);
    return NULL;
}

static void packing_check(struct fixture *f, uint32_t index, tn_runtime *runtime,
                          tn_runtime *device, const char *why)
{
    struct kit *k = f->kit;
    const tn_packing *record = packing_at(f, index);
    bool is_sound = true;
    if (check_begin(k, "packing.record", "%.95s", record->id ? record->id : "NULL")) {
        packing_check_record(f, index, runtime);
        is_sound = !check_failed(k);
        check_end(k);
    }
    if (!is_sound || !record->id || !record->format)
        return;
    const struct packing p = {k, record, packing_find_format(record->format, runtime)};
    if (p.format && check_begin(k, "packing.rows", "%.95s", record->id)) {
        packing_check_rows(&p);
        check_end(k);
    }
    if (p.format && check_begin(k, "packing.values", "%.95s", record->id)) {
        if (device)
            packing_check_values(&p, device);
        else
            check_skip(k, "%s", why);
        check_end(k);
    }
}

void group_packing(struct kit *k)
{
    static struct fixture f;
    const char *why = "", *reason = "";
    if (!fixture_start(&f, k))
        return;
    uint32_t count = TN_HAS(f.backend, packing_size) ? f.backend->num_packings : 0;
    tn_runtime *runtime = count ? subject_runtime(k, NULL, &reason) : NULL;
    tn_runtime *device = count ? packing_open_device(&f, &why) : NULL;
    for (uint32_t i = 0; i < count; i++)
        packing_check(&f, i, runtime, device, why);
    if (count == 0)
        skip(k, "packing.record", "it lists no packing");
    tn_runtime_close(device);
    tn_runtime_close(runtime);
    fixture_finish(&f);
}
