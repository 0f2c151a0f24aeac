// SPDX-License-Identifier: MIT
// Formats of files: `list` and `read` find what `write` has written to memory, and survive
// files that were damaged on the way.
#include <tenon/format.h>
#include <tenon/ops/quant.h>
#include "../kit/array.h"
#include "groups.h"
#include "../kit/fake_host.h"
#include "content.h"
#include "metadata.h"
#include "memory_file.h"
#include "../kit/subject.h"

enum {
    MAX_PAIRS = 64,      // of metadata
    DAMAGED_FILES = 400, // files with random damage, beside truncated ones
    MAX_ALLOCATIONS = 100,
    MAX_WRITES = 100,
};

// Bytes that reading may allocate for one byte of the file, and for any file: enough for
// records of arrays and parsers of text.
#define BYTES_PER_BYTE 256
#define BYTES_PER_FILE 65536

// --- calls ------------------------------------------------------------------------------

struct formats {
    struct kit *kit;
    struct subject subject;
    struct fake_host host;
    const tn_format *format;
};

// Expects a recorded failure with the words of this call, and a status that is allowed.
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
    else if (strncmp(f->host.text, MEMORY_FILE_PATH, sizeof(MEMORY_FILE_PATH) - 1) != 0)
        check_fail(f->kit, "%s: the message does not begin with the file's name: \"%s\"",
                   what, f->host.text);
}

static tn_status format_group_write_content(struct formats *f,
                                            const struct drawn_content *c,
                                            struct memory_file *file)
{
    fake_host_reset(&f->host);
    memory_file_start(file, f->host.table);
    return f->format->write(f->host.table, &c->table, &file->sink);
}

// Writes drawn content. False: the format cannot hold it, or the check has failed.
static bool write_drawn(struct formats *f, const struct drawn_content *c,
                        struct memory_file *file)
{
    tn_status status = format_group_write_content(f, c, file);
    expect_words(f, "write", status);
    fake_host_expect_freed(f->kit, &f->host, "write");
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

// Expects listed arrays to lie within the file, on which the core relies.
static void expect_within(struct formats *f, const tn_format_content *content,
                          uint64_t file_size)
{
    metadata_expect_valid(f->kit, content);
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
        } else if (array->block_format &&
                   (array->type.dtype != TN_U8 || array->type.rank < 1)) {
            check_fail(f->kit, "array '%.80s' is in blocks, and no u8 of rows",
                       array->name);
        } else if (!(array->flags & TN_FORMAT_IN_PLACE) && !TN_HAS(f->format, read)) {
            check_fail(f->kit, "array '%.80s' is not in place, and there is no `read`",
                       array->name);
        }
    }
}

// Gives the elements as the core would. `data` has room for all of them.
static tn_status format_group_read_array(struct formats *f, struct memory_file *file,
                                         const tn_format_content *content, uint64_t i,
                                         void *data)
{
    const tn_format_array *array = listed_array(content, i);
    if (array->flags & TN_FORMAT_IN_PLACE)
        return memory_file_take(&file->source, array->offset, data, array->size);
    return f->format->read(f->host.table, &file->source, content, i, data);
}

// --- written files are read back --------------------------------------------------------

static void format_group_expect_array(struct formats *f, struct memory_file *file,
                                      const tn_format_content *got,
                                      const tn_format_array *want)
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
    } else if (array->columns != want->columns ||
               strcmp(array->block_format ? array->block_format : "",
                      want->block_format ? want->block_format : "") != 0) {
        check_fail(
            f->kit,
            "array '%s' was written as %lld columns of '%s', and is listed as %lld of "
            "'%s'",
            want->name, (long long)want->columns, want->block_format,
            (long long)array->columns, array->block_format ? array->block_format : "");
    } else if (format_group_read_array(f, file, got, i, data) != TN_OK) {
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
    if (got->num_texts > want->num_texts)
        check_fail(f->kit, "%llu texts were written, %llu are listed",
                   (unsigned long long)want->num_texts, (unsigned long long)got->num_texts);
    for (uint64_t i = 0; i < want->num_texts; i++) {
        const tn_text *text = metadata_listed_text(got, content_texts[i].key);
        bool found = text && strcmp(text->data, content_texts[i].value) == 0;
        for (uint64_t j = 0; j < got->num_texts; j++)
            found |= strcmp(listed_text(got, j)->key, content_texts[i].key) == 0 &&
                     strcmp(listed_text(got, j)->value, content_texts[i].value) == 0;
        if (!found)
            check_fail(f->kit, "text \"%s\" is not listed as it was written",
                       content_texts[i].key);
    }
}

