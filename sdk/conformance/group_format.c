// SPDX-License-Identifier: MIT
// Formats of files: what `write` writes to memory, `list` and `read` find again, also when
// it was damaged on the way.
#include <tenon/format.h>
#include "array.h"
#include "checks.h"
#include "fake_host.h"
#include "subject.h"

enum {
    MAX_ARRAYS = 5,
    MAX_TEXTS = 2,
    DAMAGED_FILES = 400, // random ones, beside all that are cut short
    MAX_ALLOCATIONS = 100,
    MAX_WRITES = 100,
};

// Bytes that reading may allocate for one byte of the file, and for any file: enough for
// records of arrays and parsers of text.
#define BYTES_PER_BYTE 256
#define BYTES_PER_FILE 65536

static const char path[] = "/folder/file.of-arrays";

// --- files in memory -------------------------------------------------------------------

struct memory_file {
    tn_format_sink sink;     // first: it is cast back
    tn_format_source source; // of `size` bytes
    const tn_host *host;
    unsigned char *bytes;
    uint64_t size, capacity;
    uint64_t calls, fail_at; // of read and write; fail_at 0: none fails
};

static bool fails_now(struct memory_file *file)
{
    return ++file->calls == file->fail_at;
}

static tn_status append(const tn_format_sink *sink, const void *data, uint64_t size)
{
    struct memory_file *file = (void *)(uintptr_t)sink;
    if (fails_now(file))
        return file->host->fail(file->host, TN_ERR_IO, "%s: the disk is full", path);
    if (size > file->capacity - file->size) {
        file->capacity = 2 * (file->size + size);
        file->bytes = realloc(file->bytes, file->capacity);
        if (!file->bytes)
            abort(); // checks run in a child process: its parent reports the abort
    }
    if (size)
        memcpy(file->bytes + file->size, data, size);
    file->size += size;
    return TN_OK;
}

static tn_status take(const tn_format_source *source, uint64_t offset, void *data,
                      uint64_t size)
{
    struct memory_file *file =
        (void *)((char *)(uintptr_t)source - offsetof(struct memory_file, source));
    if (fails_now(file))
        return file->host->fail(file->host, TN_ERR_IO, "%s: the disk is gone", path);
    if (offset > source->size || size > source->size - offset)
        return file->host->fail(file->host, TN_ERR_REFUSED,
                                "%s: %llu bytes at %llu of a file of %llu", path,
                                (unsigned long long)size, (unsigned long long)offset,
                                (unsigned long long)source->size);
    if (size)
        memcpy(data, file->bytes + offset, size);
    return TN_OK;
}

static void file_start(struct memory_file *file, const tn_host *host)
{
    *file = (struct memory_file){
        .sink = {.struct_size = sizeof(file->sink), .name = path, .write = append},
        .source = {.struct_size = sizeof(file->source), .name = path, .read = take},
        .host = host};
}

static const tn_format_source *file_source(struct memory_file *file)
{
    file->source.size = file->size;
    return &file->source;
}

// --- contents --------------------------------------------------------------------------

struct content {
    tn_format_content table;
    tn_format_array arrays[MAX_ARRAYS];
    unsigned char *data[MAX_ARRAYS];
};

static const tn_format_text texts[MAX_TEXTS] = {{"made by", "a check"},
                                                {"zwölf", "\"12\"\n{}\t\\"}};

static void array_draw(struct kit *k, struct content *c, uint64_t i, tn_dtype dtype,
                       int32_t rank)
{
    static const char *const names[MAX_ARRAYS] = {"w", "layer.0.weight", "größe", "a b",
                                                  "x/y"};
    tn_format_array *array = &c->arrays[i];
    uint64_t bytes = 0;
    *array = (tn_format_array){.name = names[i], .type = {.dtype = dtype, .rank = rank}};
    for (int32_t axis = 0; axis < rank; axis++)
        array->type.extent[axis] = (int64_t)random_below(k, rank > 4 ? 3 : 5);
    (void)tn_format_bytes(&array->type, &bytes);
    c->data[i] = malloc(bytes + 1);
    if (!c->data[i])
        abort(); // checks run in a child process: its parent reports the abort
    for (uint64_t at = 0; at < bytes; at++)
        c->data[i][at] = (unsigned char)(random_bits(k) >> (dtype == TN_BOOL ? 63 : 56));
    array->data = c->data[i];
    array->size = bytes;
}

