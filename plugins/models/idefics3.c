// SPDX-License-Identifier: MIT
// The vision encoder of Idefics3 and SmolVLM: SigLIP (patches of a square tile, learnt
// positions, attention of all patches to all), and a product that makes one row of the text
// model's width from s x s patches. Large images are cut into tiles, followed by the whole
// image.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/plugin.h>
#include <tenon/vision.h>
#include "decoder/decoder.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// The longest side that images are resized to, and the most tiles along a side.
#define MOST_EDGE 4096
#define MOST_TILES_A_SIDE 64
// The most patches along a tile's side, and the most that become one row along a side.
#define MOST_PATCHES 256

struct tn_model_self {
    decoder d; // for reading metadata; its facts are the vision encoder's
    tn_vision_facts vision;
    int64_t patch, side;                  // pixels of a patch, patches of a tile's side
    int64_t inside, heads, inner, layers; // `inside`: width within the vision encoder
    int64_t shuffle;                      // s
    int64_t edge;                         // longest side of an image; 0: not resized
    int32_t is_split;                     // large images become tiles
    int32_t is_swapped; // files of llama.cpp once had ffn_up and ffn_down exchanged
};

// --- dimensions ------------------------------------------------------------------------

// Reads three numbers from `least` to 1; each is 0.5 where the file does not have the key.
static tn_status read_colours(const decoder *d, const tn_metadata_list *list,
                              const char *name, double least, double out[3])
{
    char key[DECODER_KEY];
    const tn_metadata *pair = tn_metadata_find(list, decoder_key(d, name, key));
    int32_t is_list = pair && pair->kind == TN_METADATA_FLOAT &&
                      pair->flags & TN_METADATA_LIST && pair->count == 3;
    if (pair && !is_list)
        return d->host->fail(d->host, TN_ERR_REFUSED, "%s: %s: expected three numbers",
                             list->name, key);
    for (int i = 0; i < 3; i++) {
        out[i] = pair ? ((const double *)pair->data)[i] : 0.5;
        if (!(out[i] >= least && out[i] <= 1))
            return d->host->fail(d->host, TN_ERR_REFUSED, "%s: %s has %g, expected %g to 1",
                                 list->name, key, out[i], least);
    }
    return TN_OK;
}

static tn_status read_sizes(tn_model_self *self, const tn_metadata_list *list)
{
    const decoder *d = &self->d;
    const struct {
        const char *name;
        int64_t most, otherwise, *out;
    } numbers[] = {
        {"image_size", TN_VISION_MOST_TILE, -1, &self->vision.tile},
        {"patch_size", 256, -1, &self->patch},
        {"embedding_length", 1 << 16, -1, &self->inside},
        {"feed_forward_length", 1 << 20, -1, &self->inner},
        {"block_count", DECODER_LAYERS, -1, &self->layers},
        {"attention.head_count", 1024, -1, &self->heads},
        {"projector.scale_factor", 64, 2, &self->shuffle},
    };
    for (size_t i = 0; i < COUNT(numbers); i++) {
        tn_status status = decoder_integer(d, list, numbers[i].name, numbers[i].most,
                                           numbers[i].otherwise, numbers[i].out);
        if (status != TN_OK)
            return status;
    }
    self->side = self->vision.tile / self->patch;
    if (self->side > 0 && self->side <= MOST_PATCHES && self->side % self->shuffle == 0 &&
        self->inside % self->heads == 0)
        return TN_OK;
    return d->host->fail(
        d->host, TN_ERR_REFUSED,
        "%s: tiles of %lld pixels in patches of %lld, %lld x %lld of which "
        "become a row, and %lld heads of %lld elements: expected a number "
        "of patches, at most %d a side, and of elements that divide",
        list->name, (long long)self->vision.tile, (long long)self->patch,
        (long long)self->shuffle, (long long)self->shuffle, (long long)self->heads,
        (long long)self->inside, MOST_PATCHES);
}

