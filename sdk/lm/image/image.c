// SPDX-License-Identifier: MIT
// Images: reads them, cuts them into tiles, encodes these, and puts them at the marks of a
// prompt.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/file.h>
#include "../base/fail.h"
#include "../engine/sequence.h"
#include "../engine/tokens.h"
#include "image.h"
#include "resize.h"
#include "vision.h"

enum { CHANNELS = 3 };

// The most tiles of an image.
#define MOST_TILES 4096

struct tn_lm_image {
    tn_lm_image_info info;
    float *rows;  // info.tokens of the model's width
    int32_t *ids; // info.positions of them; ids of rows are below -1
};

void tn_lm_image_close(tn_lm_image *image)
{
    if (!image)
        return;
    free(image->rows);
    free(image->ids);
    free(image);
}

void tn_lm_image_describe(const tn_lm_image *image, tn_lm_image_info *out)
{
    lm_write_struct(out, out->struct_size, &image->info, sizeof(image->info));
}

const float *tn_lm_image_rows(const tn_lm_image *image)
{
    return image->rows;
}

// --- cutting ---------------------------------------------------------------------------

// Refuses impossible cuts of a plugin.
static tn_status check_cut(const tn_lm *model, const tn_vision_cut *cut)
{
    int64_t tile = model->vision.facts->tile;
    bool fits = cut->num_sizes <= TN_VISION_SIZES && cut->rows >= 0 && cut->columns >= 0 &&
                (cut->rows > 0) == (cut->columns > 0) && cut->rows <= MOST_TILES &&
                cut->columns <= MOST_TILES && cut->rows * cut->columns <= MOST_TILES &&
                (cut->rows == 0 || cut->num_sizes > 0);
    for (uint32_t i = 0; fits && i < cut->num_sizes; i++)
        fits = cut->size[i][0] > 0 && cut->size[i][1] > 0 &&
               cut->size[i][0] <= TN_VISION_MOST_SIDE &&
               cut->size[i][1] <= TN_VISION_MOST_SIDE &&
               cut->size[i][0] * cut->size[i][1] <= TN_LM_MOST_PIXELS;
    if (fits && cut->rows > 0)
        fits = cut->size[cut->num_sizes - 1][0] == cut->rows * tile &&
               cut->size[cut->num_sizes - 1][1] == cut->columns * tile;
    if (fits)
        return TN_OK;
    return lm_fail(TN_ERR_INTERNAL,
                   "%s: cuts an image into %" PRId64 " x %" PRId64 " tiles of %" PRId64
                   " pixels, after %u sizes that do not fit",
                   model->vision.encoder->plugin, cut->rows, cut->columns, tile,
                   cut->num_sizes);
}

// Resizes the image as the cut says. `out->bytes` is for free().
static tn_status resize_image(const tn_lm *model, const struct image *given,
                              const tn_vision_cut *cut, struct image *out)
{
    struct image now = {.bytes = NULL};
    uint32_t filter = model->vision.facts->filter;
    for (uint32_t i = 0; i == 0 || i < cut->num_sizes; i++) {
        const struct image *from = now.bytes ? &now : given;
        struct image next;
        int64_t height = cut->num_sizes ? cut->size[i][0] : given->height;
        int64_t width = cut->num_sizes ? cut->size[i][1] : given->width;
        bool made = image_resize(from, height, width, filter, &next);
        free(now.bytes);
        if (!made)
            return lm_fail(TN_ERR_MEMORY,
                           "out of memory for an image of %" PRId64 " x %" PRId64 " pixels",
                           width, height);
        now = next;
    }
    *out = now;
    return TN_OK;
}

// Writes a tile, whose first pixel is at (top, left) of an image, as the network reads it:
// f32 [3, tile, tile].
static void normalise_tile(const tn_vision_facts *facts, const struct image *image,
                           int64_t top, int64_t left, float *out)
{
    int64_t side = facts->tile;
    float values[CHANNELS][256];
    for (int c = 0; c < CHANNELS; c++)
        for (int b = 0; b < 256; b++)
            values[c][b] =
                (float)(((double)b / 255 - facts->mean[c]) / facts->deviation[c]);
    for (int64_t y = 0; y < side; y++) {
        const uint8_t *pixel = image->bytes + ((top + y) * image->width + left) * CHANNELS;
        for (int64_t x = 0; x < side; x++)
            for (int c = 0; c < CHANNELS; c++)
                out[(c * side + y) * side + x] = values[c][pixel[x * CHANNELS + c]];
    }
}

