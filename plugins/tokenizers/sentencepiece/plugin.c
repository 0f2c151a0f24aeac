// SPDX-License-Identifier: MIT
// org.tenon.sentencepiece: vocabularies of "llama", the BPE of SentencePiece.
//
// A text is its characters, with spaces as U+2581. Of all adjacent pairs whose joined text
// is a token, the one with the highest score is joined, the leftmost of equals, until no
// pair is left. Pieces that are not tokens become their bytes. With a pipeline the file's
// merges replace the scores.
#include <tenon/provider.h>
#include "../common/pipeline.h"
#include "../common/tokenizer.h"

#define NONE UINT32_MAX

static const char space_mark[] = "\u2581";

enum { SPACE_BYTES = sizeof(space_mark) - 1 };

struct tn_tokenizer {
    struct vocabulary vocabulary; // first
    int32_t bytes[256];           // token of each byte, or NO_TOKEN
    bool cuts;                    // no token spans the beginning of a word: see find_cuts
    struct merges merges;         // only with a pipeline
};

// --- words ------

// The end of the word at the beginning of a text: before the next U+2581 behind another
// character, or, unless `runs`, behind a U+2581. Invalid bytes may be taken for one
// character with the bytes behind them.
static uint64_t word_end(const char *text, uint64_t size, bool runs)
{
    bool in_word = false;
    for (uint64_t i = 0; i < size;) {
        bool space = begins_marked(text + i, size - i);
        if (space && (in_word || (!runs && i)))
            return i;
        in_word = !space;
        i += character_bytes(text[i]); // the pieces begin so, too
    }
    return size;
}

// --- joining ---------------------------------------------------------------------------

// A piece of the text: characters that were joined. Size 0: it was joined to the one
// before.
struct sentencepiece_piece {
    uint64_t start;
    uint32_t size;           // bytes
    uint32_t before, behind; // pieces, or NONE
    int32_t id;              // token of its text, or NO_TOKEN
};

// Two adjacent pieces that may be joined.
struct pair {
    float score;
    uint32_t left; // piece
    uint32_t size; // of both; pieces of another size have changed meanwhile
    int32_t id;
};

struct joining {
    const struct vocabulary *v;
    const char *text;
    struct sentencepiece_piece *pieces;
    uint32_t num_pieces;
    struct pair *heap;
    uint64_t num_pairs;
};

static bool comes_first(const struct pair *a, const struct pair *b)
{
    return a->score > b->score || (!(a->score < b->score) && a->left < b->left);
}

static void sentencepiece_heap_push(struct joining *j, struct pair pair)
{
    uint64_t at = j->num_pairs++;
    for (; at > 0 && comes_first(&pair, &j->heap[(at - 1) / 2]); at = (at - 1) / 2)
        j->heap[at] = j->heap[(at - 1) / 2];
    j->heap[at] = pair;
}

static struct pair sentencepiece_heap_pop(struct joining *j)
{
    struct pair top = j->heap[0], pair = j->heap[--j->num_pairs];
    uint64_t at = 0;
    for (;;) {
        uint64_t child = 2 * at + 1;
        if (child + 1 < j->num_pairs && comes_first(&j->heap[child + 1], &j->heap[child]))
            child++;
        if (child >= j->num_pairs || !comes_first(&j->heap[child], &pair))
            break;
        j->heap[at] = j->heap[child];
        at = child;
    }
    j->heap[at] = pair;
    return top;
}

static void sentencepiece_push_pair(struct joining *j, uint32_t left)
{
    uint32_t right = left == NONE ? NONE : j->pieces[left].behind;
    if (right == NONE)
        return;
    const struct sentencepiece_piece *a = &j->pieces[left], *b = &j->pieces[right];
    uint32_t size = a->size + b->size;
    int32_t id = vocabulary_find(j->v, j->text + a->start, size);
    if (id != NO_TOKEN)
        sentencepiece_heap_push(j, (struct pair){j->v->score[id], left, size, id});
}

static void sentencepiece_join(struct joining *j, struct pair pair)
{
    struct sentencepiece_piece *left = &j->pieces[pair.left];
    uint32_t right = left->size ? left->behind : NONE;
    if (right == NONE || left->size + j->pieces[right].size != pair.size)
        return;
    left->size = pair.size;
    left->id = pair.id;
    left->behind = j->pieces[right].behind;
    j->pieces[right].size = 0;
    if (left->behind != NONE)
        j->pieces[left->behind].before = pair.left;
    sentencepiece_push_pair(j, left->before);
    sentencepiece_push_pair(j, pair.left);
}

