// SPDX-License-Identifier: MIT
// Tables from files: IDX, npy, CSV, text. Files are read whole and distrusted.
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/file.h>
#include <zlib.h>
#include "common.h"

void tn_table_finish(tn_table *table)
{
    free(table->data);
    *table = (tn_table){0};
}

tn_status train_check_tables(const tn_table *tables, uint64_t count)
{
    if (!tables || count < 1 || count > MOST_TABLES)
        return train_fail(TN_ERR_ARGUMENT, "%llu tables, expected 1 to %d",
                          (unsigned long long)(tables ? count : 0), MOST_TABLES);
    for (uint64_t i = 0; i < count; i++) {
        if (tables[i].shape.rank < 1)
            return train_fail(TN_ERR_ARGUMENT, "table %llu has no rows",
                              (unsigned long long)i);
        if (tables[i].shape.extent[0] != tables[0].shape.extent[0])
            return train_fail(TN_ERR_ARGUMENT,
                              "table %llu has %lld rows, expected %lld as the "
                              "first",
                              (unsigned long long)i, (long long)tables[i].shape.extent[0],
                              (long long)tables[0].shape.extent[0]);
    }
    return TN_OK;
}

// Reads the number at `index` of a table; false: its dtype has no such numbers.
static bool train_table_number_at(const tn_table *table, uint64_t index, double *out)
{
    const void *data = table->data;
#define CASE(name, type)                                                                   \
    case TN_##name:                                                                        \
        *out = (double)((const type *)data)[index];                                        \
        return true
    switch (table->dtype) {
        CASE(U8, uint8_t);
        CASE(I8, int8_t);
        CASE(U16, uint16_t);
        CASE(I16, int16_t);
        CASE(U32, uint32_t);
        CASE(I32, int32_t);
        CASE(U64, uint64_t);
        CASE(I64, int64_t);
        CASE(F32, float);
        CASE(F64, double);
    default:
        return false;
    }
#undef CASE
}

tn_status tn_table_check(const tn_table *table, const char *name, double low, double high)
{
    tn_type type = {.rank = table->shape.rank};
    memcpy(type.extent, table->shape.extent, sizeof(type.extent));
    uint64_t count = train_elements(&type);
    uint64_t width = type.rank && type.extent[0] > 0 ? count / (uint64_t)type.extent[0] : 1;
    for (uint64_t i = 0; i < count; i++) {
        double value;
        if (!train_table_number_at(table, i, &value))
            return train_fail(TN_ERR_ARGUMENT, "%s: %s, expected real numbers", name,
                              tn_dtype_name(table->dtype));
        if (!(value >= low && value <= high))
            return train_fail(TN_ERR_REFUSED, "%s: row %llu has %g, expected %g to %g",
                              name, (unsigned long long)(i / width), value, low, high);
    }
    return TN_OK;
}

// Reads all bytes of a file; a gzipped file is unpacked.
static tn_status train_table_read_whole(const char *path, unsigned char **out_bytes,
                                        uint64_t *out_size)
{
    enum { CHUNK = 1 << 20 };
    errno = 0;
    gzFile file = gzopen(path, "rb"); // reads plain files too
    if (!file)
        return train_fail(TN_ERR_IO, "%s: %s", path, strerror(errno ? errno : ENOMEM));
    size_t room = CHUNK, size = 0;
    unsigned char *bytes = malloc(room + 1);
    int got = 0;
    while (bytes && (got = gzread(file, bytes + size, CHUNK)) > 0) {
        size += (size_t)got;
        if (room - size >= CHUNK)
            continue;
        unsigned char *more = realloc(bytes, 2 * room + 1);
        if (!more)
            free(bytes);
        room *= 2;
        bytes = more;
    }
    int code = Z_OK;
    const char *why = gzerror(file, &code);
    tn_status status = TN_OK;
    if (!bytes)
        status = train_fail_memory();
    else if (code == Z_ERRNO)
        status = train_fail(TN_ERR_IO, "%s: %s", path, strerror(errno));
    else if (got < 0 || code != Z_OK)
        status =
            train_fail(TN_ERR_REFUSED, "%s: truncated or damaged: %s", path,
                       strncmp(why, path, strlen(path)) ? why : why + strlen(path) + 2);
    gzclose(file);
    if (status != TN_OK) {
        free(bytes);
        return status;
    }
    bytes[size] = '\0';
    *out_bytes = bytes;
    *out_size = size;
    return TN_OK;
}

