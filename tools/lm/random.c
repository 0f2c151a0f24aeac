// SPDX-License-Identifier: MIT
// Models of random weights, of any dimensions: for measurements without a model's file.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/ops/quant.h>
#include "lm.h"

#define SAMPLES 4096 // blocks that weights consist of
#define RUN 64       // of them, one behind the other, that weights take at once

enum { LAYERS, WIDTH, HEADS, GROUPS, INNER, WORDS, LENGTH, NUMBERS };

static const char *const names[NUMBERS] = {"layers", "width",      "heads",  "kv_heads",
                                           "inner",  "vocabulary", "context"};

struct random_model {
    int64_t numbers[NUMBERS];
    char format[16]; // block format of matrices; "": none
    tn_dtype dtype;  // dtype of matrices without a block format
    char family[32], keys[NUMBERS + 1][96];
    tn_text architecture, name;
    double eps;
    tn_metadata pairs[10];
    tn_metadata_list list;
    uint8_t *samples; // blocks of random numbers; NULL: none yet, or no format
};

// The extents of a weight, by its name; rows 0: there is no such weight.
static void lm_random_extents(const struct random_model *m, const char *name,
                              int64_t extent[2])
{
    int64_t width = m->numbers[WIDTH], inner = m->numbers[INNER];
    int64_t keys = width / m->numbers[HEADS] * m->numbers[GROUPS];
    const struct {
        const char *end;
        int64_t rows, columns;
    } rows[] = {
        {"token_embd.weight", m->numbers[WORDS], width},
        {"output.weight", m->numbers[WORDS], width},
        {"attn_q.weight", width, width},
        {"attn_k.weight", keys, width},
        {"attn_v.weight", keys, width},
        {"attn_output.weight", width, width},
        {"ffn_gate.weight", inner, width},
        {"ffn_up.weight", inner, width},
        {"ffn_down.weight", width, inner},
        {"attn_norm.weight", width, 0},
        {"ffn_norm.weight", width, 0},
        {"output_norm.weight", width, 0},
    };
    extent[0] = extent[1] = 0;
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t length = strlen(rows[i].end), whole = strlen(name);
        if (whole < length || strcmp(name + whole - length, rows[i].end) != 0)
            continue;
        bool starts = whole == length || name[whole - length - 1] == '.';
        if (starts) {
            extent[0] = rows[i].rows;
            extent[1] = rows[i].columns;
        }
    }
}

static int32_t random_find(const tn_lm_source *source, const char *name, tn_type *out_type,
                           const char **out_format)
{
    const struct random_model *m = source->context;
    int64_t extent[2];
    lm_random_extents(m, name, extent);
    if (!extent[0])
        return 0;
    *out_type = (tn_type){.dtype = extent[1] && !m->format[0] ? m->dtype : TN_F32,
                          .rank = extent[1] ? 2 : 1,
                          .extent = {extent[0], extent[1]}};
    *out_format = extent[1] && m->format[0] ? m->format : NULL;
    return 1;
}

// Uniform numbers of this shape, from -0.05 to 0.05.
static tn_array *lm_random_uniform(tn_scope *scope, const tn_ints *shape, uint32_t seed)
{
    const uint32_t key[2] = {seed, 1};
    tn_array *values = tn_op(scope, "base.random_uniform/1",
                             TN_IN(tn_from_data(scope, TN_U32, TN_SHAPE(2), key)),
                             tn_attrs("shape", shape));
    return tn_expr(scope, "x -> f32((x - 0.5) * 0.1)", TN_IN(values), TN_NO_ATTRS);
}

static tn_status quantize_samples(tn_runtime *runtime, tn_scope *outer,
                                  const tn_quant_format *format, uint8_t *out,
                                  uint64_t size)
{
    tn_scope *scope = tn_scope_open(runtime);
    const tn_ints shape = {.count = 1, .given = 1, .value = {SAMPLES * format->block}};
    tn_status status =
        tn_read(scope,
                tn_op(scope, "quant.quantize/1", TN_IN(lm_random_uniform(scope, &shape, 1)),
                      tn_attrs("format", format->name)),
                out, size);
    if (status != TN_OK)
        tn_scope_fail(outer, status, "random weights: %s", tn_scope_error(scope));
    tn_scope_close(scope);
    return status;
}