// `dtype` NONE: any.
static void content_draw(struct kit *k, struct content *c, const tn_format *format,
                         tn_dtype dtype)
{
    bool single = format->flags & TN_FORMAT_SINGLE;
    uint64_t count = single ? 1 : dtype ? 1 + random_below(k, 2) : random_below(k, 6);
    *c =
        (struct content){.table = {.struct_size = sizeof(c->table),
                                   .arrays = c->arrays,
                                   .texts = texts,
                                   .num_arrays = count,
                                   .num_texts = single ? 0 : random_below(k, MAX_TEXTS + 1),
                                   .array_size = sizeof(c->arrays[0]),
                                   .text_size = sizeof(texts[0])}};
    for (uint64_t i = 0; i < count; i++)
        array_draw(k, c, i,
                   dtype ? dtype : (tn_dtype)(1 + random_below(k, TN_NUM_DTYPES - 1)),
                   (int32_t)random_below(k, TN_MAX_RANK + 1));
    if (single)
        c->arrays[0].name = "";
}

static void content_free(struct content *c)
{
    for (uint64_t i = 0; i < c->table.num_arrays; i++)
        free(c->data[i]);
}

// --- calls -----------------------------------------------------------------------------

struct formats {
    struct kit *kit;
    struct subject subject;
    struct fake_host host;
    const tn_format *format;
};

// Whether a failure is recorded, in the words of its call, with a status that is allowed.
static void expect_words(struct formats *f, const char *what, tn_status status)
{
    if (status == TN_OK)
        return;
    if (status == TN_ERR_MEMORY && f->host.refusals > 0)
        return;
    if (f->host.failures == 0)
        check_fail(f->kit, "%s returns %d without a message", what, status);
    else if (f->host.status != status)
        check_fail(f->kit, "%s returns %d after a message for %d: %s", what, status,
                   f->host.status, f->host.text);
    else if (strncmp(f->host.text, path, sizeof(path) - 1) != 0)
        check_fail(f->kit, "%s: the message does not begin with the file's name: \"%s\"",
                   what, f->host.text);
}

static void expect_freed(struct formats *f, const char *what)
{
    if (f->host.live > 0)
        check_fail(f->kit, "%s leaves %llu blocks of %llu bytes", what,
                   (unsigned long long)f->host.live,
                   (unsigned long long)f->host.live_bytes);
    if (f->host.misuses > 0)
        check_fail(f->kit, "%s: %s", what, f->host.misuse);
}

static tn_status write_content(struct formats *f, const struct content *c,
                               struct memory_file *file)
{
    fake_host_reset(&f->host);
    file_start(file, f->host.table);
    return f->format->write(f->host.table, &c->table, &file->sink);
}

// Writes what was drawn. False: the format cannot hold it, or the check has failed.
static bool write_drawn(struct formats *f, const struct content *c,
                        struct memory_file *file)
{
    tn_status status = write_content(f, c, file);
    expect_words(f, "write", status);
    expect_freed(f, "write");
    if (status == TN_ERR_UNSUPPORTED && file->size > 0)
        check_fail(f->kit, "write returns TN_ERR_UNSUPPORTED after %llu bytes were written",
                   (unsigned long long)file->size);
    else if (status != TN_OK && status != TN_ERR_UNSUPPORTED)
        check_fail(f->kit, "write returns %d: %s", status, f->host.text);
    return status == TN_OK;
}

static const tn_format_array *listed_array(const tn_format_content *content, uint64_t i)
{
    return (const void *)((const char *)content->arrays + i * content->array_size);
}

static const tn_format_text *listed_text(const tn_format_content *content, uint64_t i)
{
    return (const void *)((const char *)content->texts + i * content->text_size);
}

