// SPDX-License-Identifier: MIT
// Small random models for tests: weights and tokens that follow from their names, and what
// make_fixtures.py wrote of a model in a file of text.
#ifndef TESTS_LM_FIXTURE_H
#define TESTS_LM_FIXTURE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/lm.h>
#include "../graphs/support/common.h"

#define MOST_PAIRS 32
#define MOST_WEIGHTS 96
#define MOST_ROWS 24
#define WORDS 32
#define POSITIONS 600

struct fixture_weight {
    char name[64];
    tn_type type;
};

// A source of a test. Changes are made before it is opened.
struct fixture {
    tn_lm_source source; // first
    struct fixture_weight weights[MOST_WEIGHTS];
    int num_weights;
    float factors[2][8]; // of rope_freqs.weight or rope_factors_short, and of _long
    tn_metadata pairs[MOST_PAIRS];
    int64_t integers[MOST_PAIRS];
    double numbers[MOST_PAIRS];
    tn_text texts[MOST_PAIRS];
    uint8_t truths[MOST_PAIRS];
    char keys[MOST_PAIRS][96], values[MOST_PAIRS][96];
    tn_metadata_list list;
    int32_t rows[MOST_ROWS]; // positions, and their logits
    float logits[MOST_ROWS][WORDS];
    int num_rows;
    int32_t ids[POSITIONS];
    const char *missing;   // a weight that the source does not have; NULL: none
    const char *misshapen; // one that has another shape
    const char *wrong;     // one whose first element is NaN
    int64_t paired; // elements of a head that the source has in pairs, of queries and keys
    const char *format; // of matrices whose columns fill blocks of 32; NULL: elements
    bool is_decoded;    // the source has what the blocks stand for, as elements
    tn_dtype half;      // of matrices; 0: f16
    bool is_widened;    // the source has halves as f32
    float norm_scale;   // by which norms before the feed-forward and the output multiply
    int closed;
    int loads[MOST_WEIGHTS]; // of each weight
};

static inline struct fixture *fixture_of(const tn_lm_source *source)
{
    return source->context;
}

// Whole numbers of 0 .. 2047 that follow from a name; see make_fixtures.py.
static inline void fixture_numbers(const char *name, int64_t count, int32_t *out)
{
    uint64_t state = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++)
        state = (uint64_t)((unsigned __int128)(state ^ (unsigned char)*name) *
                           UINT64_C(0x100000001b3));
    for (int64_t i = 0; i < count; i++) {
        state = (uint64_t)((unsigned __int128)state + UINT64_C(0x9e3779b97f4a7c15));
        uint64_t z = state;
        z = (uint64_t)((unsigned __int128)(z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9));
        z = (uint64_t)((unsigned __int128)(z ^ z >> 27) * UINT64_C(0x94d049bb133111eb));
        out[i] = (int32_t)((z ^ z >> 31) >> 53);
    }
}

static inline const struct fixture_weight *fixture_weight(const struct fixture *f,
                                                          const char *name)
{
    for (int i = 0; i < f->num_weights; i++)
        if (strcmp(f->weights[i].name, name) == 0)
            return &f->weights[i];
    return NULL;
}

static inline const char *fixture_format(const struct fixture *f,
                                         const struct fixture_weight *weight)
{
    const tn_type *type = &weight->type;
    return type->rank > 1 && type->extent[type->rank - 1] % 32 == 0 ? f->format : NULL;
}

static inline tn_dtype fixture_half(const struct fixture *f)
{
    return f->half ? f->half : TN_F16;
}

static inline int32_t fixture_find(const tn_lm_source *source, const char *name,
                                   tn_type *out_type, const char **out_format)
{
    const struct fixture *f = fixture_of(source);
    const struct fixture_weight *weight = fixture_weight(f, name);
    if (!weight || (f->missing && strcmp(name, f->missing) == 0))
        return 0;
    *out_type = weight->type;
    if (weight->type.dtype == TN_F16)
        out_type->dtype = f->is_widened ? TN_F32 : fixture_half(f);
    *out_format = f->is_decoded ? NULL : fixture_format(f, weight);
    if (f->misshapen && strcmp(name, f->misshapen) == 0)
        out_type->extent[0]++;
    return 1;
}

// The rows of heads, whose first `paired` ones are in halves, with these in pairs.
static inline tn_array *fixture_pairs(tn_scope *scope, tn_array *array, int64_t paired)
{
    enum { HEAD = 8, MOST = 64 };
    int64_t from[MOST], rows = tn_array_type(array)->extent[0];
    cr_assert(eq(int, rows <= MOST && rows % HEAD == 0, 1));
    for (int64_t head = 0; head < rows; head += HEAD)
        for (int64_t i = 0; i < HEAD; i++)
            from[head + i] = head + (i >= paired ? i : i / 2 + i % 2 * (paired / 2));
    return tn_op(scope, "base.take/1",
                 TN_IN(array, tn_from_data(scope, TN_I64, TN_SHAPE(rows), from)),
                 TN_NO_ATTRS);
}

