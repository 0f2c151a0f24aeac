// SPDX-License-Identifier: MIT
// A source that gives each process a part of every product. It stands between the model and
// its architecture: its metadata have fewer heads and a narrower feed-forward, and its
// weights are rows or columns of the model's. So the architecture's plugin builds its
// layers as ever; products by columns give a part of a sum.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/ops/quant.h>
#include "spread.h"

enum { MOST_SECTIONS = 3, NUMBERS = 7 };

// Elements of a weight that a process has: one part of those along an axis, or of each
// section of the axis.
enum along {
    ROWS,    // the first axis
    EXPERTS, // the rows of each expert's matrix
    COLUMNS, // the last axis: the product is a part of a sum
    QKV,     // rows of queries, then keys, then values
    TWICE,   // rows of the gate, then of what it multiplies
};

// Weights that are divided, by GGUF's names within a layer. The bias of divided rows is
// divided with them; the bias of divided columns is added once to the sum.
static const struct {
    const char *name;
    enum along along;
} parts[] = {
    {"attn_q", ROWS},           {"attn_k", ROWS},
    {"attn_v", ROWS},           {"attn_qkv", QKV},
    {"attn_output", COLUMNS},   {"ffn_gate", ROWS},
    {"ffn_up", ROWS},           {"ffn_down", COLUMNS},
    {"ffn_gate_exps", EXPERTS}, {"ffn_up_exps", EXPERTS},
    {"ffn_down_exps", COLUMNS}, {"ffn_gate_shexp", ROWS},
    {"ffn_up_shexp", ROWS},     {"ffn_down_shexp", COLUMNS},
};

// Keys of the architecture whose numbers are divided. Two keys of one head's sizes follow
// them.
static const char *const divided[] = {"attention.head_count", "attention.head_count_kv",
                                      "feed_forward_length", "expert_feed_forward_length",
                                      "expert_shared_feed_forward_length"};
enum { HEADS, GROUPS, DIVIDED = COUNT(divided), KEY_LENGTH = DIVIDED, VALUE_LENGTH };

struct slice {
    tn_lm_source whole;
    int32_t rank, size;
    int64_t heads, groups, head; // of the whole model; elements of a head
    bool is_fused;               // ffn_up has the gate's rows, too
    const char *output; // the weight whose rows are divided as the output; NULL: none
    char keys[NUMBERS][96];
    int64_t numbers[NUMBERS];
    tn_metadata *entries;
    tn_metadata_list list;
};

// --- which part ------------------------------------------------------------------------

static const char OUTPUT[] = "output.weight";

// Whether and how a weight of a layer, or the output, is divided.
static bool find_along(const struct slice *s, const char *name, enum along *out)
{
    int layer, at = 0;
    if (strcmp(name, OUTPUT) == 0) {
        *out = ROWS;
        return s->output != NULL;
    }
    if (sscanf(name, "blk.%d.%n", &layer, &at) != 1 || at == 0)
        return false;
    const char *what = name + at, *kind = strchr(what, '.');
    for (size_t i = 0; kind && i < COUNT(parts); i++)
        if (strlen(parts[i].name) == (size_t)(kind - what) &&
            strncmp(parts[i].name, what, (size_t)(kind - what)) == 0) {
            *out = s->is_fused && strcmp(parts[i].name, "ffn_up") == 0 ? TWICE
                                                                       : parts[i].along;
            return strcmp(kind, ".weight") == 0 ||
                   (strcmp(kind, ".bias") == 0 && *out != COLUMNS);
        }
    return false;
}

static bool is_partial(const char *name)
{
    static const struct slice whole = {.size = 1};
    enum along along;
    return find_along(&whole, name, &along) && along == COLUMNS;
}

// A part of a weight: elements along `axis`, in sections.
struct weight_cut {
    int32_t axis;
    int num_sections;
    int64_t sections[MOST_SECTIONS]; // elements of each section of the whole weight
};

static void find_cut(const struct slice *s, enum along along, const tn_type *type,
                     struct weight_cut *out)
{
    int32_t last = type->rank - 1;
    *out = (struct weight_cut){.num_sections = 1};
    out->axis = along == COLUMNS ? last : along == EXPERTS ? last - 1 : 0;
    out->sections[0] = type->extent[out->axis];
    if (along == TWICE) {
        out->num_sections = 2;
        out->sections[0] = out->sections[1] = type->extent[0] / 2;
    } else if (along == QKV) {
        out->num_sections = 3;
        out->sections[0] = s->heads * s->head;
        out->sections[1] = out->sections[2] = s->groups * s->head;
    }
}

// Name of a weight in the file, where the divided output may be the embedding.
static const char *whole_name(const struct slice *s, const char *name)
{
    return s->output && strcmp(name, OUTPUT) == 0 ? s->output : name;
}

// --- the source ------------------------------------------------------------------------

