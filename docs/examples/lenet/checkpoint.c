// SPDX-License-Identifier: MIT
// Checkpoints: the state's arrays and, as metadata, where training stands. A safetensors
// file: the length of a header (8 bytes, little-endian), the header (JSON, which says where
// each array lies), the arrays.
#include "fail.h"
#include "train.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMAT "tenon.lenet/1"
#define METADATA "__metadata__"
#define MAX_HEADER (1 << 20) // bytes; ours has 4000

static uint64_t state_bytes(int i)
{
    tn_shape shape = lenet_state_shape(i);
    uint64_t bytes = sizeof(float);
    for (int32_t axis = 0; axis < shape.rank; axis++)
        bytes *= (uint64_t)shape.extent[axis];
    return bytes;
}

static uint64_t all_bytes(void)
{
    uint64_t bytes = 0;
    for (int i = 0; i < LENET_STATE; i++)
        bytes += state_bytes(i);
    return bytes;
}

// [6,5,5,1]
static json_t *state_extents(int i)
{
    tn_shape shape = lenet_state_shape(i);
    json_t *extents = json_array();
    for (int32_t axis = 0; axis < shape.rank; axis++)
        json_array_append_new(extents, json_integer(shape.extent[axis]));
    return extents;
}

// --- saving ----------------------------------------------------------------------------

static json_t *position(const struct trainer *t)
{
    return json_pack("{s:s, s:o, s:o, s:o, s:o}", "format", FORMAT, //
                     "step", json_sprintf("%" PRIu64, t->done),     //
                     "seed", json_sprintf("%" PRId64, t->options.seed), "batch",
                     json_sprintf("%" PRId64, t->options.batch), //
                     "lr", json_sprintf("%.17g", t->options.lr));
}

// The header as text, which the caller frees; NULL when out of memory.
static char *make_header(const struct trainer *t)
{
    json_t *header = json_pack("{s:o}", METADATA, position(t));
    uint64_t at = 0;
    char name[LENET_NAME], *text = NULL;
    int failed = header ? 0 : -1;
    for (int i = 0; !failed && i < LENET_STATE; i++) {
        uint64_t end = at + state_bytes(i);
        json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", "F32", //
                                  "shape", state_extents(i),              //
                                  "data_offsets", (json_int_t)at, (json_int_t)end);
        failed = json_object_set_new(header, lenet_state_name(i, name), entry);
        at = end;
    }
    if (!failed)
        text = json_dumps(header, JSON_COMPACT);
    json_decref(header);
    return text;
}

static int read_state(const struct trainer *t, char *data)
{
    tn_scope *scope = tn_scope_open(t->runtime);
    int failed = scope ? 0 : fail_memory();
    for (int i = 0; !failed && i < LENET_STATE; i++) {
        if (tn_read(scope, t->state[i], data, state_bytes(i)))
            failed = fail_scope(scope);
        data += state_bytes(i);
    }
    tn_scope_close(scope);
    return failed;
}

// Whether all of it was written, on the disk if it is a file; closes the stream.
static bool write_to(FILE *stream, bool is_file, const char *header, const char *data)
{
    uint64_t length = strlen(header), padded = (length + 7) & ~UINT64_C(7);
    for (int i = 0; i < 8; i++)
        putc((int)(padded >> 8 * i & 0xff), stream);
    fprintf(stream, "%s%*s", header, (int)(padded - length), ""); // aligns the arrays
    fwrite(data, 1, all_bytes(), stream);
    bool is_written =
        !fflush(stream) && !ferror(stream) && (!is_file || !fsync(fileno(stream)));
    int error = errno;
    is_written &= fclose(stream) == 0;
    errno = is_written ? 0 : error;
    return is_written;
}

