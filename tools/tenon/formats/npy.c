// SPDX-License-Identifier: MIT
// A .npy file: magic, version, a header that is a Python dictionary, and the elements.
//
// Nothing in the file is trusted: sizes are checked for overflow and against the file's own
// size before memory is allocated.
#include "npy.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define MAX_HEADER (1u << 16) // bytes; NumPy writes about 120
#define MAGIC "\x93NUMPY"

// NumPy's letter and size for each dtype.
static const struct {
    char kind;
    char size;
    tn_dtype dtype;
} kinds[] = {
    {'b', '1', TN_BOOL}, {'i', '1', TN_I8},  {'i', '2', TN_I16}, {'i', '4', TN_I32},
    {'i', '8', TN_I64},  {'u', '1', TN_U8},  {'u', '2', TN_U16}, {'u', '4', TN_U32},
    {'u', '8', TN_U64},  {'f', '2', TN_F16}, {'f', '4', TN_F32}, {'f', '8', TN_F64},
};

// The contents of a header.
struct header {
    tn_dtype dtype;
    tn_shape shape;
    bool big_endian;
    bool fortran;
    bool has_descr, has_order, has_shape;
};

struct npy_parser {
    const char *path;
    const char *at; // in the header's text, which ends with NUL
};

// --- the header's dictionary -----------------------------------------------------------

static void skip_space(struct npy_parser *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
}

static bool take(struct npy_parser *p, char wanted)
{
    skip_space(p);
    if (*p->at != wanted)
        return false;
    p->at++;
    return true;
}

static int bad_header(const struct npy_parser *p, const char *expected)
{
    return oops("%s: damaged header: expected %s at '%.20s'", p->path, expected, p->at);
}

// A quoted string of less than `size` bytes.
static int take_string(struct npy_parser *p, char *out, size_t size)
{
    skip_space(p);
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
    return 0;
}

static int take_descr(struct npy_parser *p, struct header *header)
{
    char descr[16];
    skip_space(p);
    if (*p->at == '[' || *p->at == '(')
        return oops("%s: has a structured dtype; expected one of numbers", p->path);
    int failed = take_string(p, descr, sizeof(descr));
    if (failed)
        return failed;
    const char *kind = descr + (strchr("<>|=", descr[0]) && descr[0] ? 1 : 0);
    header->big_endian = descr[0] == '>';
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (kind[0] == kinds[i].kind && kind[1] == kinds[i].size && !kind[2])
            header->dtype = kinds[i].dtype;
    if (header->dtype == TN_DTYPE_NONE)
        return oops(
            "%s: dtype '%s' is not supported; expected bool, an integer, or f2, f4, "
            "f8%s",
            p->path, descr,
            strcmp(kind, "V2") == 0 ? " (bf16 has no name in NumPy: save it as f4)" : "");
    return 0;
}

static int take_order(struct npy_parser *p, struct header *header)
{
    skip_space(p);
    if (strncmp(p->at, "True", 4) == 0) {
        header->fortran = true;
        p->at += 4;
        return 0;
    }
    if (strncmp(p->at, "False", 5) == 0) {
        p->at += 5;
        return 0;
    }
    return bad_header(p, "True or False");
}

static int take_shape(struct npy_parser *p, struct header *header)
{
    if (!take(p, '('))
        return bad_header(p, "a shape in parentheses");
    tn_shape *shape = &header->shape;
    while (!take(p, ')')) {
        char *end;
        errno = 0;
        skip_space(p);
        long long extent = strtoll(p->at, &end, 10);
        if (end == p->at || errno || extent < 0)
            return bad_header(p, "an extent from 0 to 2^63 - 1");
        if (shape->rank == TN_MAX_RANK)
            return oops("%s: more than %d axes", p->path, TN_MAX_RANK);
        shape->extent[shape->rank++] = extent;
        p->at = end;
        if (*p->at == 'L') // written by Python 2
            p->at++;
        if (!take(p, ',') && *p->at != ')')
            return bad_header(p, "',' or ')' in the shape");
    }
    return 0;
}