// Whether what was listed lies within the file. The core relies on this.
static void expect_within(struct formats *f, const tn_format_content *content,
                          uint64_t file_size)
{
    for (uint64_t i = 0; i < content->num_arrays; i++) {
        const tn_format_array *array = listed_array(content, i);
        uint64_t bytes;
        if (!array->name || array->type.rank < 0 || array->type.rank > TN_MAX_RANK ||
            !tn_dtype_bytes(array->type.dtype)) {
            check_fail(f->kit, "array %llu has no name, or no type", (unsigned long long)i);
        } else if (!tn_format_bytes(&array->type, &bytes)) {
            check_fail(f->kit, "array '%.80s' has a type of over 2^63 bytes", array->name);
        } else if (array->flags & TN_FORMAT_IN_PLACE &&
                   (bytes != array->size || array->offset > file_size ||
                    array->size > file_size - array->offset)) {
            check_fail(f->kit,
                       "array '%.80s' of %llu bytes lies at byte %llu and takes %llu of a "
                       "file of %llu",
                       array->name, (unsigned long long)bytes,
                       (unsigned long long)array->offset, (unsigned long long)array->size,
                       (unsigned long long)file_size);
        } else if (!(array->flags & TN_FORMAT_IN_PLACE) && !TN_HAS(f->format, read)) {
            check_fail(f->kit, "array '%.80s' is not in place, and there is no `read`",
                       array->name);
        }
    }
}

// Gives the elements as the core would. `data` has room for all of them.
static tn_status read_array(struct formats *f, struct memory_file *file,
                            const tn_format_content *content, uint64_t i, void *data)
{
    const tn_format_array *array = listed_array(content, i);
    if (array->flags & TN_FORMAT_IN_PLACE)
        return take(&file->source, array->offset, data, array->size);
    return f->format->read(f->host.table, &file->source, content, i, data);
}

// --- what was written is found
// ------------------------------------------------------------

static void expect_array(struct formats *f, struct memory_file *file,
                         const tn_format_content *got, const tn_format_array *want)
{
    unsigned char *data = malloc(want->size + 1);
    uint64_t i = 0;
    if (!data)
        abort(); // checks run in a child process: its parent reports the abort
    while (i < got->num_arrays && strcmp(listed_array(got, i)->name, want->name) != 0)
        i++;
    const tn_format_array *array = i < got->num_arrays ? listed_array(got, i) : NULL;
    char types[2][160];
    data[want->size] = 0xa5;
    if (!array) {
        check_fail(f->kit, "array '%s' was written, and is not listed", want->name);
    } else if (array->type.dtype != want->type.dtype ||
               array->type.rank != want->type.rank ||
               memcmp(array->type.extent, want->type.extent,
                      sizeof(int64_t) * (size_t)want->type.rank) != 0) {
        check_fail(f->kit, "array '%s' was written as %s, and is listed as %s", want->name,
                   types_text(types[0], sizeof(types[0]), &want->type, 1),
                   types_text(types[1], sizeof(types[1]), &array->type, 1));
    } else if (read_array(f, file, got, i, data) != TN_OK) {
        check_fail(f->kit, "read of array '%s' fails: %s", want->name, f->host.text);
    } else if (memcmp(data, want->data, want->size) != 0 || data[want->size] != 0xa5) {
        check_fail(f->kit, "array '%s', %s, is read with other elements", want->name,
                   types_text(types[0], sizeof(types[0]), &want->type, 1));
    }
    free(data);
}

static void expect_texts(struct formats *f, const tn_format_content *got,
                         const tn_format_content *want)
{
    if (got->num_texts != want->num_texts)
        check_fail(f->kit, "%llu texts were written, %llu are listed",
                   (unsigned long long)want->num_texts, (unsigned long long)got->num_texts);
    for (uint64_t i = 0; i < want->num_texts; i++) {
        bool found = false;
        for (uint64_t j = 0; j < got->num_texts; j++)
            found |= strcmp(listed_text(got, j)->key, texts[i].key) == 0 &&
                     strcmp(listed_text(got, j)->value, texts[i].value) == 0;
        if (!found)
            check_fail(f->kit, "text \"%s\" is not listed as it was written", texts[i].key);
    }
}