// Weights are half floats where these have all values, as in files that people have.
static inline tn_array *fixture_load(const tn_lm_source *source, tn_scope *scope,
                                     const char *name)
{
    const struct fixture *f = fixture_of(source);
    const struct fixture_weight *weight = fixture_weight(f, name);
    const tn_type *type = &weight->type;
    const char *format = fixture_format(f, weight);
    fixture_of(source)->loads[weight - f->weights]++;
    int64_t count = 1;
    for (int32_t i = 0; i < type->rank; i++)
        count *= type->extent[i];
    int32_t *drawn = malloc(sizeof(*drawn) * (size_t)count);
    float *values = malloc(sizeof(*values) * (size_t)count);
    fixture_numbers(name, count, drawn);
    for (int64_t i = 0; i < count; i++) {
        float x = (float)(drawn[i] - 1024) / 1024;
        values[i] = strstr(name, "norm")             ? 1 + x / 4
                    : strncmp(name, "rope_", 5) == 0 ? f->factors[!!strstr(name, "long")][i]
                    : strncmp(name, "token_embd", 10) ? x / 2
                                                      : x * 2;
    }
    for (int64_t i = 0; f->norm_scale > 0 && i < count; i++)
        values[i] *=
            strstr(name, "ffn_norm") || strstr(name, "output_norm") ? f->norm_scale : 1;
    if (f->wrong && strcmp(name, f->wrong) == 0)
        values[0] = NAN;
    tn_shape shape = {.rank = type->rank};
    memcpy(shape.extent, type->extent, sizeof(shape.extent));
    tn_array *array = tn_from_data(scope, TN_F32, &shape, values);
    if (f->paired && (strstr(name, "attn_q") || strstr(name, "attn_k")))
        array = fixture_pairs(scope, array, f->paired);
    if (format)
        array = tn_op(scope, "quant.quantize/1", TN_IN(array), tn_attrs("format", format));
    else if (type->dtype != TN_F32)
        array = tn_op(scope, "base.astype/1", TN_IN(array),
                      tn_attrs("dtype", tn_dtype_name(fixture_half(f))));
    if (f->half && type->dtype != TN_F32) // a program with a further cast would not round
        must(scope, tn_eval(scope, array));
    if (f->is_widened && type->dtype != TN_F32)
        array = tn_op(scope, "base.astype/1", TN_IN(array), tn_attrs("dtype", "f32"));
    if (format && f->is_decoded)
        array =
            tn_op(scope, "quant.dequantize/1", TN_IN(array), tn_attrs("format", format));
    free(drawn);
    free(values);
    return array;
}

static inline void fixture_close(const tn_lm_source *source)
{
    fixture_of(source)->closed++;
}

// Sets a pair: an integer or a number where the text is one; NULL takes the pair away.
static inline void fixture_set(struct fixture *f, const char *key, const char *value)
{
    uint64_t at = 0;
    while (at < f->list.count && strcmp(f->keys[at], key) != 0)
        at++;
    if (!value) {
        if (at < f->list.count)
            f->keys[at][0] = '?'; // a key that nobody asks for
        return;
    }
    cr_assert(lt(u64, at, MOST_PAIRS));
    snprintf(f->keys[at], sizeof(f->keys[at]), "%s", key);
    snprintf(f->values[at], sizeof(f->values[at]), "%s", value);
    char *end;
    f->integers[at] = strtoll(value, &end, 10);
    tn_metadata *pair = &f->pairs[at];
    *pair = (tn_metadata){f->keys[at], &f->integers[at], 1, TN_METADATA_INTEGER, 0};
    if (*end) {
        f->numbers[at] = strtod(value, &end);
        *pair = (tn_metadata){f->keys[at], &f->numbers[at], 1, TN_METADATA_FLOAT, 0};
    }
    if (*end) {
        f->texts[at] = (tn_text){f->values[at], strlen(f->values[at])};
        *pair = (tn_metadata){f->keys[at], &f->texts[at], 1, TN_METADATA_TEXT, 0};
    }
    if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0) {
        f->truths[at] = *value == 't';
        *pair = (tn_metadata){f->keys[at], &f->truths[at], 1, TN_METADATA_BOOL, 0};
    }
    f->list.count += at == f->list.count;
}