// --- IDX --------------------------------------------------------------------------------

// Layout: two zero bytes, a type, the number of axes, extents, elements; all big-endian.
static tn_status read_idx(const char *path, unsigned char *bytes, uint64_t size,
                          tn_table *out)
{
    static const struct {
        unsigned char code, width;
        tn_dtype dtype;
    } types[] = {{0x08, 1, TN_U8},  {0x09, 1, TN_I8},  {0x0b, 2, TN_I16},
                 {0x0c, 4, TN_I32}, {0x0d, 4, TN_F32}, {0x0e, 8, TN_F64}};
    uint64_t count = 1, width = 0, head = 4 + 4 * (uint64_t)bytes[3];
    if (bytes[3] < 1 || bytes[3] > TN_MAX_RANK || head > size)
        return train_fail(
            TN_ERR_REFUSED,
            "%s: an IDX file of %d axes and %llu bytes, expected 1 to %d axes "
            "and their extents",
            path, bytes[3], (unsigned long long)size, TN_MAX_RANK);
    *out = (tn_table){.shape.rank = bytes[3]};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (types[i].code == bytes[2]) {
            out->dtype = types[i].dtype;
            width = types[i].width;
        }
    if (!width)
        return train_fail(TN_ERR_REFUSED, "%s: IDX type 0x%02x is not known", path,
                          bytes[2]);
    for (int32_t i = 0; i < out->shape.rank; i++) {
        const unsigned char *b = bytes + 4 + 4 * (size_t)i;
        uint64_t extent =
            (uint64_t)b[0] << 24 | (uint64_t)b[1] << 16 | (uint64_t)b[2] << 8 | b[3];
        out->shape.extent[i] = (int64_t)extent;
        if (__builtin_mul_overflow(count, extent, &count))
            count = UINT64_MAX / 16;
    }
    if (count > UINT64_MAX / 16 || count * width != size - head)
        return train_fail(
            TN_ERR_REFUSED,
            "%s: the extents say %llu elements of %llu bytes, the file has %llu "
            "bytes for them",
            path, (unsigned long long)count, (unsigned long long)width,
            (unsigned long long)(size - head));
    memmove(bytes, bytes + head, (size_t)(size - head));
    for (uint64_t i = 0; width > 1 && i < count; i++) // converts to little-endian
        for (uint64_t k = 0; k < width / 2; k++) {
            unsigned char *element = bytes + i * width, first = element[k];
            element[k] = element[width - 1 - k];
            element[width - 1 - k] = first;
        }
    out->data = bytes;
    return TN_OK;
}

// --- CSV --------------------------------------------------------------------------------

struct csv_text {
    const char *path, *at;
    float *values;
    uint64_t count, room, line;
    int64_t rows, columns;
    locale_t locale; // "C": numbers have points, whatever the application's locale
};

static tn_status csv_fail(const struct csv_text *c, int64_t column, const char *why)
{
    size_t length = strcspn(c->at, ",\r\n");
    return train_fail(TN_ERR_REFUSED, "%s:%llu: column %lld is '%.*s', %s", c->path,
                      (unsigned long long)c->line, (long long)column,
                      (int)(length < 40 ? length : 40), c->at, why);
}

// Reads one line of numbers. A first line that does not begin with a number is names.
static tn_status train_table_read_line(struct csv_text *c)
{
    int64_t columns = 0;
    const char *first = c->at + strspn(c->at, " \t\"");
    c->line++;
    if (c->line == 1 && *first && !strchr("+-.0123456789", *first) && *first != '\n') {
        c->at += strcspn(c->at, "\n");
        return TN_OK;
    }
    while (*c->at && *c->at != '\n' && *c->at != '\r') {
        char *end;
        double value = strtod_l(c->at, &end, c->locale);
        end += strspn(end, " \t");
        columns++;
        if (end == c->at || (*end && !strchr(",\r\n", *end)))
            return csv_fail(c, columns, "expected a number");
        if (isinf((float)value) && !isinf(value))
            return csv_fail(c, columns, "beyond f32");
        if (c->count == c->room) {
            c->room = c->room ? 2 * c->room : 1024;
            float *more = realloc(c->values, (size_t)c->room * sizeof(*more));
            if (!more)
                return train_fail_memory();
            c->values = more;
        }
        c->values[c->count++] = (float)value;
        c->at = end + (*end == ',');
        if (*end == ',' && (!*c->at || strchr("\r\n", *c->at)))
            return train_fail(TN_ERR_REFUSED, "%s:%llu: the line ends in a comma", c->path,
                              (unsigned long long)c->line);
    }
    if (columns && c->rows && columns != c->columns)
        return train_fail(TN_ERR_REFUSED, "%s:%llu: %lld columns, expected %lld as before",
                          c->path, (unsigned long long)c->line, (long long)columns,
                          (long long)c->columns);
    c->columns = columns ? columns : c->columns;
    c->rows += columns > 0;
    return TN_OK;
}