// Encodes the tiles of an image, which has its final size, and the whole image as the last
// tile.
static tn_status encode_tiles(tn_lm *model, const struct image *image, tn_lm_image *to)
{
    const tn_vision_facts *facts = model->vision.facts;
    int64_t side = facts->tile, row = facts->tokens * model->facts->width;
    struct image whole = {.bytes = NULL};
    float *pixels = lm_alloc((uint64_t)(CHANNELS * side * side), sizeof(*pixels));
    tn_status status = pixels ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK && !image_resize(image, side, side, facts->filter, &whole))
        status = lm_fail(TN_ERR_MEMORY, "out of memory for a tile");
    for (int64_t i = 0; status == TN_OK && i < to->info.tiles; i++) {
        bool is_whole = i == to->info.tiles - 1;
        int64_t columns = is_whole ? 1 : to->info.columns;
        normalise_tile(facts, is_whole ? &whole : image, is_whole ? 0 : i / columns * side,
                       is_whole ? 0 : i % columns * side, pixels);
        status = lm_vision_encode(model, pixels, to->rows + i * row);
    }
    free(whole.bytes);
    free(pixels);
    return status;
}

// --- the text of an image --------------------------------------------------------------

static uint64_t image_mix(uint64_t state, uint64_t word)
{
    unsigned __int128 wide =
        (unsigned __int128)(state ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint64_t)wide ^ (uint64_t)(wide >> 64);
}

// Hashes an image's pixels to a number for the ids of its rows.
static uint64_t image_number_of(const struct image *image)
{
    uint64_t state =
        image_mix(image_mix(1, (uint64_t)image->height), (uint64_t)image->width);
    for (int64_t i = 0; i < image->height * image->width * CHANNELS; i++)
        state = image_mix(state, image->bytes[i]);
    return state;
}

// Gives the text for the tiles, for free().
static tn_status image_write_text(const tn_lm *model, const tn_lm_image_info *info,
                                  char **out_text, uint64_t *out_size)
{
    const struct lm_vision *vision = &model->vision;
    uint64_t size = 0;
    tn_status status =
        lm_fail_core(vision->ops->write(vision->encoder->host, vision->encoder->self,
                                        info->rows, info->columns, NULL, 0, &size));
    if (status != TN_OK)
        return status;
    char *text = lm_alloc(size + 1, 1);
    if (!text)
        return TN_ERR_MEMORY;
    status = lm_fail_core(vision->ops->write(vision->encoder->host, vision->encoder->self,
                                             info->rows, info->columns, text, size + 1,
                                             out_size));
    if (status == TN_OK)
        *out_text = text;
    else
        free(text);
    return status;
}

// Makes the ids of the image: tokens of its text, in which marks become ids of rows.
static tn_status make_ids(tn_lm *model, uint64_t number, tn_lm_image *image)
{
    char *text = NULL;
    uint64_t size = 0, count = 0;
    int64_t marks = 0;
    tn_status status = image_write_text(model, &image->info, &text, &size);
    if (status == TN_OK)
        status =
            tn_lm_tokenize(model, text, size, TN_LM_PARSE_SPECIAL, &image->ids, &count);
    free(text);
    if (status != TN_OK)
        return status;
    image->info.positions = (int64_t)count;
    bool ends = count == 0 || image->ids[count - 1] == model->vision.mark;
    for (uint64_t i = 0; i < count; i++)
        if (image->ids[i] == model->vision.mark)
            image->ids[i] =
                INT32_MIN + (int32_t)(image_mix(number, (uint64_t)marks++) % LM_IMAGE_IDS);
    if (marks == image->info.tokens && !ends)
        return TN_OK;
    return lm_fail(TN_ERR_INTERNAL,
                   "%s: an image's text has %" PRId64 " marks, expected %" PRId64
                   " and something behind them",
                   model->vision.encoder->plugin, marks, image->info.tokens);
}

