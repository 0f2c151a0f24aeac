// SPDX-License-Identifier: MIT
// Formats and packings by name: those of the tables, and those of plugins.
#include "pack.h"

#include <stdio.h>
#include "encode.h"

static bool quant_formats_is_name(const char *text)
{
    size_t length = strlen(text);
    return length > 0 && length <= TN_QUANT_MAX_NAME &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == length;
}

#define KNOWN_SIZE 512 // bytes of all known names

// The known names of formats or of packings, separated by commas.
static const char *known_names(char text[KNOWN_SIZE], bool packings)
{
    size_t at = 0;
    const char *name = "";
    for (uint32_t i = 0; name && at < KNOWN_SIZE; i++) {
        const tn_packing *packing = packings ? tn_quant_packing_at(i) : NULL;
        const tn_quant_format *format = packings ? NULL : tn_quant_at(i);
        name = packing ? packing->id : format ? format->name : NULL;
        if (name)
            at += (size_t)snprintf(text + at, KNOWN_SIZE - at, "%s%s", i ? ", " : "", name);
    }
    return text;
}

static tn_status check_plugin_format(const tn_host *host, const char *name,
                                     const tn_quant_format *format)
{
    if (format->struct_size < sizeof(*format) || !format->decode || format->block < 1 ||
        format->block > TN_QUANT_MAX_BLOCK || format->bytes < 1 ||
        format->bytes > TN_QUANT_MAX_BYTES)
        return host->fail(host, TN_ERR_REFUSED,
                          "format %s has %" PRId64 " bytes for %" PRId64
                          " elements, expected up to %d for up to %d, and decode",
                          name, format->bytes, format->block, TN_QUANT_MAX_BYTES,
                          TN_QUANT_MAX_BLOCK);
    return TN_OK;
}

// The table of another plugin's interface: `id` belongs to the format or packing `name`.
// Where no plugin has it, the message is the host's, which ends with what to install.
static tn_status format_find_elsewhere(const tn_host *host, const char *id,
                                       const char *name, bool is_packing, const void **out)
{
    const tn_host_interfaces *interfaces =
        host->query ? host->query(host, TN_HOST_INTERFACES) : NULL;
    const char *kind = is_packing ? "packing" : "format";
    const tn_host *other;
    char known[KNOWN_SIZE], maker[KNOWN_SIZE + 160];
    known_names(known, is_packing);
    if (!interfaces || !id)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "format is \"%.*s\", expected one of %s, or one that a plugin "
                          "brings",
                          TN_PACKING_MAX_ID, name, known);
    snprintf(maker, sizeof(maker), "a plugin with %s \"%s\", or use one of the %ss %s",
             kind, name, kind, known);
    return interfaces->find(host, id, maker, out, &other);
}

static tn_status format_find_plain(const tn_host *host, const char *name,
                                   const tn_quant_format **out)
{
    char id[TN_QUANT_MAX_NAME + 32];
    const void *found;
    *out = tn_quant_find(name);
    if (*out)
        return TN_OK;
    if (quant_formats_is_name(name))
        snprintf(id, sizeof(id), TN_IFACE_QUANT_FORMAT("%s"), name);
    tn_status status = format_find_elsewhere(host, quant_formats_is_name(name) ? id : NULL,
                                             name, false, &found);
    if (status != TN_OK)
        return status;
    *out = found;
    return check_plugin_format(host, name, found);
}

// --- packings ---------------------------------------------------------------------------

static bool format_is_packing(const char *text)
{
    size_t length = strlen(text);
    return length <= TN_PACKING_MAX_ID && strchr(text, '.') &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_.-") == length;
}

static tn_status format_find_packing(const tn_host *host, const char *name,
                                     const tn_packing **out)
{
    char id[TN_PACKING_MAX_ID + 32];
    const void *found;
    *out = tn_quant_packing_find(name);
    if (*out)
        return TN_OK;
    snprintf(id, sizeof(id), TN_IFACE_PACKING("%s"), name);
    tn_status status = format_find_elsewhere(host, id, name, true, &found);
    if (status != TN_OK)
        return status;
    *out = found;
    if (!TN_HAS(*out, unpack) || !(*out)->pack || !(*out)->rows_bytes || !(*out)->format ||
        !(*out)->id || strcmp((*out)->id, name) != 0)
        return host->fail(host, TN_ERR_REFUSED,
                          "packing %s: its record lacks a function or its format, or has "
                          "another id",
                          name);
    return TN_OK;
}

tn_status find_format(const tn_host *host, const char *name, struct format *out)
{
    *out = (struct format){.packing = NULL};
    tn_status status = TN_OK;
    if (format_is_packing(name))
        status = format_find_packing(host, name, &out->packing);
    return status == TN_OK
               ? format_find_plain(host, out->packing ? out->packing->format : name,
                                   &out->plain)
               : status;
}

encode_fn *format_encoder(const tn_quant_format *format)
{
    static const struct {
        const char *name;
        encode_fn *encode;
    } encoders[] = {
#define ROW(name) {#name, encode_##name},
        ENCODED_FORMATS(ROW) SEARCHED_FORMATS(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof(encoders) / sizeof(encoders[0]); i++)
        if (strcmp(format->name, encoders[i].name) == 0)
            return encoders[i].encode;
    return format->encode;
}

weigh_fn *format_weigher(const tn_quant_format *format)
{
    static const struct {
        const char *name;
        weigh_fn *weigh;
    } weighers[] = {
#define ROW(name) {#name, weigh_##name},
        WEIGHED_FORMATS(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof(weighers) / sizeof(weighers[0]); i++)
        if (strcmp(format->name, weighers[i].name) == 0)
            return weighers[i].weigh;
    return NULL;
}
