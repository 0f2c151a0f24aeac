// SPDX-License-Identifier: MIT
// Drawing tokens, and generating text with a small random model and a vocabulary of
// letters.
#include <sys/wait.h>
#include <unistd.h>
#include "letters.h"

TestSuite(generate, .init = setup, .fini = teardown);

// --- sampling --------------------------------------------------------------------------

enum { MANY = 20000 };

static const float five[] = {0.5F, 2.0F, -1.0F, 1.5F, 0.0F};

// Draws MANY times from the logits above. Gives how often each of the tokens came.
static void drawn(const tn_lm_sampling *how, double out_shares[5])
{
    tn_lm_sampler *sampler = NULL;
    lm_must(tn_lm_sampler_open(how, 5, &sampler));
    memset(out_shares, 0, 5 * sizeof(*out_shares));
    for (int i = 0; i < MANY; i++) {
        float logits[5];
        double log_probability;
        memcpy(logits, five, sizeof(logits));
        int32_t id =
            tn_lm_sample(sampler, logits, (const int32_t[]){1, 1, 3}, 3, &log_probability);
        cr_assert(eq(int, id >= 0 && id < 5, 1));
        double sum = 0;
        for (int k = 0; k < 5; k++)
            sum += exp((double)five[k]);
        cr_assert(lt(dbl, fabs(log_probability - ((double)five[id] - log(sum))), 1e-6));
        out_shares[id] += 1.0 / MANY;
    }
    tn_lm_sampler_close(sampler);
}