static void read_back(struct formats *f, const struct drawn_content *c,
                      struct memory_file *file)
{
    const tn_format_content *got = NULL;
    tn_status status = memory_file_list(file, f->format, &got);
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
        format_group_expect_array(f, file, got, &c->arrays[i]);
    expect_texts(f, got, &c->table);
    for (uint64_t i = 0; i < c->table.num_metadata; i++)
        metadata_expect(f->kit, got, &c->table.metadata[i]);
    f->format->close(f->host.table, got);
    fake_host_expect_freed(f->kit, &f->host, "list, read and close");
}

// Writes the content and reads it back. False: the format cannot hold it.
static bool values_held(struct formats *f, struct drawn_content *c)
{
    struct memory_file file;
    check_case(f->kit);
    bool held = write_drawn(f, c, &file);
    if (held)
        read_back(f, c, &file);
    free(file.bytes);
    content_free(c);
    return held;
}

// Arrays for formats that hold one kind of data, in each dtype: rows, tables, pictures.
static uint32_t special_values_held(struct formats *f)
{
    static const int64_t extents[][4] = {
        {1, 7}, {2, 3, 5}, {3, 3, 5, 1}, {3, 3, 5, 3}, {3, 3, 5, 4}}; // rank, extents
    uint32_t held = 0;
    for (uint32_t i = 0; i < sizeof(extents) / sizeof(extents[0]); i++)
        for (tn_dtype dtype = 1; dtype < TN_NUM_DTYPES && !check_failed(f->kit); dtype++) {
            struct drawn_content c;
            tn_type type = {.dtype = dtype, .rank = (int32_t)extents[i][0]};
            memcpy(type.extent, &extents[i][1], 3 * sizeof(int64_t));
            content_draw_one(f->kit, &c, f->format, &type);
            held += values_held(f, &c);
        }
    return held;
}

static void check_format_values(struct formats *f)
{
    uint32_t held = 0;
    for (uint32_t round = 0; round < 3 * TN_NUM_DTYPES && !check_failed(f->kit); round++) {
        struct drawn_content c;
        content_draw(f->kit, &c, f->format, round % TN_NUM_DTYPES); // 0: any dtypes
        held += values_held(f, &c);
    }
    if (!held && !special_values_held(f) && !check_failed(f->kit))
        check_fail(f->kit, "it can hold none of the contents that were tried");
}

// Writes and reads back one array with these metadata. False: the format cannot hold them.
static bool metadata_held(struct formats *f, const tn_metadata *metadata, uint64_t count)
{
    struct drawn_content c;
    struct memory_file file;
    content_draw_row(f->kit, &c, f->format, TN_F32, 3);
    c.table.metadata = metadata;
    c.table.num_metadata = count;
    c.table.metadata_size = sizeof(*metadata);
    check_case(f->kit);
    bool held = write_drawn(f, &c, &file);
    if (held)
        read_back(f, &c, &file);
    free(file.bytes);
    content_free(&c);
    return held;
}

// One pair at a time, since a format may have no place for some kinds, and then all.
static void check_format_metadata(struct formats *f)
{
    tn_metadata held[MAX_PAIRS];
    uint64_t count = 0;
    for (uint64_t i = 0; i < num_metadata_samples && !check_failed(f->kit); i++)
        if (count < MAX_PAIRS && metadata_held(f, &metadata_samples[i], 1))
            held[count++] = metadata_samples[i];
    if (!count)
        check_fail(f->kit, "it has TN_FORMAT_METADATA, and holds none");
    if (!check_failed(f->kit) && !metadata_held(f, held, count))
        check_fail(f->kit, "it holds each of %llu pairs, and not all in one file",
                   (unsigned long long)count);
}