// The file changes at once or not at all: a new one takes its name. What is no file (a
// pipe, /dev/null) is written to directly.
static int write_file(const char *path, const char *header, const char *data)
{
    struct stat info;
    char whole[PATH_MAX], new_path[PATH_MAX + 8];
    bool is_there = stat(path, &info) == 0 && realpath(path, whole);
    bool is_file = !is_there || S_ISREG(info.st_mode);
    if (!is_there && snprintf(whole, sizeof(whole), "%s", path) >= (int)sizeof(whole))
        return fail("%.100s...: the name is too long", path);
    snprintf(new_path, sizeof(new_path), "%s%s", whole, is_file ? ".new" : "");
    FILE *stream = fopen(new_path, "wb");
    if (stream && write_to(stream, is_file, header, data) &&
        (!is_file || rename(new_path, whole) == 0))
        return 0;
    int failed = fail("cannot write %s: %s%s", path, strerror(errno),
                      is_there && is_file ? "; the file is unchanged" : "");
    if (stream && is_file)
        unlink(new_path);
    return failed;
}

int checkpoint_save(struct trainer *t, const char *path)
{
    char *header = make_header(t), *data = malloc(all_bytes());
    int failed = header && data ? read_state(t, data) : fail_memory();
    if (!failed)
        failed = write_file(path, header, data);
    free(header);
    free(data);
    return failed;
}

// --- reading a file --------------------------------------------------------------------

struct checkpoint {
    const char *path;
    json_t *header; // an object
    char *data;     // the arrays
    uint64_t size;  // of data
};

static int read_header(struct checkpoint *c, FILE *stream, uint64_t size)
{
    unsigned char start[8];
    uint64_t length = 0;
    json_error_t error;
    if (fread(start, 1, 8, stream) == 8)
        for (int i = 0; i < 8; i++)
            length |= (uint64_t)start[i] << 8 * i;
    if (length < 2 || length > MAX_HEADER || length > size - 8)
        return fail("%s: no safetensors file, or truncated", c->path);
    char *text = malloc(length);
    if (!text)
        return fail_memory();
    if (fread(text, 1, length, stream) == length)
        c->header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (!json_is_object(c->header))
        return fail("%s: the header is no JSON object", c->path);
    c->size = size - 8 - length;
    return 0;
}

static int read_checkpoint(struct checkpoint *c, FILE *stream)
{
    struct stat info;
    if (fstat(fileno(stream), &info) || !S_ISREG(info.st_mode) || info.st_size < 8)
        return fail("%s: no safetensors file", c->path);
    int failed = read_header(c, stream, (uint64_t)info.st_size);
    if (failed)
        return failed;
    // Ours has no more; memory is not taken for what somebody put behind.
    if (c->size != all_bytes())
        return fail("%s: %" PRIu64 " bytes of arrays; expected %" PRIu64 " (truncated?)",
                    c->path, c->size, all_bytes());
    c->data = malloc(c->size);
    if (!c->data)
        return fail_memory();
    if (fread(c->data, 1, c->size, stream) != c->size)
        return fail("cannot read %s: %s", c->path, strerror(errno));
    return 0;
}

// --- where training stands -------------------------------------------------------------

static const char *metadata(const struct checkpoint *c, const char *key)
{
    const json_t *all = json_object_get(c->header, METADATA);
    const char *text = json_string_value(json_object_get(all, key));
    return text ? text : "(absent)";
}

static int metadata_integer(const struct checkpoint *c, const char *key, int64_t low,
                            int64_t high, int64_t *out_value)
{
    const char *text = metadata(c, key);
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || value < low || value > high)
        return fail("%s: metadata '%s' is '%s'; expected a whole number from %" PRId64
                    " to %" PRId64,
                    c->path, key, text, low, high);
    *out_value = value;
    return 0;
}

// The order of the images comes from seed and batch: another one would not continue.
static int check_agreement(struct trainer *t, const char *path, int64_t seed, int64_t batch)
{
    struct train_options *o = &t->options;
    if (o->given_seed && o->seed != seed)
        return fail_usage("--seed %" PRId64 ", but %s was made with %" PRId64, o->seed,
                          path, seed);
    if (o->given_batch && o->batch != batch)
        return fail_usage("--batch %" PRId64 ", but %s was made with %" PRId64, o->batch,
                          path, batch);
    o->seed = seed;
    o->batch = batch;
    return 0;
}