static int take_entry(struct npy_parser *p, struct header *header)
{
    char key[32];
    int failed = take_string(p, key, sizeof(key));
    if (failed)
        return failed;
    if (!take(p, ':'))
        return bad_header(p, "':' after a key");
    static const struct {
        const char *key;
        size_t seen; // offset of a bool in header
        int (*take)(struct npy_parser *p, struct header *header);
    } entries[] = {
        {"descr", offsetof(struct header, has_descr), take_descr},
        {"fortran_order", offsetof(struct header, has_order), take_order},
        {"shape", offsetof(struct header, has_shape), take_shape},
    };
    for (size_t i = 0; i < COUNT(entries); i++) {
        bool *seen = (bool *)((char *)header + entries[i].seen);
        if (strcmp(key, entries[i].key) != 0)
            continue;
        if (*seen)
            return oops("%s: damaged header: '%s' stands twice", p->path, key);
        *seen = true;
        return entries[i].take(p, header);
    }
    return oops("%s: damaged header: unknown key '%s'", p->path, key);
}

static int parse_header(const char *path, const char *text, struct header *out)
{
    struct npy_parser p = {.path = path, .at = text};
    struct header header = {0};
    if (!take(&p, '{'))
        return bad_header(&p, "'{'");
    while (!take(&p, '}')) {
        int failed = take_entry(&p, &header);
        if (failed)
            return failed;
        if (!take(&p, ',') && *p.at != '}')
            return bad_header(&p, "',' or '}'");
    }
    skip_space(&p);
    if (*p.at)
        return bad_header(&p, "the end");
    if (!header.has_descr || !header.has_order || !header.has_shape)
        return oops("%s: damaged header: expected descr, fortran_order and shape", path);
    *out = header;
    return 0;
}

// --- reading ---------------------------------------------------------------------------

