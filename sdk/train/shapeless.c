// SPDX-License-Identifier: MIT
// Functions whose body is traced for some extents, and rebuilt for others without calling
// it: see shapeless.h.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/control.h>
#include "shapeless.h"

// Factors of a symbol's extent in its three probes: 2, so that divisors of the extent stay
// divisors; 0, which stands for the next number, and the body may refuse that; and a large
// one.
static const int64_t factors[3] = {2, 0, 257};

// Formulas learned from calls with alike inputs: the same dtypes and ranks, extents of 0
// and 1 in the same positions, and other extents equal in the same positions.
struct shapeless_record {
    struct shapeless_record *next;
    uint64_t num_inputs, num_outputs;
    tn_type *types;
    int8_t (*symbols)[TN_MAX_RANK]; // by input and axis; -1: always this extent
    uint32_t num_symbols;
    int64_t least; // the least extent that a free one may become
    struct shapeless_extents first;
    bool is_free[MOST_SYMBOLS];
    tn_graph const *graph;
    tn_array **captured; // kept
    uint64_t num_captured;
    struct shapeless_tape tape;
    struct shapeless_formula *formulas; // by word of the tape
};

struct tn_shapeless {
    tn_runtime *runtime;
    tn_function_body body;
    void *user;
    uint32_t flags;
    const tn_host_graph_format *api;
    pthread_mutex_t lock;
    struct shapeless_record *records;
    uint64_t traces;
    char *why; // reasons, one a line
};

// --- reasons ----------------------------------------------------------------------------

static void shapeless_tell(struct tn_shapeless *s, const struct shapeless_record *r,
                           uint32_t symbol, const char *reason)
{
    char traced[64] = "an input";
    for (uint64_t i = 0, found = 0; i < r->num_inputs && !found; i++)
        for (int32_t axis = 0; axis < r->types[i].rank && !found; axis++) {
            found = r->symbols[i][axis] == (int8_t)symbol;
            if (found)
                snprintf(traced, sizeof(traced), "axis %d of input %llu", axis,
                         (unsigned long long)i);
        }
    size_t used = s->why ? strlen(s->why) : 0, size = used + strlen(reason) + 160;
    char *more = realloc(s->why, size);
    if (!more)
        return;
    s->why = more;
    snprintf(more + used, size - used, "%s%s keeps the extent %lld: %s", used ? "\n" : "",
             traced, (long long)r->first.of[symbol], reason);
}

// --- probes -----------------------------------------------------------------------------

struct shapeless_probing {
    struct tn_shapeless *s;
    struct shapeless_record *r;
    tn_scope *scope;
    struct shapeless_tape tapes[MOST_PROBES]; // no words: the body failed, or none
    struct shapeless_extents at[MOST_PROBES];
    tn_captures captures;
    bool is_other; // the last trace used other arrays
    char reason[WHY_TEXT];
};

// Traces the body for these extents. NULL with `reason` when it fails.
static const tn_graph *trace_at(struct shapeless_probing *p,
                                const struct shapeless_extents *at)
{
    const struct shapeless_record *r = p->r;
    const tn_graph *graph = NULL;
    tn_captures captures = {NULL, 0, 0};
    tn_type *types = malloc((r->num_inputs + 1) * sizeof(*types));
    if (!types)
        return NULL;
    memcpy(types, r->types, r->num_inputs * sizeof(*types));
    for (uint64_t i = 0; i < r->num_inputs; i++)
        for (int32_t axis = 0; axis < types[i].rank; axis++)
            if (r->symbols[i][axis] >= 0)
                types[i].extent[axis] = at->of[r->symbols[i][axis]];
    p->s->traces++;
    p->is_other = false;
    tn_status status = tn_graph_trace(p->scope, p->s->body, p->s->user, types,
                                      r->num_inputs, r->num_outputs, &captures, &graph);
    free(types);
    const char *message = tn_scope_error(p->scope);
    if (strncmp(message, "graph: ", 7) == 0)
        message += 7;
    if (status != TN_OK)
        snprintf(p->reason, sizeof(p->reason), "%s", message);
    tn_scope_clear_error(p->scope);
    if (status != TN_OK)
        return NULL;
    if (!p->captures.arrays && !p->r->graph)
        p->captures = captures;
    bool same = captures.count == p->captures.count;
    for (uint64_t i = 0; same && i < captures.count; i++)
        same = captures.arrays[i] == p->captures.arrays[i];
    p->is_other = !same;
    snprintf(p->reason, sizeof(p->reason), "the body uses other arrays for other extents");
    return same ? graph : NULL;
}

