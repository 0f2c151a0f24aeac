// SPDX-License-Identifier: MIT
// Architectures of language models: the facts that they give for a small model, and their
// failures for a damaged one and when memory runs out.
#include "group_model.h"

#include <math.h>
#include "groups.h"

enum { MAX_ALLOCATIONS = 50, MOST_LAYERS = 4 };

static bool is_complete(const tn_model *o)
{
    return TN_HAS(o, open) && TN_HAS(o, close) && TN_HAS(o, weights) && TN_HAS(o, caches) &&
           TN_HAS(o, build);
}

static void check_model_table(struct models *m)
{
    if (!is_complete(m->ops))
        check_fail(m->kit, "a slot is NULL, or behind struct_size %u", m->ops->struct_size);
    if (!model_architecture(m, 0))
        check_fail(m->kit, "no selector of kind \"architecture\": no model finds it");
}

// --- opening ---------------------------------------------------------------------------

// Checks a failed open: status and message are right, and the outputs are untouched.
static void model_group_expect_refusal(struct models *m, const char *what, tn_status status,
                                       bool is_untouched)
{
    if (!is_untouched)
        check_fail(m->kit, "%s: open fails and writes its outputs", what);
    if (m->host.failures == 0)
        check_fail(m->kit, "%s: open returns %d without a message", what, status);
    else if (strncmp(m->host.text, draft_name, strlen(draft_name)) != 0)
        check_fail(m->kit,
                   "%s: the message does not begin with the list's name: \"%.200s\"", what,
                   m->host.text);
    if (status != TN_ERR_REFUSED && status != TN_ERR_UNSUPPORTED)
        check_fail(m->kit, "%s: open returns %d, expected %d or %d", what, status,
                   TN_ERR_REFUSED, TN_ERR_UNSUPPORTED);
}

static bool are_positive(const tn_model_facts *f)
{
    return f->layers > 0 && f->width > 0 && f->vocabulary > 0 && f->context > 0 &&
           f->heads > 0 && f->kv_heads > 0 && f->head_size > 0 && f->num_caches > 0 &&
           f->num_caches <= TN_MODEL_CACHES;
}

// Checks the answers of an open model, which may come from a damaged description.
static void expect_sound(struct models *m, const char *what, const tn_model_self *self,
                         const tn_model_facts *f)
{
    static tn_model_weight list[DRAFT_WEIGHTS];
    if (f->struct_size < TN_END_OF(f, head_size) || !are_positive(f)) {
        check_fail(m->kit,
                   "%s: facts of %lld layers, width %lld, vocabulary %lld, context %lld, "
                   "heads %lld, %lld, of %lld, %u caches: expected positive numbers",
                   what, (long long)f->layers, (long long)f->width,
                   (long long)f->vocabulary, (long long)f->context, (long long)f->heads,
                   (long long)f->kv_heads, (long long)f->head_size, f->num_caches);
        return;
    }
    for (int64_t i = TN_MODEL_OUTPUT; i < f->layers && i < MOST_LAYERS; i++) {
        tn_type types[TN_MODEL_CACHES];
        int64_t count = model_list(m->kit, m->ops, m->host.table, self, i, list);
        for (int64_t w = 0; w < count; w++)
            if (!memchr(list[w].name, 0, sizeof(list[w].name)) || list[w].rank < 1 ||
                list[w].rank > 4)
                check_fail(m->kit, "%s: a weight of part %lld has no name, or rank %d",
                           what, (long long)i, list[w].rank);
        if (i >= 0)
            m->ops->caches(m->host.table, self, i, 16, types);
    }
}

// Opens a description that may be damaged: expects a sound model, or a refusal with a
// message. Returns open's status.
static tn_status open_draft(struct models *m, const char *what)
{
    tn_model_self *const untouched = (void *)(uintptr_t)0x5a5a5a50;
    const tn_model_facts *const no_facts = (void *)(uintptr_t)0x5a5a5a58;
    tn_model_self *self = untouched;
    const tn_model_facts *facts = no_facts;
    fake_host_reset(&m->host);
    tn_status status = m->ops->open(m->host.table, &m->draft.source, &self, &facts);
    check_case(m->kit);
    if (status == TN_OK) {
        expect_sound(m, what, self, facts);
        m->ops->close(m->host.table, self);
    } else {
        model_group_expect_refusal(m, what, status, self == untouched && facts == no_facts);
    }
    fake_host_expect_freed(m->kit, &m->host, what);
    return status;
}

