// SPDX-License-Identifier: MIT
// ABI negotiation, and the first checks of the tables that a plugin gives. The size that a
// table claims is checked against the loaded segment that holds the table before the table
// is read to that size.
#include "abi.h"

#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include "../../primitive/prim_set.h"
#include "manifest.h"

const struct abi_range abi_host = {TN_ABI_MAJOR, 0, TN_ABI_MINOR};

tn_status abi_negotiate(struct abi_range host, struct abi_range plugin, const char *id,
                        uint32_t *out_minor, struct reason *reason)
{
    uint32_t minor = host.minor_max < plugin.minor_max ? host.minor_max : plugin.minor_max;
    if (host.major != plugin.major || minor < host.minor_min || minor < plugin.minor_min)
        return reason_record(reason, TN_ERR_REFUSED, REASON_ABI, id,
                             "%s speaks ABI %" PRIu32 ".%" PRIu32 " to %" PRIu32 ".%" PRIu32
                             ", this Tenon %" PRIu32 ".%" PRIu32 " to %" PRIu32 ".%" PRIu32,
                             id, plugin.major, plugin.minor_min, plugin.major,
                             plugin.minor_max, host.major, host.minor_min, host.major,
                             host.minor_max);
    *out_minor = minor;
    return TN_OK;
}

static const char *sanitizer_name(uint32_t sanitizer)
{
    static const char *const names[] = {"no sanitizer", "AddressSanitizer",
                                        "ThreadSanitizer"};
    return sanitizer < sizeof(names) / sizeof(names[0]) ? names[sanitizer]
                                                        : "an unknown sanitizer";
}

tn_status abi_check_sanitizer(uint32_t sanitizer, const char *id, struct reason *reason)
{
    if (sanitizer == TN_SANITIZER_HERE)
        return TN_OK;
    return reason_record(reason, TN_ERR_REFUSED, REASON_SANITIZER, id,
                         "%s is built with %s, this Tenon with %s", id,
                         sanitizer_name(sanitizer), sanitizer_name(TN_SANITIZER_HERE));
}

// The bytes from `start` to the end of the loaded ELF segment that holds it: the most that
// a table at `start` can have. UINT64_MAX when no shared object holds `start`, such as
// memory that init allocated.
struct reach {
    uintptr_t start;
    uint64_t bytes;
};

// Callback of dl_iterate_phdr; 1 ends the iteration.
static int find_segment(struct dl_phdr_info *info, size_t size, void *context)
{
    struct reach *reach = context;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD || reach->start < from ||
            reach->start - from >= segment->p_memsz)
            continue;
        reach->bytes = segment->p_memsz - (reach->start - from);
        return 1;
    }
    return 0;
}

static uint64_t reach_of(const void *pointer)
{
    struct reach reach = {(uintptr_t)pointer, UINT64_MAX};
    dl_iterate_phdr(find_segment, &reach);
    return reach.bytes;
}

// Checks a plugin's struct that claims `size` bytes: at least `least`, and zero from byte
// `known` on, because this version cannot honour fields that it does not know. `what` names
// the struct in messages.
static tn_status check_struct(const void *start, uint64_t size, uint64_t least,
                              uint64_t known, const char *what, const char *id,
                              struct reason *reason)
{
    if (size < least || size > MAX_ABI_STRUCT)
        return reason_record(reason, TN_ERR_REFUSED, REASON_CONTRACT, id,
                             "%s: %s has %" PRIu64 " bytes, expected %" PRIu64 " to %d", id,
                             what, size, least, MAX_ABI_STRUCT);
    uint64_t reach = reach_of(start);
    if (size > reach)
        return reason_record(reason, TN_ERR_REFUSED, REASON_CONTRACT, id,
                             "%s: %s has %" PRIu64
                             " bytes, but its file ends after %" PRIu64,
                             id, what, size, reach);
    const unsigned char *bytes = start;
    for (uint64_t i = known; i < size; i++)
        if (bytes[i])
            return reason_record(reason, TN_ERR_REFUSED, REASON_ABI, id,
                                 "%s: byte %" PRIu64
                                 " of %s is set, which this version (%" PRIu64
                                 " bytes) does not know",
                                 id, i, what, known);
    return TN_OK;
}

// `least` is the size that a table had in ABI 1.0, given by its last member then. Members
// added since are read through TN_HAS.

