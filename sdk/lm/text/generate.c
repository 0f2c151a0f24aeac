// SPDX-License-Identifier: MIT
// Generating: a prompt, then token by token, with text in whole characters and stop words.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../base/fail.h"
#include "../engine/sequence.h"
#include "../engine/tokens.h"
#include "../image/image.h"
#include "constraint.h"
#include "sample.h"

// Text that the application has not got yet: it may become a stop word, or is the beginning
// of a character.
struct text_generate_pending {
    char *text;
    uint64_t size, room;
};

struct generating {
    tn_lm_sequence *sequence;
    tn_lm_generation how;
    tn_lm_sampler *sampler;
    float *logits;
    struct lm_held *held; // NULL: no grammar constrains the text
    tn_lm_candidate *top; // num_top of them
    int64_t num_top;
    bool has_text; // the model has a vocabulary
    struct text_generate_pending pending;
    tn_lm_result result;
    double begin, between;         // times in seconds: of the call, and of the first logits
    int32_t *prompt;               // tokens of how.prompt
    struct lm_positions positions; // of a prompt with images
    const float *const *rows;      // of `next`; NULL: no images
    int32_t id;                    // token that was drawn, or that is read again
    const int32_t *next;           // tokens that the sequence gets next
    int64_t num_next;
    bool is_own; // the sequence was opened for this
};

static double text_generate_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// --- text ------------------------------------------------------------------------------

static tn_status pending_add(struct text_generate_pending *p, const char *text,
                             uint64_t size)
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

// Bytes of the character that begins with `first`; 1 if none begins so.
static uint64_t text_generate_character_bytes(unsigned char first)
{
    return first >= 0xf0 && first < 0xf8 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
}

// Length of the text in whole characters, in bytes.
static uint64_t text_generate_whole_characters(const struct text_generate_pending *p)
{
    for (uint64_t back = 1; back <= 3 && back <= p->size; back++) {
        unsigned char c = (unsigned char)p->text[p->size - back];
        if ((c & 0xc0) != 0x80)
            return text_generate_character_bytes(c) > back ? p->size - back : p->size;
    }
    return p->size;
}

// Offset of the first stop word; the text's size when there is none.
static uint64_t find_stop(const struct text_generate_pending *p,
                          const tn_lm_generation *how)
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

// Offset from which on the text may become a stop word.
static uint64_t maybe_stop(const struct text_generate_pending *p,
                           const tn_lm_generation *how)
{
    for (uint64_t from = 0; from < p->size; from++)
        for (uint64_t i = 0; i < how->num_stops; i++)
            if (strlen(how->stops[i]) > p->size - from &&
                memcmp(how->stops[i], p->text + from, p->size - from) == 0)
                return from;
    return p->size;
}

// Gives the first `size` bytes to the application. Returns whether it goes on.
static bool text_generate_give(struct generating *g, int32_t id, uint64_t size,
                               double log_probability)
{
    struct text_generate_pending *p = &g->pending;
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
    bool goes_on = !g->how.piece || g->how.piece(g->how.context, &piece) == 0;
    if (text) {
        text[size] = behind;
        p->size -= size;
        memmove(text, text + size, p->size + 1);
    }
    return goes_on;
}

