// SPDX-License-Identifier: MIT
// An architecture of attention with one head and no norms, with one fault each; see ops.c.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tenon/model.h>
#include <tenon/plugin.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct tn_model_self {
    tn_model_facts facts;
    char *spare; // a second block of memory
};

// --- dimensions ------------------------------------------------------------------------

static tn_status refuse(const tn_host *host, const tn_metadata_list *list, const char *key)
{
#ifdef FAULT_MODEL_DAMAGE
    (void)host, (void)list, (void)key;
    return TN_ERR_REFUSED;
#elif defined(FAULT_MODEL_DAMAGE_NAME)
    (void)list;
    return host->fail(host, TN_ERR_REFUSED, "%s is missing", key);
#else
    return host->fail(host, TN_ERR_REFUSED, "%s: %s is missing, or not 1 to 4096",
                      list->name, key);
#endif
}

static tn_status read_facts(const tn_host *host, const tn_model_source *source,
                            tn_model_facts *f)
{
    tn_type embedding;
    const tn_metadata_list *list = source->metadata;
    const struct {
        const char *key;
        int64_t *out;
    } numbers[] = {{"acme-tiny.block_count", &f->layers},
                   {"acme-tiny.embedding_length", &f->width},
                   {"acme-tiny.context_length", &f->context},
                   {"acme-tiny.attention.head_count", &f->heads}};
    *f = (tn_model_facts){.struct_size = sizeof(*f), .num_caches = 2, .kv_heads = 1};
    for (size_t i = 0; i < COUNT(numbers); i++) {
        const tn_metadata *pair = tn_metadata_find(list, numbers[i].key);
#ifdef FAULT_MODEL_DAMAGE_RANGE
        if (!tn_metadata_integer(pair, numbers[i].out))
#else
        if (!tn_metadata_integer(pair, numbers[i].out) || *numbers[i].out < 1 ||
            *numbers[i].out > 4096)
#endif
            return refuse(host, list, numbers[i].key);
    }
    if (!source->weight(source, "token_embd.weight", &embedding) || embedding.rank != 2 ||
        embedding.extent[0] < 1 || embedding.extent[0] > INT32_MAX)
        return refuse(host, list, "token_embd.weight");
    f->vocabulary = embedding.extent[0];
    f->head_size = f->width;
#ifdef FAULT_MODEL_OPENS_FACTS
    f->context = 1;
#endif
    return TN_OK;
}

static tn_status tiny_open(const tn_host *host, const tn_model_source *source,
                           tn_model_self **out_model, const tn_model_facts **out_facts)
{
    tn_text name = {"", 0};
    tn_metadata_text(tn_metadata_find(source->metadata, "general.architecture"), &name);
    if (name.size != 9)
        return host->fail(host, TN_ERR_UNSUPPORTED, "%s: the architecture is not known",
                          source->metadata->name);
    tn_model_self *self = host->alloc(host, sizeof(*self), 0);
    if (!self)
        return TN_ERR_MEMORY;
#ifdef FAULT_MODEL_DAMAGE_OUTPUT
    *out_model = self;
#endif
    self->spare = host->alloc(host, 16, 0);
    if (!self->spare) {
#ifndef FAULT_MODEL_MEMORY
        host->free(host, self);
#endif
        return TN_ERR_MEMORY;
    }
    tn_status status = read_facts(host, source, &self->facts);
    if (status != TN_OK) {
#ifndef FAULT_MODEL_DAMAGE_LEAVES
        host->free(host, self->spare);
#endif
        host->free(host, self);
        return status;
    }
    *out_model = self;
    *out_facts = &self->facts;
    return TN_OK;
}

static void tiny_close(const tn_host *host, tn_model_self *self)
{
    if (self)
        host->free(host, self->spare);
    host->free(host, self);
}

// --- lists -----------------------------------------------------------------------------

static const char *name_of(int64_t layer, const char *what, char out[TN_MODEL_NAME])
{
    snprintf(out, TN_MODEL_NAME, "blk.%lld.%s.weight", (long long)layer, what);
    return out;
}