// Whether two tapes differ in numbers alone; if not, `reason` says where they differ.
static bool shapeless_alike(struct shapeless_probing *p, const struct shapeless_tape *a,
                            const struct shapeless_tape *b)
{
    snprintf(p->reason, sizeof(p->reason), "the body builds another graph");
    for (uint64_t i = 0; i < a->count && i < b->count; i++) {
        const struct shapeless_word *x = &a->words[i], *y = &b->words[i];
        if (x->kind == y->kind && (x->kind != EXACT || x->i == y->i))
            continue;
        snprintf(p->reason, sizeof(p->reason),
                 "the body builds another graph, from %.120s on",
                 x->owner ? x->owner : "its end");
        return false;
    }
    return a->count == b->count;
}

static bool shapeless_probe(struct shapeless_probing *p, uint32_t number)
{
    const tn_graph *graph = trace_at(p, &p->at[number]);
    if (!graph)
        return false;
    tape_graph(p->s->api, graph, &p->tapes[number]);
    return !p->tapes[number].failed && shapeless_alike(p, &p->tapes[0], &p->tapes[number]);
}

// Probes symbol k alone. False: its extent cannot change.
static bool probe_symbol(struct shapeless_probing *p, uint32_t k)
{
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t number = 1 + 3 * k + i;
        p->at[number] = p->r->first;
        p->at[number].of[k] =
            factors[i] ? p->r->first.of[k] * factors[i] : p->r->first.of[k] + 1;
        bool is_fine = shapeless_probe(p, number);
        // The body may refuse the next number; if it accepts that, the trace counts.
        if (!is_fine && (factors[i] || p->tapes[number].words || p->is_other))
            return false;
    }
    return true;
}

static void shapeless_forget(struct shapeless_probing *p, uint32_t symbol)
{
    p->r->is_free[symbol] = false;
    for (uint32_t i = 0; i < 3; i++)
        tape_finish(&p->tapes[1 + 3 * symbol + i]);
}

// Finds a formula for each word. False: `reason` names a word that has none.
static bool find_formulas(struct shapeless_probing *p)
{
    struct shapeless_record *r = p->r;
    const struct shapeless_tape *first = &p->tapes[0];
    const uint32_t num_probes = 3 * r->num_symbols + 2;
    for (uint64_t w = 0; w < first->count; w++) {
        const struct shapeless_word *words[MOST_PROBES], *word = &first->words[w];
        if (word->kind == EXACT) {
            r->formulas[w] = (struct shapeless_formula){.is_constant = true};
            continue;
        }
        for (uint32_t n = 0; n < num_probes; n++)
            words[n] = p->tapes[n].words ? &p->tapes[n].words[w] : NULL;
        if (formula_find(words, p->at, num_probes, r->num_symbols, &r->formulas[w]))
            continue;
        snprintf(p->reason, sizeof(p->reason),
                 "%s%.40s of %.120s is made of extents in a way that is not known",
                 word->name ? "" : "a number", word->name ? word->name : "",
                 word->owner ? word->owner : "the graph");
        return false;
    }
    return true;
}

