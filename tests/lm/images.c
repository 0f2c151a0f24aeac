// SPDX-License-Identifier: MIT
// Images in prompts, against what Hugging Face's transformers and Pillow give for a small
// random model (make_images.py): pixels, tokens, rows of images, logits; what is refused.
#include <math.h>
#include <tenon/file.h>
#include <tenon/lm_image.h>
#include <tenon/vision.h>
#include "../../sdk/lm/image/resize.h"
#include "images.h"

// On the backend TEST_LM_BACKEND, or the CPU.
static void setup_images(void)
{
    static char first[64];
    const char *backend = getenv("TEST_LM_BACKEND");
    snprintf(first, sizeof(first), "TENON_BACKEND=%s%scpu-blas", backend ? backend : "",
             backend ? "," : "");
    const char *variables[] = {first, "TENON_FALLBACK=allow", NULL};
    runtime = open_with(variables);
    read_cases();
}

TestSuite(images, .init = setup_images, .fini = teardown);

static void tokenize(tn_lm *lm, const char *prompt, int32_t **ids, int64_t *count)
{
    uint64_t size = 0;
    lm_must(tn_lm_tokenize(lm, prompt, strlen(prompt), TN_LM_PARSE_SPECIAL, ids, &size));
    *count = (int64_t)size;
}

// --- what transformers give ------------------------------------------------------------

static void check_ids(const struct known *k, const int32_t *ids, int64_t count)
{
    cr_assert(eq(i64, count, k->num_ids), "%s", k->name);
    for (int64_t i = 0; i < count; i++)
        if ((ids[i] < -1 ? MARK : ids[i]) != k->ids[i])
            cr_fatal("%s: id %ld is %d, expected %d", k->name, i, ids[i], k->ids[i]);
}

static void check_logits(const struct known *k, const struct reader *r, const int32_t *ids,
                         int64_t count, const tn_lm_image *const *images)
{
    float *logits = malloc(sizeof(float) * WORDS * MOST_POSITIONS), last[WORDS];
    tn_lm_sequence *sequence = sequence_open(r->lm);
    uint64_t num_images = (uint64_t)k->num_images;
    lm_must(tn_lm_infer_images(sequence, ids, count, images, num_images, TN_LM_ALL_ROWS,
                               logits));
    cr_assert(eq(i64, tn_lm_sequence_length(sequence), k->num_ids));
    for (int i = 0; i < k->num_rows; i++)
        compare(k->name, k->row[i], logits + k->row[i] * WORDS, k->rows[i], WORDS);
    // In other chunks: of all sizes, and of the last row alone.
    lm_must(tn_lm_sequence_cut(sequence, 0));
    lm_must(tn_lm_infer_images(sequence, ids, count, images, num_images, 0, last));
    compare(k->name, k->num_ids - 1, last, k->rows[k->num_rows - 1], WORDS);
    tn_lm_sequence_close(sequence);
    free(logits);
}

Test(images, prompts_with_images_give_what_transformers_give)
{
    for (int i = 0; i < num_known; i++) {
        const struct known *k = &known[i];
        struct reader r;
        tn_lm_image *images[MOST_IMAGES];
        int32_t *ids = NULL, *expanded = NULL;
        int64_t count = 0, num_expanded = 0;
        reader_open(&r, k->is_split);
        for (int n = 0; n < k->num_images; n++)
            images[n] = image_of(r.lm, k->height[n], k->width[n]);
        const tn_lm_image *const *given = (const tn_lm_image *const *)images;
        tokenize(r.lm, k->prompt, &ids, &count);
        lm_must(tn_lm_image_expand(r.lm, ids, count, given, (uint64_t)k->num_images,
                                   &expanded, &num_expanded));
        check_ids(k, expanded, num_expanded);
        check_rows(k, images);
        check_logits(k, &r, ids, count, given);
        tn_lm_free(ids);
        tn_lm_free(expanded);
        for (int n = 0; n < k->num_images; n++)
            tn_lm_image_close(images[n]);
        reader_close(&r);
    }
}