static int read_header(const char *path, FILE *stream, struct header *out)
{
    unsigned char start[12];
    if (fread(start, 1, 8, stream) != 8 || memcmp(start, MAGIC, 6) != 0)
        return oops("%s: not a .npy file", path);
    int major = start[6];
    size_t width = major == 1 ? 2 : 4; // bytes of the header's length
    if (major < 1 || major > 3)
        return oops("%s: .npy format %d.%d; expected 1.0, 2.0 or 3.0", path, major,
                    start[7]);
    if (fread(start + 8, 1, width, stream) != width)
        return oops("%s: truncated header", path);
    uint32_t length = start[8] | (uint32_t)start[9] << 8;
    if (width == 4)
        length |= (uint32_t)start[10] << 16 | (uint32_t)start[11] << 24;
    if (length > MAX_HEADER)
        return oops("%s: header of %u bytes; expected at most %u", path, length,
                    MAX_HEADER);
    char *text = malloc(length + 1);
    if (!text)
        return oops_memory();
    int failed = 0;
    if (fread(text, 1, length, stream) != length)
        failed = oops("%s: truncated header", path);
    text[length] = '\0';
    if (!failed && memchr(text, '\0', length))
        failed = oops("%s: damaged header: it contains a NUL", path);
    if (!failed)
        failed = parse_header(path, text, out);
    free(text);
    return failed;
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

// Reorders elements from column-major (Fortran) to row-major order.
static int to_rows(struct host_array *array)
{
    uint64_t size = dtype_size(array->dtype), elements = array->bytes / size;
    unsigned char *rows = malloc(array->bytes ? array->bytes : 1);
    if (!rows)
        return oops_memory();
    const unsigned char *columns = array->data;
    int64_t at[TN_MAX_RANK] = {0};
    for (uint64_t i = 0; i < elements; i++) {
        uint64_t from = 0;
        for (int32_t axis = array->shape.rank - 1; axis >= 0; axis--)
            from = from * (uint64_t)array->shape.extent[axis] + (uint64_t)at[axis];
        memcpy(rows + i * size, columns + from * size, size);
        for (int32_t axis = array->shape.rank - 1; axis >= 0; axis--) {
            if (++at[axis] < array->shape.extent[axis])
                break;
            at[axis] = 0;
        }
    }
    free(array->data);
    array->data = rows;
    return 0;
}

static int read_elements(const char *path, FILE *stream, int64_t file_size,
                         const struct header *header, struct host_array *array)
{
    uint64_t elements;
    char text[SHAPE_TEXT];
    if (!type_bytes(array->dtype, &array->shape, &elements, &array->bytes))
        return oops("%s: the bytes of shape %s overflow 63 bits", path,
                    shape_text(&array->shape, text));
    int64_t left = file_size < 0 ? INT64_MAX : file_size - (int64_t)ftell(stream);
    if ((int64_t)array->bytes > left)
        return oops("%s: truncated: shape %s of %s needs %" PRIu64 " bytes, %" PRId64
                    " are there",
                    path, shape_text(&array->shape, text), dtype_name(array->dtype),
                    array->bytes, left);
    array->data = malloc(array->bytes ? array->bytes : 1);
    if (!array->data)
        return oops("%s: out of memory: %" PRIu64 " bytes", path, array->bytes);
    if (fread(array->data, 1, array->bytes, stream) != array->bytes)
        return oops("%s: truncated: expected %" PRIu64 " bytes of elements", path,
                    array->bytes);
    if (header->big_endian)
        swap_bytes(array->data, array->bytes, dtype_size(array->dtype));
    for (uint64_t i = 0; array->dtype == TN_BOOL && i < array->bytes; i++)
        ((uint8_t *)array->data)[i] = ((uint8_t *)array->data)[i] != 0;
    return header->fortran && array->shape.rank > 1 ? to_rows(array) : 0;
}

int npy_read(const char *path, struct host_array *out)
{
    FILE *stream;
    int64_t size;
    int failed = file_open(path, &stream, &size);
    if (failed)
        return failed;
    struct header header = {0};
    struct host_array array = {0};
    failed = read_header(path, stream, &header);
    if (!failed) {
        array.dtype = header.dtype;
        array.shape = header.shape;
        failed = read_elements(path, stream, size, &header, &array);
    }
    fclose(stream);
    if (failed)
        host_array_finish(&array);
    else
        *out = array;
    return failed;
}

// --- writing ---------------------------------------------------------------------------

// Writes the header, padded with spaces so that the elements start at a multiple of 64.
static size_t make_header(const struct host_array *array, char kind, char *out, size_t size)
{
    char shape[SHAPE_TEXT];
    uint64_t width = dtype_size(array->dtype);
    int length = snprintf(
        out + 10, size - 10, "{'descr': '%c%c%d', 'fortran_order': False, 'shape': %s, }",
        width == 1 ? '|' : '<', kind, (int)width, shape_text(&array->shape, shape));
    size_t total = ((size_t)length + 11 + 63) & ~(size_t)63;
    memset(out + 10 + length, ' ', total - 11 - (size_t)length);
    out[total - 1] = '\n';
    memcpy(out, MAGIC "\x01\x00", 8);
    out[8] = (char)((total - 10) & 0xff);
    out[9] = (char)((total - 10) >> 8);
    return total;
}

int npy_write(const char *path, const struct host_array *array)
{
    char header[512], kind = 0;
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (kinds[i].dtype == array->dtype)
            kind = kinds[i].kind;
    if (!kind)
        return oops("%s: NumPy has no name for %s; cast before writing: "
                    "astype(..., dtype=f32)",
                    path, dtype_name(array->dtype));
    size_t length = make_header(array, kind, header, sizeof(header));
    if (strcmp(path, "-") == 0)
        return fwrite(header, 1, length, stdout) == length &&
                       fwrite(array->data, 1, array->bytes, stdout) == array->bytes
                   ? 0
                   : oops("cannot write the output");
    struct new_file file;
    int failed = new_file_open(&file, path);
    if (failed)
        return failed;
    fwrite(header, 1, length, file.stream);
    fwrite(array->data, 1, array->bytes, file.stream);
    return new_file_commit(&file); // also reports failed writes
}