// Makes the samples on the CPU: not every device has kernels that quantise.
static tn_status lm_random_make_samples(struct random_model *m, tn_scope *scope,
                                        const tn_quant_format *format)
{
    static const char *const variables[] = {"TENON_BACKEND=cpu-blas", NULL};
    const tn_runtime_options options = {.struct_size = sizeof(options),
                                        .variables = variables};
    uint64_t size = (uint64_t)(SAMPLES * format->bytes);
    tn_runtime *runtime = NULL;
    if (m->samples)
        return TN_OK;
    uint8_t *samples = malloc(size);
    if (!samples)
        return tn_scope_fail(scope, TN_ERR_MEMORY, "out of memory");
    tn_status status = tn_runtime_open(&options, &runtime);
    if (status == TN_OK)
        status = quantize_samples(runtime, scope, format, samples, size);
    else
        tn_scope_fail(scope, status, "random weights: %s", tn_last_error());
    tn_runtime_close(runtime);
    if (status == TN_OK)
        m->samples = samples;
    else
        free(samples);
    return status;
}

// Weights whose runs of blocks are drawn from the samples, so that a large model takes
// seconds and is never held as floats.
static tn_array *random_blocks(struct random_model *m, tn_scope *scope, uint32_t seed,
                               const tn_quant_format *format, const int64_t extent[2])
{
    int64_t blocks = extent[0] * (extent[1] / format->block);
    int64_t row = extent[1] / format->block * format->bytes;
    if (extent[1] % format->block) {
        tn_scope_fail(scope, TN_ERR_ARGUMENT,
                      "rows of %" PRId64 " elements, expected a multiple of %" PRId64
                      ", the block of %s",
                      extent[1], format->block, format->name);
        return NULL;
    }
    if (lm_random_make_samples(m, scope, format))
        return NULL;
    uint8_t *bytes = malloc((size_t)(blocks * format->bytes) + 1);
    if (!bytes) {
        tn_scope_fail(scope, TN_ERR_MEMORY, "out of memory for %" PRId64 " bytes",
                      blocks * format->bytes);
        return NULL;
    }
    uint64_t state = seed;
    for (int64_t i = 0; i < blocks; i += RUN) {
        int64_t count = blocks - i < RUN ? blocks - i : RUN;
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        memcpy(bytes + i * format->bytes,
               m->samples + (state >> 32) % (SAMPLES - RUN) * (uint64_t)format->bytes,
               (size_t)(count * format->bytes));
    }
    const tn_host_memory given = {
        .struct_size = sizeof(given), .data = bytes, .release = free, .context = bytes};
    return tn_array_import_host(scope, TN_U8, TN_SHAPE(extent[0], row), &given);
}

static tn_array *random_load(const tn_lm_source *source, tn_scope *scope, const char *name)
{
    struct random_model *m = source->context;
    int64_t extent[2];
    lm_random_extents(m, name, extent);
    const tn_ints shape = {
        .count = extent[1] ? 2 : 1, .given = 1, .value = {extent[0], extent[1]}};
    uint32_t seed = 0;
    for (const char *c = name; *c; c++)
        seed = (seed * 31U + (unsigned char)*c) % 1000003U;
    if (!extent[1])
        return tn_op(scope, "base.full/1", NULL, 0,
                     tn_attrs("shape", &shape, "value", 1.0, "dtype", "f32"));
    const tn_quant_format *format = m->format[0] ? tn_quant_find(m->format) : NULL;
    if (format)
        return random_blocks(m, scope, seed, format, extent);
    tn_array *values = lm_random_uniform(scope, &shape, seed);
    if (!m->format[0])
        return tn_op(scope, "base.astype/1", TN_IN(values),
                     tn_attrs("dtype", (int64_t)m->dtype));
    return tn_op(scope, "quant.quantize/1", TN_IN(values), tn_attrs("format", m->format));
}