static void split_characters(struct joining *j, uint64_t size)
{
    for (uint64_t at = 0; at < size; j->num_pieces++) {
        uint64_t bytes = character_bytes(j->text[at]);
        bytes = bytes < size - at ? bytes : size - at;
        uint32_t i = j->num_pieces;
        j->pieces[i] =
            (struct sentencepiece_piece){at, (uint32_t)bytes, i ? i - 1 : NONE, i + 1,
                                         vocabulary_find(j->v, j->text + at, bytes)};
        at += bytes;
    }
    j->pieces[j->num_pieces - 1].behind = NONE;
}

static tn_status add_piece(const tn_tokenizer *t, const char *text,
                           const struct sentencepiece_piece *piece, struct ids *out)
{
    tn_status status = TN_OK;
    if (piece->id != NO_TOKEN)
        return ids_add(out, piece->id);
    for (uint32_t i = 0; status == TN_OK && i < piece->size; i++) {
        int32_t id = t->bytes[(uint8_t)text[piece->start + i]];
        if (id != NO_TOKEN)
            status = ids_add(out, id);
    }
    return status;
}

// Makes memory to join `size` bytes, for a heap and pieces, reused from word to word. Each
// piece is in one pair at first, and each joining adds two.
static tn_status sentencepiece_make_room(struct encoding *e, uint64_t size)
{
    if (size <= e->capacity)
        return TN_OK;
    uint64_t capacity = size + size / 2 + 64;
    e->host->free(e->host, e->memory);
    e->memory = clear_alloc(e->host, capacity,
                            3 * sizeof(struct pair) + sizeof(struct sentencepiece_piece));
    e->capacity = e->memory ? capacity : 0;
    return e->memory ? TN_OK : TN_ERR_MEMORY;
}

// Encodes a word of `size` bytes, at least 1.
static tn_status encode_word(struct encoding *e, const tn_tokenizer *t, const char *text,
                             uint64_t size, struct ids *out)
{
    tn_status status = sentencepiece_make_room(e, size);
    if (status)
        return status;
    struct sentencepiece_piece *pieces = e->memory;
    struct joining j = {.v = &t->vocabulary,
                        .text = text,
                        .pieces = pieces,
                        .heap = (struct pair *)(void *)(pieces + e->capacity)};
    split_characters(&j, size);
    for (uint32_t i = 0; i < j.num_pieces; i++)
        sentencepiece_push_pair(&j, i);
    while (j.num_pairs)
        sentencepiece_join(&j, sentencepiece_heap_pop(&j));
    for (uint32_t i = 0; status == TN_OK && i != NONE; i = pieces[i].behind)
        status = add_piece(t, text, &pieces[i], out);
    return status;
}

// --- merging, with a pipeline ------------------------------------------------------------

// Writes the symbols of a character to `out`: its token, or its bytes' tokens, or the
// unknown token; returns their number.
static uint64_t character_symbols(const tn_tokenizer *t, const char *text, uint64_t size,
                                  uint32_t *out)
{
    const struct vocabulary *v = &t->vocabulary;
    int32_t id = vocabulary_find(v, text, size);
    uint64_t count = 0;
    if (id != NO_TOKEN) {
        out[0] = (uint32_t)id;
        return 1;
    }
    while (v->ways & WAY_BYTES && count < size) {
        id = t->bytes[(uint8_t)text[count]];
        if (id == NO_TOKEN || v->kind[id] != TN_TOKEN_BYTE)
            break;
        out[count++] = (uint32_t)id;
    }
    if (count == size || v->facts.unknown == NO_TOKEN)
        return count == size ? count : 0;
    out[0] = (uint32_t)v->facts.unknown;
    return 1;
}