// Probes all free symbols at once: formulas learned from each alone have to hold for them
// together.
static bool probe_together(struct shapeless_probing *p)
{
    static const int64_t primes[MOST_SYMBOLS] = {2,  3,  5,  7,  11, 13,
                                                 17, 19, 23, 29, 31, 37};
    const uint32_t last = 3 * p->r->num_symbols + 1;
    tape_finish(&p->tapes[last]);
    p->at[last] = p->r->first;
    for (uint32_t k = 0; k < p->r->num_symbols; k++)
        if (p->r->is_free[k])
            p->at[last].of[k] *= primes[k];
    return shapeless_probe(p, last) && find_formulas(p);
}

static void probe_symbols(struct shapeless_probing *p)
{
    struct shapeless_record *r = p->r;
    for (uint32_t k = 0; k < r->num_symbols; k++) {
        r->is_free[k] = probe_symbol(p, k);
        if (!r->is_free[k]) {
            shapeless_tell(p->s, r, k, p->reason);
            shapeless_forget(p, k);
        }
    }
    while (!probe_together(p)) {
        uint32_t k = r->num_symbols;
        while (k > 0 && !r->is_free[k - 1])
            k--;
        if (k == 0)
            break; // no extent moves, so no number can differ
        shapeless_tell(p->s, r, k - 1, p->reason);
        shapeless_forget(p, k - 1);
    }
}

// --- records ----------------------------------------------------------------------------

static void record_destroy(struct shapeless_record *r)
{
    for (uint64_t i = 0; i < r->num_captured; i++)
        tn_release(r->captured[i]);
    tn_graph_release(r->graph);
    tape_finish(&r->tape);
    free(r->captured);
    free(r->formulas);
    free(r->symbols);
    free(r->types);
    free(r);
}

// Numbers the extents from 2 on by their values: equal extents are one symbol.
static void shapeless_find_symbols(struct shapeless_record *r)
{
    for (uint64_t i = 0; i < r->num_inputs; i++)
        for (int32_t axis = 0; axis < r->types[i].rank; axis++) {
            int64_t extent = r->types[i].extent[axis];
            uint32_t k = 0;
            while (k < r->num_symbols && r->first.of[k] != extent)
                k++;
            bool is_symbol = extent >= 2 && extent < INT32_MAX && k < MOST_SYMBOLS;
            r->symbols[i][axis] = is_symbol ? (int8_t)k : -1;
            if (is_symbol && k == r->num_symbols)
                r->first.of[r->num_symbols++] = extent;
        }
}

static struct shapeless_record *record_create(tn_array *const *inputs, uint64_t num_inputs,
                                              uint64_t num_outputs)
{
    struct shapeless_record *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    r->types = calloc(num_inputs + 1, sizeof(*r->types));
    r->symbols = calloc(num_inputs + 1, sizeof(*r->symbols));
    if (!r->types || !r->symbols) {
        record_destroy(r);
        return NULL;
    }
    r->num_inputs = num_inputs;
    r->num_outputs = num_outputs;
    for (uint64_t i = 0; i < num_inputs; i++)
        r->types[i] = *tn_array_type(inputs[i]);
    shapeless_find_symbols(r);
    return r;
}

static bool keep_captured(struct shapeless_probing *p)
{
    struct shapeless_record *r = p->r;
    r->captured = calloc(p->captures.count + 1, sizeof(*r->captured));
    for (uint64_t i = 0; r->captured && i < p->captures.count; i++) {
        r->captured[i] = tn_keep(p->scope, p->captures.arrays[i]);
        if (!r->captured[i])
            return false;
        r->num_captured++;
    }
    return r->captured != NULL;
}

// Traces and probes the body. TN_OK; else `reason` says why not.
static tn_status record_fill(struct shapeless_probing *p)
{
    struct shapeless_record *r = p->r;
    p->at[0] = r->first;
    r->graph = tn_graph_retain(trace_at(p, &p->at[0]));
    if (!r->graph)
        return TN_ERR_ARGUMENT;
    tape_graph(p->s->api, r->graph, &p->tapes[0]);
    r->formulas = calloc(p->tapes[0].count + 1, sizeof(*r->formulas));
    if (p->tapes[0].failed || !r->formulas || !keep_captured(p)) {
        snprintf(p->reason, sizeof(p->reason), "out of memory");
        return TN_ERR_MEMORY;
    }
    for (uint64_t w = 0; w < p->tapes[0].count; w++)
        r->formulas[w].is_constant = true;
    probe_symbols(p);
    r->tape = p->tapes[0];
    p->tapes[0] = (struct shapeless_tape){.words = NULL};
    return TN_OK;
}