// Bytes as Pillow's, to the bit.
Test(images, are_resized_as_pillow_does)
{
    static const uint32_t filters[] = {
        [1] = TN_VISION_LANCZOS, [2] = TN_VISION_BILINEAR, [3] = TN_VISION_BICUBIC};
    FILE *file = open_fixture("resized.txt");
    int64_t from[2], to[2];
    uint64_t expected;
    int kind, rows = 0;
    for (; fscanf(file, " %ld %ld %ld %ld %d %lx", &from[0], &from[1], &to[0], &to[1],
                  &kind, &expected) == 6;
         rows++) {
        const struct image image = {pixels_of(from[0], from[1]), from[0], from[1]};
        struct image out;
        uint64_t state = UINT64_C(0xcbf29ce484222325);
        cr_assert(eq(int, image_resize(&image, to[0], to[1], filters[kind], &out), 1));
        for (int64_t i = 0; i < to[0] * to[1] * 3; i++)
            state = (uint64_t)((unsigned __int128)(state ^ out.bytes[i]) *
                               UINT64_C(0x100000001b3));
        cr_assert(eq(u64, state, expected), "row %d", rows);
        free(image.bytes);
        free(out.bytes);
    }
    cr_assert(eq(int, rows, 12));
    fclose(file);
}

// --- sequences -------------------------------------------------------------------------

static int32_t take_first(void *context, const tn_lm_piece *piece)
{
    int32_t *id = context;
    *id = *id < 0 ? piece->id : *id;
    return 0;
}

