// SPDX-License-Identifier: MIT
// tenon perplexity: how well a model predicts a text; tenon model imatrix: statistics of
// the inputs of its products meanwhile.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "lm.h"

// Minus the natural logarithm of the probability of token `id`.
static double perplexity_surprise(const float *logits, int64_t words, int32_t id)
{
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < words; i++)
        most = (double)logits[i] > most ? (double)logits[i] : most;
    for (int64_t i = 0; i < words; i++)
        sum += exp((double)logits[i] - most);
    return most + log(sum) - (double)logits[id];
}

// Adds the surprises of one window's tokens, but for the first token, to *sum.
static int perplexity_measure(const struct opened *opened, const int32_t *ids,
                              int64_t count, int64_t words, float *logits, double *sum)
{
    enum { AT_ONCE = 64 };
    if (tn_lm_sequence_cut(opened->sequence, 0))
        return stop_lm();
    for (int64_t done = 0; done + 1 < count; done += AT_ONCE) {
        int64_t now_ = count - 1 - done < AT_ONCE ? count - 1 - done : AT_ONCE;
        if (tn_lm_infer(opened->sequence, ids + done, now_, TN_LM_ALL_ROWS, logits))
            return stop_lm();
        for (int64_t i = 0; i < now_; i++) {
            double one = perplexity_surprise(logits + i * words, words, ids[done + i + 1]);
            if (!isfinite(one))
                return stop("the surprise of token %" PRId64 " of a window is %g: weights "
                            "of the model, or of its adapter, are NaN or infinite, or too "
                            "large",
                            done + i + 1, isnan(one) ? fabs(one) : one);
            *sum += one;
        }
    }
    return 0;
}

static int measure_all(const struct opened *opened, const struct lm_options *given,
                       const int32_t *ids, int64_t count)
{
    tn_lm_info info = {.struct_size = sizeof(info)};
    tn_lm_describe(opened->lm, &info);
    int64_t window = given->context ? given->context : 512, measured = 0;
    count = given->tokens && given->tokens < count ? given->tokens : count;
    window = window < info.context ? window : info.context;
    if (count < 2)
        return stop("the text has %" PRId64 " tokens, expected at least 2", count);
    float *logits = malloc(sizeof(*logits) * 64 * (size_t)info.vocabulary);
    int failed = logits ? 0 : stop_memory();
    double sum = 0, begin = now();
    for (int64_t at = 0; at + 1 < count && !failed; at += window) {
        int64_t length = count - at < window ? count - at : window;
        failed =
            perplexity_measure(opened, ids + at, length, info.vocabulary, logits, &sum);
        measured += length - 1;
    }
    free(logits);
    if (failed)
        return failed;
    double mean = sum / (double)measured;
    const char *format = given->json
                             ? "{\"perplexity\": %.6f, \"nats\": %.6f, \"tokens\": %" PRId64
                               ", \"window\": %" PRId64 "}\n"
                             : "perplexity %.4f (%.4f nats a token), %" PRId64
                               " tokens in windows of %" PRId64 "\n";
    printf(format, exp(mean), mean, measured, window);
    fprintf(stderr, "%.1f tokens a second\n", (double)measured / (now() - begin));
    tell_model(opened);
    return 0;
}

int run_perplexity(const struct lm_options *given)
{
    struct opened opened;
    char *text = NULL;
    uint64_t size = 0, count = 0;
    int32_t *ids = NULL;
    int failed = read_text(given->items[1], &text, &size);
    if (failed || open_model(given, &opened)) {
        free(text);
        return 1;
    }
    if (tn_lm_tokenize(opened.lm, text, size, given->raw ? 0 : TN_LM_ADD_SPECIAL, &ids,
                       &count))
        failed = stop_lm();
    if (!failed)
        failed = measure_all(&opened, given, ids, (int64_t)count);
    tn_lm_free(ids);
    free(text);
    close_model(&opened);
    return failed;
}

int run_imatrix(const struct lm_options *given)
{
    struct opened opened;
    char *text = NULL;
    uint64_t size = 0, count = 0;
    int32_t *ids = NULL;
    const char *path = given->output;
    int failed = read_text(given->items[1], &text, &size);
    if (failed || open_alone(given, &opened)) {
        free(text);
        return 1;
    }
    if (tn_lm_tokenize(opened.lm, text, size, given->raw ? 0 : TN_LM_ADD_SPECIAL, &ids,
                       &count))
        failed = stop_lm();
    uint64_t most = (uint64_t)given->tokens;
    count = most > 0 && most < count ? most : count;
    double begin = now();
    if (!failed && tn_lm_importance_save(opened.lm, ids, count, given->context, path))
        failed = stop_lm();
    if (!failed)
        fprintf(stderr, "%s: of %" PRIu64 " tokens, %.1f a second\n", path, count,
                (double)count / (now() - begin));
    tn_lm_free(ids);
    free(text);
    close_model(&opened);
    return failed;
}
