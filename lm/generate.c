// SPDX-License-Identifier: MIT
// Generating: a prompt, then token by token, with text in whole characters and stop words.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "internal.h"

// Text that is not given to the application yet: it may become a stop word, or is the
// beginning of a character.
struct pending {
    char *text;
    uint64_t size, room;
};

struct generating {
    tn_lm_sequence *sequence;
    const tn_lm_generation *how;
    tn_lm_sampler *sampler;
    float *logits;
    struct lm_held *held; // to a grammar; NULL: to none
    tn_lm_candidate *top; // how->top of them
    int64_t num_top;
    bool has_text; // the model has a vocabulary
    struct pending pending;
    tn_lm_result result;
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// --- text ------------------------------------------------------------------------------

static tn_status pending_add(struct pending *p, const char *text, uint64_t size)
{
    if (p->size + size + 1 > p->room) {
        uint64_t room = 2 * (p->size + size + 1);
        char *more = realloc(p->text, room);
        if (!more)
            return lm_fail(TN_ERR_MEMORY, "out of memory for %" PRIu64 " bytes of text",
                           room);
        p->text = more;
        p->room = room;
    }
    memcpy(p->text + p->size, text, size);
    p->size += size;
    p->text[p->size] = 0;
    return TN_OK;
}

// The bytes of the character that begins with `first`; 1 for what begins none.
static uint64_t character_bytes(unsigned char first)
{
    return first >= 0xf0 && first < 0xf8 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
}

// Where the text ends in whole characters.
static uint64_t whole_characters(const struct pending *p)
{
    for (uint64_t back = 1; back <= 3 && back <= p->size; back++) {
        unsigned char c = (unsigned char)p->text[p->size - back];
        if ((c & 0xc0) != 0x80)
            return character_bytes(c) > back ? p->size - back : p->size;
    }
    return p->size;
}

// Where the first stop word begins; the size when there is none.
static uint64_t find_stop(const struct pending *p, const tn_lm_generation *how)
{
    uint64_t first = p->size;
    for (uint64_t i = 0; i < how->num_stops && p->size > 0; i++) {
        size_t length = strlen(how->stops[i]);
        const char *found = length ? memmem(p->text, p->size, how->stops[i], length) : NULL;
        if (found && (uint64_t)(found - p->text) < first)
            first = (uint64_t)(found - p->text);
    }
    return first;
}

// Where the end begins that may become a stop word.
static uint64_t maybe_stop(const struct pending *p, const tn_lm_generation *how)
{
    for (uint64_t from = 0; from < p->size; from++)
        for (uint64_t i = 0; i < how->num_stops; i++)
            if (strlen(how->stops[i]) > p->size - from &&
                memcmp(how->stops[i], p->text + from, p->size - from) == 0)
                return from;
    return p->size;
}

// Gives the first `size` bytes to the application. Returns whether it goes on.
static bool give(struct generating *g, int32_t id, uint64_t size, double log_probability)
{
    struct pending *p = &g->pending;
    char *text = p->text;
    char behind = text ? text[size] : 0;
    if (text)
        text[size] = 0;
    const tn_lm_piece piece = {.struct_size = sizeof(piece),
                               .id = id,
                               .text = text ? text : "",
                               .size = size,
                               .log_probability = log_probability,
                               .top = g->top,
                               .num_top = id < 0 ? 0 : (uint64_t)g->num_top};
    bool goes_on = !g->how->piece || g->how->piece(g->how->context, &piece) == 0;
    if (text) {
        text[size] = behind;
        p->size -= size;
        memmove(text, text + size, p->size + 1);
    }
    return goes_on;
}

// Takes a token's text, and gives what is certain. Sets the reason when this ends it.
static tn_status take_token(struct generating *g, int32_t id, double log_probability)
{
    struct pending *p = &g->pending;
    char *text = NULL;
    uint64_t size = 0;
    tn_status status =
        g->has_text ? lm_token_text(g->sequence->model, id, &text, &size) : TN_OK;
    bool is_over = false;
    if (status == TN_OK && size > 0)
        status = pending_add(p, text, size);
    if (status == TN_OK && g->held)
        status = lm_held_append(g->held, text, size, &is_over);
    tn_lm_free(text);
    if (status != TN_OK)
        return status;
    uint64_t stop = find_stop(p, g->how), whole = whole_characters(p);
    bool is_stop = stop < p->size;
    uint64_t maybe = is_stop ? stop : maybe_stop(p, g->how);
    if (!give(g, id, is_stop ? stop : whole < maybe ? whole : maybe, log_probability))
        g->result.reason = TN_LM_CANCELLED;
    if (is_stop) {
        p->size = 0;
        g->result.reason = TN_LM_STOPPED;
    }
    if (is_over && !g->result.reason)
        g->result.reason = TN_LM_ENDED;
    return TN_OK;
}

// --- tokens ----------------------------------------------------------------------------

static tn_status append_prompt(struct generating *g)
{
    const tn_lm_generation *how = g->how;
    tn_lm_sequence *sequence = g->sequence;
    int32_t *ids = NULL;
    uint64_t count = how->num_ids;
    const int32_t *prompt = how->ids;
    tn_status status = TN_OK;
    if (how->prompt) {
        status = tn_lm_tokenise(sequence->model, how->prompt, strlen(how->prompt),
                                how->prompt_flags, &ids, &count);
        prompt = ids;
    }
    if (status == TN_OK && how->prompt_flags & TN_LM_WHOLE) {
        uint64_t common = 0; // the last token's logits are wanted in any case
        while (common + 1 < count && common < (uint64_t)sequence->length &&
               sequence->ids[common] == prompt[common])
            common++;
        sequence->length = (int64_t)common;
        prompt += common;
        count -= common;
    }
    int32_t again = sequence->length > 0 ? sequence->ids[sequence->length - 1] : -1;
    if (status == TN_OK && count == 0) { // the logits behind what is there
        if (again < 0)
            status = lm_fail(TN_ERR_ARGUMENT, "there is nothing to generate from: the "
                                              "prompt and the sequence are empty");
        else
            sequence->length--;
        prompt = &again;
        count = 1;
    } else {
        g->result.prompt_tokens = (int64_t)count;
    }
    if (status == TN_OK)
        status = tn_lm_infer(sequence, prompt, (int64_t)count, 0, g->logits);
    tn_lm_free(ids);
    return status;
}

// Draws a token and takes its text; appends it when there is to be another one.
static tn_status next_token(struct generating *g)
{
    tn_lm_sequence *sequence = g->sequence;
    tn_lm_result *result = &g->result;
    double log_probability;
    const uint64_t *allowed = NULL;
    tn_status status = g->held ? lm_held_mask(g->held, &allowed) : TN_OK;
    if (status != TN_OK)
        return status;
    if (g->num_top > 0)
        lm_top(g->logits, sequence->model->facts->vocabulary, g->top, g->num_top);
    int32_t id = lm_sample(g->sampler, g->logits, sequence->ids, sequence->length, allowed,
                           &log_probability);
    result->tokens++;
    if (g->has_text && tn_lm_is_end(sequence->model, id)) {
        result->reason = TN_LM_ENDED;
        return TN_OK;
    }
    status = take_token(g, id, log_probability);
    if (status != TN_OK || result->reason)
        return status;
    if (result->tokens == g->how->max_tokens)
        result->reason = TN_LM_LENGTH;
    else if (sequence->length == sequence->model->context)
        result->reason = TN_LM_FULL;
    else if (atomic_exchange(&sequence->cancelled, 0))
        result->reason = TN_LM_CANCELLED;
    else
        status = tn_lm_infer(sequence, &id, 1, 0, g->logits);
    return status;
}

static tn_status generate(struct generating *g)
{
    double begin = seconds();
    tn_status status = append_prompt(g);
    double between = seconds();
    g->result.prompt_seconds = between - begin;
    while (status == TN_OK && !g->result.reason)
        status = next_token(g);
    if (status == TN_OK && g->pending.size > 0)
        give(g, -1, g->pending.size, 0);
    g->result.seconds = seconds() - between;
    return status;
}

static tn_status check_generation(const tn_lm_generation *how)
{
    if (how->max_tokens < 0)
        return lm_fail(TN_ERR_ARGUMENT, "max_tokens is %" PRId64 ", expected 0 or more",
                       how->max_tokens);
    if (how->top < 0 || how->top > TN_LM_MOST_TOP)
        return lm_fail(TN_ERR_ARGUMENT, "top is %" PRId64 ", expected 0 to %d", how->top,
                       TN_LM_MOST_TOP);
    return TN_OK;
}

// Makes what generating needs.
static tn_status prepare(struct generating *g)
{
    tn_lm *model = g->sequence->model;
    int64_t vocabulary = model->facts->vocabulary;
    tn_status status = tn_lm_sampler_open(g->how->sampling, vocabulary, &g->sampler);
    if (status != TN_OK)
        return status;
    g->has_text = lm_tokenizer(model) == TN_OK;
    g->num_top = g->how->top < vocabulary ? g->how->top : vocabulary;
    g->top = lm_alloc((uint64_t)g->num_top, sizeof(*g->top));
    g->logits = lm_alloc((uint64_t)vocabulary, sizeof(float));
    if (!g->top || !g->logits)
        return TN_ERR_MEMORY;
    return g->how->grammar ? lm_held_open(g->how->grammar, model, &g->held) : TN_OK;
}

tn_status tn_lm_generate(tn_lm_sequence *sequence, const tn_lm_generation *how,
                         tn_lm_result *out_result)
{
    tn_lm_generation mine;
    tn_status status = lm_read_struct(&mine, sizeof(mine), how, how ? how->struct_size : 0,
                                      "tn_lm_generation");
    struct generating g = {.sequence = sequence, .how = &mine};
    if (status == TN_OK)
        status = check_generation(&mine);
    if (status == TN_OK)
        status = prepare(&g);
    if (status == TN_OK)
        status = generate(&g);
    if (status == TN_OK && out_result)
        lm_write_struct(out_result, out_result->struct_size, &g.result, sizeof(g.result));
    tn_lm_sampler_close(g.sampler);
    lm_held_close(g.held);
    free(g.top);
    free(g.logits);
    free(g.pending.text);
    return status;
}

void tn_lm_cancel(tn_lm_sequence *sequence)
{
    atomic_store(&sequence->cancelled, 1);
}