static void model_group_expect_facts(struct models *m, const char *architecture)
{
    tn_model_self *self;
    const tn_model_facts *f;
    fake_host_reset(&m->host);
    if (m->ops->open(m->host.table, &m->draft.source, &self, &f))
        return;
    if (f->layers != DRAFT_LAYERS || f->width != DRAFT_WIDTH ||
        f->vocabulary != DRAFT_VOCABULARY || f->context != DRAFT_CONTEXT ||
        f->heads != DRAFT_HEADS)
        check_fail(m->kit,
                   "facts of '%s' say %lld layers, width %lld, vocabulary %lld, context "
                   "%lld, %lld heads; the description %d, %d, %d, %d and %d",
                   architecture, (long long)f->layers, (long long)f->width,
                   (long long)f->vocabulary, (long long)f->context, (long long)f->heads,
                   DRAFT_LAYERS, DRAFT_WIDTH, DRAFT_VOCABULARY, DRAFT_CONTEXT, DRAFT_HEADS);
    m->ops->close(m->host.table, self);
}

static void check_model_opens(struct models *m)
{
    const char *architecture;
    for (uint32_t i = 0; (architecture = model_architecture(m, i)) != NULL; i++) {
        model_draft_init(&m->draft, architecture, DRAFT_PLAIN);
        if (open_draft(m, architecture) == TN_ERR_UNSUPPORTED)
            check_fail(m->kit, "a selector names '%s', which open does not support: %.200s",
                       architecture, m->host.text);
        else
            model_group_expect_facts(m, architecture);
    }
}

// --- damage ----------------------------------------------------------------------------

// Replaces a number by an odd one.
static void damage_number(struct models *m, tn_metadata *pair)
{
    static const int64_t integers[] = {0, -1, 1, 3, INT32_MAX, INT64_MAX, INT64_MIN};
    static const double floats[] = {0, -1, 1e-300, 1e300, INFINITY, NAN};
    const tn_metadata before = *pair;
    for (size_t i = 0; i < COUNT(integers); i++) {
        pair->kind = TN_METADATA_INTEGER;
        pair->data = &integers[i];
        open_draft(m, before.key);
    }
    for (size_t i = 0; i < COUNT(floats); i++) {
        pair->kind = TN_METADATA_FLOAT;
        pair->data = &floats[i];
        open_draft(m, before.key);
    }
    *pair = before;
}

// Damages a pair: removes it, or changes its kind, or makes a list of a value or a value of
// a list.
static void damage_pair(struct models *m, tn_metadata *pair)
{
    static const tn_text texts[] = {{"", 0}, {"x", 1}};
    const tn_metadata before = *pair;
    pair->key = "absent";
    open_draft(m, before.key);
    *pair = before;
    pair->kind = 99;
    open_draft(m, before.key);
    pair->kind = TN_METADATA_TEXT;
    pair->data = before.kind == TN_METADATA_TEXT ? before.data : texts;
    for (uint64_t count = 0; count < 3; count++) {
        pair->flags = TN_METADATA_LIST;
        pair->count = count < before.count || before.kind != TN_METADATA_TEXT ? count : 1;
        if (before.kind != TN_METADATA_TEXT || before.count > count)
            open_draft(m, before.key);
    }
    *pair = before;
    if (before.kind == TN_METADATA_INTEGER || before.kind == TN_METADATA_FLOAT)
        damage_number(m, pair);
}