static tn_status merge_word(struct encoding *e, const tn_tokenizer *t, const char *text,
                            uint64_t size, struct ids *out)
{
    const struct vocabulary *v = &t->vocabulary;
    uint32_t *symbols = merge_symbols(e->host, &e->space, size);
    uint64_t count = 0, bytes;
    bool was_unknown = false;
    tn_status status = TN_OK;
    if (!symbols)
        return TN_ERR_MEMORY;
    for (uint64_t i = 0; i < size; i += bytes) {
        bytes = character_bytes(text[i]);
        bytes = bytes < size - i ? bytes : size - i;
        uint64_t more = character_symbols(t, text + i, bytes, symbols + count);
        bool is_unknown = more == 1 && symbols[count] == (uint32_t)v->facts.unknown;
        if (!(is_unknown && was_unknown && v->ways & WAY_FUSE))
            count += more;
        was_unknown = is_unknown;
    }
    count = merges_apply(&t->merges, &e->space, count);
    for (uint64_t i = 0; status == TN_OK && i < count; i++)
        if ((int32_t)symbols[i] < v->facts.count)
            status = ids_add(out, (int32_t)symbols[i]);
    return status;
}

static tn_status encode_pieces(const tn_tokenizer *t, struct encoding *e, const char *text,
                               uint64_t size, bool space, struct ids *out)
{
    const struct vocabulary *v = &t->vocabulary;
    char *spaced;
    tn_status status = encode_spaces(e->host, text, size, space, &spaced, &size);
    if (status)
        return status;
    for (uint64_t at = 0, word; status == TN_OK && at < size; at += word) {
        word = t->cuts || v->ways & WAY_SPLIT
                   ? word_end(spaced + at, size - at, !(v->ways & WAY_SPLIT))
                   : size;
        status = v->pipeline ? merge_word(e, t, spaced + at, word, out)
                             : encode_word(e, t, spaced + at, word, out);
    }
    e->host->free(e->host, spaced);
    return status;
}

// --- opening ---------------------------------------------------------------------------

// Finds the tokens of bytes: "<0x0A>", or else the byte itself, or else the unknown token.
static void sentencepiece_find_bytes(tn_tokenizer *t)
{
    for (int byte = 0; byte < 256; byte++) {
        char text[BYTE_TEXT];
        char self = (char)(unsigned char)byte;
        byte_text(byte, text);
        int32_t id = vocabulary_find(&t->vocabulary, text, sizeof(text));
        if (id == NO_TOKEN)
            id = vocabulary_find(&t->vocabulary, &self, 1);
        t->bytes[byte] = id == NO_TOKEN ? t->vocabulary.facts.unknown : id;
    }
}

// Finds out whether tokens have U+2581 at their beginnings alone, among spaces. Then no
// token spans the beginning of a word, and joining word by word is right, and much faster.
static void find_cuts(tn_tokenizer *t)
{
    const struct vocabulary *v = &t->vocabulary;
    t->cuts = vocabulary_find(v, space_mark, SPACE_BYTES) != NO_TOKEN;
    for (uint32_t i = 0; t->cuts && i < v->num_symbols; i++) {
        tn_text text = vocabulary_text(v, (int32_t)i);
        t->cuts = word_end(text.data, text.size, true) == text.size;
    }
}

static void sp_close(const tn_host *host, tn_tokenizer *t)
{
    if (!t)
        return;
    merges_finish(host, &t->merges);
    vocabulary_finish(host, &t->vocabulary);
    host->free(host, t);
}

static tn_status sp_open(const tn_host *host, const tn_metadata_list *metadata,
                         tn_tokenizer **out)
{
    static const struct vocabulary_kind kind = {.decode = decode_spaces,
                                                .part = encode_pieces,
                                                .name = "sentencepiece",
                                                .bos = 1,
                                                .eos = 2,
                                                .unknown = 0,
                                                .adds_bos = true,
                                                .adds_space = true,
                                                .needs_scores = true};
    tn_tokenizer *t = clear_alloc(host, 1, sizeof(*t));
    if (!t)
        return TN_ERR_MEMORY;
    tn_status status = vocabulary_init(host, metadata, &kind, &t->vocabulary);
    if (status == TN_OK && t->vocabulary.pipeline)
        status = merges_init(host, metadata, &t->vocabulary, &t->merges);
    if (status) {
        sp_close(host, t);
        return status;
    }
    sentencepiece_find_bytes(t);
    find_cuts(t);
    *out = t;
    return TN_OK;
}

// --- the interface ---------------------------------------------------------------------

static const tn_tokenizer_ops ops = {
    .struct_size = sizeof(ops),
    .open = sp_open,
    .close = sp_close,
    TOKENIZER_SLOTS,
};

static const tn_selector selectors[] = {{TN_IFACE_TOKENIZER, "model", "llama"}};

TN_PROVIDER("org.tenon.sentencepiece", "0.1.0", "Tenon", TN_IFACE_TOKENIZER, ops,
            selectors);