// Takes a token's text, and gives the part that is certain. Sets the reason when generating
// ends.
static tn_status text_generate_take_token(struct generating *g, int32_t id,
                                          double log_probability)
{
    struct text_generate_pending *p = &g->pending;
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
    uint64_t stop = find_stop(p, &g->how), whole = text_generate_whole_characters(p);
    bool is_stop = stop < p->size;
    uint64_t maybe = is_stop ? stop : maybe_stop(p, &g->how);
    if (!text_generate_give(g, id,
                            is_stop         ? stop
                            : whole < maybe ? whole
                                            : maybe,
                            log_probability))
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

// Replaces the prompt's marks by images.
static tn_status text_generate_expand(struct generating *g, const int32_t **prompt,
                                      uint64_t *count)
{
    tn_lm *model = g->sequence->model;
    tn_status status = lm_check_ids(model, *prompt, (int64_t)*count);
    if (status == TN_OK)
        status = lm_positions_make(model, *prompt, (int64_t)*count, g->how.images,
                                   g->how.num_images, &g->positions);
    if (status != TN_OK)
        return status;
    g->rows = g->positions.rows;
    *prompt = g->positions.ids;
    *count = (uint64_t)g->positions.count;
    return TN_OK;
}

// Finds the tokens that the sequence gets first: the prompt, or its own last token again.
static tn_status prepare_prompt(struct generating *g)
{
    const tn_lm_generation *how = &g->how;
    tn_lm_sequence *sequence = g->sequence;
    uint64_t count = how->num_ids;
    const int32_t *prompt = how->ids;
    if (how->prompt) {
        tn_status status = tn_lm_tokenize(sequence->model, how->prompt, strlen(how->prompt),
                                          how->prompt_flags, &g->prompt, &count);
        if (status != TN_OK)
            return status;
        prompt = g->prompt;
    }
    if (how->num_images > 0) {
        tn_status status = text_generate_expand(g, &prompt, &count);
        if (status != TN_OK)
            return status;
    }
    if (how->prompt_flags & TN_LM_WHOLE) {
        uint64_t common = 0; // the last token is always read: its logits are wanted
        while (common + 1 < count && common < (uint64_t)sequence->length &&
               sequence->ids[common] == prompt[common])
            common++;
        sequence->length = (int64_t)common;
        prompt += common;
        count -= common;
        if (g->rows)
            g->rows += common;
    }
    g->next = prompt;
    g->num_next = (int64_t)count;
    g->result.prompt_tokens = g->num_next;
    if (count > 0)
        return TN_OK;
    g->id = sequence->length > 0 ? sequence->ids[sequence->length - 1] : -1;
    if (g->id < 0)
        return lm_fail(TN_ERR_ARGUMENT, "there is nothing to generate from: the "
                                        "prompt and the sequence are empty");
    sequence->length--; // reads the last token again for its logits
    g->rows = NULL;
    g->next = &g->id;
    g->num_next = 1;
    return TN_OK;
}

// Draws a token from the logits and takes its text: the token is read next, unless
// generating ends.
static tn_status draw_token(struct generating *g)
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
    g->rows = NULL;
    g->id = lm_sample(g->sampler, g->logits, sequence->ids, sequence->length, allowed,
                      &log_probability);
    if (isnan(log_probability)) // one of the logits is NaN, and so is their sum
        return lm_fail(TN_ERR_REFUSED,
                       "%s: the logits behind token %" PRId64
                       " are not numbers: weights of the model, or of its adapter, are NaN "
                       "or infinite, or too large",
                       sequence->model->source.metadata->name, sequence->length);
    g->next = &g->id;
    g->num_next = 1;
    result->tokens++;
    if (g->has_text && tn_lm_is_end(sequence->model, g->id)) {
        result->reason = TN_LM_ENDED;
        return TN_OK;
    }
    status = text_generate_take_token(g, g->id, log_probability);
    if (status != TN_OK || result->reason)
        return status;
    if (result->tokens == g->how.max_tokens)
        result->reason = TN_LM_LENGTH;
    else if (sequence->length == sequence->model->context)
        result->reason = TN_LM_FULL;
    else if (atomic_exchange(&sequence->cancelled, 0))
        result->reason = TN_LM_CANCELLED;
    return TN_OK;
}

// --- one at a time ---------------------------------------------------------------------

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

// Makes sampler, memory and the grammar's state.
static tn_status text_generate_prepare(struct generating *g, tn_lm *model)
{
    int64_t vocabulary = model->facts->vocabulary;
    tn_status status = tn_lm_sampler_open(g->how.sampling, vocabulary, &g->sampler);
    if (status != TN_OK)
        return status;
    status = lm_tokenizer(model);
    if (status == TN_ERR_MEMORY)
        return status;
    g->has_text = status == TN_OK; // a model without a vocabulary generates tokens alone
    g->num_top = g->how.top < vocabulary ? g->how.top : vocabulary;
    g->top = lm_alloc((uint64_t)g->num_top, sizeof(*g->top));
    g->logits = lm_alloc((uint64_t)vocabulary, sizeof(float));
    if (!g->top || !g->logits)
        return TN_ERR_MEMORY;
    return g->how.grammar ? lm_held_open(g->how.grammar, model, &g->held) : TN_OK;
}