static void random_close(const tn_lm_source *source)
{
    struct random_model *m = source->context;
    free(m->samples);
    free(m);
}

static int read_dimensions(struct random_model *m, const char *text)
{
    while (*text) {
        char key[32], value[32];
        int used = 0;
        if (sscanf(text, "%31[a-z_]=%31[a-z0-9_-]%n", key, value, &used) != 2 || !used ||
            (text[used] && text[used] != ','))
            return stop("--random: '%s', expected NAME=NUMBER,...", text);
        text += used + (text[used] == ',');
        if (strcmp(key, "format") == 0) {
            m->dtype = strcmp(value, "f16") == 0    ? TN_F16
                       : strcmp(value, "bf16") == 0 ? TN_BF16
                                                    : TN_F32;
            bool is_blocks = m->dtype == TN_F32 && strcmp(value, "f32") != 0;
            snprintf(m->format, sizeof(m->format), "%.15s", is_blocks ? value : "");
            continue;
        }
        if (strcmp(key, "architecture") == 0) {
            snprintf(m->family, sizeof(m->family), "%s", value);
            continue;
        }
        int at = 0;
        while (at < NUMBERS && strcmp(names[at], key) != 0)
            at++;
        char *end;
        int64_t number = strtoll(value, &end, 10);
        if (at == NUMBERS || *end || number < 1)
            return stop("--random: %s=%s, expected format, layers, width, heads, kv_heads, "
                        "inner, vocabulary, context or architecture, and a positive number",
                        key, value);
        m->numbers[at] = number;
    }
    return 0;
}

// The metadata, under the keys of the architecture.
static void list_pairs(struct random_model *m)
{
    static const char *const keys[NUMBERS + 1] = {
        "block_count",          "embedding_length",
        "attention.head_count", "attention.head_count_kv",
        "feed_forward_length",  "vocab_size",
        "context_length",       "attention.layer_norm_rms_epsilon"};
    for (int i = 0; i <= NUMBERS; i++) {
        snprintf(m->keys[i], sizeof(m->keys[i]), "%s.%s", m->family, keys[i]);
        m->pairs[i] =
            i < NUMBERS
                ? (tn_metadata){m->keys[i], &m->numbers[i], 1, TN_METADATA_INTEGER, 0}
                : (tn_metadata){m->keys[i], &m->eps, 1, TN_METADATA_FLOAT, 0};
    }
    m->architecture = (tn_text){m->family, strlen(m->family)};
    m->pairs[NUMBERS + 1] =
        (tn_metadata){"general.architecture", &m->architecture, 1, TN_METADATA_TEXT, 0};
    m->pairs[NUMBERS + 2] = (tn_metadata){"general.name", &m->name, 1, TN_METADATA_TEXT, 0};
    m->list = (tn_metadata_list){sizeof(m->list), sizeof(m->pairs[0]), m->pairs,
                                 NUMBERS + 3, "random"};
}

int random_source(tn_runtime *runtime, const char *dimensions, tn_lm_source *out_source)
{
    (void)runtime;
    struct random_model *m = calloc(1, sizeof(*m));
    if (!m)
        return stop_memory();
    *m = (struct random_model){.numbers = {22, 2048, 32, 4, 5632, 32000, 4096},
                               .format = "q4_0",
                               .family = "llama",
                               .name = {"random", 6},
                               .eps = 1e-5};
    if (read_dimensions(m, dimensions)) {
        free(m);
        return 1;
    }
    list_pairs(m);
    *out_source = (tn_lm_source){.struct_size = sizeof(*out_source),
                                 .metadata = &m->list,
                                 .context = m,
                                 .find = random_find,
                                 .load = random_load,
                                 .close = random_close};
    return 0;
}
