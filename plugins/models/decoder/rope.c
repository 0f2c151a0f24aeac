// SPDX-License-Identifier: MIT
// The frequencies of the rotary embedding, and their scalings.
#include <math.h>
#include <stdbool.h>
#include "decoder.h"

// --- rotary embedding ------------------------------------------------------------------

// The parameters of a scaling of the frequencies.
typedef struct rope_scaling {
    double factor;     // by which the context is longer
    double original;   // positions that the model was first trained for
    double low, high;  // of llama3: turns within `original`; both are mixed between
    double fast, slow; // of yarn: the same
    int32_t truncate;  // of yarn: the pairs at these turns are rounded to whole numbers
} rope_scaling;

#define FULL_TURN 6.283185307179586 // radians

// Scales as Llama 3 does: divides low frequencies by the factor, leaves high ones.
static void rope_llama3(decoder *d, const rope_scaling *s)
{
    for (int64_t i = 0; i < d->rotary / 2; i++) {
        double frequency = d->frequencies[i];
        double turns = s->original * frequency / FULL_TURN;
        double share = (turns - s->low) / (s->high - s->low);
        share = share < 0 ? 0 : share > 1 ? 1 : share;
        d->frequencies[i] =
            (float)((1 - share) * frequency / s->factor + share * frequency);
    }
}

// The number of the pair that turns `turns` times within the original context; a fraction.
static double rope_pair(const decoder *d, const rope_scaling *s, double base, double turns)
{
    return (double)d->rotary * log(s->original / (turns * FULL_TURN)) / (2 * log(base));
}

// Scales as YaRN does (Peng et al., "YaRN: efficient context window extension of large
// language models", 2023). Returns the factor of turned elements.
static double rope_yarn(decoder *d, const rope_scaling *s, double base, double magnitude)
{
    double low = rope_pair(d, s, base, s->fast), high = rope_pair(d, s, base, s->slow);
    low = s->truncate ? floor(low) : low;
    high = s->truncate ? ceil(high) : high;
    low = low < 0 ? 0 : low;
    high = high > (double)d->rotary - 1 ? (double)d->rotary - 1 : high;
    double span = high > low ? high - low : 0.001;
    for (int64_t i = 0; i < d->rotary / 2; i++) {
        double ramp = ((double)i - low) / span;
        double kept = 1 - (ramp < 0 ? 0 : ramp > 1 ? 1 : ramp);
        d->frequencies[i] *= (float)((1 - kept) / s->factor + kept);
    }
    return magnitude * (1 + 0.1 * log(s->factor));
}

// Scales turned elements of queries and keys by `magnitude`: the scores by its square where
// whole heads are turned, else the turned elements of queries by its square.
static tn_status rope_magnify(decoder *d, const tn_metadata_list *list, double magnitude)
{
    if (d->rotary == d->facts.head_size)
        d->score_scale *= magnitude * magnitude;
    else
        d->turned_scale = magnitude * magnitude;
    if (d->turned_scale != 1 && d->facts.head_size > 2 * DECODER_PAIRS)
        return d->host->fail(d->host, TN_ERR_UNSUPPORTED,
                             "%s: %lld elements of heads of %lld are scaled, expected "
                             "heads of at most %d",
                             list->name, (long long)d->rotary,
                             (long long)d->facts.head_size, 2 * DECODER_PAIRS);
    return TN_OK;
}

// Reads the scaling of the frequencies, and scales them.
static tn_status rope_scale(decoder *d, const tn_model_source *source, double base)
{
    const tn_metadata_list *list = source->metadata;
    tn_type factors;
    char key[DECODER_KEY];
    rope_scaling s = {.truncate = 1};
    double magnitude = 1;
    const struct {
        const char *name;
        double otherwise, *out;
    } numbers[] = {
        {"rope.scaling.factor", 1, &s.factor},
        {"rope.scaling.original_context_length", (double)d->facts.context, &s.original},
        {"rope.scaling.low_freq_factor", 1, &s.low},
        {"rope.scaling.high_freq_factor", 4, &s.high},
        {"rope.scaling.yarn_beta_fast", 32, &s.fast},
        {"rope.scaling.yarn_beta_slow", 1, &s.slow},
        {"rope.scaling.attn_factor", 1, &magnitude},
    };
    tn_status status = TN_OK;
    for (uint32_t i = 0; status == TN_OK && i < sizeof(numbers) / sizeof(numbers[0]); i++)
        status =
            decoder_number(d, list, numbers[i].name, numbers[i].otherwise, numbers[i].out);
    decoder_key(d, "rope.scaling.yarn_truncate", key);
    tn_metadata_bool(tn_metadata_find(list, key), &s.truncate);
    const tn_metadata *type =
        tn_metadata_find(list, decoder_key(d, "rope.scaling.type", key));
    // LongRoPE (Ding et al., 2024): files of Phi-3 have its factors, mostly without a type.
    bool is_long = source->weight(source, "rope_factors_short.weight", &factors) != 0 ||
                   decoder_says(list, key, "longrope");
    if (status == TN_OK && is_long) {
        d->original = (int64_t)s.original;
        return rope_magnify(d, list, magnitude);
    }
    if (status != TN_OK || !type || decoder_says(list, key, "none"))
        return status;
    if (decoder_says(list, key, "linear")) {
        for (int64_t i = 0; i < d->rotary / 2; i++)
            d->frequencies[i] /= (float)s.factor;
    } else if (decoder_says(list, key, "llama3") && s.high > s.low) {
        rope_llama3(d, &s);
    } else if (decoder_says(list, key, "yarn")) {
        return rope_magnify(d, list, rope_yarn(d, &s, base, magnitude));
    } else {
        return d->host->fail(d->host, TN_ERR_UNSUPPORTED,
                             "%s: %s is not known with these numbers, expected none, "
                             "linear, llama3, yarn or longrope",
                             list->name, key);
    }
    return TN_OK;
}

void rope_frequencies(const decoder *d, double base, float *out)
{
    for (int64_t i = 0; i < d->rotary / 2; i++)
        out[i] = (float)pow(base, -2 * (double)i / (double)d->rotary);
}

tn_status rope_read(decoder *d, const tn_model_source *source)
{
    const tn_metadata_list *list = source->metadata;
    double base = 0;
    int64_t head = d->facts.head_size;
    tn_status status =
        decoder_integer(d, list, "rope.dimension_count", head, head, &d->rotary);
    if (status == TN_OK)
        status = decoder_number(d, list, "rope.freq_base", 10000, &base);
    if (status == TN_OK && (d->rotary % 2 || d->rotary > 2 * DECODER_PAIRS || base <= 1))
        status = d->host->fail(d->host, TN_ERR_REFUSED,
                               "%s: %lld elements of a head are turned with base %g, "
                               "expected an even number to %d, and a base above 1",
                               list->name, (long long)d->rotary, base, 2 * DECODER_PAIRS);
    if (status != TN_OK)
        return status;
    rope_frequencies(d, base, d->frequencies);
    // Files of Hugging Face folders have the order of halves in all architectures.
    if (decoder_says(list, "tenon.rope", "halves"))
        d->interleaved = 0;
    return rope_scale(d, source, base);
}
