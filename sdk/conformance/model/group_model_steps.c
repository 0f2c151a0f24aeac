// SPDX-License-Identifier: MIT
// Steps of models: logits are the same however a text is cut into chunks, layers into
// shards, and positions are spread over sequences.
#include <math.h>
#include "group_model.h"

enum { TEXT = 8, BEFORE = 3 };

// A model's run, with room for the logits that checks compare.
struct stepper {
    struct kit *kit;
    struct model_run *run;
    int32_t ids[TEXT];
    float *want, *got; // logits of TEXT positions
    uint64_t row;      // logits of a position
};

static const int32_t none[] = {0};

// --- comparing -------------------------------------------------------------------------

// Whether floats agree within 1e-3 of the largest, which allows sums in another order.
static bool are_near(const float *a, const float *b, uint64_t count)
{
    double largest = 0, apart = 0;
    for (uint64_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs((double)a[i]));
        double difference = fabs((double)a[i] - (double)b[i]);
        if (!(difference <= apart)) // NaN differs, too
            apart = difference;
    }
    return isfinite(apart) && apart <= 1e-3 * fmax(largest, 1e-3);
}

static void expect_near(const struct stepper *s, uint64_t first, uint64_t rows,
                        const char *what)
{
    for (uint64_t i = first; i < first + rows; i++)
        if (!are_near(s->want + i * s->row, s->got + i * s->row, s->row)) {
            check_fail(s->kit, "%s: the logits of position %llu are others", what,
                       (unsigned long long)i);
            return;
        }
}

// Runs positions first .. first + count - 1 of the text; their logits go to `out`.
static bool model_steps_run_rows(struct stepper *s, void **caches, int64_t first,
                                 int64_t count, float *out)
{
    const int32_t position = (int32_t)first;
    struct model_step step = {.count = count,
                              .ids = s->ids + first,
                              .positions = &position,
                              .output = out + (uint64_t)first * s->row};
    memcpy(step.caches, caches, sizeof(step.caches));
    return model_run_step(s->run, &step);
}

// Runs the whole text one position at a time; the logits go to s->want.
static bool run_singly(struct stepper *s, void **caches)
{
    bool good = true;
    for (int64_t i = 0; good && i < TEXT; i++)
        good = model_steps_run_rows(s, caches, i, 1, s->want);
    return good;
}

// --- the checks ------------------------------------------------------------------------

// Steps of one position and of several, with logits of all rows and of the last one, of all
// layers and of some.
static void check_model_build(struct stepper *s)
{
    static const int64_t counts[] = {1, TEXT};
    const int64_t layers = s->run->facts->layers;
    float *hidden = calloc(TEXT * (uint64_t)s->run->facts->width, sizeof(*hidden));
    for (size_t i = 0; hidden && i < 2 * COUNT(counts); i++) {
        const int32_t last = (int32_t)counts[i / 2] - 1;
        struct model_step step = {.count = counts[i / 2],
                                  .ids = s->ids,
                                  .positions = none,
                                  .last = i % 2 ? &last : NULL,
                                  .output = s->got};
        model_caches_init(s->run, 1, step.caches);
        model_run_step(s->run, &step);
        step.last = NULL;
        step.end = layers - 1;
        step.output = hidden;
        if (layers > 1)
            model_run_step(s->run, &step);
        step.first = layers - 1;
        step.end = layers;
        step.hidden = hidden;
        step.output = s->got;
        if (layers > 1)
            model_run_step(s->run, &step);
        model_caches_free(step.caches);
    }
    free(hidden);
}

// Each slot of the step fails once: build must return and not crash.
static void check_model_failure(struct stepper *s)
{
    struct model_step step = {.count = 2, .ids = s->ids, .positions = none};
    model_caches_init(s->run, 1, step.caches);
    for (int64_t n = 1; !check_failed(s->kit); n++) {
        step.fails_at = n;
        if (!model_run_step(s->run, &step) || step.calls < n)
            break;
        if (step.is_built)
            check_fail(s->kit, "build succeeds when call %lld of a slot fails",
                       (long long)n);
    }
    model_caches_free(step.caches);
}

static void check_model_chunks(struct stepper *s)
{
    static const struct {
        int64_t count[TEXT];
        const char *what;
    } cuts[] = {{{TEXT}, "one chunk"},
                {{BEFORE, TEXT - BEFORE}, "two chunks"},
                {{1, 2, 2, TEXT - 5}, "four chunks"}};
    void *caches[RUN_CACHES];
    model_caches_init(s->run, 1, caches);
    bool good = run_singly(s, caches);
    model_caches_free(caches);
    for (size_t i = 0; good && i < COUNT(cuts); i++) {
        model_caches_init(s->run, 1, caches);
        for (int64_t at = 0, c = 0; good && at < TEXT; at += cuts[i].count[c++])
            good = model_steps_run_rows(s, caches, at, cuts[i].count[c], s->got);
        model_caches_free(caches);
        if (good)
            expect_near(s, 0, TEXT, cuts[i].what);
    }
}