static int32_t slice_find(const tn_lm_source *source, const char *name, tn_type *out_type,
                          const char **out_format)
{
    const struct slice *s = source->context;
    enum along along;
    struct weight_cut cut;
    if (!s->whole.find(&s->whole, whole_name(s, name), out_type, out_format))
        return 0;
    if (!find_along(s, name, &along) || out_type->rank < 1)
        return 1;
    find_cut(s, along, out_type, &cut);
    out_type->extent[cut.axis] /= s->size;
    return 1;
}

// Copies this rank's part of each section, row by row. `unit`: bytes of one element along
// the axis, all axes behind it included.
static void copy_cut(const struct slice *s, const struct weight_cut *cut, const char *from,
                     int64_t outer, int64_t unit, char *to)
{
    for (int64_t i = 0; i < outer; i++)
        for (int k = 0; k < cut->num_sections; k++) {
            int64_t part = cut->sections[k] / s->size * unit;
            memcpy(to, from + s->rank * part, (size_t)part);
            to += part;
            from += cut->sections[k] * unit;
        }
}

// Cuts this rank's part out of an array of the file; rows of blocks are bytes.
static tn_array *cut_array(const struct slice *s, tn_scope *scope, tn_array *whole,
                           const struct weight_cut *cut)
{
    const tn_type *type = tn_array_type(whole);
    const char *from = whole ? tn_data(scope, whole) : NULL;
    if (!from)
        return NULL;
    tn_shape shape = {.rank = type->rank};
    int64_t outer = 1, unit = tn_dtype_bytes(type->dtype);
    for (int32_t i = 0; i < type->rank; i++) {
        shape.extent[i] = type->extent[i] / (i == cut->axis ? s->size : 1);
        outer *= i < cut->axis ? type->extent[i] : 1;
        unit *= i > cut->axis ? type->extent[i] : 1;
    }
    uint64_t bytes = (uint64_t)(outer * shape.extent[cut->axis] * unit);
    char *memory = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    if (!memory) {
        tn_scope_fail(scope, TN_ERR_MEMORY, "no %" PRIu64 " bytes for a weight", bytes);
        return NULL;
    }
    copy_cut(s, cut, from, outer, unit, memory);
    const tn_host_memory given = {
        .struct_size = sizeof(given), .data = memory, .release = free, .context = memory};
    return tn_array_import_host(scope, type->dtype, &shape, &given);
}

static tn_array *slice_load(const tn_lm_source *source, tn_scope *scope, const char *name)
{
    const struct slice *s = source->context;
    tn_array *whole = s->whole.load(&s->whole, scope, whole_name(s, name));
    enum along along;
    struct weight_cut cut;
    if (!whole || !find_along(s, name, &along))
        return whole;
    find_cut(s, along, tn_array_type(whole), &cut);
    return cut_array(s, scope, whole, &cut);
}

static void slice_close(const tn_lm_source *source)
{
    struct slice *s = source->context;
    if (s->whole.close)
        s->whole.close(&s->whole);
    free(s->entries);
    free(s);
}

// --- what cannot be divided -------------------------------------------------------------

static tn_status check_divisible(const struct slice *s, const char *what, int64_t number)
{
    return number % s->size == 0
               ? TN_OK
               : lm_fail(TN_ERR_ARGUMENT,
                         "%s: %s: %" PRId64 " on %d processes, expected a multiple: use "
                         "another number of processes, or divide the layers (pipeline)",
                         s->whole.metadata->name, what, number, s->size);
}

// Fails where a part of a row of blocks would not be whole blocks.
static tn_status spread_slice_check_weight(const struct slice *s, const char *name)
{
    tn_type type;
    const char *format = NULL;
    enum along along;
    struct weight_cut cut;
    if (!find_along(s, name, &along) || !s->whole.find(&s->whole, name, &type, &format))
        return TN_OK;
    find_cut(s, along, &type, &cut);
    const tn_quant_format *known = format ? tn_quant_find(format) : NULL;
    int64_t block = known ? known->block : 1;
    if (format && !known)
        return lm_fail(TN_ERR_UNSUPPORTED, "%s: %s is of %s, whose blocks are not known",
                       s->whole.metadata->name, name, format);
    for (int k = 0; k < cut.num_sections; k++)
        if (cut.sections[k] % s->size)
            return check_divisible(s, name, cut.sections[k]);
    if (along == COLUMNS && cut.sections[0] / s->size % block)
        return lm_fail(
            TN_ERR_ARGUMENT,
            "%s: %s: columns of %" PRId64 " on %d processes are not whole blocks "
            "of %" PRId64 " (%s): use another number of processes, or divide the "
            "layers (pipeline)",
            s->whole.metadata->name, name, cut.sections[0], s->size, block, format);
    return TN_OK;
}