Test(generate, tokens_are_drawn_as_often_as_their_share)
{
    static const tn_lm_bias never = {.id = 1, .value = -INFINITY};
    static const struct {
        tn_lm_sampling how;
        double logits[5]; // of the shares that are expected; -100: never
    } rows[] = {
        {{.temperature = 0}, {-100, 2, -100, -100, -100}},
        {{.temperature = 1}, {0.5, 2, -1, 1.5, 0}},
        {{.temperature = 2, .seed = 9}, {0.25, 1, -0.5, 0.75, 0}},
        {{.temperature = 1, .top_k = 2}, {-100, 2, -100, 1.5, -100}},
        {{.temperature = 1, .top_k = 9}, {0.5, 2, -1, 1.5, 0}},
        // Shares are 0.11, 0.47, 0.024, 0.29, 0.064 (and 0.3 of tokens 1 and 3 alone).
        {{.temperature = 1, .top_p = 0.4}, {-100, 2, -100, -100, -100}},
        {{.temperature = 1, .top_p = 0.8}, {0.5, 2, -100, 1.5, -100}},
        {{.temperature = 1, .top_p = 0.75}, {-100, 2, -100, 1.5, -100}},
        {{.temperature = 1, .top_k = 3, .top_p = 0.9}, {0.5, 2, -100, 1.5, -100}},
        {{.temperature = 1, .min_p = 0.2}, {0.5, 2, -100, 1.5, -100}},
        {{.temperature = 1, .penalty = 2}, {0.5, 1, -1, 0.75, 0}},
        {{.temperature = 0, .penalty = 8}, {0.5, -100, -100, -100, -100}},
        {{.temperature = 1, .penalty = 2, .penalty_last = 1}, {0.5, 2, -1, 0.75, 0}},
        {{.temperature = 1, .presence = 0.5}, {0.5, 1.5, -1, 1, 0}},
        {{.temperature = 1, .presence = -1, .penalty_last = 1}, {0.5, 2, -1, 2.5, 0}},
        {{.temperature = 1, .frequency = 0.5}, {0.5, 1, -1, 1, 0}},
        {{.temperature = 1, .penalty = 2, .presence = 1, .frequency = -0.25},
         {0.5, 0.5, -1, 0, 0}},
        {{.temperature = 0, .frequency = 9}, {0.5, -100, -100, -100, -100}},
        {{.temperature = 1, .biases = &never, .num_biases = 1}, {0.5, -100, -1, 1.5, 0}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double shares[5], sum = 0;
        drawn(&rows[i].how, shares);
        for (int k = 0; k < 5; k++)
            sum += exp(rows[i].logits[k]);
        for (int k = 0; k < 5; k++) {
            double expected = exp(rows[i].logits[k]) / sum;
            if (fabs(shares[k] - expected) > (expected > 1e-9 ? 0.02 : 1e-9))
                cr_fatal("row %zu: token %d has %.4f, expected %.4f", i, k, shares[k],
                         expected);
        }
    }
}

Test(generate, wrong_samplings_are_refused)
{
    static const tn_lm_bias far = {.id = 5, .value = 1};
    static const struct {
        tn_lm_sampling how;
        const char *message;
    } rows[] = {
        {{.temperature = -1}, "temperature is -1, expected 0 to 1e+06"},
        {{.temperature = NAN}, "temperature is nan, expected 0 to 1e+06"},
        {{.top_p = 1.5}, "top_p is 1.5, expected 0 to 1"},
        {{.top_k = -1}, "top_k is -1, expected 0 to 1e+09"},
        {{.presence = NAN}, "presence is nan, expected -1e+06 to 1e+06"},
        {{.frequency = -INFINITY}, "frequency is -inf, expected -1e+06 to 1e+06"},
        {{.biases = &far, .num_biases = 1},
         "the bias of token 5 is 1, expected tokens 0 to 4 and numbers"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tn_lm_sampler *sampler = NULL;
        tn_status status = tn_lm_sampler_open(&rows[i].how, 5, &sampler);
        if (status != TN_ERR_ARGUMENT && rows[i].message[0] == 't' &&
            isnan(rows[i].how.temperature))
            cr_fatal("row %zu: status %d", i, (int)status);
        cr_assert(eq(int, status, TN_ERR_ARGUMENT));
        check_message(rows[i].message);
    }
}

// --- text ------------------------------------------------------------------------------

// What the pieces were.
struct told {
    char text[4096];
    int32_t ids[512];
    int pieces, most; // ends generating after this many; 0: never
};

static int32_t tell(void *context, const tn_lm_piece *piece)
{
    struct told *told = context;
    cr_assert(eq(u64, strlen(piece->text), piece->size));
    if (piece->id >= 0 && piece->size > 0) // no beginning of a character but at the end
        cr_assert(ne(int, (unsigned char)piece->text[piece->size - 1], 0xc3));
    strcat(told->text, piece->text);
    told->ids[told->pieces++] = piece->id;
    return told->most && told->pieces == told->most;
}

static void generated(tn_lm *lm, tn_lm_generation how, struct told *told,
                      tn_lm_result *result)
{
    tn_lm_sequence *sequence = sequence_open(lm);
    how.struct_size = sizeof(how);
    how.piece = tell;
    how.context = told;
    result->struct_size = sizeof(*result);
    lm_must(tn_lm_generate(sequence, &how, result));
    tn_lm_sequence_close(sequence);
}

// The most probable tokens, one inference after the other.
static void by_hand(tn_lm *lm, const char *prompt, int32_t *ids, int count)
{
    float logits[WORDS];
    tn_lm_sequence *sequence = sequence_open(lm);
    lm_must(tn_lm_infer_prompt(sequence, prompt, logits));
    for (int i = 0; i < count; i++) {
        ids[i] = 0;
        for (int k = 1; k < WORDS; k++)
            ids[i] = logits[k] > logits[ids[i]] ? k : ids[i];
        lm_must(tn_lm_infer(sequence, &ids[i], 1, 0, logits));
    }
    tn_lm_sequence_close(sequence);
}

Test(generate, text_goes_on_until_what_ends_it)
{
    struct fixture f;
    struct told told = {.pieces = 0}, again = {.pieces = 0}, stopped = {.pieces = 0};
    tn_lm_result result;
    int32_t ids[20];
    tn_lm *lm = letters_open(&f, 200);
    generated(lm, (tn_lm_generation){.prompt = "once upon", .max_tokens = 20}, &told,
              &result);
    cr_assert(eq(u32, result.reason, TN_LM_LENGTH));
    cr_assert(eq(i64, result.prompt_tokens, 9));
    cr_assert(eq(i64, result.tokens, 20));
    by_hand(lm, "once upon", ids, 20);
    for (int i = 0; i < 20; i++)
        cr_assert(eq(int, told.ids[i], ids[i]));
    // The same without the last letters, which are a stop word now.
    char stop[4] = "", *at;
    cr_assert(gt(sz, strlen(told.text), 12));
    memcpy(stop, told.text + 8, 3);
    const char *stops[] = {"never this one", stop};
    generated(lm,
              (tn_lm_generation){
                  .prompt = "once upon", .max_tokens = 20, .stops = stops, .num_stops = 2},
              &stopped, &result);
    cr_assert(eq(u32, result.reason, TN_LM_STOPPED));
    at = strstr(told.text, stop);
    cr_assert(eq(sz, strlen(stopped.text), (size_t)(at - told.text)));
    cr_assert(eq(int, strncmp(stopped.text, told.text, strlen(stopped.text)), 0));
    again.most = 7;
    generated(lm, (tn_lm_generation){.prompt = "once upon"}, &again, &result);
    cr_assert(eq(u32, result.reason, TN_LM_CANCELLED));
    cr_assert(eq(i64, result.tokens, 7));
    tn_lm_close(lm);
}

Test(generate, seeds_decide_and_the_end_ends)
{
    struct fixture f;
    struct told told[4] = {{.pieces = 0}};
    tn_lm_result result;
    tn_lm *lm = letters_open(&f, 100);
    tn_lm_sampling how = {.struct_size = sizeof(how), .temperature = 1.5};
    const tn_lm_bias sure = {.id = 31, .value = 100},
                     never = {.id = 31, .value = -INFINITY};
    how.biases = &never;
    how.num_biases = 1;
    for (int i = 0; i < 3; i++) {
        how.seed = i == 2 ? 8 : 7;
        generated(lm, (tn_lm_generation){.prompt = "a", .sampling = &how}, &told[i],
                  &result);
        cr_assert(eq(u32, result.reason, TN_LM_FULL));
        cr_assert(eq(i64, result.tokens, 100)); // 99 have room, and one is the last
    }
    cr_assert(eq(int, strcmp(told[0].text, told[1].text), 0));
    cr_assert(ne(int, strcmp(told[0].text, told[2].text), 0));
    how.biases = &sure;
    generated(lm, (tn_lm_generation){.prompt = "a", .sampling = &how}, &told[3], &result);
    cr_assert(eq(u32, result.reason, TN_LM_ENDED));
    cr_assert(eq(int, told[3].pieces, 0));
    tn_lm_close(lm);
}

Test(generate, wrong_calls_are_refused)
{
    struct fixture f;
    tn_lm_result result = {.struct_size = sizeof(result)};
    tn_lm *lm = letters_open(&f, 10);
    tn_lm_sequence *sequence = sequence_open(lm);
    static const tn_lm_bias never = {.id = 31, .value = -INFINITY};
    const tn_lm_sampling how = {.biases = &never, .num_biases = 1};
    const tn_lm_generation nothing = {.struct_size = sizeof(nothing)},
                           longer = {.struct_size = sizeof(longer),
                                     .prompt = "elevenlong."},
                           one = {.struct_size = sizeof(one),
                                  .prompt = "a",
                                  .max_tokens = 1,
                                  .sampling = &how},
                           two = {.struct_size = sizeof(two),
                                  .max_tokens = 2,
                                  .sampling = &how};
    cr_assert(eq(int, tn_lm_generate(sequence, &nothing, &result), TN_ERR_ARGUMENT));
    check_message(
        "there is nothing to generate from: the prompt and the sequence are empty");
    cr_assert(eq(int, tn_lm_generate(sequence, &longer, &result), TN_ERR_ARGUMENT));
    check_message("11 positions are too many: the context has 10, of which 10 are left");
    lm_must(tn_lm_generate(sequence, &one, &result));
    cr_assert(eq(i64, tn_lm_sequence_length(sequence), 1));
    lm_must(tn_lm_generate(sequence, &two, &result)); // goes on from what is there
    cr_assert(eq(i64, tn_lm_sequence_length(sequence), 2));
    tn_lm_cancel(sequence);
    const tn_lm_generation more = {.struct_size = sizeof(more), .sampling = &how};
    lm_must(tn_lm_generate(sequence, &more, &result));
    cr_assert(eq(u32, result.reason, TN_LM_CANCELLED));
    cr_assert(eq(i64, result.tokens, 1));
    tn_lm_sequence_close(sequence);
    tn_lm_close(lm);
}

// --- grammars --------------------------------------------------------------------------

// What a grammar allows at each step is drawn alone, and the text ends where it must.
Test(generate, text_is_held_to_a_grammar)
{
    static const struct {
        const char *grammar, *text; // NULL: only its beginning is certain
    } rows[] = {
        {"root ::= \"no\"", "no"},
        {"root ::= \"\u00e9\" [a]{3} \".\"", "\303\251aaa."},
        {"root ::= \"x\"{5} (\"y\" | \"z\")", NULL},
    };
    struct fixture f;
    tn_lm_result result;
    tn_lm *lm = letters_open(&f, 100);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int draws = 0; draws < 2; draws++) {
            struct told told = {.pieces = 0};
            const tn_lm_sampling hot = {.struct_size = sizeof(hot), .temperature = 2};
            tn_lm_grammar *grammar = NULL;
            lm_must(tn_lm_grammar_open(rows[i].grammar, strlen(rows[i].grammar), TN_LM_GBNF,
                                       &grammar));
            generated(lm,
                      (tn_lm_generation){.prompt = "once",
                                         .grammar = grammar,
                                         .sampling = draws ? &hot : NULL},
                      &told, &result);
            cr_assert(eq(u32, result.reason, TN_LM_ENDED));
            if (rows[i].text)
                cr_assert(eq(str, told.text, (char *)(uintptr_t)rows[i].text));
            else
                cr_assert(eq(int, strncmp(told.text, "xxxxx", 5), 0));
            tn_lm_grammar_close(grammar);
        }
    tn_lm_close(lm);
}

// Each text of a batch has a grammar of its own, or none; more texts than share a step, and
// one whose grammar no token continues, which takes no other one down.
Test(generate, texts_of_a_batch_are_held_to_their_own_grammars)
{
    static const char *const grammars[] = {"root ::= \"no\"", NULL, "root ::= [a]{3} \".\"",
                                           "root ::= \"x\"{9}", "root ::= \"A\""};
    static const char *const texts[] = {"no", NULL, "aaa.", "xxxxxxxxx", NULL};
    enum { COUNT_ = sizeof(texts) / sizeof(texts[0]), FREE = 1, REFUSED = 4 };
    static struct told told[COUNT_], alone;
    struct fixture f;
    tn_lm_grammar *open[COUNT_] = {NULL};
    tn_lm_generation hows[COUNT_];
    tn_lm_request requests[COUNT_];
    tn_lm_result result;
    tn_lm *lm = letters_open(&f, 100);
    generated(lm, (tn_lm_generation){.prompt = "once", .max_tokens = 12}, &alone, &result);
    for (int i = 0; i < COUNT_; i++) {
        if (grammars[i])
            lm_must(
                tn_lm_grammar_open(grammars[i], strlen(grammars[i]), TN_LM_GBNF, &open[i]));
        hows[i] = (tn_lm_generation){.struct_size = sizeof(hows[i]),
                                     .prompt = "once",
                                     .max_tokens = 12,
                                     .grammar = open[i],
                                     .piece = tell,
                                     .context = &told[i]};
        requests[i] = (tn_lm_request){.how = &hows[i], .status = TN_ERR_INTERNAL};
    }
    cr_assert(eq(int, tn_lm_generate_batch(lm, requests, COUNT_, 2), TN_ERR_UNSUPPORTED));
    for (int i = 0; i < COUNT_; i++) {
        cr_assert(eq(int, requests[i].status, i == REFUSED ? TN_ERR_UNSUPPORTED : TN_OK));
        if (texts[i])
            cr_assert(eq(str, told[i].text, (char *)(uintptr_t)texts[i]));
        tn_lm_grammar_close(open[i]);
    }
    cr_assert(eq(str, told[FREE].text, alone.text));
    tn_lm_close(lm);
}

Test(generate, a_grammar_that_no_token_continues_is_told)
{
    static const char rules[] = "root ::= \"a\" \"7\"";
    struct fixture f;
    tn_lm *lm = letters_open(&f, 100);
    tn_lm_sequence *sequence = sequence_open(lm);
    tn_lm_grammar *grammar = NULL;
    lm_must(tn_lm_grammar_open(rules, sizeof(rules) - 1, TN_LM_GBNF, &grammar));
    const tn_lm_generation how = {
        .struct_size = sizeof(how), .prompt = "once", .grammar = grammar};
    cr_assert(eq(int, tn_lm_generate(sequence, &how, NULL), TN_ERR_UNSUPPORTED));
    check_message("no token of the vocabulary continues a text of the grammar");
    tn_lm_grammar_close(grammar);
    tn_lm_sequence_close(sequence);
    tn_lm_close(lm);
}

static int32_t check_top(void *context, const tn_lm_piece *piece)
{
    int *pieces = context;
    ++*pieces;
    cr_assert(eq(u64, piece->num_top, 3));
    cr_assert(eq(int, piece->top[0].id, piece->id));
    cr_assert(lt(dbl, fabs(piece->top[0].log_probability - piece->log_probability), 1e-9));
    for (int i = 1; i < 3; i++)
        cr_assert(
            le(dbl, piece->top[i].log_probability, piece->top[i - 1].log_probability));
    return 0;
}

Test(generate, the_most_probable_tokens_are_told)
{
    struct fixture f;
    int pieces = 0;
    tn_lm *lm = letters_open(&f, 100);
    tn_lm_sequence *sequence = sequence_open(lm);
    tn_lm_generation how = {.struct_size = sizeof(how),
                            .prompt = "once",
                            .max_tokens = 5,
                            .piece = check_top,
                            .context = &pieces,
                            .top = 3};
    lm_must(tn_lm_generate(sequence, &how, NULL));
    cr_assert(gt(int, pieces, 0));
    how.top = TN_LM_MOST_TOP + 1;
    cr_assert(eq(int, tn_lm_generate(sequence, &how, NULL), TN_ERR_ARGUMENT));
    check_message("top is 1025, expected 0 to 1024");
    tn_lm_sequence_close(sequence);
    tn_lm_close(lm);
}

// --- embeddings ------------------------------------------------------------------------

// The embedding of the last position is what the logits are the product of.
Test(generate, embeddings_are_pooled_hidden_states)
{
    enum { MOST_WIDTH = 256 };
    static const int32_t ids[] = {14, 13, 2, 4, 26, 20, 15, 14, 13, 3, 1};
    static float mean[MOST_WIDTH], sum[MOST_WIDTH], one[MOST_WIDTH];
    struct fixture f;
    tn_lm_info info = {.struct_size = sizeof(info)};
    tn_lm *lm = letters_open(&f, 100);
    tn_lm_sequence *sequence = sequence_open(lm);
    tn_lm_describe(lm, &info);
    cr_assert(le(i64, info.width, MOST_WIDTH));
    lm_must(tn_lm_embed(sequence, ids, 11, TN_LM_POOL_MEAN, 0, mean));
    cr_assert(eq(i64, tn_lm_sequence_length(sequence), 11));
    for (int64_t n = 1; n <= 11;
         n++) { // each position is the last of a text that ends there
        lm_must(tn_lm_embed(sequence, ids, n, TN_LM_POOL_LAST, 0, one));
        for (int64_t k = 0; k < info.width; k++)
            sum[k] += one[k] / 11;
    }
    for (int64_t k = 0; k < info.width; k++)
        cr_assert(lt(flt, fabsf(sum[k] - mean[k]), 1e-4F));
    lm_must(tn_lm_embed(sequence, ids, 11, TN_LM_POOL_FIRST, 0, mean));
    lm_must(tn_lm_embed(sequence, ids, 1, TN_LM_POOL_LAST, 0, one));
    double square = 0;
    for (int64_t k = 0; k < info.width; k++)
        cr_assert(lt(flt, fabsf(one[k] - mean[k]), 1e-4F));
    lm_must(tn_lm_embed(sequence, ids, 11, TN_LM_POOL_MEAN, TN_LM_UNIT, one));
    for (int64_t k = 0; k < info.width; k++)
        square += (double)one[k] * (double)one[k];
    cr_assert(lt(dbl, fabs(square - 1), 1e-5));
    cr_assert(eq(int, tn_lm_embed(sequence, ids, 0, 0, 0, one), TN_ERR_ARGUMENT));
    check_message("an embedding of no tokens");
    cr_assert(eq(int, tn_lm_embed(sequence, ids, 11, 3, 0, one), TN_ERR_ARGUMENT));
    cr_assert(eq(int, tn_lm_embed(sequence, ids, 101, 0, 0, one), TN_ERR_ARGUMENT));
    tn_lm_sequence_close(sequence);
    tn_lm_close(lm);
}

// --- failures --------------------------------------------------------------------------

Test(generate, weights_that_are_no_numbers_are_told)
{
    static const char *const wrong[] = {"token_embd.weight", "blk.1.ffn_up.weight",
                                        "output_norm.weight"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct fixture f;
        struct told told = {.pieces = 0};
        float row[64];
        tn_lm *lm = letters_open(&f, 100);
        f.wrong = wrong[i];
        tn_lm_sequence *sequence = sequence_open(lm);
        const tn_lm_sampling drawn = {.temperature = 1};
        tn_lm_generation how = {.prompt = "abc", .piece = tell, .context = &told};
        cr_assert(eq(int, tn_lm_generate(sequence, &how, NULL), TN_ERR_REFUSED));
        check_message("llama: the logits behind token 3 are not numbers: weights of the "
                      "model, or of its adapter, are NaN or infinite, or too large");
        how.sampling = &drawn;
        tn_lm_request requests[2] = {{.how = &how}, {.how = &how}};
        cr_assert(eq(int, tn_lm_generate_batch(lm, requests, 2, 0), TN_ERR_REFUSED));
        cr_assert(eq(int, requests[1].status, TN_ERR_REFUSED));
        cr_assert(eq(int, told.pieces, 0));
        cr_assert(eq(int, tn_lm_embed(sequence, (int32_t[]){0, 1}, 2, 0, 0, row),
                     TN_ERR_REFUSED));
        check_message(
            "llama: the embedding of 2 tokens is no number: value 0 of 16 is nan");
        tn_lm_sequence_close(sequence);
        tn_lm_close(lm);
    }
}

// In a child of fork() a model's runtime is the parent's.
static int generate_in_child(tn_lm_sequence *sequence)
{
    const tn_lm_generation how = {.prompt = "abc", .max_tokens = 2};
    pid_t child = fork();
    if (child == 0) {
        tn_status status = tn_lm_generate(sequence, &how, NULL);
        _exit(status == TN_ERR_ARGUMENT && strstr(tn_lm_error(), "before fork()") ? 0 : 1);
    }
    int status = -1;
    cr_assert(eq(int, waitpid(child, &status, 0), child));
    return status;
}

Test(generate, a_child_of_fork_says_so)
{
    struct fixture f;
    tn_lm *lm = letters_open(&f, 100);
    tn_lm_sequence *sequence = sequence_open(lm);
    cr_assert(eq(int, generate_in_child(sequence), 0));
    tn_lm_sequence_close(sequence);
    tn_lm_close(lm);
}
