// SPDX-License-Identifier: MIT
// tenon generate: continues a text.
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lm.h"

struct lm_generate_output {
    tn_lm *lm;
    const char *prompt; // written before the first piece, then NULL; NULL: not written
    json_t *tokens;     // for --json; NULL: text is written as it comes
    char *text;         // for --json: the whole text, owned
    size_t size;
};

// Writes the prompt once the model has read it, so that a failure is printed alone.
static void lm_generate_write_prompt(struct lm_generate_output *out)
{
    if (out->prompt)
        write_piece(out->prompt, strlen(out->prompt));
    out->prompt = NULL;
}

static int32_t lm_generate_print(void *context, const tn_lm_piece *piece)
{
    lm_generate_write_prompt(context);
    write_piece(piece->text, piece->size);
    return ferror(stdout);
}

// The bytes of the character that begins at `p`, or of the beginning of one that is broken
// off there.
static size_t lm_generate_character_at(const char *p, size_t left, bool *is_whole)
{
    const unsigned char *byte = (const unsigned char *)p, first = byte[0];
    unsigned char least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned char most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    size_t size = 1, wanted = first < 0x80    ? 1
                              : first < 0xc2  ? 0
                              : first < 0xe0  ? 2
                              : first < 0xf0  ? 3
                              : first <= 0xf4 ? 4
                                              : 0;
    for (; size < wanted && size < left && byte[size] >= least && byte[size] <= most;
         size++) {
        least = 0x80;
        most = 0xbf;
    }
    *is_whole = size == wanted;
    return size;
}

// A text as JSON, with U+FFFD for bytes that are no character: the last token may end
// within one.
static json_t *text_json(const char *text, size_t size)
{
    static const char replacement[] = "\xef\xbf\xbd";
    char *valid = malloc(3 * size + 1), *end = valid;
    bool is_whole;
    for (size_t at = 0, length; valid && at < size; at += length) {
        length = lm_generate_character_at(text + at, size - at, &is_whole);
        end = is_whole ? mempcpy(end, text + at, length) : stpcpy(end, replacement);
    }
    json_t *value = valid ? json_stringn(valid, (size_t)(end - valid)) : NULL;
    free(valid);
    return value ? value : json_null();
}

// The text of one token; null where it is a part of a character.
static json_t *lm_generate_token_text(tn_lm *lm, int32_t id)
{
    char *text = NULL;
    uint64_t size = 0;
    if (tn_lm_detokenize(lm, &id, 1, &text, &size))
        return json_null();
    json_t *value = json_stringn(text, size);
    tn_lm_free(text);
    return value ? value : json_null();
}

// A token as JSON. The log probability of an impossible token, -inf, becomes null.
static json_t *token_json(tn_lm *lm, int32_t id, double log_probability)
{
    return json_pack("{s:i, s:o, s:o}", "id", (int)id, "text",
                     lm_generate_token_text(lm, id), "log_probability",
                     isfinite(log_probability) ? json_real(log_probability) : json_null());
}

static int32_t lm_generate_collect(void *context, const tn_lm_piece *piece)
{
    struct lm_generate_output *out = context;
    char *more = realloc(out->text, out->size + piece->size + 1);
    if (!more)
        return 1;
    out->text = more;
    memcpy(more + out->size, piece->text, piece->size);
    out->size += piece->size;
    if (piece->id < 0)
        return 0; // the rest of the text
    json_t *token = token_json(out->lm, piece->id, piece->log_probability);
    json_t *top = json_array();
    for (uint64_t i = 0; i < piece->num_top; i++)
        json_array_append_new(
            top, token_json(out->lm, piece->top[i].id, piece->top[i].log_probability));
    if (piece->num_top > 0)
        json_object_set(token, "top", top);
    json_decref(top);
    return json_array_append_new(out->tokens, token) != 0;
}

// The arguments behind the model, joined by spaces, for free().
static char *lm_generate_join(char *const *items, int count)
{
    size_t size = 1;
    for (int i = 0; i < count; i++)
        size += strlen(items[i]) + 1;
    char *text = malloc(size), *end = text;
    if (text)
        *text = 0;
    for (int i = 0; text && i < count; i++)
        end += sprintf(end, "%s%s", i ? " " : "", items[i]);
    return text;
}

// The words of the command line; "-" alone is standard input.
static int read_prompt(const struct lm_options *given, char **out_prompt)
{
    if (given->num_items == 2)
        return read_argument(given->items[1], out_prompt);
    *out_prompt = lm_generate_join(given->items + 1, given->num_items - 1);
    return *out_prompt ? 0 : stop_memory();
}

static const char *const reasons[] = {
    [TN_LM_ENDED] = "the text ended",
    [TN_LM_STOPPED] = "the stop word came",
    [TN_LM_LENGTH] = "as many tokens as asked",
    [TN_LM_FULL] = "the context is full",
    [TN_LM_CANCELLED] = "stopped",
};