// Logits of the last row alone equal those of this row among all rows.
static void check_model_last(struct stepper *s)
{
    const int32_t last[] = {TEXT - 2};
    struct model_step step = {
        .count = TEXT, .ids = s->ids, .positions = none, .output = s->want};
    model_caches_init(s->run, 1, step.caches);
    bool good = model_run_step(s->run, &step);
    step.last = last;
    step.output = s->got + (uint64_t)last[0] * s->row;
    if (good && model_run_step(s->run, &step))
        expect_near(s, (uint64_t)last[0], 1, "with the logits of one row only");
    model_caches_free(step.caches);
}

// Shards of one layer each, which hand on the hidden state.
static void check_model_shards(struct stepper *s)
{
    const int64_t layers = s->run->facts->layers;
    float *hidden = calloc(TEXT * (uint64_t)s->run->facts->width, sizeof(*hidden));
    struct model_step step = {
        .count = TEXT, .ids = s->ids, .positions = none, .output = s->want};
    model_caches_init(s->run, 1, step.caches);
    bool good = hidden && model_run_step(s->run, &step);
    model_caches_free(step.caches);
    model_caches_init(s->run, 1, step.caches);
    for (int64_t layer = 0; good && layer < layers; layer++) {
        step.first = layer;
        step.end = layer + 1;
        step.hidden = hidden;
        step.output = layer + 1 < layers ? hidden : s->got;
        good = model_run_step(s->run, &step);
    }
    model_caches_free(step.caches);
    if (good)
        expect_near(s, 0, TEXT, "layer by layer");
    free(hidden);
}

// The axis of a cache that counts positions; -1: it has none.
static int32_t axis_of_positions(const tn_type *type)
{
    for (int32_t i = type->rank - 1; i >= 0; i--)
        if (type->extent[i] == RUN_CAPACITY)
            return i;
    return -1;
}

// Sets a cache's rows of positions from `first` on to `value`.
static void fill_from(const struct model_run *run, uint64_t cache, char *bytes,
                      int64_t first, float value)
{
    const tn_type *type = &run->types[cache];
    int32_t axis = axis_of_positions(type);
    uint64_t inner = 1, count = run->bytes[cache] / sizeof(float);
    if (axis < 0 || type->dtype != TN_F32)
        return;
    for (int32_t i = axis + 1; i < type->rank; i++)
        inner *= (uint64_t)type->extent[i];
    for (uint64_t i = 0; i < count; i++)
        if ((int64_t)(i / inner % RUN_CAPACITY) >= first)
            memcpy(bytes + i * sizeof(value), &value, sizeof(value));
}

// Whether a cache has changed at a position outside of first .. end - 1; *out_where is the
// position.
static bool has_strayed(const struct model_run *run, uint64_t cache, const char *before,
                        const char *after, int64_t first, int64_t end, int64_t *out_where)
{
    const tn_type *type = &run->types[cache];
    int32_t axis = axis_of_positions(type);
    uint64_t inner = (uint64_t)tn_dtype_bytes(type->dtype);
    for (int32_t i = axis + 1; i < type->rank; i++)
        inner *= (uint64_t)type->extent[i];
    for (uint64_t i = 0; axis >= 0 && i < run->bytes[cache]; i++) {
        *out_where = (int64_t)(i / inner % RUN_CAPACITY);
        if ((*out_where < first || *out_where >= end) && before[i] != after[i])
            return true;
    }
    return false;
}

// Steps read no rows behind a sequence's end, and write rows at their own positions only.
static void check_model_caches(struct stepper *s)
{
    void *caches[RUN_CACHES], *before[RUN_CACHES];
    const struct model_run *run = s->run;
    model_caches_init(run, 1, caches);
    model_caches_init(run, 1, before);
    bool good = run_singly(s, caches);
    model_caches_free(caches);
    model_caches_init(run, 1, caches);
    good = good && model_steps_run_rows(s, caches, 0, BEFORE, s->got);
    for (uint64_t i = 0; good && i < RUN_CACHES; i++)
        if (run->bytes[i]) {
            fill_from(run, i, caches[i], BEFORE, 100);
            memcpy(before[i], caches[i], run->bytes[i]);
        }
    good = good && model_steps_run_rows(s, caches, BEFORE, 2, s->got);
    if (good)
        expect_near(s, BEFORE, 2, "with other elements behind the sequence's end");
    for (uint64_t i = 0; good && i < RUN_CACHES; i++) {
        int64_t where;
        if (run->bytes[i] &&
            has_strayed(run, i, before[i], caches[i], BEFORE, BEFORE + 2, &where))
            check_fail(s->kit,
                       "cache %llu of layer %llu changes at position %lld in a step of "
                       "positions %d and %d",
                       (unsigned long long)(i % run->facts->num_caches),
                       (unsigned long long)(i / run->facts->num_caches), (long long)where,
                       BEFORE, BEFORE + 1);
    }
    model_caches_free(before);
    model_caches_free(caches);
}