// Begins a request. `sequence` NULL: opens one.
static tn_status text_generate_begin(struct generating *g, tn_lm *model,
                                     tn_lm_sequence *sequence, const tn_lm_generation *how)
{
    *g = (struct generating){.sequence = sequence, .begin = text_generate_seconds()};
    tn_status status = lm_read_struct(&g->how, sizeof(g->how), how,
                                      how ? how->struct_size : 0, "tn_lm_generation");
    if (status == TN_OK)
        status = check_generation(&g->how);
    if (status == TN_OK)
        status = text_generate_prepare(g, model);
    if (status != TN_OK)
        return status;
    if (!sequence) {
        g->is_own = true;
        status = tn_lm_sequence_open(model, &g->sequence);
    }
    return status == TN_OK ? prepare_prompt(g) : status;
}

// Appends all but the last position of a prompt with images: steps of several sequences
// take no rows of images. The last position is a token, as there is one behind each image.
static tn_status begin_images(struct generating *g)
{
    int64_t count = g->num_next - 1;
    if (!g->rows || count == 0)
        return TN_OK;
    tn_status status = lm_infer_rows(g->sequence, g->next, g->rows, count, 0, NULL);
    g->rows = NULL;
    g->next += count;
    g->num_next = 1;
    return status;
}

// Takes the logits of the step that has ended.
static tn_status go_on(struct generating *g)
{
    if (g->result.tokens == 0) {
        g->between = text_generate_seconds();
        g->result.prompt_seconds = g->between - g->begin;
    }
    tn_status status = draw_token(g);
    if (status == TN_OK && g->result.reason && g->pending.size > 0)
        text_generate_give(g, -1, g->pending.size, 0);
    return status;
}

static void text_generate_finish(struct generating *g, tn_status status,
                                 tn_lm_result *out_result)
{
    g->result.seconds = text_generate_seconds() - g->between;
    if (status == TN_OK && out_result)
        lm_write_struct(out_result, out_result->struct_size, &g->result, sizeof(g->result));
    if (g->is_own)
        tn_lm_sequence_close(g->sequence);
    tn_lm_sampler_close(g->sampler);
    lm_held_close(g->held);
    tn_lm_free(g->prompt);
    lm_positions_finish(&g->positions);
    free(g->top);
    free(g->logits);
    free(g->pending.text);
}

tn_status tn_lm_generate(tn_lm_sequence *sequence, const tn_lm_generation *how,
                         tn_lm_result *out_result)
{
    struct generating g;
    tn_status status = text_generate_begin(&g, sequence->model, sequence, how);
    while (status == TN_OK && !g.result.reason) {
        status = lm_infer_rows(sequence, g.next, g.rows, g.num_next, 0, g.logits);
        if (status == TN_OK)
            status = go_on(&g);
    }
    text_generate_finish(&g, status, out_result);
    return status;
}

// --- several at once -------------------------------------------------------------------

// Requests that share steps, at most `room` of them.
struct wave {
    struct generating *running;
    tn_lm_request **owners; // by running request
    tn_lm_item *items;
    uint64_t num_running, room;
    struct lm_flights flights; // the step in flight
};

// All requests, and the waves in which they run: while one wave's step is in one stage of a
// model on several processes, the next wave's step is in the stage before.
struct schedule {
    tn_lm *model;
    tn_lm_request *requests;
    uint64_t num_requests, num_begun;
    struct wave *waves;
    uint64_t num_waves;
    struct lm_failure first;
};

static void end_request(struct schedule *s, struct wave *w, uint64_t at, tn_status status)
{
    tn_lm_request *request = w->owners[at];
    lm_failure_note(&s->first, status);
    request->status = status;
    text_generate_finish(&w->running[at], status, request->out_result);
    w->num_running--;
    w->running[at] = w->running[w->num_running];
    w->owners[at] = w->owners[w->num_running];
    if (w->running[at].next == &w->running[w->num_running].id)
        w->running[at].next = &w->running[at].id;
}

// Begins requests while there is room.
static void begin_requests(struct schedule *s, struct wave *w)
{
    while (w->num_running < w->room && s->num_begun < s->num_requests) {
        tn_lm_request *request = &s->requests[s->num_begun++];
        uint64_t at = w->num_running++;
        w->owners[at] = request;
        tn_status status =
            text_generate_begin(&w->running[at], s->model, NULL, request->how);
        if (status == TN_OK)
            status = begin_images(&w->running[at]);
        if (status != TN_OK)
            end_request(s, w, at, status);
    }
}