// Reads how images become tiles. Files of GGUF have only some of the keys.
static tn_status read_cutting(tn_model_self *self, const tn_metadata_list *list)
{
    const decoder *d = &self->d;
    int64_t flag = 1, filter = 1, tile = self->vision.tile;
    int64_t usual = 4 * tile < MOST_EDGE ? 4 * tile : MOST_EDGE;
    tn_status status = decoder_integer(d, list, "preproc_image_size",
                                       MOST_TILES_A_SIDE * tile, usual, &self->edge);
    if (status == TN_OK)
        status = read_colours(d, list, "image_mean", 0, self->vision.mean);
    if (status == TN_OK)
        status = read_colours(d, list, "image_std", 1e-3, self->vision.deviation);
    const tn_metadata *pair = tn_metadata_find(list, "tenon.vision.resizes");
    if (tn_metadata_integer(pair, &flag) && !flag)
        self->edge = 0;
    flag = 1;
    tn_metadata_integer(tn_metadata_find(list, "tenon.vision.splits"), &flag);
    self->is_split = flag != 0;
    tn_metadata_integer(tn_metadata_find(list, "tenon.vision.filter"), &filter);
    static const uint32_t filters[] = {
        [1] = TN_VISION_LANCZOS, [2] = TN_VISION_BILINEAR, [3] = TN_VISION_BICUBIC};
    if (status == TN_OK && (filter < 1 || filter > 3))
        return d->host->fail(d->host, TN_ERR_UNSUPPORTED,
                             "%s: images are resized by filter %lld, expected 1 (Lanczos), "
                             "2 (bilinear) or 3 (bicubic)",
                             list->name, (long long)filter);
    if (status == TN_OK)
        self->vision.filter = filters[filter];
    return status;
}

static tn_status idefics3_read(const tn_host *host, const tn_model_source *source,
                               tn_model_self *self)
{
    const tn_metadata_list *list = source->metadata;
    tn_type type;
    self->d.host = host;
    snprintf(self->d.architecture, sizeof(self->d.architecture), "clip.vision");
    self->vision.struct_size = sizeof(self->vision);
    self->vision.mark = "<image>";
    tn_status status = read_sizes(self, list);
    if (status == TN_OK)
        status = read_cutting(self, list);
    if (status == TN_OK)
        status = decoder_number(&self->d, list, "attention.layer_norm_epsilon", 1e-6,
                                &self->d.eps);
    if (status != TN_OK)
        return status;
    if (!source->weight(source, "mm.model.fc.weight", &type) || type.rank != 2 ||
        type.extent[0] < 1)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: mm.model.fc.weight is missing, or no matrix", list->name);
    self->vision.tokens = self->side * self->side / (self->shuffle * self->shuffle);
    self->d.facts = (tn_model_facts){.struct_size = sizeof(self->d.facts),
                                     .layers = self->layers,
                                     .width = type.extent[0]};
    self->is_swapped = source->weight(source, "v.blk.0.ffn_up.weight", &type) &&
                       type.rank == 2 && type.extent[0] == self->inside &&
                       type.extent[1] == self->inner && self->inside != self->inner;
    return TN_OK;
}

static tn_status idefics3_open(const tn_host *host, const tn_model_source *source,
                               tn_model_self **out_model, const tn_model_facts **out_facts)
{
    tn_model_self *self = host->alloc(host, sizeof(*self), 0);
    if (!self)
        return TN_ERR_MEMORY;
    memset(self, 0, sizeof(*self));
    tn_status status = idefics3_read(host, source, self);
    if (status != TN_OK) {
        host->free(host, self);
        return status;
    }
    *out_model = self;
    *out_facts = &self->d.facts;
    return TN_OK;
}

static void idefics3_close(const tn_host *host, tn_model_self *self)
{
    host->free(host, self);
}

static const tn_vision_facts *idefics3_facts(const tn_model_self *self)
{
    return &self->vision;
}

// --- weights ---------------------------------------------------------------------------

// Weights of a layer are "v.blk.3.attn_q.weight".
#define NAME 64
static const char *in_layer(int64_t layer, const char *what, char out[NAME])
{
    snprintf(out, NAME, "v.blk.%lld.%s", (long long)layer, what);
    return out;
}

// Adds a matrix and its bias. Matrices with the same `joined` above 0 read the same x.
static void list_matrix(weight_list *list, const char *what, int64_t rows, int64_t columns,
                        int64_t joined)
{
    uint64_t at = list->count;
    list_add(list, TN_MODEL_EMBEDDING, what, "weight", rows, columns, TN_MODEL_PRODUCT);
    if (list->out && at < list->room)
        list->out[at].joined = joined;
    list_add(list, TN_MODEL_EMBEDDING, what, "bias", rows, 0, TN_MODEL_OPTIONAL);
}

static void list_norm(weight_list *list, const char *what, int64_t width)
{
    list_add(list, TN_MODEL_EMBEDDING, what, "weight", width, 0, 0);
    list_add(list, TN_MODEL_EMBEDDING, what, "bias", width, 0, 0);
}