// Extents from the first 0 on do not count.
static inline void fixture_add(struct fixture *f, const char *name, const int64_t extent[4])
{
    bool is_half = !strstr(name, "norm") && strncmp(name, "rope_", 5) != 0;
    cr_assert(lt(int, f->num_weights, MOST_WEIGHTS));
    struct fixture_weight *weight = &f->weights[f->num_weights++];
    cr_assert(lt(sz, strlen(name), sizeof(weight->name)));
    memcpy(weight->name, name, strlen(name) + 1);
    weight->type = (tn_type){.dtype = is_half ? TN_F16 : TN_F32};
    for (int32_t i = 0; i < 4 && extent[i]; i++)
        weight->type.extent[weight->type.rank++] = extent[i];
}

static inline void fixture_line(struct fixture *f, FILE *file, char *line)
{
    char name[96], text[96];
    int64_t e[4] = {0};
    if (sscanf(line, "key %95s %95s", name, text) == 2) {
        fixture_set(f, name, text);
    } else if (sscanf(line, "weight %95s %ld %ld %ld %ld", name, e, e + 1, e + 2, e + 3) >=
               2) {
        fixture_add(f, name, e);
    } else if (sscanf(line, "factors %80s", name) == 1) {
        char *rest = line + 8 + strlen(name);
        int count = 0;
        while (count < 8 && *rest && *rest != '\n')
            f->factors[!!strstr(name, "long")][count++] = strtof(rest, &rest);
        strcat(name, ".weight");
        fixture_add(f, name, (const int64_t[]){count, 0, 0, 0});
    } else {
        cr_assert(eq(int, sscanf(line, "row %d", &f->rows[f->num_rows]), 1));
        for (int i = 0; i < WORDS; i++)
            cr_assert(eq(int, fscanf(file, " %f", &f->logits[f->num_rows][i]), 1));
        f->num_rows++;
    }
}

// Reads the model's file of this name, for tn_lm_open_source.
static inline void fixture_open(struct fixture *f, const char *name)
{
    char path[512], line[512];
    memset(f, 0, sizeof(*f));
    f->list = (tn_metadata_list){sizeof(f->list), sizeof(f->pairs[0]), f->pairs, 0, name};
    snprintf(path, sizeof(path), "%s/%s.txt", getenv("TEST_LM_FIXTURES"), name);
    FILE *file = fopen(path, "r");
    if (!file)
        cr_fatal("%s: cannot be opened", path);
    while (fgets(line, sizeof(line), file))
        if (line[0] != '\n')
            fixture_line(f, file, line);
    fclose(file);
    fixture_numbers("ids", POSITIONS, f->ids);
    for (int i = 0; i < POSITIONS; i++)
        f->ids[i] %= WORDS;
    f->source = (tn_lm_source){.struct_size = sizeof(f->source),
                               .metadata = &f->list,
                               .context = f,
                               .find = fixture_find,
                               .load = fixture_load,
                               .close = fixture_close};
}

static inline void lm_must(tn_status status)
{
    if (status != TN_OK)
        cr_fatal("status %d (%s): %s", (int)status, tn_status_name(status), tn_lm_error());
}

// The thread's message is exactly this.
static inline void check_message(const char *expected)
{
    if (strcmp(tn_lm_error(), expected) != 0)
        cr_fatal("the message is: %s\nexpected: %s", tn_lm_error(), expected);
}

static inline tn_lm *model_open(struct fixture *f, const char *name)
{
    tn_lm *lm = NULL;
    const tn_lm_options options = {
        .struct_size = sizeof(options), .context = POSITIONS + 40, .cache = "f32"};
    fixture_open(f, name);
    lm_must(tn_lm_open_source(runtime, &f->source, &options, &lm));
    return lm;
}

static inline tn_lm_sequence *sequence_open(tn_lm *lm)
{
    tn_lm_sequence *sequence = NULL;
    lm_must(tn_lm_sequence_open(lm, &sequence));
    return sequence;
}

// A llama of which all rows are whole blocks: 32 wide, within the feed-forward too.
static inline void fixture_open_wide(struct fixture *f)
{
    fixture_open(f, "llama");
    fixture_set(f, "llama.embedding_length", "32");
    fixture_set(f, "llama.feed_forward_length", "32");
    for (int i = 0; i < f->num_weights; i++)
        for (int axis = 0; axis < 2; axis++) {
            int64_t *extent = &f->weights[i].type.extent[axis];
            bool is_heads = axis == 0 && (strstr(f->weights[i].name, "attn_k.") ||
                                          strstr(f->weights[i].name, "attn_v."));
            *extent = (*extent == 16 && !is_heads) || *extent == 24 ? 32 : *extent;
        }
}

#endif // TESTS_LM_FIXTURE_H