// Whether the record fits a call; gives the call's extents, by symbol.
static bool shapeless_serves(const struct shapeless_record *r, tn_array *const *inputs,
                             uint64_t num_inputs, uint64_t num_outputs,
                             struct shapeless_extents *at)
{
    if (r->num_inputs != num_inputs || r->num_outputs != num_outputs)
        return false;
    *at = (struct shapeless_extents){{0}};
    for (uint64_t i = 0; i < num_inputs; i++) {
        const tn_type *type = tn_array_type(inputs[i]);
        if (type->dtype != r->types[i].dtype || type->rank != r->types[i].rank)
            return false;
        for (int32_t axis = 0; axis < type->rank; axis++) {
            int8_t k = r->symbols[i][axis];
            int64_t extent = type->extent[axis];
            bool is_moved = extent != r->types[i].extent[axis];
            if (is_moved && (k < 0 || !r->is_free[k] || extent < r->least))
                return false;
            if (k >= 0 && at->of[k] && at->of[k] != extent)
                return false;
            if (k >= 0)
                at->of[k] = extent;
        }
    }
    return true;
}

// Numbers of the tape for these extents, in new memory. NULL: a formula gives no number.
static struct shapeless_word *values_at(const struct shapeless_record *r,
                                        const struct shapeless_extents *at)
{
    struct shapeless_word *values = malloc((r->tape.count + 1) * sizeof(*values));
    for (uint64_t w = 0; values && w < r->tape.count; w++) {
        values[w] = r->tape.words[w];
        if (!formula_value(&r->formulas[w], &r->first, at, r->num_symbols, &values[w])) {
            free(values);
            return NULL;
        }
    }
    return values;
}

// --- the body ---------------------------------------------------------------------------

static tn_status make_record(struct tn_shapeless *s, tn_scope *scope,
                             tn_array *const *inputs, uint64_t num_inputs,
                             uint64_t num_outputs, struct shapeless_record **out)
{
    struct shapeless_probing *p = calloc(1, sizeof(*p));
    struct shapeless_record *r = p ? record_create(inputs, num_inputs, num_outputs) : NULL;
    tn_scope *plain = r ? tn_scope_open(s->runtime) : NULL;
    tn_status status = TN_ERR_MEMORY;
    if (plain) {
        size_t told = s->why ? strlen(s->why) : 0;
        p->s = s;
        p->r = r;
        p->scope = plain;
        r->least = s->flags & TN_SHAPELESS_ONES ? 1 : 2;
        status = record_fill(p);
        for (uint32_t i = 0; i < MOST_PROBES; i++)
            tape_finish(&p->tapes[i]);
        if (status == TN_OK && s->flags & TN_SHAPELESS_STRICT && s->why &&
            strlen(s->why) > told) {
            status = TN_ERR_ARGUMENT;
            snprintf(p->reason, sizeof(p->reason), "%s", s->why + told + (told > 0));
        }
    }
    if (plain)
        tn_scope_close(plain);
    if (status == TN_OK) {
        r->next = s->records;
        *out = s->records = r;
    } else {
        tn_scope_fail(scope, status, "shapeless: %s",
                      p && p->reason[0] ? p->reason : "out of memory");
        if (r)
            record_destroy(r);
    }
    free(p);
    return status;
}