static void list_patches(weight_list *list, const tn_model_self *self)
{
    uint64_t at = list->count;
    list_add(list, TN_MODEL_EMBEDDING, "v.patch_embd", "weight", self->inside, 3, 0);
    if (list->out && at < list->room) {
        list->out[at].rank = 4;
        list->out[at].extent[2] = list->out[at].extent[3] = self->patch;
    }
    list_add(list, TN_MODEL_EMBEDDING, "v.patch_embd", "bias", self->inside, 0, 0);
    list_add(list, TN_MODEL_EMBEDDING, "v.position_embd", "weight", self->side * self->side,
             self->inside, 0);
}

static tn_status idefics3_weights(const tn_host *host, const tn_model_self *self,
                                  int64_t layer, tn_model_weight *out, uint64_t *count)
{
    static const char *const heads[] = {"attn_q", "attn_k", "attn_v"};
    char name[NAME];
    int64_t width = self->inside, wide = width * self->shuffle * self->shuffle;
    weight_list list = {out, *count, 0};
    (void)host;
    if (layer == TN_MODEL_EMBEDDING) {
        list_patches(&list, self);
    } else if (layer == TN_MODEL_OUTPUT) {
        list_norm(&list, "v.post_ln", width);
        list_matrix(&list, "mm.model.fc", self->d.facts.width, wide, 0);
    } else {
        list_norm(&list, in_layer(layer, "ln1", name), width);
        for (size_t i = 0; i < COUNT(heads); i++)
            list_matrix(&list, in_layer(layer, heads[i], name), width, width, 1);
        list_matrix(&list, in_layer(layer, "attn_out", name), width, width, 0);
        list_norm(&list, in_layer(layer, "ln2", name), width);
        list_matrix(&list, in_layer(layer, self->is_swapped ? "ffn_down" : "ffn_up", name),
                    self->inner, width, 0);
        list_matrix(&list, in_layer(layer, self->is_swapped ? "ffn_up" : "ffn_down", name),
                    width, self->inner, 0);
    }
    *count = list.count;
    return TN_OK;
}

// --- the graph -------------------------------------------------------------------------

static tn_array *idefics3_reshape(const tn_model_step *step, tn_array *x,
                                  const tn_ints *shape)
{
    return step->build->op(step->build, "base.reshape/1", TN_IN(x),
                           tn_attrs("shape", shape));
}

static tn_array *idefics3_transpose(const tn_model_step *step, tn_array *x,
                                    const tn_ints *axes)
{
    return step->build->op(step->build, "base.transpose/1", TN_IN(x),
                           tn_attrs("axes", axes));
}

static tn_array *idefics3_norm(const tn_model_step *step, const tn_model_self *self,
                               tn_array *x, const char *what)
{
    char name[TN_MODEL_NAME];
    tn_array *weight =
        step->weight(step, block_name(TN_MODEL_EMBEDDING, what, "weight", name));
    tn_array *bias = step->weight(step, block_name(TN_MODEL_EMBEDDING, what, "bias", name));
    return step->build->op(step->build, "nn.layer_norm/1", TN_IN(x, weight, bias),
                           tn_attrs("eps", self->d.eps));
}

// The patches of a tile as rows, [patches, inside]: a convolution whose stride is its
// kernel's size, which leaves out pixels beyond the last patch, plus the positions. Tiles
// are whole, so each patch has its own bucket of those into which the network sorts
// positions.
static tn_array *idefics3_patches(const tn_model_step *step, const tn_model_self *self)
{
    int64_t n = self->side, p = self->patch;
    tn_array *x = step->input;
    if (n * p < self->vision.tile)
        x = step->build->op(
            step->build, "base.slice/1", TN_IN(x),
            tn_attrs("start", TN_INTS(0, 0, 0), "stop", TN_INTS(3, n * p, n * p)));
    x = idefics3_reshape(step, x, TN_INTS(3, n, p, n, p));
    x = idefics3_transpose(step, x, TN_INTS(1, 3, 0, 2, 4));
    x = idefics3_reshape(step, x, TN_INTS(n * n, 3 * p * p));
    tn_array *kernel = step->weight(step, "v.patch_embd.weight");
    kernel = idefics3_reshape(step, kernel, TN_INTS(self->inside, 3 * p * p));
    kernel = idefics3_transpose(step, kernel, TN_INTS(1, 0));
    x = step->build->op(step->build, "base.matmul/1", TN_IN(x, kernel), TN_NO_ATTRS);
    return step->build->expr(step->build, "x, b, p -> x + b + p",
                             TN_IN(x, step->weight(step, "v.patch_embd.bias"),
                                   step->weight(step, "v.position_embd.weight")),
                             TN_NO_ATTRS);
}

