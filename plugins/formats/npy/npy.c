// SPDX-License-Identifier: MIT
// NumPy's .npy files, formats 1.0 to 3.0: magic, version, a header that is a Python
// dictionary, and the elements. Format 1.0 is written, little-endian and row-major.
//
// Nothing in the file is trusted: sizes are checked for overflow and against the file's own
// size before memory is allocated.
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/format.h>
#include <tenon/provider.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define MAX_HEADER (1u << 16) // bytes; NumPy writes about 120
#define MAGIC "\x93NUMPY"

// NumPy's letter and size for each dtype. It has no name for bf16 and 8-bit floats.
static const struct {
    char name[4];
    tn_dtype dtype;
} kinds[] = {
    {"b1", TN_BOOL},      {"i1", TN_I8},          {"i2", TN_I16}, {"i4", TN_I32},
    {"i8", TN_I64},       {"u1", TN_U8},          {"u2", TN_U16}, {"u4", TN_U32},
    {"u8", TN_U64},       {"f2", TN_F16},         {"f4", TN_F32}, {"f8", TN_F64},
    {"c8", TN_COMPLEX64}, {"c16", TN_COMPLEX128},
};

// The contents of a header.
struct npy_header {
    tn_type type;
    bool big_endian;
    bool fortran;
    bool has_descr, has_order, has_shape;
};

struct npy_parser {
    const tn_host *host;
    const char *path;
    const char *at; // in the header's text, which ends with NUL
};

// --- the header's dictionary -----------------------------------------------------------

static void npy_skip_space(struct npy_parser *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
}

static bool npy_take(struct npy_parser *p, char wanted)
{
    npy_skip_space(p);
    if (*p->at != wanted)
        return false;
    p->at++;
    return true;
}

static tn_status bad_header(const struct npy_parser *p, const char *expected)
{
    return p->host->fail(p->host, TN_ERR_REFUSED,
                         "%s: damaged header: expected %s at '%.20s'", p->path, expected,
                         p->at);
}

// A quoted string of less than `size` bytes.
static tn_status take_string(struct npy_parser *p, char *out, size_t size)
{
    npy_skip_space(p);
    char quote = *p->at;
    if (quote != '\'' && quote != '"')
        return bad_header(p, "a string");
    const char *end = strchr(p->at + 1, quote);
    size_t length = end ? (size_t)(end - p->at - 1) : 0;
    if (!end || length >= size)
        return bad_header(p, "a short string");
    memcpy(out, p->at + 1, length);
    out[length] = '\0';
    p->at = end + 1;
    return TN_OK;
}

static tn_status take_descr(struct npy_parser *p, struct npy_header *header)
{
    char descr[16];
    npy_skip_space(p);
    if (*p->at == '[' || *p->at == '(')
        return p->host->fail(p->host, TN_ERR_REFUSED,
                             "%s: has a structured dtype; expected one of numbers",
                             p->path);
    tn_status failed = take_string(p, descr, sizeof(descr));
    if (failed)
        return failed;
    const char *kind = descr + (strchr("<>|=", descr[0]) && descr[0] ? 1 : 0);
    header->big_endian = descr[0] == '>';
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (strcmp(kind, kinds[i].name) == 0)
            header->type.dtype = kinds[i].dtype;
    if (header->type.dtype == TN_DTYPE_NONE)
        return p->host->fail(
            p->host, TN_ERR_REFUSED,
            "%s: dtype '%s' is not supported; expected bool, an integer, f2, f4, f8, "
            "c8 or c16%s",
            p->path, descr,
            strcmp(kind, "V2") == 0 ? " (bf16 has no name in NumPy: save it as f4)" : "");
    return TN_OK;
}

static tn_status take_order(struct npy_parser *p, struct npy_header *header)
{
    npy_skip_space(p);
    if (strncmp(p->at, "True", 4) == 0) {
        header->fortran = true;
        p->at += 4;
        return TN_OK;
    }
    if (strncmp(p->at, "False", 5) == 0) {
        p->at += 5;
        return TN_OK;
    }
    return bad_header(p, "True or False");
}