static tn_status shapeless_build(struct tn_shapeless *s, const struct shapeless_record *r,
                                 const struct shapeless_word *values, tn_scope *scope,
                                 tn_array *const *inputs, tn_array **outputs)
{
    uint64_t at = 0;
    struct shapeless_replaying replaying = {s->api, r->graph, values, &at};
    tn_array **all = malloc((r->num_inputs + r->num_captured + 1) * sizeof(*all));
    if (!all)
        return tn_scope_fail(scope, TN_ERR_MEMORY, "shapeless: out of memory");
    if (r->num_inputs)
        memcpy(all, inputs, r->num_inputs * sizeof(*all));
    for (uint64_t i = 0; i < r->num_captured; i++)
        all[r->num_inputs + i] = r->captured[i];
    tn_status status = replay_graph(&replaying, scope, all, outputs);
    free(all);
    return status;
}

tn_status tn_shapeless_body(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                            tn_array **outputs, uint64_t num_outputs, void *user)
{
    struct tn_shapeless *s = user;
    struct shapeless_extents at;
    struct shapeless_word *values = NULL;
    struct shapeless_record *r;
    tn_status status = tn_scope_status(scope);
    if (status)
        return status;
    pthread_mutex_lock(&s->lock);
    for (r = s->records; r; r = r->next)
        if (shapeless_serves(r, inputs, num_inputs, num_outputs, &at) &&
            (values = values_at(r, &at)))
            break;
    if (!values)
        status = make_record(s, scope, inputs, num_inputs, num_outputs, &r);
    pthread_mutex_unlock(&s->lock); // records stay as they are until all are destroyed
    if (status == TN_OK && !values &&
        shapeless_serves(r, inputs, num_inputs, num_outputs, &at))
        values = values_at(r, &at);
    if (status == TN_OK && !values)
        status = tn_scope_fail(scope, TN_ERR_MEMORY, "shapeless: out of memory");
    if (status == TN_OK)
        status = shapeless_build(s, r, values, scope, inputs, outputs);
    free(values);
    return status;
}

// --- creating ---------------------------------------------------------------------------

tn_status tn_shapeless_create(tn_runtime *runtime, tn_function_body body, void *user,
                              uint32_t flags, tn_shapeless **out_shapeless)
{
    const void *format;
    const tn_host *host;
    if (!runtime || !body || !out_shapeless ||
        flags & ~(TN_SHAPELESS_STRICT | TN_SHAPELESS_ONES))
        return train_fail(TN_ERR_ARGUMENT, "shapeless_create: %s",
                          !runtime         ? "the runtime is NULL"
                          : !body          ? "the body is NULL"
                          : !out_shapeless ? "the output pointer is NULL"
                                           : "unknown flags");
    // Graphs are read by a service of the plugin of graph files.
    tn_status status = tn_interface_find(runtime, TN_IFACE_GRAPH_FORMAT, &format, &host);
    if (status)
        return train_fail_core(status);
    struct tn_shapeless *s = calloc(1, sizeof(*s));
    if (!s)
        return train_fail_memory();
    s->runtime = runtime;
    s->body = body;
    s->user = user;
    s->flags = flags;
    s->api = host->query(host, TN_HOST_GRAPH_FORMAT);
    if (!s->api || pthread_mutex_init(&s->lock, NULL)) {
        free(s);
        return train_fail(TN_ERR_UNSUPPORTED,
                          "shapeless_create: this core shows no graphs");
    }
    *out_shapeless = s;
    return TN_OK;
}

void tn_shapeless_destroy(tn_shapeless *s)
{
    if (!s)
        return;
    for (struct shapeless_record *r = s->records, *next; r; r = next) {
        next = r->next;
        record_destroy(r);
    }
    pthread_mutex_destroy(&s->lock);
    free(s->why);
    free(s);
}

uint64_t tn_shapeless_traces(tn_shapeless *s)
{
    pthread_mutex_lock(&s->lock);
    uint64_t traces = s->traces;
    pthread_mutex_unlock(&s->lock);
    return traces;
}

uint64_t tn_shapeless_why(tn_shapeless *s, char *out, uint64_t size)
{
    pthread_mutex_lock(&s->lock);
    const char *why = s->why ? s->why : "";
    if (size)
        snprintf(out, size, "%s", why);
    uint64_t length = strlen(why);
    pthread_mutex_unlock(&s->lock);
    return length;
}