// Queries, keys or values: [1, heads, patches, size].
static tn_array *idefics3_heads(const tn_model_step *step, const tn_model_self *self,
                                tn_array *h, int64_t layer, const char *what)
{
    char name[NAME];
    h = block_linear(step, h, TN_MODEL_EMBEDDING, in_layer(layer, what, name));
    h = idefics3_reshape(
        step, h,
        TN_INTS(1, self->side * self->side, self->heads, self->inside / self->heads));
    return idefics3_transpose(step, h, TN_INTS(0, 2, 1, 3));
}

static tn_array *idefics3_attention(const tn_model_step *step, const tn_model_self *self,
                                    tn_array *h, int64_t layer)
{
    char name[NAME];
    tn_array *q = idefics3_heads(step, self, h, layer, "attn_q");
    tn_array *k = idefics3_heads(step, self, h, layer, "attn_k");
    tn_array *v = idefics3_heads(step, self, h, layer, "attn_v");
    h = step->build->op(step->build, "nn.scaled_dot_product_attention/1", TN_IN(q, k, v),
                        TN_NO_ATTRS);
    h = idefics3_transpose(step, h, TN_INTS(0, 2, 1, 3));
    h = idefics3_reshape(step, h, TN_INTS(self->side * self->side, self->inside));
    return block_linear(step, h, TN_MODEL_EMBEDDING, in_layer(layer, "attn_out", name));
}

static tn_array *idefics3_feed(const tn_model_step *step, const tn_model_self *self,
                               tn_array *h, int64_t layer)
{
    char name[NAME];
    h = block_linear(step, h, TN_MODEL_EMBEDDING,
                     in_layer(layer, self->is_swapped ? "ffn_down" : "ffn_up", name));
    h = step->build->op(step->build, "nn.gelu/1", TN_IN(h),
                        tn_attrs("approximate", (int64_t)1));
    return block_linear(step, h, TN_MODEL_EMBEDDING,
                        in_layer(layer, self->is_swapped ? "ffn_up" : "ffn_down", name));
}

// The patches of each s x s square joined as one row: [tokens, inside * s * s].
static tn_array *idefics3_neighbours(const tn_model_step *step, const tn_model_self *self,
                                     tn_array *x)
{
    int64_t s = self->shuffle, n = self->side / s, width = self->inside;
    x = idefics3_reshape(step, x, TN_INTS(n, s, n, s * width));
    x = idefics3_transpose(step, x, TN_INTS(0, 2, 1, 3));
    return idefics3_reshape(step, x, TN_INTS(n * n, s * s * width));
}

static tn_status idefics3_build(const tn_host *host, const tn_model_self *self,
                                tn_model_step *step)
{
    char name[NAME];
    (void)host;
    tn_array *x = idefics3_patches(step, self);
    for (int64_t layer = step->first; layer < step->end; layer++) {
        tn_array *h = idefics3_norm(step, self, x, in_layer(layer, "ln1", name));
        x = block_add(step, x, idefics3_attention(step, self, h, layer));
        h = idefics3_norm(step, self, x, in_layer(layer, "ln2", name));
        x = block_add(step, x, idefics3_feed(step, self, h, layer));
    }
    x = idefics3_neighbours(step, self, idefics3_norm(step, self, x, "v.post_ln"));
    step->output = block_linear(step, x, TN_MODEL_EMBEDDING, "mm.model.fc");
    return TN_OK;
}

// --- tiles -----------------------------------------------------------------------------

static int64_t at_least(int64_t x, int64_t least)
{
    return x > least ? x : least;
}

static int64_t ceil_to(int64_t x, int64_t unit)
{
    return at_least((x + unit - 1) / unit, 1) * unit;
}

// The size whose longer side is `edge`, with an even other side; then at most MOST_EDGE.
static void fit_edge(int64_t height, int64_t width, int64_t edge, int64_t out[2])
{
    int wide = width >= height;
    double aspect = (double)width / (double)height;
    int64_t other = (int64_t)(wide ? (double)edge / aspect : (double)edge * aspect);
    other = at_least(other + other % 2, 1);
    out[0] = wide ? other : edge;
    out[1] = wide ? edge : other;
    if (edge <= MOST_EDGE)
        return;
    aspect = (double)out[1] / (double)out[0];
    wide = out[1] >= out[0];
    other = (int64_t)(wide ? MOST_EDGE / aspect : MOST_EDGE * aspect);
    out[0] = wide ? at_least(other, 1) : MOST_EDGE;
    out[1] = wide ? MOST_EDGE : at_least(other, 1);
}