// --- tn_plugin_v1 ----------------------------------------------------------------------

static tn_status wrong_entry(const tn_note *note, const char *what, struct reason *reason)
{
    return reason_record(reason, TN_ERR_REFUSED, REASON_IDENTITY, note->id,
                         "%s: tn_plugin_v1 %s", note->id, what);
}

tn_status abi_check_entry(const tn_plugin *entry, uint64_t symbol_size, const tn_note *note,
                          struct reason *reason)
{
    // The fields of ABI 1.0 must lie within the symbol before one of them is read.
    if (symbol_size < TN_END_OF(entry, query))
        return wrong_entry(note, "is smaller than a tn_plugin", reason);
    if (entry->magic != TN_PLUGIN_MAGIC)
        return wrong_entry(note, "has a wrong magic number", reason);
    if (entry->struct_size > symbol_size)
        return wrong_entry(note, "says that it is larger than it is", reason);
    tn_status status = check_struct(entry, entry->struct_size, TN_END_OF(entry, query),
                                    sizeof(*entry), "tn_plugin_v1", note->id, reason);
    if (status != TN_OK)
        return status;
    if (!entry->id || !entry->version || !entry->vendor || !entry->query)
        return wrong_entry(note, "has no id, version, vendor or query", reason);
    if (strcmp(entry->id, note->id) != 0 || strcmp(entry->version, note->version) != 0 ||
        strcmp(entry->vendor, note->vendor) != 0)
        return wrong_entry(note, "and the note differ in id, version or vendor", reason);
    if (entry->abi_minor_min != note->abi_minor_min ||
        entry->abi_minor_max != note->abi_minor_max || entry->sanitizer != note->sanitizer)
        return wrong_entry(note, "and the note differ in ABI range or sanitizer", reason);
    if (entry->flags || entry->reserved)
        return wrong_entry(note, "has flags that this version does not know", reason);
    return TN_OK;
}

// --- interfaces ------------------------------------------------------------------------

// As a plugin's id, with "_" too: see tn_packing.
static bool packing_has_valid_id(const char *id)
{
    size_t length = id ? strlen(id) : 0;
    return length > 0 && length <= TN_PACKING_MAX_ID && strchr(id, '.') &&
           strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789_.-") == length;
}

static tn_status check_packing(const tn_packing *packing, uint32_t size, const char *id,
                               struct reason *reason)
{
    char what[TN_PACKING_MAX_ID + 16];
    uint64_t least = TN_END_OF(packing, unpack);
    if (packing->struct_size > size)
        return reason_record(reason, TN_ERR_REFUSED, REASON_CONTRACT, id,
                             "%s: a packing has %" PRIu32 " bytes in a list of %" PRIu32
                             " for each",
                             id, packing->struct_size, size);
    bool has_id = packing->struct_size >= least && packing_has_valid_id(packing->id);
    snprintf(what, sizeof(what), "packing %s", has_id ? packing->id : "without an id");
    tn_status status = check_struct(packing, packing->struct_size, least, sizeof(*packing),
                                    what, id, reason);
    if (status != TN_OK)
        return status;
    if (!has_id || !packing->format || !packing->rows_bytes || !packing->pack ||
        !packing->unpack || packing->group < 0)
        return reason_record(reason, TN_ERR_REFUSED, REASON_RECORD, id,
                             "%s: %s lacks a valid id, a format, a group or a function", id,
                             what);
    return TN_OK;
}

static tn_status check_packings(const tn_backend *backend, const char *id,
                                struct reason *reason)
{
    uint32_t count = TN_HAS(backend, num_packings) ? backend->num_packings : 0;
    uint32_t size = TN_HAS(backend, packing_size) ? backend->packing_size : 0;
    const char *records = count ? (const char *)backend->packings : NULL;
    const tn_packing first = {0}; // of as many bytes as a record has at least
    if (count && (size < TN_END_OF(&first, unpack) || size > MAX_ABI_STRUCT))
        return reason_record(reason, TN_ERR_REFUSED, REASON_CONTRACT, id,
                             "%s: its packings are %" PRIu32
                             " bytes apart, expected %" PRIu64 " to %d",
                             id, size, TN_END_OF(&first, unpack), MAX_ABI_STRUCT);
    uint64_t most = records ? reach_of(records) / size : 0;
    most = most < MAX_NAMES ? most : MAX_NAMES;
    if (count > most)
        return reason_record(reason, TN_ERR_REFUSED, REASON_RECORD, id,
                             "%s: its list of packings has %" PRIu32
                             " entries, at most %" PRIu64 " can be there",
                             id, count, most);
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < count && status == TN_OK; i++) {
        const void *record = records + (size_t)i * size;
        status = check_packing(record, size, id, reason);
    }
    return status;
}