static tn_status read_csv(const char *path, const char *text, tn_table *out)
{
    struct csv_text c = {.path = path, .at = text};
    c.locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    tn_status status = c.locale ? TN_OK : train_fail_memory();
    while (*c.at && status == TN_OK) {
        status = train_table_read_line(&c);
        c.at += strspn(c.at, "\r");
        c.at += *c.at == '\n';
    }
    if (c.locale)
        freelocale(c.locale);
    if (status == TN_OK && !c.rows)
        status = train_fail(TN_ERR_REFUSED, "%s: no rows of numbers", path);
    if (status != TN_OK) {
        free(c.values);
        return status;
    }
    *out = (tn_table){.dtype = TN_F32,
                      .shape = {.rank = 2, .extent = {c.rows, c.columns}},
                      .data = c.values};
    return TN_OK;
}

// --- npy --------------------------------------------------------------------------------

static tn_status read_npy(tn_runtime *runtime, const char *path, tn_table *out)
{
    tn_scope *scope = tn_scope_open(runtime);
    tn_array *array = tn_load(scope, path, NULL);
    const tn_type *type = tn_array_type(array);
    const void *data = tn_data(scope, array);
    tn_status status = train_fail_scope(scope);
    if (status == TN_OK && type->rank < 1)
        status = train_fail(TN_ERR_REFUSED, "%s: one number, expected rows", path);
    uint64_t size = train_elements(type) * (uint64_t)tn_dtype_bytes(type->dtype);
    if (status == TN_OK) {
        *out = (tn_table){.dtype = type->dtype, .shape.rank = type->rank};
        memcpy(out->shape.extent, type->extent, sizeof(out->shape.extent));
        out->data = malloc((size_t)size + 1);
        status = out->data ? TN_OK : train_fail_memory();
    }
    if (status == TN_OK && size)
        memcpy(out->data, data, (size_t)size);
    tn_scope_close(scope);
    return status;
}

// Whether the name, without ".gz", ends in `end`.
static bool ends_in(const char *path, const char *end)
{
    size_t length = strlen(path), wanted = strlen(end);
    if (length > 3 && strcmp(path + length - 3, ".gz") == 0)
        length -= 3;
    return length >= wanted && strncmp(path + length - wanted, end, wanted) == 0;
}

tn_status tn_table_read(tn_runtime *runtime, const char *path, tn_table *out_table)
{
    unsigned char *bytes = NULL;
    uint64_t size = 0;
    tn_table table = {0};
    if (ends_in(path, ".npy")) {
        tn_status status = read_npy(runtime, path, &table);
        if (status == TN_OK)
            *out_table = table;
        return status;
    }
    tn_status status = train_table_read_whole(path, &bytes, &size);
    if (status != TN_OK)
        return status;
    if (ends_in(path, ".csv"))
        status = memchr(bytes, 0, (size_t)size)
                     ? train_fail(TN_ERR_REFUSED, "%s: a byte 0, expected text", path)
                     : read_csv(path, (const char *)bytes, &table);
    else if (size >= 4 && bytes[0] == 0 && bytes[1] == 0)
        status = read_idx(path, bytes, size, &table);
    else
        table = (tn_table){
            .dtype = TN_U8, .shape = {.rank = 1, .extent = {(int64_t)size}}, .data = bytes};
    if (table.data != bytes)
        free(bytes);
    if (status == TN_OK)
        *out_table = table;
    return status;
}