// One row of each block format that Tenon knows.
static void check_format_blocks(struct formats *f)
{
    uint32_t held = 0;
    const tn_quant_format *format;
    for (uint32_t i = 0; (format = tn_quant_at(i)) && !check_failed(f->kit); i++) {
        struct drawn_content c;
        struct memory_file file;
        content_draw_row(f->kit, &c, f->format, TN_U8, 3 * format->bytes);
        c.arrays[0].block_format = format->name;
        check_case(f->kit);
        if (write_drawn(f, &c, &file)) {
            held++;
            c.arrays[0].columns = 3 * format->block;
            read_back(f, &c, &file);
        }
        free(file.bytes);
        content_free(&c);
    }
    if (!held)
        check_fail(f->kit,
                   "it has TN_FORMAT_BLOCKS, and holds no format of <tenon/ops/quant.h>");
}

// A content whose elements are given in turn.
struct format_turns {
    tn_format_content content; // first: it is cast back
    const struct drawn_content *drawn;
    uint64_t next;
    bool is_astray;
};

static tn_status give_turn(const tn_format_content *content, uint64_t index,
                           const void **out_data)
{
    struct format_turns *turns = (void *)(uintptr_t)content;
    turns->is_astray |= index != turns->next;
    turns->next++;
    *out_data = turns->drawn->data[index < content->num_arrays ? index : 0];
    return TN_OK;
}

// The file is the same whether elements are given at once or in turn.
static void check_format_in_turn(struct formats *f)
{
    struct drawn_content c;
    struct memory_file whole, file;
    content_draw(f->kit, &c, f->format, TN_F32);
    check_case(f->kit);
    bool is_held = write_drawn(f, &c, &whole);
    for (uint64_t i = 0; i < c.table.num_arrays; i++)
        c.arrays[i].data = NULL;
    struct format_turns turns = {.content = c.table, .drawn = &c};
    turns.content.elements = give_turn;
    fake_host_reset(&f->host);
    memory_file_start(&file, f->host.table);
    tn_status status =
        is_held ? f->format->write(f->host.table, &turns.content, &file.sink) : TN_OK;
    expect_words(f, "write", status);
    if (is_held && status != TN_OK)
        check_fail(f->kit, "write returns %d where elements come in turn: %s", status,
                   f->host.text);
    else if (is_held && (turns.is_astray || turns.next != c.table.num_arrays))
        check_fail(f->kit, "write does not ask for each array once, in order");
    else if (is_held &&
             (file.size != whole.size || memcmp(file.bytes, whole.bytes, file.size) != 0))
        check_fail(f->kit, "the file is another where elements come in turn");
    free(whole.bytes);
    free(file.bytes);
    content_free(&c);
}

// --- files that are damaged -------------------------------------------------------------

// Lists a damaged file, and reads the arrays that it lists.
static void read_damaged(struct formats *f, struct memory_file *file, const char *what)
{
    const tn_format_content *got = NULL;
    fake_host_reset(&f->host);
    check_case(f->kit);
    tn_status status = memory_file_list(file, f->format, &got);
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
            expect_words(f, "read", format_group_read_array(f, file, got, i, data));
        free(data);
    }
    if (status == TN_OK)
        f->format->close(f->host.table, got);
    fake_host_expect_freed(f->kit, &f->host, what);
}

// Draws a file of some arrays whose types the format can hold.
static bool draw_file(struct formats *f, struct memory_file *file)
{
    for (uint32_t i = 0; i < 100 && !check_failed(f->kit); i++) {
        struct drawn_content c;
        content_draw(f->kit, &c, f->format, (tn_dtype)(1 + i % (TN_NUM_DTYPES - 1)));
        if (f->format->flags & TN_FORMAT_METADATA)
            metadata_draw(f->kit, &c.table);
        bool written = write_drawn(f, &c, file);
        content_free(&c);
        if (written)
            return true;
        free(file->bytes);
    }
    check_skip(f->kit, "it writes no file");
    return false;
}