static void tell_result(const tn_lm_result *r, const struct opened *opened)
{
    fprintf(
        stderr,
        "\nloaded in %.2f s; %lld token%s of prompt, %.1f a second; %lld token%s, %.1f a "
        "second; %s\n",
        opened->seconds, (long long)r->prompt_tokens, r->prompt_tokens == 1 ? "" : "s",
        (double)r->prompt_tokens / r->prompt_seconds, (long long)r->tokens,
        r->tokens == 1 ? "" : "s", (double)r->tokens / r->seconds, reasons[r->reason]);
    tell_model(opened);
}

static void lm_generate_print_json(const struct lm_generate_output *out,
                                   const tn_lm_result *r)
{
    json_t *whole = json_pack("{s:o, s:s, s:I, s:O}", "text",
                              text_json(out->text ? out->text : "", out->size), "reason",
                              reasons[r->reason], "prompt_tokens",
                              (json_int_t)r->prompt_tokens, "tokens", out->tokens);
    json_dumpf(whole, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    printf("\n");
    json_decref(whole);
}

// Puts a mark for each image in front of a prompt without marks; free() the result. For
// another wrong number of marks tn_lm_generate() fails.
static char *mark_images(const struct opened *opened, char *prompt, uint64_t count)
{
    const char *mark;
    if (count == 0 || tn_lm_image_mark(opened->lm, &mark) || strstr(prompt, mark))
        return prompt;
    char *marked = malloc(strlen(prompt) + count * strlen(mark) + 1), *end = marked;
    for (uint64_t i = 0; marked && i < count; i++)
        end = stpcpy(end, mark);
    if (marked)
        strcpy(end, prompt);
    free(prompt);
    return marked;
}

static int lm_generate(const struct opened *opened, const struct lm_options *given,
                       const char *prompt, const struct pictures *pictures,
                       const tn_lm_sampling *sampling, const tn_lm_grammar *grammar)
{
    struct lm_generate_output out = {.lm = opened->lm,
                                     .tokens = given->json ? json_array() : NULL};
    tn_lm_result result = {.struct_size = sizeof(result)};
    const tn_lm_generation how = {
        .struct_size = sizeof(how),
        .prompt = prompt,
        .prompt_flags = given->raw         ? (pictures->count ? TN_LM_PARSE_SPECIAL : 0)
                        : given->load_from ? TN_LM_PARSE_SPECIAL
                                           : TN_LM_ADD_SPECIAL | TN_LM_PARSE_SPECIAL,
        .max_tokens = given->tokens,
        .sampling = sampling,
        .stops = &given->stop,
        .num_stops = given->stop ? 1 : 0,
        .piece = given->json ? lm_generate_collect : lm_generate_print,
        .context = &out,
        .grammar = grammar,
        .top = given->top,
        .images = (const tn_lm_image *const *)pictures->items,
        .num_images = pictures->count,
    };
    bool is_read =
        !given->load_from || !tn_lm_sequence_restore(opened->sequence, given->load_from);
    int failed = is_read ? 0 : stop_lm();
    if (!failed && !given->json && !grammar) // under a grammar the prompt is not repeated
        out.prompt = prompt;
    if (!failed && tn_lm_generate(opened->sequence, &how, &result))
        failed = stop_lm();
    if (!failed)
        lm_generate_write_prompt(&out);
    if (!failed && given->json)
        lm_generate_print_json(&out, &result);
    if (!failed && given->save_to && tn_lm_sequence_save(opened->sequence, given->save_to))
        failed = stop_lm();
    if (!failed)
        tell_result(&result, opened);
    json_decref(out.tokens);
    free(out.text);
    return failed;
}

int run_generate(const struct lm_options *given)
{
    struct opened opened;
    tn_lm_grammar *grammar = NULL;
    tn_lm_bias biases[COUNT(given->biases.items)];
    tn_lm_sampling sampling = given->sampling;
    if (given->top && !given->json) {
        stop("--top: expected --json with it, which has the tokens");
        return 2;
    }
    if (read_biases(given, biases) || open_grammar(given, &grammar))
        return 1;
    sampling.biases = biases;
    sampling.num_biases = (uint64_t)given->biases.count;
    if (open_model(given, &opened)) {
        tn_lm_grammar_close(grammar);
        return 1;
    }
    struct pictures pictures;
    int failed = open_pictures(&opened, given, &pictures);
    char *prompt = NULL;
    if (!failed)
        failed = read_prompt(given, &prompt);
    if (!failed)
        prompt = mark_images(&opened, prompt, pictures.count);
    if (!failed)
        failed = prompt ? lm_generate(&opened, given, prompt, &pictures, &sampling, grammar)
                        : stop_memory();
    free(prompt);
    close_pictures(&pictures);
    tn_lm_grammar_close(grammar);
    close_model(&opened);
    return failed;
}