static int32_t most_probable(const float *logits)
{
    int32_t best = 0;
    for (int32_t i = 1; i < WORDS; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

// Generating goes on from an image, alone and beside another one; a prompt that has the
// same beginning is not read again, and one with another image is.
Test(images, texts_are_generated_from_images)
{
    struct reader r;
    const struct known *k = &known[0];
    int32_t first[2] = {-1, -1};
    reader_open(&r, true);
    tn_lm_image *image = image_of(r.lm, k->height[0], k->width[0]);
    tn_lm_image *other = image_of(r.lm, 64, 20);
    const tn_lm_image *const one[] = {image}, *const another[] = {other};
    tn_lm_generation how = {.struct_size = sizeof(how),
                            .prompt = k->prompt,
                            .prompt_flags = TN_LM_PARSE_SPECIAL | TN_LM_WHOLE,
                            .max_tokens = 2,
                            .piece = take_first,
                            .context = &first[0],
                            .images = one,
                            .num_images = 1};
    tn_lm_result result = {.struct_size = sizeof(result)};
    tn_lm_sequence *sequence = sequence_open(r.lm);
    lm_must(tn_lm_generate(sequence, &how, &result));
    cr_assert(eq(i64, result.prompt_tokens, k->num_ids));
    if (first[0] >= 0) // else the text ended at once
        cr_assert(eq(int, first[0], most_probable(k->rows[k->num_rows - 1])));
    lm_must(tn_lm_generate(sequence, &how, &result));
    cr_assert(eq(i64, result.prompt_tokens, 1));
    how.images = another;
    lm_must(tn_lm_generate(sequence, &how, &result));
    cr_assert(gt(i64, result.prompt_tokens, 50));
    tn_lm_sequence_close(sequence);
    how.images = one;
    how.prompt_flags = TN_LM_PARSE_SPECIAL;
    tn_lm_generation second = how;
    second.context = &first[1];
    first[0] = -1;
    tn_lm_request requests[] = {{.how = &how}, {.how = &second}};
    lm_must(tn_lm_generate_batch(r.lm, requests, 2, 2));
    cr_assert(eq(int, first[0], first[1]));
    cr_assert(eq(int, first[0], most_probable(k->rows[k->num_rows - 1])));
    tn_lm_image_close(image);
    tn_lm_image_close(other);
    reader_close(&r);
}

// A sequence with an image is saved and goes on in another one.
Test(images, sequences_with_images_are_saved)
{
    struct reader r;
    const struct known *k = &known[0];
    int32_t *ids = NULL, id = 20;
    int64_t count = 0;
    float logits[WORDS], restored[WORDS];
    reader_open(&r, true);
    tn_lm_image *image = image_of(r.lm, k->height[0], k->width[0]);
    const tn_lm_image *const images[] = {image};
    tokenize(r.lm, k->prompt, &ids, &count);
    tn_lm_sequence *sequence = sequence_open(r.lm), *other = sequence_open(r.lm);
    lm_must(tn_lm_infer_images(sequence, ids, count, images, 1, 0, NULL));
    lm_must(tn_lm_sequence_save(sequence, "image.safetensors"));
    lm_must(tn_lm_infer(sequence, &id, 1, 0, logits));
    lm_must(tn_lm_sequence_restore(other, "image.safetensors"));
    lm_must(tn_lm_infer(other, &id, 1, 0, restored));
    compare("restored", 0, restored, logits, WORDS);
    tn_lm_free(ids);
    tn_lm_sequence_close(sequence);
    tn_lm_sequence_close(other);
    tn_lm_image_close(image);
    reader_close(&r);
}

// --- conversations ---------------------------------------------------------------------

Test(images, messages_of_conversations_have_images)
{
    struct reader r;
    const tn_lm_message messages[] = {{"user", "What?"}, {"user", "<image>"}};
    const uint32_t counts[] = {1, 0};
    int32_t *ids = NULL;
    uint64_t count = 0, marks = 0;
    char *text = NULL;
    uint64_t size = 0;
    reader_open(&r, true);
    lm_must(tn_lm_chat_images(r.lm, "smolvlm", messages, 1, counts, &ids, &count));
    lm_must(tn_lm_detokenize(r.lm, ids, count, &text, &size));
    cr_assert(eq(int, ids[0], 9)); // <|im_start|>
    for (uint64_t i = 0; i < count; i++)
        marks += ids[i] == MARK;
    cr_assert(eq(u64, marks, 1));
    cr_assert(eq(int, strcmp(text, "User:What?\nAssistant:"), 0), "%s", text);
    cr_assert(eq(int, ids[6], MARK)); // behind "User:", without a space
    tn_lm_free(ids);
    tn_lm_free(text);
    // A mark that a user writes is none.
    lm_must(tn_lm_chat_images(r.lm, "smolvlm", messages + 1, 1, counts + 1, &ids, &count));
    for (uint64_t i = 0; i < count; i++)
        cr_assert(ne(int, ids[i], MARK));
    tn_lm_free(ids);
    reader_close(&r);
}

// --- failures --------------------------------------------------------------------------

Test(images, numbers_of_marks_and_images_are_compared)
{
    static const struct {
        const char *prompt;
        uint64_t images;
        const char *message;
    } rows[] = {
        {"What?", 1,
         "the prompt has 0 of the mark '<image>', expected 1, one for each image"},
        {"<image>", 2,
         "the prompt has 1 of the mark '<image>', expected 2, one for each image"},
        {"<image><image>", 1,
         "the prompt has 2 of the mark '<image>', expected 1, one for each image"},
    };
    struct reader r;
    reader_open(&r, false);
    tn_lm_image *image = image_of(r.lm, 20, 20);
    const tn_lm_image *const images[] = {image, image};
    tn_lm_sequence *sequence = sequence_open(r.lm);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int32_t *ids = NULL;
        int64_t count = 0;
        tokenize(r.lm, rows[i].prompt, &ids, &count);
        cr_assert(eq(
            int,
            (int)tn_lm_infer_images(sequence, ids, count, images, rows[i].images, 0, NULL),
            TN_ERR_ARGUMENT));
        check_message(rows[i].message);
        cr_assert(eq(i64, tn_lm_sequence_length(sequence), 0));
        const tn_lm_generation how = {.struct_size = sizeof(how),
                                      .prompt = rows[i].prompt,
                                      .prompt_flags = TN_LM_PARSE_SPECIAL,
                                      .images = images,
                                      .num_images = rows[i].images};
        cr_assert(eq(int, (int)tn_lm_generate(sequence, &how, NULL), TN_ERR_ARGUMENT));
        check_message(rows[i].message);
        tn_lm_free(ids);
    }
    tn_lm_sequence_close(sequence);
    tn_lm_image_close(image);
    reader_close(&r);
}

// What a wrong vision encoder says when the first image comes; texts are read all the same.
Test(images, wrong_encoders_are_refused_with_what_is_wrong)
{
    static const struct {
        const char *key, *value, *missing, *misshapen;
        tn_status status;
        const char *message; // its beginning
    } rows[] = {
        {"clip.projector_type", NULL, NULL, NULL, TN_ERR_UNSUPPORTED,
         "idefics3 reads no images: clip.projector_type is missing (models of GGUF have "
         "their vision encoder in a file of its own, mmproj)"},
        {"clip.projector_type", "CLIPImageProcessor", NULL, NULL, TN_ERR_NOT_FOUND,
         "idefics3: images for the projector 'CLIPImageProcessor': "},
        {"clip.vision.patch_size", NULL, NULL, NULL, TN_ERR_REFUSED,
         "plugin org.tenon.idefics3: idefics3: clip.vision.patch_size is missing"},
        {"clip.vision.patch_size", "52", NULL, NULL, TN_ERR_REFUSED,
         "plugin org.tenon.idefics3: idefics3: tiles of 31 pixels in patches of 52"},
        {"clip.vision.projector.scale_factor", "4", NULL, NULL, TN_ERR_REFUSED,
         "plugin org.tenon.idefics3: idefics3: tiles of 31 pixels in patches of 2, 4 x 4"},
        {"clip.vision.image_size", "5000", NULL, NULL, TN_ERR_REFUSED,
         "plugin org.tenon.idefics3: idefics3: clip.vision.image_size is 5000, expected 1 "
         "to 4096"},
        {"clip.vision.image_mean", "0.5", NULL, NULL, TN_ERR_REFUSED,
         "plugin org.tenon.idefics3: idefics3: clip.vision.image_mean: expected three "
         "numbers"},
        {"tenon.vision.filter", "0", NULL, NULL, TN_ERR_UNSUPPORTED,
         "plugin org.tenon.idefics3: idefics3: images are resized by filter 0, expected 1 "
         "(Lanczos), 2 (bilinear) or 3 (bicubic)"},
        {NULL, NULL, "v.blk.1.ln2.bias", NULL, TN_ERR_REFUSED,
         "idefics3: the weight v.blk.1.ln2.bias is missing"},
        {NULL, NULL, "mm.model.fc.weight", NULL, TN_ERR_REFUSED,
         "plugin org.tenon.idefics3: idefics3: mm.model.fc.weight is missing, or no "
         "matrix"},
        {NULL, NULL, NULL, "mm.model.fc.weight", TN_ERR_REFUSED,
         "idefics3: its vision encoder gives rows of 17, expected the 16 of the model"},
        {NULL, NULL, NULL, "v.patch_embd.weight", TN_ERR_REFUSED,
         "idefics3: the weight v.patch_embd.weight has shape [17, 3, 2, 2], expected [16, "
         "3, 2, 2]"},
    };
    const uint8_t pixel[3] = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct reader r;
        tn_lm_image *image = NULL;
        int32_t id = 20;
        reader_prepare(&r);
        if (rows[i].key)
            fixture_set(&r.f, rows[i].key, rows[i].value);
        r.f.missing = rows[i].missing;
        r.f.misshapen = rows[i].misshapen;
        lm_must(tn_lm_open_source(runtime, &r.f.source, NULL, &r.lm));
        cr_assert(eq(int, (int)tn_lm_image_make(r.lm, pixel, 1, 1, &image), rows[i].status),
                  "row %zu: %s", i, tn_lm_error());
        if (strncmp(tn_lm_error(), rows[i].message, strlen(rows[i].message)) != 0)
            cr_fatal("row %zu: %s\nexpected: %s", i, tn_lm_error(), rows[i].message);
        tn_lm_sequence *sequence = sequence_open(r.lm);
        lm_must(tn_lm_infer(sequence, &id, 1, 0, NULL));
        tn_lm_sequence_close(sequence);
        reader_close(&r);
    }
}