static tn_status npy_take_shape(struct npy_parser *p, struct npy_header *header)
{
    if (!npy_take(p, '('))
        return bad_header(p, "a shape in parentheses");
    tn_type *shape = &header->type;
    while (!npy_take(p, ')')) {
        char *end;
        errno = 0;
        npy_skip_space(p);
        long long extent = strtoll(p->at, &end, 10);
        if (end == p->at || errno || extent < 0)
            return bad_header(p, "an extent from 0 to 2^63 - 1");
        if (shape->rank == TN_MAX_RANK)
            return p->host->fail(p->host, TN_ERR_REFUSED, "%s: more than %d axes", p->path,
                                 TN_MAX_RANK);
        shape->extent[shape->rank++] = extent;
        p->at = end;
        if (*p->at == 'L') // written by Python 2
            p->at++;
        if (!npy_take(p, ',') && *p->at != ')')
            return bad_header(p, "',' or ')' in the shape");
    }
    return TN_OK;
}

static tn_status take_entry(struct npy_parser *p, struct npy_header *header)
{
    char key[32];
    tn_status failed = take_string(p, key, sizeof(key));
    if (failed)
        return failed;
    if (!npy_take(p, ':'))
        return bad_header(p, "':' after a key");
    static const struct {
        const char *key;
        size_t seen; // offset of a bool in header
        tn_status (*take)(struct npy_parser *p, struct npy_header *header);
    } entries[] = {
        {"descr", offsetof(struct npy_header, has_descr), take_descr},
        {"fortran_order", offsetof(struct npy_header, has_order), take_order},
        {"shape", offsetof(struct npy_header, has_shape), npy_take_shape},
    };
    for (size_t i = 0; i < COUNT(entries); i++) {
        bool *seen = (bool *)((char *)header + entries[i].seen);
        if (strcmp(key, entries[i].key) != 0)
            continue;
        if (*seen)
            return p->host->fail(p->host, TN_ERR_REFUSED,
                                 "%s: damaged header: '%s' stands twice", p->path, key);
        *seen = true;
        return entries[i].take(p, header);
    }
    return p->host->fail(p->host, TN_ERR_REFUSED, "%s: damaged header: unknown key '%s'",
                         p->path, key);
}

static tn_status npy_header_parse(const tn_host *host, const char *path, const char *text,
                                  struct npy_header *out)
{
    struct npy_parser p = {.host = host, .path = path, .at = text};
    struct npy_header header = {0};
    if (!npy_take(&p, '{'))
        return bad_header(&p, "'{'");
    while (!npy_take(&p, '}')) {
        tn_status failed = take_entry(&p, &header);
        if (failed)
            return failed;
        if (!npy_take(&p, ',') && *p.at != '}')
            return bad_header(&p, "',' or '}'");
    }
    npy_skip_space(&p);
    if (*p.at)
        return bad_header(&p, "the end");
    if (!header.has_descr || !header.has_order || !header.has_shape)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: damaged header: expected descr, fortran_order and shape",
                          path);
    *out = header;
    return TN_OK;
}

// --- reading ---------------------------------------------------------------------------

// A content, with the memory that it points to.
struct npy_content {
    tn_format_content content; // first: npy_content is found from it by a cast
    tn_format_array array;
    struct npy_header header;
};

static tn_status npy_read_text(const tn_host *host, const tn_format_source *source,
                               uint64_t at, uint32_t length, struct npy_header *out)
{
    char *text = host->alloc(host, (uint64_t)length + 1, 0);
    if (!text)
        return TN_ERR_MEMORY;
    tn_status status = source->read(source, at, text, length);
    text[length] = '\0';
    if (status == TN_OK && memchr(text, '\0', length))
        status = host->fail(host, TN_ERR_REFUSED, "%s: damaged header: it contains a NUL",
                            source->name);
    if (status == TN_OK)
        status = npy_header_parse(host, source->name, text, out);
    host->free(host, text);
    return status;
}