// Whether the caches are of the type that the library lets several sequences share.
static bool model_steps_may_share(const struct model_run *run)
{
    for (uint64_t i = 0; i < RUN_CACHES; i++)
        if (run->bytes[i] &&
            (run->types[i].dtype != TN_F32 || run->types[i].rank != 4 ||
             run->types[i].extent[0] != 1 || run->types[i].extent[2] != RUN_CAPACITY))
            return false;
    return true;
}

// Two sequences in one step, of which one has more positions than the other.
static void check_model_sequences(struct stepper *s)
{
    enum { SLOTS = 3, AHEAD = 2 };
    static const int32_t slots[] = {2, 0};
    void *caches[RUN_CACHES];
    struct model_step step = {.sequences = 2, .slots = slots, .num_slots = SLOTS};
    if (!model_steps_may_share(s->run)) {
        check_skip(s->kit, "its caches are not f32 [1, kv_heads, capacity, width]");
        return;
    }
    float *both = calloc(2 * TEXT * s->row, sizeof(*both));
    model_caches_init(s->run, 1, caches);
    bool good = both && run_singly(s, caches);
    model_caches_free(caches);
    model_caches_init(s->run, SLOTS, step.caches);
    for (int64_t at = 0; good && at + AHEAD < TEXT; at += AHEAD) {
        int32_t ids[2 * AHEAD], positions[] = {(int32_t)at, (int32_t)at};
        memcpy(ids, s->ids + at, AHEAD * sizeof(*ids));
        memcpy(ids + AHEAD, s->ids + at, AHEAD * sizeof(*ids));
        if (at > 0) { // the second sequence begins anew
            positions[1] -= AHEAD;
            memcpy(ids + AHEAD, s->ids + at - AHEAD, AHEAD * sizeof(*ids));
        }
        step.count = AHEAD;
        step.ids = ids;
        step.positions = positions;
        step.output = both;
        good = model_run_step(s->run, &step);
        for (int i = 0; good && i < 2; i++) {
            memcpy(s->got + (uint64_t)positions[i] * s->row,
                   both + (uint64_t)i * AHEAD * s->row, AHEAD * s->row * sizeof(*both));
            expect_near(s, (uint64_t)positions[i], AHEAD,
                        i ? "the second of two sequences" : "the first of two sequences");
        }
    }
    model_caches_free(step.caches);
    free(both);
}

// --- the group -------------------------------------------------------------------------

static void model_steps_run_check(struct models *m, const char *architecture,
                                  enum draft_kind kind, void (*check)(struct stepper *s))
{
    struct model_run run;
    struct stepper s = {.kit = m->kit, .run = &run};
    if (model_run_open(&run, m->kit, &m->subject, architecture, kind)) {
        s.row = (uint64_t)run.facts->vocabulary;
        s.want = calloc(TEXT * s.row, sizeof(*s.want));
        s.got = calloc(TEXT * s.row, sizeof(*s.got));
        for (int i = 0; i < TEXT; i++)
            s.ids[i] = (int32_t)random_below(m->kit, s.row);
        if (s.want && s.got)
            check(&s);
        free(s.want);
        free(s.got);
    }
    model_run_close(&run);
}

void group_model_steps(struct models *m)
{
    static const char *const kinds[] = {"", " with experts", " with all weights"};
    static const struct {
        const char *name;
        void (*run)(struct stepper *s);
    } checks[] = {
        {"model.build", check_model_build},        {"model.failure", check_model_failure},
        {"model.chunks", check_model_chunks},      {"model.last", check_model_last},
        {"model.shards", check_model_shards},      {"model.caches", check_model_caches},
        {"model.sequences", check_model_sequences}};
    const char *architecture;
    for (size_t i = 0; i < COUNT(checks); i++)
        for (uint32_t a = 0; (architecture = model_architecture(m, a)) != NULL; a++)
            for (int kind = 0; kind < DRAFT_KINDS; kind++) {
                if (!check_begin(m->kit, checks[i].name, "%s%s", architecture, kinds[kind]))
                    continue;
                model_steps_run_check(m, architecture, (enum draft_kind)kind,
                                      checks[i].run);
                check_end(m->kit);
            }
}