Test(images, wrong_images_are_refused_with_what_is_wrong)
{
    struct reader r;
    tn_lm_image *image = NULL;
    const uint8_t pixel[3] = {0};
    static const struct {
        int64_t height, width;
        tn_status status;
        const char *message;
    } rows[] = {
        {0, 5, TN_ERR_ARGUMENT, "an image: 5 x 0 pixels, expected at least one"},
        {65536, 1, TN_ERR_REFUSED,
         "an image: 1 x 65536 pixels, expected at most 134217728, and 65535 a side"},
        {30000, 30000, TN_ERR_REFUSED,
         "an image: 30000 x 30000 pixels, expected at most 134217728, and 65535 a side"},
    };
    reader_open(&r, true);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_assert(eq(
            int, (int)tn_lm_image_make(r.lm, pixel, rows[i].height, rows[i].width, &image),
            rows[i].status));
        check_message(rows[i].message);
    }
    cr_assert(eq(int, (int)tn_lm_image_open(r.lm, "none.png", &image), TN_ERR_IO));
    FILE *file = fopen("image.what", "w");
    fputs("no image", file);
    fclose(file);
    cr_assert(eq(int, (int)tn_lm_image_open(r.lm, "image.what", &image), TN_ERR_NOT_FOUND));
    tn_scope *scope = tn_scope_open(runtime);
    const float numbers[3] = {0};
    tn_array *array = tn_from_data(scope, TN_F32, TN_SHAPE(1, 1, 3), numbers);
    cr_assert(eq(int, (int)tn_save(scope, "floats.npy", &array, NULL, 1, NULL), TN_OK));
    tn_scope_close(scope);
    cr_assert(eq(int, (int)tn_lm_image_open(r.lm, "floats.npy", &image), TN_ERR_REFUSED));
    check_message(
        "floats.npy is no image: expected one array of bytes, [height, width, 3]");
    tn_lm_image_close(image);
    reader_close(&r);
}