static tn_status spread_slice_check_weights(const struct slice *s, int64_t layers)
{
    tn_status status = TN_OK;
    for (int64_t layer = 0; layer < layers; layer++)
        for (size_t i = 0; i < COUNT(parts) && status == TN_OK; i++) {
            char name[TN_MODEL_NAME];
            snprintf(name, sizeof(name), "blk.%" PRId64 ".%s.weight", layer, parts[i].name);
            status = spread_slice_check_weight(s, name);
        }
    return status;
}

// --- metadata --------------------------------------------------------------------------

static void spread_slice_name_key(struct slice *s, int at, const char *architecture,
                                  const char *name)
{
    snprintf(s->keys[at], sizeof(s->keys[at]), "%s.%s", architecture, name);
}

// Reads the numbers that are divided, in the order of their keys; 0: the file does not have
// it.
static tn_status spread_slice_read_numbers(struct slice *s, const tn_lm *model)
{
    const tn_metadata_list *list = s->whole.metadata;
    const tn_model_facts *facts = model->facts;
    tn_status status = TN_OK;
    for (int i = 0; i < NUMBERS; i++) {
        spread_slice_name_key(s, i, model->architecture,
                              i < DIVIDED       ? divided[i]
                              : i == KEY_LENGTH ? "attention.key_length"
                                                : "attention.value_length");
        const tn_metadata *pair = tn_metadata_find(list, s->keys[i]);
        if (pair && !tn_metadata_integer(pair, &s->numbers[i]))
            return lm_fail(TN_ERR_UNSUPPORTED,
                           "%s: %s is not one number: such a model's products are not "
                           "divided, its layers can be (pipeline)",
                           list->name, s->keys[i]);
    }
    s->heads = s->numbers[HEADS] = facts->heads;
    s->groups = s->numbers[GROUPS] = facts->kv_heads;
    s->head = s->numbers[KEY_LENGTH] = s->numbers[VALUE_LENGTH] = facts->head_size;
    for (int i = 0; i < DIVIDED && status == TN_OK; i++) {
        status = check_divisible(s, s->keys[i], s->numbers[i]);
        s->numbers[i] /= s->size;
    }
    return status;
}

// Writes the metadata of the whole model with the divided numbers in place of its own.
static tn_status write_metadata(struct slice *s)
{
    const tn_metadata_list *list = s->whole.metadata;
    uint64_t count = list->count;
    s->entries = lm_alloc(count + NUMBERS, sizeof(*s->entries));
    if (!s->entries)
        return TN_ERR_MEMORY;
    for (uint64_t i = 0; i < count; i++)
        s->entries[i] = *tn_metadata_at(list, i);
    for (int k = 0; k < NUMBERS; k++) {
        uint64_t at = 0;
        while (at < count && strcmp(s->entries[at].key, s->keys[k]) != 0)
            at++;
        if (s->numbers[k] == 0)
            continue;
        s->entries[at] =
            (tn_metadata){s->keys[k], &s->numbers[k], 1, TN_METADATA_INTEGER, 0};
        count += at == count;
    }
    s->list = (tn_metadata_list){sizeof(s->list), sizeof(*s->entries), s->entries, count,
                                 list->name};
    return TN_OK;
}

// Divides the output's rows, if their number is a multiple of the processes.
static void find_output(struct slice *s, const tn_lm *model)
{
    tn_type type;
    const char *format;
    bool has_own = s->whole.find(&s->whole, OUTPUT, &type, &format);
    const char *name = has_own ? OUTPUT : "token_embd.weight";
    if (s->whole.find(&s->whole, name, &type, &format) && type.rank == 2 &&
        type.extent[0] == model->facts->vocabulary && type.extent[0] % s->size == 0)
        s->output = name;
}

tn_status lm_slice(tn_lm *model, int32_t rank, int32_t size)
{
    struct slice *s = lm_alloc(1, sizeof(*s));
    tn_type type;
    const char *format;
    if (!s)
        return TN_ERR_MEMORY;
    s->whole = model->source;
    s->rank = rank;
    s->size = size;
    s->is_fused = !s->whole.find(&s->whole, "blk.0.ffn_gate.weight", &type, &format) &&
                  s->whole.find(&s->whole, "blk.0.attn_qkv.weight", &type, &format);
    find_output(s, model);
    tn_status status = spread_slice_read_numbers(s, model);
    if (status == TN_OK)
        status = spread_slice_check_weights(s, model->facts->layers);
    if (status == TN_OK)
        status = write_metadata(s);
    if (status != TN_OK) {
        free(s->entries);
        free(s);
        return status;
    }
    const tn_lm_source source = {.struct_size = sizeof(source),
                                 .metadata = &s->list,
                                 .context = s,
                                 .find = slice_find,
                                 .load = slice_load,
                                 .close = slice_close};
    model->partial.has = is_partial;
    model->partial.output = s->output ? size : 0;
    return lm_model_reopen(model, &source);
}