// --- making images ---------------------------------------------------------------------

static tn_status check_pixels(const void *pixels, int64_t height, int64_t width,
                              const char *what)
{
    if (height < 1 || width < 1 || !pixels)
        return lm_fail(TN_ERR_ARGUMENT,
                       "%s: %" PRId64 " x %" PRId64 " pixels%s, expected at least one",
                       what, width, height, pixels ? "" : " at NULL");
    if (height > TN_LM_MOST_SIDE || width > TN_LM_MOST_SIDE ||
        height * width > TN_LM_MOST_PIXELS)
        return lm_fail(TN_ERR_REFUSED,
                       "%s: %" PRId64 " x %" PRId64 " pixels, expected at most %" PRId64
                       ", and %d a side",
                       what, width, height, TN_LM_MOST_PIXELS, TN_LM_MOST_SIDE);
    return TN_OK;
}

// Fills the image. The vision encoder has to be ready.
static tn_status fill_image(tn_lm *model, const struct image *given, tn_lm_image *image)
{
    const struct lm_vision *vision = &model->vision;
    tn_vision_cut cut = {.struct_size = sizeof(cut)};
    struct image resized = {.bytes = NULL};
    tn_status status = lm_fail_core(vision->ops->cut(
        vision->encoder->host, vision->encoder->self, given->height, given->width, &cut));
    if (status == TN_OK)
        status = check_cut(model, &cut);
    if (status != TN_OK)
        return status;
    int64_t tiles = cut.rows * cut.columns + 1;
    image->info = (tn_lm_image_info){.struct_size = sizeof(image->info),
                                     .height = given->height,
                                     .width = given->width,
                                     .rows = cut.rows,
                                     .columns = cut.columns,
                                     .tiles = tiles,
                                     .tokens = tiles * vision->facts->tokens};
    image->rows = lm_alloc((uint64_t)(image->info.tokens * model->facts->width),
                           sizeof(*image->rows));
    status = image->rows ? resize_image(model, given, &cut, &resized) : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = make_ids(model, image_number_of(&resized), image);
    if (status == TN_OK)
        status = encode_tiles(model, &resized, image);
    free(resized.bytes);
    return status;
}

tn_status tn_lm_image_make(tn_lm *model, const uint8_t *pixels, int64_t height,
                           int64_t width, tn_lm_image **out_image)
{
    tn_status status = check_pixels(pixels, height, width, "an image");
    if (status == TN_OK)
        status = lm_vision_ready(model);
    tn_lm_image *image = status == TN_OK ? lm_alloc(1, sizeof(*image)) : NULL;
    if (!image)
        return status == TN_OK ? TN_ERR_MEMORY : status;
    const struct image given = {(uint8_t *)(uintptr_t)pixels, height, width};
    status = fill_image(model, &given, image);
    if (status == TN_OK)
        *out_image = image;
    else
        tn_lm_image_close(image);
    return status;
}

static tn_status image_check_file(const tn_file *file, const char *path)
{
    const tn_type *type = tn_file_type(file, 0);
    if (!type || tn_file_name(file, 1) || type->dtype != TN_U8 || type->rank != 3 ||
        type->extent[2] != CHANNELS)
        return lm_fail(TN_ERR_REFUSED,
                       "%s is no image: expected one array of bytes, [height, width, 3]",
                       path);
    return check_pixels(path, type->extent[0], type->extent[1], path);
}