// The size of whole tiles with about the same aspect.
static void fit_tiles(const int64_t from[2], int64_t tile, int64_t out[2])
{
    int wide = from[1] >= from[0];
    double aspect = (double)from[1] / (double)from[0];
    int64_t longer = ceil_to(wide ? from[1] : from[0], tile);
    int64_t other = (int64_t)(wide ? (double)longer / aspect : (double)longer * aspect);
    out[!wide ? 0 : 1] = longer;
    out[!wide ? 1 : 0] = ceil_to(other, tile);
}

static tn_status idefics3_cut(const tn_host *host, const tn_model_self *self,
                              int64_t height, int64_t width, tn_vision_cut *out)
{
    int64_t now[2] = {height, width}, tile = self->vision.tile;
    if (self->edge) {
        fit_edge(height, width, self->edge, now);
        memcpy(out->size[out->num_sizes++], now, sizeof(now));
    }
    if (!self->is_split)
        return TN_OK;
    fit_tiles(now, tile, out->size[out->num_sizes]);
    out->rows = out->size[out->num_sizes][0] / tile;
    out->columns = out->size[out->num_sizes++][1] / tile;
    if (out->rows > MOST_TILES_A_SIDE || out->columns > MOST_TILES_A_SIDE)
        return host->fail(host, TN_ERR_UNSUPPORTED,
                          "an image of %lld x %lld pixels would become %lld x %lld tiles, "
                          "expected at most %d a side",
                          (long long)width, (long long)height, (long long)out->columns,
                          (long long)out->rows, MOST_TILES_A_SIDE);
    if (out->rows * out->columns == 1)
        out->rows = out->columns = 0;
    return TN_OK;
}

// --- the text --------------------------------------------------------------------------

// A text that is counted in full and written as far as it fits.
struct idefics3_text {
    char *out; // may be NULL
    uint64_t size, written;
};

static void idefics3_put(struct idefics3_text *t, const char *text)
{
    for (; *text; text++, t->written++)
        if (t->out && t->written + 1 < t->size)
            t->out[t->written] = *text;
}

static void put_marks(struct idefics3_text *t, const tn_model_self *self)
{
    for (int64_t i = 0; i < self->vision.tokens; i++)
        idefics3_put(t, self->vision.mark);
}

static tn_status idefics3_write(const tn_host *host, const tn_model_self *self,
                                int64_t rows, int64_t columns, char *out, uint64_t size,
                                uint64_t *out_size)
{
    static const char around[] = "<fake_token_around_image>";
    struct idefics3_text t = {out, size, 0};
    char position[64];
    (void)host;
    for (int64_t i = 0; i < rows * columns; i++) {
        snprintf(position, sizeof(position), "<row_%lld_col_%lld>",
                 (long long)(i / columns + 1), (long long)(i % columns + 1));
        idefics3_put(&t, around);
        idefics3_put(&t, position);
        put_marks(&t, self);
        if (i % columns == columns - 1)
            idefics3_put(&t, "\n");
    }
    idefics3_put(&t, rows > 0 ? "\n" : "");
    idefics3_put(&t, around);
    idefics3_put(&t, "<global-img>");
    put_marks(&t, self);
    idefics3_put(&t, around);
    if (out && size)
        out[t.written < size ? t.written : size - 1] = 0;
    *out_size = t.written;
    return TN_OK;
}

// --- the plugin ------------------------------------------------------------------------

static const tn_model encoder = {
    .struct_size = sizeof(encoder),
    .open = idefics3_open,
    .close = idefics3_close,
    .weights = idefics3_weights,
    .build = idefics3_build,
};

static const tn_vision vision = {
    .struct_size = sizeof(vision),
    .encoder = &encoder,
    .facts = idefics3_facts,
    .cut = idefics3_cut,
    .write = idefics3_write,
};

static const tn_selector selectors[] = {{TN_IFACE_VISION, "projector", "idefics3"}};
static const tn_selectors selector_list = {
    .struct_size = sizeof(selector_list),
    .items = selectors,
    .num_items = COUNT(selectors),
    .item_size = sizeof(selectors[0]),
};
static const char *const interfaces[] = {TN_IFACE_VISION, NULL};

static const void *idefics3_query(const char *id)
{
    if (strcmp(id, TN_IFACE_SELECTORS) == 0)
        return &selector_list;
    if (strcmp(id, TN_IFACE_LIST) == 0)
        return interfaces;
    return strcmp(id, TN_IFACE_VISION) == 0 ? &vision : NULL;
}

TN_PLUGIN("org.tenon.idefics3", "0.1.0", "Tenon", .query = idefics3_query);