tn_status abi_check_backend(const tn_backend *backend, const char *id,
                            struct reason *reason)
{
    tn_status status =
        check_struct(backend, backend->struct_size, TN_END_OF(backend, memory_info),
                     sizeof(*backend), "its " TN_IFACE_BACKEND, id, reason);
    if (status != TN_OK)
        return status;
    const struct {
        const char *name;
        int filled;
    } required[] = {
        {"name", backend->name != NULL},
        {"families", backend->families != NULL},
        {"device_count", backend->device_count != NULL},
        {"device_info", backend->device_info != NULL},
        {"device_open", backend->device_open != NULL},
        {"device_close", backend->device_close != NULL},
        {"buffer_create", backend->buffer_create != NULL},
        {"buffer_destroy", backend->buffer_destroy != NULL},
        {"buffer_write", backend->buffer_write != NULL},
        {"buffer_read", backend->buffer_read != NULL},
        {"segment_compile", backend->segment_compile != NULL},
        {"executable_destroy", backend->executable_destroy != NULL},
        {"submit", backend->submit != NULL},
        {"wait", backend->wait != NULL},
    };
    for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++)
        if (!required[i].filled)
            return reason_record(reason, TN_ERR_REFUSED, REASON_RECORD, id,
                                 "%s: its backend lacks '%s'", id, required[i].name);
    uint32_t count = 0;
    while (count <= MAX_NAMES && backend->families[count])
        count++;
    if (count > MAX_NAMES)
        return reason_record(reason, TN_ERR_REFUSED, REASON_RECORD, id,
                             "%s: its backend has more than %d kernel families", id,
                             MAX_NAMES);
    return check_packings(backend, id, reason);
}

// Checks that `count` pointers fit between `list` and the end of its loaded segment.
static tn_status plugin_abi_check_list(const void *list, uint32_t count, const char *what,
                                       const char *id, struct reason *reason)
{
    uint64_t reach = reach_of(list) / sizeof(void *);
    uint64_t most = reach < MANIFEST_MAX_RECORDS ? reach : MANIFEST_MAX_RECORDS;
    if (count && !list)
        return reason_record(reason, TN_ERR_REFUSED, REASON_RECORD, id,
                             "%s: its list of %" PRIu32 " %s is NULL", id, count, what);
    if (count > most)
        return reason_record(reason, TN_ERR_REFUSED, REASON_RECORD, id,
                             "%s: its list of %s has %" PRIu32 " entries, at most %" PRIu64
                             " can be there",
                             id, what, count, most);
    return TN_OK;
}

tn_status abi_check_ops(const tn_ops *ops, const char *id, struct reason *reason)
{
    tn_status status = check_struct(ops, ops->struct_size, TN_END_OF(ops, num_kernels),
                                    sizeof(*ops), "its " TN_IFACE_OPS, id, reason);
    if (status == TN_OK)
        status = plugin_abi_check_list(ops->primitives, ops->num_primitives, "primitives",
                                       id, reason);
    if (status == TN_OK)
        status =
            plugin_abi_check_list(ops->kernels, ops->num_kernels, "kernels", id, reason);
    if (status != TN_OK)
        return status;
    bool hole = false;
    for (uint32_t i = 0; !hole && i < ops->num_primitives; i++)
        hole = !ops->primitives[i] || !ops->primitives[i]->id;
    for (uint32_t i = 0; !hole && i < ops->num_kernels; i++)
        hole = !ops->kernels[i] || !ops->kernels[i]->primitive ||
               !ops->kernels[i]->family || !ops->kernels[i]->name;
    if (hole)
        return reason_record(
            reason, TN_ERR_REFUSED, REASON_RECORD, id,
            "%s: its lists of primitives and kernels lack an entry or a name", id);
    return TN_OK;
}