static int load_position(struct trainer *t, const struct checkpoint *c)
{
    const char *format = metadata(c, "format");
    int64_t step, seed, batch;
    if (strcmp(format, FORMAT) != 0)
        return fail("%s: format '%s'; expected a checkpoint of 'tenon train lenet' (%s)",
                    c->path, format, FORMAT);
    int failed = metadata_integer(c, "step", 0, INT64_MAX, &step);
    if (!failed)
        failed = metadata_integer(c, "seed", 0, INT64_MAX, &seed);
    if (!failed)
        failed = metadata_integer(c, "batch", 1, 1 << 20, &batch);
    if (!failed)
        failed = check_agreement(t, c->path, seed, batch);
    if (!failed && t->options.lr == 0)
        t->options.lr = strtod(metadata(c, "lr"), NULL);
    if (!failed && !(t->options.lr > 0))
        failed = fail("%s: metadata 'lr' is no positive number", c->path);
    if (!failed)
        t->done = (uint64_t)step;
    return failed;
}

// --- the arrays ------------------------------------------------------------------------

// Fails unless it is F32 of this shape.
static int check_type(const struct checkpoint *c, int i, const char *name,
                      const char *dtype, const json_t *extents)
{
    json_t *wanted = state_extents(i);
    int failed = 0;
    if (strcmp(dtype, "F32") != 0 || !json_equal(extents, wanted)) {
        char *got_text = json_dumps(extents, JSON_COMPACT | JSON_ENCODE_ANY);
        char *wanted_text = json_dumps(wanted, JSON_COMPACT);
        failed = fail("%s: '%s' is %s %.200s; expected F32 %s", c->path, name, dtype,
                      got_text ? got_text : "", wanted_text ? wanted_text : "");
        free(got_text);
        free(wanted_text);
    }
    json_decref(wanted);
    return failed;
}

static int load_array(struct trainer *t, const struct checkpoint *c, int i)
{
    char name[LENET_NAME];
    const json_t *entry = json_object_get(c->header, lenet_state_name(i, name));
    const char *dtype;
    json_t *extents;
    json_int_t begin, end;
    if (!entry)
        return fail("%s: array '%s' is missing", c->path, name);
    if (json_unpack((json_t *)entry, "{s:s, s:o, s:[I, I!]}", "dtype", &dtype, "shape",
                    &extents, "data_offsets", &begin, &end))
        return fail("%s: '%s' is not described as an array", c->path, name);
    int failed = check_type(c, i, name, dtype, extents);
    if (failed)
        return failed;
    if (begin < 0 || end < begin || (uint64_t)end > c->size ||
        (uint64_t)(end - begin) != state_bytes(i) || begin % (json_int_t)sizeof(float))
        return fail("%s: '%s' lies at bytes %" JSON_INTEGER_FORMAT
                    " to %" JSON_INTEGER_FORMAT "; expected %" PRIu64 " of %" PRIu64,
                    c->path, name, begin, end, state_bytes(i), c->size);
    tn_shape shape = lenet_state_shape(i);
    t->state[i] =
        tn_keep(t->scope, tn_from_data(t->scope, TN_F32, &shape, c->data + begin));
    return t->state[i] ? 0 : fail_scope(t->scope);
}

int checkpoint_load(struct trainer *t, const char *path)
{
    struct checkpoint c = {.path = path};
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return fail("cannot read %s: %s", path, strerror(errno));
    int failed = read_checkpoint(&c, stream);
    fclose(stream);
    if (!failed)
        failed = load_position(t, &c);
    for (int i = 0; !failed && i < LENET_STATE; i++)
        failed = load_array(t, &c, i);
    json_decref(c.header);
    free(c.data);
    return failed;
}