static void put(tn_model_weight *out, uint64_t room, uint64_t *count, const char *name,
                int64_t rows, int64_t columns, uint32_t flags)
{
#ifdef FAULT_MODEL_LISTS
    if (out) {
#else
    if (out && *count < room) {
#endif
        tn_model_weight *w = &out[*count];
        memset(w, 0, sizeof(*w));
        snprintf(w->name, sizeof(w->name), "%s", name);
        w->rank = 2;
        w->extent[0] = rows;
        w->extent[1] = columns;
        w->flags = flags;
    }
    (void)room;
    ++*count;
}

static tn_status tiny_weights(const tn_host *host, const tn_model_self *self, int64_t layer,
                              tn_model_weight *out, uint64_t *count)
{
    static const char *const names[] = {"attn_q", "attn_k", "attn_v", "attn_output"};
    const tn_model_facts *f = &self->facts;
    uint64_t room = *count;
    char name[TN_MODEL_NAME];
    (void)host;
    *count = 0;
    if (layer == TN_MODEL_EMBEDDING)
        put(out, room, count, "token_embd.weight", f->vocabulary, f->width, TN_MODEL_ROWS);
    if (layer == TN_MODEL_OUTPUT)
        put(out, room, count, "output.weight", f->vocabulary, f->width, TN_MODEL_PRODUCT);
    for (size_t i = 0; layer >= 0 && i < COUNT(names); i++)
        put(out, room, count, name_of(layer, names[i], name), f->width, f->width,
            TN_MODEL_PRODUCT);
#ifdef FAULT_MODEL_LISTS_TWICE
    if (layer >= 0)
        put(out, room, count, name_of(layer, names[0], name), f->width, f->width,
            TN_MODEL_PRODUCT);
#endif
    return TN_OK;
}

static tn_status tiny_caches(const tn_host *host, const tn_model_self *self, int64_t layer,
                             int64_t capacity, tn_type *out_types)
{
    (void)host, (void)layer;
#ifdef FAULT_MODEL_LISTS_CACHES
    for (int i = 0; i < 3; i++)
#else
    for (int i = 0; i < 2; i++)
#endif
        out_types[i] = (tn_type){
            .dtype = TN_F32, .rank = 4, .extent = {1, 1, capacity, self->facts.width}};
    return TN_OK;
}

// --- the graph -------------------------------------------------------------------------

static tn_array *reshape(const tn_model_step *step, tn_array *x, int64_t a, int64_t b,
                         int64_t c, int64_t d)
{
    const tn_ints shape = {.count = c ? 4 : 2, .given = 1, .value = {a, b, c, d}};
    return step->build->op(step->build, "base.reshape/1", TN_IN(x),
                           tn_attrs("shape", &shape));
}

static tn_array *product(const tn_model_step *step, tn_array *x, int64_t layer,
                         const char *what)
{
    char name[TN_MODEL_NAME];
    return step->product(step, x, name_of(layer, what, name));
}

static tn_array *grow(const tn_model_step *step, tn_array *cache, tn_array *x,
                      int64_t width)
{
    const tn_build *build = step->build;
    tn_array *start = step->start;
    x = reshape(step, x, step->sequences, 1, step->count, width);
#ifdef FAULT_MODEL_CACHES
    start = build->expr(build, "t -> t + i32(index == 2)", TN_IN(start), TN_NO_ATTRS);
#endif
#ifdef FAULT_MODEL_SEQUENCES
    tn_array *slots =
        step->slots ? build->expr(build, "s -> s * 0", TN_IN(step->slots), TN_NO_ATTRS)
                    : NULL;
#else
    tn_array *slots = step->slots;
#endif
    return step->slots ? build->op(build, "quant.cache_update/1",
                                   TN_IN(cache, x, step->position, slots),
                                   tn_attrs("format", step->cache_format))
                       : build->op(build, "base.dynamic_slice_update/1",
                                   TN_IN(cache, x, start), TN_NO_ATTRS);
}

static tn_array *attend(const tn_model_step *step, tn_array *q, tn_array *const *caches,
                        int64_t width)
{
    const tn_build *build = step->build;
    const int64_t causal = 1;
    const double scale = 1 / sqrt((double)width);
    tn_array *length = step->length;
#ifdef FAULT_MODEL_CHUNKS
    if (step->count > 1)
        length = build->expr(build, "n -> n + 1", TN_IN(length), TN_NO_ATTRS);
#endif
#ifdef FAULT_MODEL_CACHES_BEHIND
    length = build->expr(build, "n -> n + 1", TN_IN(length), TN_NO_ATTRS);
#endif
    q = reshape(step, q, step->sequences, 1, step->count, width);
    q = step->slots ? build->op(build, "quant.cached_attention/1",
                                TN_IN(q, caches[0], caches[1], length, step->slots),
                                tn_attrs("scale", scale, "is_causal", causal, "format",
                                         step->cache_format))
                    : build->op(build, "nn.scaled_dot_product_attention/1",
                                TN_IN(q, caches[0], caches[1], NULL, length),
                                tn_attrs("scale", scale, "is_causal", causal));
    return reshape(step, q, step->sequences * step->count, width, 0, 0);
}

static tn_array *layer_of(tn_model_step *step, tn_array *x, int64_t layer, int64_t width)
{
    const tn_build *build = step->build;
    tn_array **caches = step->caches + 2 * (layer - step->first);
    caches[0] = grow(step, caches[0], product(step, x, layer, "attn_k"), width);
    caches[1] = grow(step, caches[1], product(step, x, layer, "attn_v"), width);
    tn_array *h = attend(step, product(step, x, layer, "attn_q"), caches, width);
#ifdef FAULT_MODEL_BUILD_WAY
    char name[TN_MODEL_NAME];
    step->weight(step, name_of(layer, "attn_q", name));
#elif defined(FAULT_MODEL_BUILD)
    h = product(step, h, layer, "attn_norm");
#elif defined(FAULT_MODEL_BUILD_PART)
    step->rows(step, step->input, "token_embd.weight");
#elif defined(FAULT_MODEL_FAILURE)
    if (build->type(h)->rank != 2)
        return NULL;
#endif
    return build->expr(build, "x, y -> x + y",
                       TN_IN(x, product(step, h, layer, "attn_output")), TN_NO_ATTRS);
}

static tn_status tiny_build(const tn_host *host, const tn_model_self *self,
                            tn_model_step *step)
{
    const tn_build *build = step->build;
    tn_array *x =
        step->first ? step->input : step->rows(step, step->input, "token_embd.weight");
    (void)host;
#ifdef FAULT_MODEL_SHARDS
    if (step->first)
        x = build->expr(build, "x -> x * 2", TN_IN(x), TN_NO_ATTRS);
#endif
    for (int64_t layer = step->first; layer < step->end; layer++)
        x = layer_of(step, x, layer, self->facts.width);
    if (step->end == self->facts.layers) {
#ifdef FAULT_MODEL_LAST
        tn_array *last =
            step->last ? build->expr(build, "r -> r + 1", TN_IN(step->last), TN_NO_ATTRS)
                       : NULL;
#else
        tn_array *last = step->last;
#endif
        if (last)
            x = build->op(build, "base.take/1", TN_IN(x, last),
                          tn_attrs("axis", (int64_t)0));
#ifndef FAULT_MODEL_BUILD_TYPE
        x = step->product(step, x, "output.weight");
#endif
    }
    step->output = x;
    return TN_OK;
}

static const tn_model model = {
    .struct_size = sizeof(model),
    .open = tiny_open,
    .close = tiny_close,
    .weights = tiny_weights,
    .caches = tiny_caches,
#ifndef FAULT_MODEL_TABLE
    .build = tiny_build,
#endif
};

#ifdef FAULT_MODEL_TABLE_SELECTOR
#define KIND "family"
#else
#define KIND "architecture"
#endif
static const tn_selector items[] = {{TN_IFACE_MODEL, KIND, "acme-tiny"},
#ifdef FAULT_MODEL_OPENS
                                    {TN_IFACE_MODEL, KIND, "acme-other"}
#endif
};
static const tn_selectors selectors = {.struct_size = sizeof(selectors),
                                       .items = items,
                                       .num_items = COUNT(items),
                                       .item_size = sizeof(items[0])};

static const void *query(const char *id)
{
#ifdef FAULT_MODEL_TABLE
    (void)tiny_build;
#endif
    if (strcmp(id, TN_IFACE_SELECTORS) == 0)
        return &selectors;
    return strcmp(id, TN_IFACE_MODEL) == 0 ? &model : NULL;
}

TN_PLUGIN("com.acme.tiny", "1.0.0", "Acme", .query = query);