static void begin_step(struct schedule *s, struct wave *w)
{
    for (uint64_t i = 0; i < w->num_running; i++) {
        struct generating *g = &w->running[i];
        w->items[i] = (tn_lm_item){.sequence = g->sequence,
                                   .ids = g->next,
                                   .count = g->num_next,
                                   .out_logits = g->logits};
    }
    lm_failure_note(
        &s->first, lm_batch_begin(w->items, w->num_running, LM_MOST_TOGETHER, &w->flights));
}

static void end_step(struct schedule *s, struct wave *w)
{
    lm_failure_note(&s->first, lm_batch_end(&w->flights));
    for (uint64_t count = w->num_running; count > 0; count--) {
        uint64_t at = count - 1; // from the end: the last request replaces one that ends
        tn_status status = w->items[at].status;
        if (status == TN_OK)
            status = go_on(&w->running[at]);
        if (status != TN_OK || w->running[at].result.reason)
            end_request(s, w, at, status);
    }
}

// Runs one step of each wave. Returns whether any wave goes on.
static bool run_waves(struct schedule *s)
{
    bool goes_on = s->num_begun < s->num_requests;
    for (uint64_t i = 0; i < s->num_waves; i++) {
        struct wave *w = &s->waves[i];
        end_step(s, w);
        begin_requests(s, w);
        if (w->num_running > 0)
            begin_step(s, w);
        goes_on = goes_on || w->num_running > 0;
    }
    return goes_on;
}

static void waves_free(struct schedule *s)
{
    for (uint64_t i = 0; s->waves && i < s->num_waves; i++) {
        free(s->waves[i].running);
        free(s->waves[i].owners);
        free(s->waves[i].items);
    }
    free(s->waves);
}

// Makes waves for `at_once` requests, at least one a wave.
static tn_status waves_make(struct schedule *s, uint64_t at_once)
{
    uint64_t stages = s->model->remote ? (uint64_t)s->model->remote->stages : 1;
    s->num_waves = stages < at_once ? stages : at_once;
    s->waves = lm_alloc(s->num_waves, sizeof(*s->waves));
    tn_status status = s->waves ? TN_OK : TN_ERR_MEMORY;
    for (uint64_t i = 0; i < s->num_waves && status == TN_OK; i++) {
        struct wave *w = &s->waves[i];
        w->room = at_once / s->num_waves + (i < at_once % s->num_waves);
        w->running = lm_alloc(w->room, sizeof(*w->running));
        w->owners = lm_alloc(w->room, sizeof(*w->owners));
        w->items = lm_alloc(w->room, sizeof(*w->items));
        status = w->running && w->owners && w->items ? TN_OK : TN_ERR_MEMORY;
    }
    return status;
}

tn_status tn_lm_generate_batch(tn_lm *model, tn_lm_request *requests, uint64_t num_requests,
                               int64_t at_once)
{
    if (at_once < 0)
        return lm_fail(TN_ERR_ARGUMENT, "%" PRId64 " sequences at once", at_once);
    struct schedule s = {
        .model = model, .requests = requests, .num_requests = num_requests};
    uint64_t room = at_once ? (uint64_t)at_once : (uint64_t)model->slots;
    tn_status status = waves_make(&s, room < num_requests ? room : num_requests);
    while (status == TN_OK && run_waves(&s))
        ;
    waves_free(&s);
    return status == TN_OK ? lm_failure_tell(&s.first) : status;
}

void tn_lm_cancel(tn_lm_sequence *sequence)
{
    atomic_store(&sequence->cancelled, 1);
}

tn_status tn_lm_infer_prompt(tn_lm_sequence *sequence, const char *text, float *out_logits)
{
    int32_t *ids = NULL;
    uint64_t count = 0;
    tn_status status = tn_lm_tokenize(sequence->model, text, strlen(text),
                                      TN_LM_ADD_SPECIAL, &ids, &count);
    if (status == TN_OK)
        status = tn_lm_infer(sequence, ids, (int64_t)count, 0, out_logits);
    tn_lm_free(ids);
    return status;
}