static void damage_embedding(struct models *m)
{
    static const tn_type types[] = {
        {.dtype = TN_F32, .rank = -1},
        {.dtype = TN_F32, .rank = 0},
        {.dtype = TN_F32, .rank = 1, .extent = {DRAFT_VOCABULARY}},
        {.dtype = TN_F32, .rank = 2, .extent = {0, DRAFT_WIDTH}},
        {.dtype = TN_F32, .rank = 2, .extent = {INT64_MAX, DRAFT_WIDTH}},
        {.dtype = TN_F32, .rank = 3, .extent = {2, DRAFT_VOCABULARY, DRAFT_WIDTH}},
    };
    const tn_type before = m->draft.embedding;
    for (size_t i = 0; i < COUNT(types); i++) {
        m->draft.embedding = types[i];
        open_draft(m, "token_embd.weight");
    }
    m->draft.embedding = before;
}

static void check_model_damage(struct models *m)
{
    const char *architecture;
    for (uint32_t i = 0; (architecture = model_architecture(m, i)) != NULL; i++)
        for (int kind = 0; kind < DRAFT_KINDS; kind++) {
            model_draft_init(&m->draft, architecture, (enum draft_kind)kind);
            for (uint64_t p = 0; p < m->draft.list.count; p++)
                damage_pair(m, &m->draft.pairs[p]);
            damage_embedding(m);
        }
}

// --- memory ----------------------------------------------------------------------------

static void check_model_memory(struct models *m)
{
    const char *architecture = model_architecture(m, 0);
    model_draft_init(&m->draft, architecture ? architecture : "none", DRAFT_PLAIN);
    for (uint64_t n = 1; n < MAX_ALLOCATIONS && !check_failed(m->kit); n++) {
        tn_model_self *self = NULL;
        const tn_model_facts *facts;
        fake_host_reset(&m->host);
        m->host.fail_at = n;
        tn_status status = m->ops->open(m->host.table, &m->draft.source, &self, &facts);
        check_case(m->kit);
        if (status == TN_OK)
            m->ops->close(m->host.table, self);
        else if (m->host.refusals > 0 && status != TN_ERR_MEMORY)
            check_fail(m->kit, "open returns %d when allocation %llu fails, expected %d",
                       status, (unsigned long long)n, TN_ERR_MEMORY);
        uint64_t refusals = m->host.refusals;
        fake_host_expect_freed(m->kit, &m->host, "open without memory");
        if (!refusals)
            break;
    }
    m->ops->close(m->host.table, NULL);
}

// --- lists -----------------------------------------------------------------------------

static void expect_weight(struct models *m, const tn_model_weight *w, int64_t part)
{
    const uint32_t known = TN_MODEL_OPTIONAL | TN_MODEL_PRODUCT | TN_MODEL_ROWS;
    bool is_named = memchr(w->name, 0, sizeof(w->name)) && w->name[0];
    bool is_sized = w->rank >= 1 && w->rank <= 4;
    for (int32_t i = 0; is_sized && i < w->rank; i++)
        is_sized = w->extent[i] > 0;
    if (!is_named || !is_sized || w->flags & ~known)
        check_fail(m->kit, "part %lld lists the weight '%.95s' of rank %d and flags 0x%x",
                   (long long)part, is_named ? w->name : "", w->rank, w->flags);
    else if (w->paired && (w->head < 1 || w->extent[0] % w->head || w->paired < 0 ||
                           w->paired > w->head || w->paired % 2))
        check_fail(m->kit, "%s: %lld of each %lld of %lld rows are in pairs", w->name,
                   (long long)w->paired, (long long)w->head, (long long)w->extent[0]);
}

