// SPDX-License-Identifier: MIT
// tenon generate: continues a text.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lm.h"

static int32_t print(void *context, const tn_lm_piece *piece)
{
    (void)context;
    write_piece(piece->text, piece->size);
    return ferror(stdout);
}

// The arguments behind the model, joined by spaces, for free().
static char *join(char *const *items, int count)
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

static void tell_result(const tn_lm_result *r, const struct opened *opened)
{
    static const char *const reasons[] = {
        [TN_LM_ENDED] = "the text ended",
        [TN_LM_STOPPED] = "the stop word came",
        [TN_LM_LENGTH] = "as many tokens as asked",
        [TN_LM_FULL] = "the context is full",
        [TN_LM_CANCELLED] = "stopped",
    };
    fprintf(stderr,
            "\nloaded in %.2f s; %lld tokens of prompt, %.1f a second; %lld tokens, %.1f a "
            "second; %s\n",
            opened->seconds, (long long)r->prompt_tokens,
            (double)r->prompt_tokens / r->prompt_seconds, (long long)r->tokens,
            (double)r->tokens / r->seconds, reasons[r->reason]);
    tell_model(opened);
}

int run_generate(const struct given *given)
{
    struct opened opened;
    if (open_model(given, &opened))
        return 1;
    char *prompt = join(given->items + 1, given->num_items - 1);
    tn_lm_result result = {.struct_size = sizeof(result)};
    const tn_lm_generation how = {
        .struct_size = sizeof(how),
        .prompt = prompt,
        .prompt_flags = given->raw         ? 0
                        : given->load_from ? TN_LM_PARSE_SPECIAL
                                           : TN_LM_ADD_SPECIAL | TN_LM_PARSE_SPECIAL,
        .max_tokens = given->tokens,
        .sampling = &given->sampling,
        .stops = &given->stop,
        .num_stops = given->stop ? 1 : 0,
        .piece = print,
    };
    int failed = 0;
    if (!prompt)
        failed = stop_memory();
    else if (given->load_from && tn_lm_sequence_restore(opened.sequence, given->load_from))
        failed = stop_lm();
    else
        write_piece(prompt, strlen(prompt));
    if (!failed && tn_lm_generate(opened.sequence, &how, &result))
        failed = stop_lm();
    if (!failed && given->save_to && tn_lm_sequence_save(opened.sequence, given->save_to))
        failed = stop_lm();
    if (!failed)
        tell_result(&result, &opened);
    if (!failed && ferror(stdout))
        failed = stop("cannot write the output");
    free(prompt);
    close_model(&opened);
    return failed;
}
