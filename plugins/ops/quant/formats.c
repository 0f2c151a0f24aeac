// SPDX-License-Identifier: MIT
// Formats by name: the table's, and those of plugins.
#include "pack.h"

#include <stdio.h>
#include "encode.h"

static bool is_name(const char *text)
{
    size_t length = strlen(text);
    return length > 0 && length <= TN_QUANT_MAX_NAME &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == length;
}

// The known names, by comma, as far as there is room.
static const char *known_formats(char *text, size_t size)
{
    size_t at = 0;
#define APPEND(name, ...)                                                                  \
    at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "", #name);
    TN_QUANT_FORMATS(APPEND)
    TN_QUANT_PACKED_FORMATS(APPEND)
#undef APPEND
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

static tn_status unknown_format(const tn_host *host, const char *name)
{
    char known[300];
    return host->fail(host, TN_ERR_ARGUMENT,
                      "format is \"%.*s\", expected one of %s, or one that a plugin brings",
                      TN_QUANT_MAX_NAME, name, known_formats(known, sizeof(known)));
}

// A format of another plugin. Where none has it, the message is the host's, which ends with
// what to install.
static tn_status find_in_plugins(const tn_host *host, const char *name,
                                 const tn_quant_format **out)
{
    const tn_host_interfaces *interfaces =
        host->query ? host->query(host, TN_HOST_INTERFACES) : NULL;
    const tn_host *other;
    const void *found;
    char id[TN_QUANT_MAX_NAME + 32], known[300], maker[480];
    if (!interfaces || !is_name(name))
        return unknown_format(host, name);
    snprintf(id, sizeof(id), TN_IFACE_QUANT_FORMAT("%s"), name);
    snprintf(maker, sizeof(maker),
             "a plugin with format \"%s\", or use one of the formats %s", name,
             known_formats(known, sizeof(known)));
    tn_status status = interfaces->find(host, id, maker, &found, &other);
    if (status)
        return status;
    *out = found;
    return check_plugin_format(host, name, found);
}

tn_status find_format(const tn_host *host, const char *name, struct format *out)
{
    *out = (struct format){.plain = tn_quant_find(name)};
    if (out->plain)
        return TN_OK;
    out->plain = tn_quant_unpacked(name, &out->order);
    out->is_packed = out->plain != NULL;
    return out->plain ? TN_OK : find_in_plugins(host, name, &out->plain);
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