static void read_back(struct formats *f, const struct content *c, struct memory_file *file)
{
    const tn_format_content *got = NULL;
    tn_status status = f->format->list(f->host.table, file_source(file), &got);
    if (status != TN_OK) {
        check_fail(f->kit, "list of what was written returns %d: %s", status, f->host.text);
        return;
    }
    if (got->num_arrays != c->table.num_arrays)
        check_fail(f->kit, "%llu arrays were written, %llu are listed",
                   (unsigned long long)c->table.num_arrays,
                   (unsigned long long)got->num_arrays);
    expect_within(f, got, file->size);
    for (uint64_t i = 0; i < c->table.num_arrays && !check_failed(f->kit); i++)
        expect_array(f, file, got, &c->arrays[i]);
    expect_texts(f, got, &c->table);
    f->format->close(f->host.table, got);
    expect_freed(f, "list, read and close");
}

static void check_values(struct formats *f)
{
    uint32_t held = 0;
    for (uint32_t round = 0; round < 3 * TN_NUM_DTYPES && !check_failed(f->kit); round++) {
        struct content c;
        struct memory_file file;
        content_draw(f->kit, &c, f->format, round % TN_NUM_DTYPES); // 0: any dtypes
        check_case(f->kit);
        if (write_drawn(f, &c, &file)) {
            held++;
            read_back(f, &c, &file);
        }
        free(file.bytes);
        content_free(&c);
    }
    if (!held)
        check_fail(f->kit, "it can hold none of the contents that were tried");
}

// --- files that are damaged
// ---------------------------------------------------------------

// Lists and reads whatever the file says now.
static void read_damaged(struct formats *f, struct memory_file *file, const char *what)
{
    const tn_format_content *got = NULL;
    fake_host_reset(&f->host);
    check_case(f->kit);
    tn_status status = f->format->list(f->host.table, file_source(file), &got);
    expect_words(f, what, status);
    if (f->host.largest > BYTES_PER_FILE + BYTES_PER_BYTE * file->size)
        check_fail(f->kit, "list allocates %llu bytes for %s of %llu bytes",
                   (unsigned long long)f->host.largest, what,
                   (unsigned long long)file->size);
    if (status == TN_OK)
        expect_within(f, got, file->size);
    for (uint64_t i = 0; status == TN_OK && i < got->num_arrays && !check_failed(f->kit);
         i++) {
        uint64_t bytes = 0;
        (void)tn_format_bytes(&listed_array(got, i)->type, &bytes);
        void *data = bytes < UINT64_C(1) << 24 ? malloc(bytes + 1) : NULL;
        if (data)
            expect_words(f, "read", read_array(f, file, got, i, data));
        free(data);
    }
    if (status == TN_OK)
        f->format->close(f->host.table, got);
    expect_freed(f, what);
}

// One file of some arrays of types that the format can hold.
static bool draw_file(struct formats *f, struct memory_file *file)
{
    for (uint32_t i = 0; i < 100 && !check_failed(f->kit); i++) {
        struct content c;
        content_draw(f->kit, &c, f->format, (tn_dtype)(1 + i % (TN_NUM_DTYPES - 1)));
        bool written = write_drawn(f, &c, file);
        content_free(&c);
        if (written)
            return true;
        free(file->bytes);
    }
    check_skip(f->kit, "it writes no file");
    return false;
}

static void check_damage(struct formats *f)
{
    struct memory_file whole, file;
    if (!draw_file(f, &whole))
        return;
    file_start(&file, f->host.table);
    file.bytes = malloc(whole.size + 1);
    if (!file.bytes)
        abort(); // checks run in a child process: its parent reports the abort
    for (uint64_t size = 0; size < whole.size && !check_failed(f->kit); size++) {
        file.size = size;
        memcpy(file.bytes, whole.bytes, size);
        read_damaged(f, &file, "a file that was cut");
    }
    file.size = whole.size;
    for (uint32_t i = 0; i < DAMAGED_FILES && !check_failed(f->kit); i++) {
        memcpy(file.bytes, whole.bytes, whole.size);
        // Most of what can be wrong is near the beginning.
        for (uint64_t n = 1 + random_below(f->kit, 3); n > 0 && whole.size > 0; n--) {
            uint64_t near = whole.size < 64 ? whole.size : 64;
            uint64_t at = random_below(f->kit, random_bits(f->kit) % 2 ? near : whole.size);
            file.bytes[at] = (unsigned char)(random_bits(f->kit) >> 56);
        }
        read_damaged(f, &file, "a damaged file");
    }
    free(file.bytes);
    free(whole.bytes);
}