tn_status tn_lm_image_open(tn_lm *model, const char *path, tn_lm_image **out_image)
{
    tn_file *file = NULL;
    tn_status status = lm_vision_ready(model);
    if (status != TN_OK)
        return status;
    status = lm_fail_core(tn_file_open(model->runtime, path, NULL, &file));
    if (status == TN_OK)
        status = image_check_file(file, path);
    tn_scope *scope = status == TN_OK ? tn_scope_open(model->runtime) : NULL;
    if (status == TN_OK) {
        tn_array *array = scope ? tn_file_array(scope, file, NULL) : NULL;
        const uint8_t *pixels = array ? tn_data(scope, array) : NULL;
        status = lm_fail_scope(scope);
        if (status == TN_OK)
            status = tn_lm_image_make(model, pixels, tn_array_type(array)->extent[0],
                                      tn_array_type(array)->extent[1], out_image);
    }
    tn_scope_close(scope);
    tn_file_close(file);
    return status;
}

// --- positions -------------------------------------------------------------------------

static tn_status count_positions(const tn_lm *model, const int32_t *ids, int64_t count,
                                 const tn_lm_image *const *images, uint64_t num_images,
                                 int64_t *out_count)
{
    uint64_t marks = 0;
    int64_t positions = count;
    for (int64_t i = 0; i < count; i++)
        if (ids[i] == model->vision.mark && marks++ < num_images)
            positions += images[marks - 1]->info.positions - 1;
    if (marks != num_images)
        return lm_fail(TN_ERR_ARGUMENT,
                       "the prompt has %" PRIu64 " of the mark '%s', expected %" PRIu64
                       ", one for each image",
                       marks, model->vision.facts->mark, num_images);
    *out_count = positions;
    return TN_OK;
}

// Appends the positions of an image, which follow its ids.
static void put_image(const tn_lm *model, const tn_lm_image *image, struct lm_positions *to)
{
    int64_t row = 0;
    for (int64_t i = 0; i < image->info.positions; i++) {
        bool is_row = image->ids[i] < 0;
        to->rows[to->count] = is_row ? image->rows + row++ * model->facts->width : NULL;
        to->ids[to->count++] = image->ids[i];
    }
}

tn_status lm_positions_make(tn_lm *model, const int32_t *ids, int64_t count,
                            const tn_lm_image *const *images, uint64_t num_images,
                            struct lm_positions *out)
{
    struct lm_positions made = {.count = 0};
    int64_t positions = 0;
    tn_status status = lm_vision_ready(model);
    if (status == TN_OK)
        status = count_positions(model, ids, count, images, num_images, &positions);
    if (status != TN_OK)
        return status;
    made.ids = lm_alloc((uint64_t)positions, sizeof(*made.ids));
    made.rows = lm_alloc((uint64_t)positions, sizeof(*made.rows));
    if (!made.ids || !made.rows) {
        lm_positions_finish(&made);
        return TN_ERR_MEMORY;
    }
    for (int64_t i = 0; i < count; i++)
        if (ids[i] == model->vision.mark)
            put_image(model, *images++, &made);
        else
            made.ids[made.count++] = ids[i];
    *out = made;
    return TN_OK;
}

void lm_positions_finish(struct lm_positions *positions)
{
    free(positions->ids);
    free(positions->rows);
    *positions = (struct lm_positions){.count = 0};
}

tn_status tn_lm_image_expand(tn_lm *model, const int32_t *ids, int64_t count,
                             const tn_lm_image *const *images, uint64_t num_images,
                             int32_t **out_ids, int64_t *out_count)
{
    struct lm_positions made;
    tn_status status = lm_positions_make(model, ids, count, images, num_images, &made);
    if (status != TN_OK)
        return status;
    *out_ids = made.ids;
    *out_count = made.count;
    made.ids = NULL;
    lm_positions_finish(&made);
    return TN_OK;
}

tn_status tn_lm_infer_images(tn_lm_sequence *sequence, const int32_t *ids, int64_t count,
                             const tn_lm_image *const *images, uint64_t num_images,
                             uint32_t flags, float *out_logits)
{
    struct lm_positions made;
    tn_lm *model = sequence->model;
    tn_status status = lm_check_ids(model, ids, count);
    if (status == TN_OK)
        status = lm_positions_make(model, ids, count, images, num_images, &made);
    if (status != TN_OK)
        return status;
    status = lm_infer_rows(sequence, made.ids, made.rows, made.count, flags, out_logits);
    lm_positions_finish(&made);
    return status;
}
