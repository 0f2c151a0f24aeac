// SPDX-License-Identifier: MIT
// Drawing the next token from logits.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../base/fail.h"
#include "../base/random.h"
#include "sample.h"

struct text_sample_candidate {
    float logit;
    int32_t id;
};

struct tn_lm_sampler {
    tn_lm_sampling how;
    int64_t vocabulary;
    tn_lm_bias *biases;
    struct text_sample_candidate *candidates; // one for each token
    double *shares;                           // of the candidates, less than or equal to 1
    float *before; // logits before biases and penalties; NULL: neither is set
    uint64_t state;
};

static bool has_penalty(const tn_lm_sampling *how)
{
    return how->penalty > 0 || how->presence != 0 || how->frequency != 0;
}

static tn_status check_sampling(const tn_lm_sampling *how, int64_t vocabulary)
{
    const struct {
        const char *name;
        double value, most, least;
    } numbers[] = {
        {"temperature", how->temperature, 1e6},
        {"top_k", (double)how->top_k, 1e9},
        {"top_p", how->top_p, 1},
        {"min_p", how->min_p, 1},
        {"penalty", how->penalty, 1e6},
        {"penalty_last", (double)how->penalty_last, 1e9},
        {"presence", how->presence, 1e6, -1e6},
        {"frequency", how->frequency, 1e6, -1e6},
    };
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (!(numbers[i].value >= numbers[i].least && numbers[i].value <= numbers[i].most))
            return lm_fail(TN_ERR_ARGUMENT, "%s is %g, expected %g to %g", numbers[i].name,
                           numbers[i].value, numbers[i].least, numbers[i].most);
    for (uint64_t i = 0; i < how->num_biases; i++)
        if (how->biases[i].id < 0 || how->biases[i].id >= vocabulary ||
            isnan(how->biases[i].value) || how->biases[i].value > 1e30f)
            return lm_fail(TN_ERR_ARGUMENT,
                           "the bias of token %d is %g, expected tokens 0 to %" PRId64
                           " and numbers",
                           how->biases[i].id, (double)how->biases[i].value, vocabulary - 1);
    return vocabulary > 0
               ? TN_OK
               : lm_fail(TN_ERR_ARGUMENT, "a vocabulary of %" PRId64 " tokens", vocabulary);
}

tn_status tn_lm_sampler_open(const tn_lm_sampling *sampling, int64_t vocabulary,
                             tn_lm_sampler **out_sampler)
{
    tn_lm_sampling mine;
    tn_status status =
        lm_read_struct(&mine, sizeof(mine), sampling, sampling ? sampling->struct_size : 0,
                       "tn_lm_sampling");
    if (status == TN_OK)
        status = check_sampling(&mine, vocabulary);
    tn_lm_sampler *s = status == TN_OK ? lm_alloc(1, sizeof(*s)) : NULL;
    if (!s)
        return status == TN_OK ? TN_ERR_MEMORY : status;
    s->how = mine;
    s->vocabulary = vocabulary;
    s->state = mine.seed;
    s->biases = lm_alloc(mine.num_biases, sizeof(*s->biases));
    s->candidates = lm_alloc((uint64_t)vocabulary, sizeof(*s->candidates));
    s->shares = lm_alloc((uint64_t)vocabulary, sizeof(*s->shares));
    bool is_changed = mine.num_biases > 0 || has_penalty(&mine);
    if (is_changed)
        s->before = lm_alloc((uint64_t)vocabulary, sizeof(*s->before));
    if (!s->biases || !s->candidates || !s->shares || (is_changed && !s->before)) {
        tn_lm_sampler_close(s);
        return TN_ERR_MEMORY;
    }
    if (mine.num_biases > 0)
        memcpy(s->biases, mine.biases, mine.num_biases * sizeof(*s->biases));
    *out_sampler = s;
    return TN_OK;
}

void tn_lm_sampler_close(tn_lm_sampler *s)
{
    if (!s)
        return;
    free(s->biases);
    free(s->candidates);
    free(s->shares);
    free(s->before);
    free(s);
}

// --- changes of logits -----------------------------------------------------------------

static void text_sample_penalise(const tn_lm_sampler *s, float *logits, const int32_t *last,
                                 int64_t num_last)
{
    int64_t most = s->how.penalty_last ? s->how.penalty_last : 64;
    float penalty = s->how.penalty > 0 ? (float)s->how.penalty : 1;
    int64_t first = num_last > most ? num_last - most : 0;
    for (int64_t i = first; i < num_last; i++) {
        bool is_again = last[i] < 0 || last[i] >= s->vocabulary;
        for (int64_t k = first; k < i && !is_again; k++)
            is_again = last[k] == last[i];
        if (is_again) // each token once
            continue;
        int64_t times = 0;
        for (int64_t k = i; k < num_last; k++)
            times += last[k] == last[i];
        float *logit = &logits[last[i]];
        *logit *= *logit > 0 ? 1 / penalty : penalty;
        *logit -= (float)(s->how.presence + s->how.frequency * (double)times);
    }
}

static int32_t text_sample_greatest(const float *logits, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (logits[i] > logits[best])
            best = i;
    return (int32_t)best;
}

// The logarithm of the sum of exponentials.
static double log_sum(const float *logits, int64_t count)
{
    double most = (double)logits[text_sample_greatest(logits, count)], sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += exp((double)logits[i] - most);
    return most + log(sum);
}

// --- candidates ------------------------------------------------------------------------

static int text_sample_compare(const void *a, const void *b)
{
    const struct text_sample_candidate *x = a, *y = b;
    if (x->logit != y->logit)
        return x->logit < y->logit ? 1 : -1;
    return x->id < y->id ? -1 : x->id > y->id;
}