// Gives the header, and the byte at which the elements begin.
static tn_status npy_header_read(const tn_host *host, const tn_format_source *source,
                                 struct npy_header *out, uint64_t *out_begin)
{
    unsigned char start[12] = {0};
    if (source->size < 10)
        return host->fail(host, TN_ERR_REFUSED, "%s: not a .npy file", source->name);
    uint64_t known = source->size < sizeof(start) ? source->size : sizeof(start);
    tn_status status = source->read(source, 0, start, known);
    if (status != TN_OK)
        return status;
    if (memcmp(start, MAGIC, 6) != 0)
        return host->fail(host, TN_ERR_REFUSED, "%s: not a .npy file", source->name);
    int major = start[6];
    uint32_t width = major == 1 ? 2 : 4; // bytes of the header's length
    if (major < 1 || major > 3)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: .npy format %d.%d; expected 1.0, 2.0 or 3.0", source->name,
                          major, start[7]);
    uint32_t length = start[8] | (uint32_t)start[9] << 8;
    if (width == 4)
        length |= (uint32_t)start[10] << 16 | (uint32_t)start[11] << 24;
    if (length > MAX_HEADER)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: header of %u bytes; expected at most %u", source->name,
                          length, MAX_HEADER);
    *out_begin = 8 + width + (uint64_t)length;
    if (*out_begin > source->size)
        return host->fail(host, TN_ERR_REFUSED, "%s: truncated header", source->name);
    return npy_read_text(host, source, 8 + width, length, out);
}

// Writes a shape as NumPy does, "(2, 3)".
static const char *npy_shape_text(const tn_type *type, char text[192])
{
    size_t at = (size_t)snprintf(text, 192, "(");
    for (int32_t i = 0; i < type->rank; i++)
        at += (size_t)snprintf(text + at, 192 - at, "%s%" PRId64, i ? ", " : "",
                               type->extent[i]);
    snprintf(text + at, 192 - at, "%s)", type->rank == 1 ? "," : "");
    return text;
}

static tn_status npy_describe(const tn_host *host, const tn_format_source *source,
                              uint64_t begin, struct npy_content *c)
{
    char text[192];
    const struct npy_header *header = &c->header;
    uint64_t bytes, left = source->size - begin;
    bool is_transposed = header->fortran && header->type.rank > 1;
    bool is_swapped = header->big_endian && tn_dtype_bytes(header->type.dtype) > 1;
    if (!tn_format_bytes(&header->type, &bytes))
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: the bytes of shape %s overflow 63 bits", source->name,
                          npy_shape_text(&header->type, text));
    if (bytes > left)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: truncated: shape %s of %s needs %" PRIu64 " bytes, %" PRIu64
                          " are there",
                          source->name, npy_shape_text(&header->type, text),
                          tn_dtype_name(header->type.dtype), bytes, left);
    bool in_place = !is_transposed && !is_swapped && header->type.dtype != TN_BOOL;
    c->array = (tn_format_array){.name = "",
                                 .type = header->type,
                                 .offset = begin,
                                 .size = bytes,
                                 .flags = in_place ? TN_FORMAT_IN_PLACE : 0};
    c->content = (tn_format_content){.struct_size = sizeof(c->content),
                                     .arrays = &c->array,
                                     .num_arrays = 1,
                                     .array_size = sizeof(c->array),
                                     .text_size = sizeof(tn_format_text)};
    return TN_OK;
}

static tn_status npy_list(const tn_host *host, const tn_format_source *source,
                          const tn_format_content **out_content)
{
    uint64_t begin = 0;
    struct npy_content *c = host->alloc(host, sizeof(*c), 0);
    if (!c)
        return TN_ERR_MEMORY;
    *c = (struct npy_content){0};
    tn_status status = npy_header_read(host, source, &c->header, &begin);
    if (status == TN_OK)
        status = npy_describe(host, source, begin, c);
    if (status == TN_OK)
        *out_content = &c->content;
    else
        host->free(host, c);
    return status;
}

static void npy_close(const tn_host *host, const tn_format_content *content)
{
    host->free(host, (void *)(uintptr_t)content);
}

static void swap_bytes(unsigned char *data, uint64_t bytes, uint64_t size)
{
    for (uint64_t i = 0; i + size <= bytes; i += size) {
        for (uint64_t j = 0; j < size / 2; j++) {
            unsigned char saved = data[i + j];
            data[i + j] = data[i + size - 1 - j];
            data[i + size - 1 - j] = saved;
        }
    }
}