// --- calls that fail
// ------------------------------------------------------------------------

// `write` into a sink of which one call fails.
static void check_sink(struct formats *f)
{
    struct memory_file file;
    struct content c;
    content_draw(f->kit, &c, f->format, TN_F32);
    for (uint64_t n = 1; n < MAX_WRITES && !check_failed(f->kit); n++) {
        fake_host_reset(&f->host);
        file_start(&file, f->host.table);
        file.fail_at = n;
        tn_status status = f->format->write(f->host.table, &c.table, &file.sink);
        check_case(f->kit);
        bool reached = file.calls >= n;
        if (reached && status != TN_ERR_IO)
            check_fail(f->kit, "write returns %d when write %llu of the sink fails with %d",
                       status, (unsigned long long)n, TN_ERR_IO);
        else if (file.calls > n)
            check_fail(f->kit, "write goes on after write %llu of the sink failed",
                       (unsigned long long)n);
        expect_freed(f, "a write that fails");
        free(file.bytes);
        if (!reached)
            break;
    }
    content_free(&c);
}

// `list` and `read` from a source of which one call fails.
static void check_source(struct formats *f)
{
    struct memory_file file;
    if (!draw_file(f, &file))
        return;
    for (uint64_t n = 1; n < MAX_WRITES && !check_failed(f->kit); n++) {
        const tn_format_content *got = NULL;
        fake_host_reset(&f->host);
        file.calls = 0;
        file.fail_at = n;
        tn_status status = f->format->list(f->host.table, file_source(&file), &got);
        check_case(f->kit);
        bool reached = file.calls >= n;
        if (reached && status != TN_ERR_IO)
            check_fail(f->kit, "list returns %d when read %llu of the source fails with %d",
                       status, (unsigned long long)n, TN_ERR_IO);
        if (status == TN_OK)
            f->format->close(f->host.table, got);
        expect_freed(f, "a list that fails");
        if (!reached)
            break;
    }
    free(file.bytes);
}

static void check_allocations(struct formats *f)
{
    struct memory_file file;
    if (!draw_file(f, &file))
        return;
    for (uint64_t n = 1; n < MAX_ALLOCATIONS && !check_failed(f->kit); n++) {
        const tn_format_content *got = NULL;
        fake_host_reset(&f->host);
        f->host.fail_at = n;
        tn_status status = f->format->list(f->host.table, file_source(&file), &got);
        check_case(f->kit);
        bool reached = f->host.refusals > 0;
        if (reached && status != TN_ERR_MEMORY)
            check_fail(f->kit, "list returns %d when allocation %llu fails, expected %d",
                       status, (unsigned long long)n, TN_ERR_MEMORY);
        if (status == TN_OK)
            f->format->close(f->host.table, got);
        expect_freed(f, "a list without memory");
        if (!reached)
            break;
    }
    free(file.bytes);
}

// --- the group
// ------------------------------------------------------------------------------

void group_format(struct kit *k)
{
    static const struct {
        const char *name;
        void (*run)(struct formats *f);
    } checks[] = {{"format.values", check_values},
                  {"format.damage", check_damage},
                  {"format.sink", check_sink},
                  {"format.source", check_source},
                  {"format.memory", check_allocations}};
    struct formats f = {.kit = k};
    if (!subject_open(&f.subject, &f.host, k))
        return; // the groups `file`, `entry` and `host` report why
    f.format = f.subject.entry->query(TN_IFACE_FORMAT);
    bool complete = f.format && TN_HAS(f.format, list) && TN_HAS(f.format, close);
    for (size_t i = 0; complete && i < COUNT(checks); i++) {
        if (!TN_HAS(f.format, write)) {
            skip(k, checks[i].name, "the format does not write, so there is no file");
            continue;
        }
        if (!check_begin(k, checks[i].name, NULL))
            continue;
        fake_host_reset(&f.host);
        checks[i].run(&f);
        check_end(k);
    }
    subject_unload(&f.subject, &f.host);
    fake_host_finish(&f.host);
}