static void check_format_damage(struct formats *f)
{
    struct memory_file whole, file;
    if (!draw_file(f, &whole))
        return;
    memory_file_start(&file, f->host.table);
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
        // Faults matter most near the beginning, where the headers are.
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

// --- calls that fail --------------------------------------------------------------------

// `write` into a sink of which one call fails.
static void check_format_sink(struct formats *f)
{
    struct memory_file file;
    struct drawn_content c;
    content_draw(f->kit, &c, f->format, TN_F32);
    for (uint64_t n = 1; n < MAX_WRITES && !check_failed(f->kit); n++) {
        fake_host_reset(&f->host);
        memory_file_start(&file, f->host.table);
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
        fake_host_expect_freed(f->kit, &f->host, "a write that fails");
        free(file.bytes);
        if (!reached)
            break;
    }
    content_free(&c);
}

// `list` and `read` from a source of which one call fails.
static void check_format_source(struct formats *f)
{
    struct memory_file file;
    if (!draw_file(f, &file))
        return;
    for (uint64_t n = 1; n < MAX_WRITES && !check_failed(f->kit); n++) {
        const tn_format_content *got = NULL;
        fake_host_reset(&f->host);
        file.calls = 0;
        file.fail_at = n;
        tn_status status = memory_file_list(&file, f->format, &got);
        check_case(f->kit);
        bool reached = file.calls >= n;
        if (reached && status != TN_ERR_IO)
            check_fail(f->kit, "list returns %d when read %llu of the source fails with %d",
                       status, (unsigned long long)n, TN_ERR_IO);
        if (status == TN_OK)
            f->format->close(f->host.table, got);
        fake_host_expect_freed(f->kit, &f->host, "a list that fails");
        if (!reached)
            break;
    }
    free(file.bytes);
}

// Lists and reads a file whose folder has no other files; `open` may be called for these.
static void check_format_files(struct formats *f)
{
    struct memory_file file;
    const tn_format_content *got = NULL;
    if (!draw_file(f, &file))
        return;
    check_case(f->kit);
    fake_host_reset(&f->host);
    if (memory_file_list(&file, f->format, &got) != TN_OK) {
        check_fail(f->kit, "list of what was written fails: %s", f->host.text);
        free(file.bytes);
        return;
    }
    for (uint64_t i = 0; i < got->num_arrays; i++) {
        const tn_format_array *array = listed_array(got, i);
        void *data = malloc(array->size + sizeof(tn_complex128));
        if (array->file != 0)
            check_fail(f->kit, "array '%.80s' lies in file %u, and none was opened",
                       array->name, array->file);
        else if (data)
            (void)format_group_read_array(f, &file, got, i, data);
        free(data);
    }
    f->format->close(f->host.table, got);
    if (file.misuses > 0)
        check_fail(f->kit, "`open` is called behind `list`");
    free(file.bytes);
}

static void check_format_allocations(struct formats *f)
{
    struct memory_file file;
    if (!draw_file(f, &file))
        return;
    for (uint64_t n = 1; n < MAX_ALLOCATIONS && !check_failed(f->kit); n++) {
        const tn_format_content *got = NULL;
        fake_host_reset(&f->host);
        f->host.fail_at = n;
        tn_status status = memory_file_list(&file, f->format, &got);
        check_case(f->kit);
        bool reached = f->host.refusals > 0;
        if (reached && status != TN_ERR_MEMORY)
            check_fail(f->kit, "list returns %d when allocation %llu fails, expected %d",
                       status, (unsigned long long)n, TN_ERR_MEMORY);
        if (status == TN_OK)
            f->format->close(f->host.table, got);
        fake_host_expect_freed(f->kit, &f->host, "a list without memory");
        if (!reached)
            break;
    }
    free(file.bytes);
}

// --- the group --------------------------------------------------------------------------

void group_format(struct kit *k)
{
    static const struct {
        const char *name;
        void (*run)(struct formats *f);
        uint32_t needs; // flags of the format
    } checks[] = {{"format.values", check_format_values, 0},
                  {"format.metadata", check_format_metadata, TN_FORMAT_METADATA},
                  {"format.blocks", check_format_blocks, TN_FORMAT_BLOCKS},
                  {"format.in-turn", check_format_in_turn, TN_FORMAT_IN_TURN},
                  {"format.files", check_format_files, 0},
                  {"format.damage", check_format_damage, 0},
                  {"format.sink", check_format_sink, 0},
                  {"format.source", check_format_source, 0},
                  {"format.memory", check_format_allocations, 0}};
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
        if (checks[i].needs & ~f.format->flags) {
            skip(k, checks[i].name, "the format says that it carries none");
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