// With room for any number of entries, `weights` gives the first entries of the same list,
// and its full length.
static void expect_list(struct models *m, const tn_model_self *self, int64_t part)
{
    static tn_model_weight all[DRAFT_WEIGHTS], some[DRAFT_WEIGHTS + 1];
    int64_t count = model_list(m->kit, m->ops, m->host.table, self, part, all);
    for (int64_t i = 0; i < count; i++) {
        expect_weight(m, &all[i], part);
        for (int64_t other = 0; other < i; other++)
            if (strcmp(all[i].name, all[other].name) == 0)
                check_fail(m->kit, "part %lld lists '%s' twice", (long long)part,
                           all[i].name);
    }
    for (int64_t room = 0; room <= count; room++) {
        uint64_t got = (uint64_t)room;
        memset(some, 0x5a, sizeof(some));
        m->ops->weights(m->host.table, self, part, room ? some : NULL, &got);
        check_case(m->kit);
        if (got != (uint64_t)count)
            check_fail(m->kit, "part %lld has %lld weights, and with room for %lld %llu",
                       (long long)part, (long long)count, (long long)room,
                       (unsigned long long)got);
        uint64_t bytes = (uint64_t)room * sizeof(all[0]);
        if (memcmp(some, all, bytes) != 0)
            check_fail(m->kit, "part %lld lists other weights with room for %lld",
                       (long long)part, (long long)room);
        for (uint64_t i = bytes; i < sizeof(some); i++)
            if (((const unsigned char *)some)[i] != 0x5a) {
                check_fail(m->kit, "weights of part %lld writes behind %lld of them",
                           (long long)part, (long long)room);
                break;
            }
    }
}

static void expect_caches(struct models *m, const tn_model_self *self,
                          const tn_model_facts *f, int64_t layer)
{
    tn_type types[TN_MODEL_CACHES + 1];
    memset(types, 0x5a, sizeof(types));
    tn_status status = m->ops->caches(m->host.table, self, layer, 16, types);
    check_case(m->kit);
    if (status != TN_OK)
        check_fail(m->kit, "caches of layer %lld: returns %d", (long long)layer, status);
    for (uint32_t i = 0; status == TN_OK && i < f->num_caches; i++) {
        bool good = tn_dtype_bytes(types[i].dtype) > 0 && types[i].rank >= 1 &&
                    types[i].rank <= TN_MAX_RANK;
        for (int32_t axis = 0; good && axis < types[i].rank; axis++)
            good = types[i].extent[axis] > 0;
        if (!good)
            check_fail(m->kit, "cache %u of layer %lld has no elements, or no dtype", i,
                       (long long)layer);
    }
    for (uint64_t i = f->num_caches * sizeof(types[0]); i < sizeof(types); i++)
        if (((const unsigned char *)types)[i] != 0x5a) {
            check_fail(m->kit, "caches writes behind %u types", f->num_caches);
            break;
        }
}

static void check_model_lists(struct models *m)
{
    const char *architecture;
    for (uint32_t i = 0; (architecture = model_architecture(m, i)) != NULL; i++)
        for (int kind = 0; kind < DRAFT_KINDS; kind++) {
            tn_model_self *self;
            const tn_model_facts *facts;
            model_draft_init(&m->draft, architecture, (enum draft_kind)kind);
            fake_host_reset(&m->host);
            if (m->ops->open(m->host.table, &m->draft.source, &self, &facts))
                continue;
            for (int64_t part = TN_MODEL_OUTPUT; part < facts->layers; part++) {
                expect_list(m, self, part);
                if (part >= 0)
                    expect_caches(m, self, facts, part);
            }
            m->ops->close(m->host.table, self);
            fake_host_expect_freed(m->kit, &m->host, "a model that was listed");
        }
}

// --- the group -------------------------------------------------------------------------

void group_model(struct kit *k)
{
    static const struct {
        const char *name;
        void (*run)(struct models *m);
    } checks[] = {{"model.table", check_model_table},
                  {"model.opens", check_model_opens},
                  {"model.damage", check_model_damage},
                  {"model.memory", check_model_memory},
                  {"model.lists", check_model_lists}};
    struct models *m = calloc(1, sizeof(*m));
    if (!m)
        abort(); // checks run in a child process: its parent reports the abort
    m->kit = k;
    if (subject_open(&m->subject, &m->host, k)) {
        m->ops = m->subject.entry->query(TN_IFACE_MODEL);
        for (size_t i = 0; m->ops && i < COUNT(checks); i++) {
            if (i > 0 && !is_complete(m->ops))
                break;
            if (!check_begin(k, checks[i].name, NULL))
                continue;
            checks[i].run(m);
            check_end(k);
        }
        if (m->ops && is_complete(m->ops))
            group_model_steps(m);
        subject_unload(&m->subject, &m->host);
        fake_host_finish(&m->host);
    }
    free(m);
}