// Collects the candidates whose logit is at most `depth` temperatures below the greatest
// one, and sums their shares.
static int64_t text_sample_collect(tn_lm_sampler *s, const float *logits, float most,
                                   double depth, double *out_sum)
{
    int64_t count = 0;
    double least = (double)most - depth * s->how.temperature;
    *out_sum = 0;
    for (int64_t i = 0; i < s->vocabulary; i++) {
        if ((double)logits[i] < least || logits[i] == -INFINITY)
            continue;
        s->candidates[count++] = (struct text_sample_candidate){logits[i], (int32_t)i};
        *out_sum += exp(((double)logits[i] - (double)most) / s->how.temperature);
    }
    return count;
}

// Collects the candidates for top_k and top_p, in descending order: more and more of the
// greatest ones, until the others cannot matter, so that few are sorted.
static int64_t collect_greatest(tn_lm_sampler *s, const float *logits, float most)
{
    double all, sum;
    int64_t total = text_sample_collect(s, logits, most, INFINITY, &all), count = 0;
    for (double depth = 4; count < total; depth *= 2) {
        count = text_sample_collect(s, logits, most, depth, &sum);
        bool is_enough =
            s->how.top_k > 0 ? count >= s->how.top_k : sum >= s->how.top_p * all;
        if (is_enough || depth > 1e9)
            break;
    }
    qsort(s->candidates, (size_t)count, sizeof(*s->candidates), text_sample_compare);
    if (s->how.top_k > 0 && s->how.top_k < count)
        count = s->how.top_k;
    if (s->how.top_p <= 0 || s->how.top_p >= 1)
        return count;
    if (s->how.top_k > 0) {
        all = 0;
        for (int64_t i = 0; i < count; i++)
            all +=
                exp(((double)s->candidates[i].logit - (double)most) / s->how.temperature);
    }
    double so_far = 0;
    for (int64_t i = 0; i < count; i++) {
        so_far += exp(((double)s->candidates[i].logit - (double)most) / s->how.temperature);
        if (so_far >= s->how.top_p * all)
            return i + 1;
    }
    return count;
}

static int32_t text_sample_draw(tn_lm_sampler *s, const float *logits)
{
    double all, sum = 0;
    float most = logits[text_sample_greatest(logits, s->vocabulary)];
    bool is_cut = s->how.top_k > 0 || (s->how.top_p > 0 && s->how.top_p < 1);
    int64_t count = is_cut ? collect_greatest(s, logits, most)
                           : text_sample_collect(s, logits, most, INFINITY, &all);
    for (int64_t i = 0; i < count; i++) {
        double share =
            exp(((double)s->candidates[i].logit - (double)most) / s->how.temperature);
        s->shares[i] = share >= s->how.min_p ? share : 0;
        sum += s->shares[i];
    }
    double left = lm_next_share(&s->state) * sum;
    int64_t chosen = -1;
    for (int64_t i = 0; i < count; i++) {
        if (s->shares[i] <= 0)
            continue;
        chosen = i; // the last candidate, if rounding leaves a rest
        left -= s->shares[i];
        if (left < 0)
            break;
    }
    return chosen < 0 ? text_sample_greatest(logits, s->vocabulary)
                      : s->candidates[chosen].id;
}

// Makes tokens without a bit impossible. If biases have forbidden all other tokens, the
// first allowed token stays possible.
static void text_sample_forbid(const tn_lm_sampler *s, float *logits,
                               const uint64_t *allowed)
{
    int64_t left = -1;
    bool any = false;
    for (int64_t i = 0; i < s->vocabulary; i++) {
        bool is_allowed = allowed[i / 64] >> i % 64 & 1;
        if (!is_allowed)
            logits[i] = -INFINITY;
        else if (left < 0)
            left = i;
        any |= is_allowed && logits[i] != -INFINITY;
    }
    if (!any && left >= 0)
        logits[left] = 0;
}

void lm_top(const float *logits, int64_t vocabulary, tn_lm_candidate *out, int64_t count)
{
    double sum = log_sum(logits, vocabulary);
    int64_t num = 0;
    for (int64_t i = 0; i < vocabulary; i++) {
        double value = (double)logits[i] - sum;
        if (num == count && value <= out[num - 1].log_probability)
            continue;
        int64_t at = num < count ? num++ : num - 1;
        for (; at > 0 && out[at - 1].log_probability < value; at--)
            out[at] = out[at - 1];
        out[at] = (tn_lm_candidate){.id = (int32_t)i, .log_probability = value};
    }
}

int32_t tn_lm_sample(tn_lm_sampler *s, float *logits, const int32_t *last, int64_t num_last,
                     double *out_log_probability)
{
    return lm_sample(s, logits, last, num_last, NULL, out_log_probability);
}

int32_t lm_sample(tn_lm_sampler *s, float *logits, const int32_t *last, int64_t num_last,
                  const uint64_t *allowed, double *out_log_probability)
{
    double sum = out_log_probability ? log_sum(logits, s->vocabulary) : 0;
    const float *given = logits;
    if (s->before) {
        memcpy(s->before, logits, (size_t)s->vocabulary * sizeof(*logits));
        given = s->before;
    }
    for (uint64_t i = 0; i < s->how.num_biases; i++)
        logits[s->biases[i].id] += s->biases[i].value;
    if (has_penalty(&s->how))
        text_sample_penalise(s, logits, last, num_last);
    if (allowed)
        text_sample_forbid(s, logits, allowed);
    int32_t id = s->how.temperature > 0 ? text_sample_draw(s, logits)
                                        : text_sample_greatest(logits, s->vocabulary);
    if (out_log_probability)
        *out_log_probability = (double)given[id] - sum;
    return id;
}
