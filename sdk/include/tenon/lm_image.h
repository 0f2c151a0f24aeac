// SPDX-License-Identifier: MIT
// Images in prompts of language models: read from files, encoded, put where their marks
// stand.
//
//   tn_lm_image *image;
//   if (tn_lm_image_open(lm, "photo.png", &image))
//       return fprintf(stderr, "%s\n", tn_lm_error());
//   tn_lm_generation how = {.prompt = "<image>What is in this picture?",
//                           .prompt_flags = TN_LM_ADD_SPECIAL | TN_LM_PARSE_SPECIAL,
//                           .images = &image, .num_images = 1, .piece = print};
//   tn_lm_generate(sequence, &how, NULL);
//
// A model that reads images has a vision encoder (<tenon/vision.h>): a model of Hugging
// Face in the same folder, a model in GGUF in another file, "mmproj-....gguf". An image is
// cut into tiles, and each becomes rows as wide as the embedding of a token. A prompt has
// the model's mark, "<image>", once for each image; in its place come the rows, and the
// tokens that the model was trained to see around them.
//
// Errors and ownership are those of <tenon/lm.h>.
//
// Threads. Images may be opened from any thread, and one at a time is encoded; an image
// does not change, and any thread may use it.
#ifndef TENON_LM_IMAGE_H
#define TENON_LM_IMAGE_H

#include <tenon/lm.h>

#ifdef __cplusplus
extern "C" {
#endif

// The most pixels of an image, and of its height and width.
#define TN_LM_MOST_PIXELS (INT64_C(1) << 27)
#define TN_LM_MOST_SIDE 65535

// Takes the model's vision encoder from another file than the model's own, before the first
// image. Its weights are read when an image is. Alone, as tn_lm_ensure_shard is.
//
// TN_ERR_REFUSED: it is damaged, no vision encoder, or gives rows of another width than the
// model's. TN_ERR_ARGUMENT: the model has read an image already, with another vision
// encoder.
TN_API tn_status tn_lm_vision_load(tn_lm *model, const char *path);

// Gives the model's mark of an image, "<image>"; valid until the model is closed.
// TN_ERR_UNSUPPORTED: it has no vision encoder. TN_ERR_NOT_FOUND: no plugin knows its kind.
TN_API tn_status tn_lm_image_mark(tn_lm *model, const char **out_mark);

// Gives an image, which tn_lm_image_close takes back: reads the file, whose one array is of
// bytes [height, width, 3], as those of PNG, JPEG and PPM are, and runs the vision encoder
// on its tiles. The image is closed before the model is.
//
// TN_ERR_IO: the file cannot be read. TN_ERR_NOT_FOUND: no plugin knows its kind.
// TN_ERR_REFUSED: it is damaged, has more than TN_LM_MOST_PIXELS, or is no image. Else as
// tn_lm_image_mark.
TN_API tn_status tn_lm_image_open(tn_lm *model, const char *path, tn_lm_image **out_image);

// As tn_lm_image_open, of pixels in memory: red, green and blue of each, row by row.
TN_API tn_status tn_lm_image_make(tn_lm *model, const uint8_t *pixels, int64_t height,
                                  int64_t width, tn_lm_image **out_image);
TN_API void tn_lm_image_close(tn_lm_image *image); // NULL is fine

// An image as tokens.
typedef struct tn_lm_image_info {
    uint32_t struct_size; // sizeof(tn_lm_image_info) as the library was compiled
    uint32_t flags;       // 0
    int64_t height, width;
    int64_t rows, columns; // of tiles beside that of the whole; 0, 0: it was not cut
    int64_t tiles;         // rows * columns + 1
    int64_t tokens;        // rows of the embedding, of all tiles
    int64_t positions;     // in a sequence, with the tokens around them
} tn_lm_image_info;

// Fills at most out->struct_size bytes of *out.
TN_API void tn_lm_image_describe(const tn_lm_image *image, tn_lm_image_info *out);

// The rows of the image, f32 [tokens, width of the model], tile by tile. Borrowed until the
// image is closed.
TN_API const float *tn_lm_image_rows(const tn_lm_image *image);

// Gives the ids that a sequence has behind tn_lm_infer_images of `ids`: these, with each
// mark replaced by the next image. Rows of images have ids below -1, which follow from what
// the image shows and which row it is. *out_count ids, for tn_lm_free. TN_ERR_ARGUMENT:
// there are more marks than images, or fewer.
TN_API tn_status tn_lm_image_expand(tn_lm *model, const int32_t *ids, int64_t count,
                                    const tn_lm_image *const *images, uint64_t num_images,
                                    int32_t **out_ids, int64_t *out_count);

// As tn_lm_infer, with each mark in `ids` replaced by the next image: TN_LM_ALL_ROWS gives
// logits of each position that tn_lm_image_expand tells. The ids are those of tokens.
TN_API tn_status tn_lm_infer_images(tn_lm_sequence *sequence, const int32_t *ids,
                                    int64_t count, const tn_lm_image *const *images,
                                    uint64_t num_images, uint32_t flags, float *out_logits);

// As tn_lm_chat_tokens, with num_images[i] marks in front of the text of message i. A mark
// that a text has is text.
TN_API tn_status tn_lm_chat_images(tn_lm *model, const char *family,
                                   const tn_lm_message *messages, uint64_t num_messages,
                                   const uint32_t *num_images, int32_t **out_ids,
                                   uint64_t *out_count);

#ifdef __cplusplus
}
#endif

#endif // TENON_LM_IMAGE_H