// Copies elements from column-major (Fortran) to row-major order.
static void to_rows(const tn_type *type, const unsigned char *columns, unsigned char *rows,
                    uint64_t bytes)
{
    uint64_t size = (uint64_t)tn_dtype_bytes(type->dtype), elements = bytes / size;
    int64_t at[TN_MAX_RANK] = {0};
    for (uint64_t i = 0; i < elements; i++) {
        uint64_t from = 0;
        for (int32_t axis = type->rank - 1; axis >= 0; axis--)
            from = from * (uint64_t)type->extent[axis] + (uint64_t)at[axis];
        memcpy(rows + i * size, columns + from * size, size);
        for (int32_t axis = type->rank - 1; axis >= 0; axis--) {
            if (++at[axis] < type->extent[axis])
                break;
            at[axis] = 0;
        }
    }
}

// Gives elements that differ from their bytes in the file.
static tn_status npy_read(const tn_host *host, const tn_format_source *source,
                          const tn_format_content *content, uint64_t index, void *data)
{
    const struct npy_content *c = (const void *)content;
    const tn_format_array *array = &c->array;
    bool is_transposed = c->header.fortran && array->type.rank > 1;
    (void)index; // 0: the file has one array
    unsigned char *read = is_transposed ? host->alloc(host, array->size, 0) : data;
    if (!read)
        return TN_ERR_MEMORY;
    tn_status status = source->read(source, array->offset, read, array->size);
    if (status == TN_OK && c->header.big_endian)
        swap_bytes(read, array->size,
                   (uint64_t)tn_dtype_bytes(tn_dtype_real(array->type.dtype)));
    for (uint64_t i = 0; status == TN_OK && array->type.dtype == TN_BOOL && i < array->size;
         i++)
        read[i] = read[i] != 0;
    if (status == TN_OK && is_transposed)
        to_rows(&array->type, read, data, array->size);
    if (is_transposed)
        host->free(host, read);
    return status;
}

// --- writing ---------------------------------------------------------------------------

// Writes the header, padded with spaces so that the elements start at a multiple of 64.
static size_t npy_header_make(const tn_type *type, const char *name, char *out, size_t size)
{
    char shape[192];
    int64_t width = tn_dtype_bytes(type->dtype);
    int length = snprintf(out + 10, size - 10,
                          "{'descr': '%c%s', 'fortran_order': False, 'shape': %s, }",
                          width == 1 ? '|' : '<', name, npy_shape_text(type, shape));
    size_t total = ((size_t)length + 11 + 63) & ~(size_t)63;
    memset(out + 10 + length, ' ', total - 11 - (size_t)length);
    out[total - 1] = '\n';
    memcpy(out, MAGIC "\x01\x00", 8);
    out[8] = (char)((total - 10) & 0xff);
    out[9] = (char)((total - 10) >> 8);
    return total;
}

static tn_status npy_write(const tn_host *host, const tn_format_content *content,
                           const tn_format_sink *sink)
{
    char header[512];
    const char *name = NULL;
    const tn_format_array *array = content->arrays;
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (kinds[i].dtype == array->type.dtype)
            name = kinds[i].name;
    if (!name)
        return host->fail(host, TN_ERR_UNSUPPORTED,
                          "%s: NumPy has no name for %s; cast before writing: "
                          "astype(..., dtype=f32)",
                          sink->name, tn_dtype_name(array->type.dtype));
    size_t length = npy_header_make(&array->type, name, header, sizeof(header));
    tn_status status = sink->write(sink, header, length);
    return status == TN_OK ? sink->write(sink, array->data, array->size) : status;
}

// --- the plugin --------------------------------------------------------------------------

static const tn_format format = {
    .struct_size = sizeof(format),
    .flags = TN_FORMAT_SINGLE,
    .list = npy_list,
    .close = npy_close,
    .read = npy_read,
    .write = npy_write,
};

static const tn_selector selectors[] = {
    {TN_IFACE_FORMAT, "extension", "npy"},
    {TN_IFACE_FORMAT, TN_SELECT_MAGIC, "934e554d5059"},
};

TN_PROVIDER("org.tenon.npy", "0.1.0", "Tenon", TN_IFACE_FORMAT, format, selectors);
