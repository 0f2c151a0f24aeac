// SPDX-License-Identifier: MIT
// `tenon bench cpu` and `tenon bench gpu`: every case through tn_function, called and
// waited for, in turns with PyTorch in a process of its own, whose results are compared.
#include "cases.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROUND_SECONDS 5e-3 // a round makes calls for about so long
#define SLOW_SECONDS 0.1   // calls that take longer have fewer rounds
#define SLOW_ROUNDS 3
#define MANY 16           // operations a byte, from which arithmetic is what bounds
#define SAMPLES (1 << 20) // of a result, at most about so many elements are compared

struct side {
    struct contestant contest;
    double least;
};

struct measured {
    struct bench *bench;
    struct peers *peers; // NULL: there is no PyTorch
    const struct bench_case *row;
    char name[160]; // with the extents
    struct lang_tree tree;
    struct case_input told[CASE_MAX_INPUTS];
    tn_array *inputs[CASE_MAX_INPUTS]; // kept
    uint64_t num_inputs, num_outputs;
    tn_function *function;
    double bytes; // of inputs and outputs
    struct side ours, theirs;
    double error;     // of results, over the greatest element; < 0: not compared
    bool wrong;       // the error is above what is allowed
    char reason[200]; // why there is no time; ""
};

// --- Tenon -----------------------------------------------------------------------------

static int apply(struct measured *m, tn_scope *s, tn_array *const *inputs,
                 struct lang_results *results)
{
    struct lang_names names = {0};
    int failed = 0;
    for (uint64_t i = 0; i < m->num_inputs && !failed; i++)
        failed = lang_names_set(&names, m->told[i].name, inputs[i]);
    if (!failed)
        failed = lang_eval(&m->tree, s, &names, results);
    lang_names_finish(&names);
    return failed;
}

static tn_status body(tn_scope *s, tn_array *const *inputs, uint64_t num_inputs,
                      tn_array **outputs, uint64_t num_outputs, void *user)
{
    struct measured *m = user;
    struct lang_results results = {0};
    (void)num_inputs;
    if (apply(m, s, inputs, &results))
        return tn_scope_status(s) ? tn_scope_status(s) : TN_ERR_ARGUMENT;
    memcpy(outputs, results.items, num_outputs * sizeof(*outputs));
    free(results.items);
    return tn_scope_status(s);
}

static double run_ours(struct contestant *self, uint64_t times)
{
    struct measured *m = self->state;
    tn_array *outputs[CASE_MAX_OUTPUTS];
    double begin = now_seconds();
    for (uint64_t i = 0; i < times; i++) {
        tn_scope *s = tn_scope_open(m->bench->runtime);
        if (tn_function_call(m->function, s, m->inputs, m->num_inputs, outputs,
                             m->num_outputs) ||
            tn_eval_n(s, outputs, m->num_outputs)) {
            failed_run(s);
            tn_scope_close(s);
            return -1;
        }
        tn_scope_close(s);
    }
    return now_seconds() - begin;
}

// Parses the expression, makes the inputs, and counts what it gives.
static bool begin_ours(struct measured *m, const char *inputs, const char *expression)
{
    struct lang_results results = {0};
    int count = case_inputs(inputs, m->told);
    tn_scope *s = tn_scope_open(m->bench->runtime);
    bool good = count >= 0 && !lang_parse(expression, &m->tree);
    for (; good && m->num_inputs < (uint64_t)count; m->num_inputs++) {
        struct case_input *told = &m->told[m->num_inputs];
        m->inputs[m->num_inputs] = case_array(s, told, (int)m->num_inputs);
        m->bytes += case_bytes(&told->type);
    }
    good = good && !tn_scope_status(s) && !apply(m, s, m->inputs, &results) &&
           results.count <= CASE_MAX_OUTPUTS;
    for (size_t i = 0; good && i < results.count; i++)
        m->bytes += case_bytes(tn_array_type(results.items[i]));
    m->num_outputs = results.count;
    good = good && !tn_function_create(m->bench->runtime, body, m, NULL, &m->function);
    if (!good)
        snprintf(m->reason, sizeof(m->reason), "Tenon: %s",
                 count < 0            ? "its inputs cannot be read"
                 : tn_scope_status(s) ? tn_scope_error(s)
                                      : oops_text());
    forget_oops();
    free(results.items);
    tn_scope_close(s);
    m->ours.contest = (struct contestant){"Tenon", run_ours, m, .median = -1};
    return good;
}

// --- PyTorch ---------------------------------------------------------------------------

static double run_theirs(struct contestant *self, uint64_t times)
{
    struct measured *m = self->state;
    json_t *answer = peers_ask(
        m->peers, json_pack("{s:s, s:I}", "do", "run", "times", (json_int_t)times), NULL,
        0);
    json_t *seconds = json_object_get(answer, "seconds");
    double took = seconds ? json_number_value(seconds) : -1;
    json_decref(answer);
    return took;
}

static bool begin_theirs(struct measured *m, const char *expression)
{
    json_t *inputs = json_array();
    for (uint64_t i = 0; i < m->num_inputs; i++)
        json_array_append_new(inputs, case_told(&m->told[i]));
    json_t *answer = peers_ask(m->peers,
                               json_pack("{s:s, s:s, s:o}", "do", "case", "expression",
                                         expression, "inputs", inputs),
                               NULL, 0);
    const char *error = json_string_value(json_object_get(answer, "error"));
    bool good = answer && !error;
    if (!good)
        snprintf(m->reason, sizeof(m->reason), "PyTorch: %s", error ? error : "ended");
    json_decref(answer);
    m->theirs.contest = (struct contestant){"PyTorch", run_theirs, m, .median = -1};
    return good;
}

// Elements of one result at equal distances; the peer has its own at the same places.
static double compare_one(struct measured *m, tn_scope *s, tn_array *array, int index)
{
    struct host_array host = {0};
    if (host_array_read(s, array, &host))
        return -1;
    uint64_t size = (uint64_t)tn_dtype_bytes(host.dtype), count = host.bytes / size;
    uint64_t stride = count / SAMPLES | 1, samples = (count + stride - 1) / stride;
    for (uint64_t i = 0; i < samples; i++)
        memmove((char *)host.data + i * size, (char *)host.data + i * stride * size, size);
    json_t *answer = peers_ask(m->peers,
                               json_pack("{s:s, s:i, s:s, s:I, s:I, s:f}", "do", "compare",
                                         "index", index, "dtype", tn_dtype_name(host.dtype),
                                         "count", (json_int_t)count, "stride",
                                         (json_int_t)stride, "allowed", m->row->allowed),
                               host.data, samples * size);
    json_t *error = json_object_get(answer, "error");
    double found = json_is_number(error) ? json_number_value(error) : INFINITY;
    m->wrong |= !json_is_true(json_object_get(answer, "good"));
    json_decref(answer);
    host_array_finish(&host);
    return found;
}

static void compare(struct measured *m)
{
    tn_array *outputs[CASE_MAX_OUTPUTS];
    tn_scope *s = tn_scope_open(m->bench->runtime);
    m->error = 0;
    if (!tn_function_call(m->function, s, m->inputs, m->num_inputs, outputs,
                          m->num_outputs))
        for (uint64_t i = 0; i < m->num_outputs; i++)
            m->error = fmax(m->error, compare_one(m, s, outputs[i], (int)i));
    tn_scope_close(s);
}

// --- a case ----------------------------------------------------------------------------

static void measure(struct measured *m, bool has_theirs)
{
    struct contestant list[2] = {m->ours.contest, m->theirs.contest};
    size_t count = has_theirs ? 2 : 1;
    bool quick = m->bench->quick;
    int rounds = quick ? 1 : m->bench->rounds;
    for (size_t i = 0; i < count && !quick; i++)
        list[i].times = bench_times(&list[i], ROUND_SECONDS);
    if (!quick && rounds > SLOW_ROUNDS && list[0].run(&list[0], 1) > SLOW_SECONDS)
        rounds = SLOW_ROUNDS;
    contest(list, count, rounds, 1);
    m->ours = (struct side){list[0], bench_least(&list[0], rounds)};
    if (has_theirs)
        m->theirs = (struct side){list[1], bench_least(&list[1], rounds)};
}

static enum case_size size_of(const struct bench *bench, const struct bench_case *row)
{
    enum case_size full = bench->pinned ? SIZE_CPU : SIZE_GPU;
    return !bench->quick ? full : row->whole ? SIZE_CPU : SIZE_QUICK;
}

static void run_case(struct measured *m)
{
    enum case_size size = size_of(m->bench, m->row);
    const char *theirs = m->row->theirs ? m->row->theirs : m->row->ours;
    char *texts[] = {case_text(m->row->inputs, size), case_text(m->row->ours, size),
                     case_text(theirs, size)};
    m->error = -1;
    m->ours.contest.median = m->theirs.contest.median = -1;
    if (texts[0] && texts[1] && texts[2] && begin_ours(m, texts[0], texts[1])) {
        bool has_theirs = m->peers && begin_theirs(m, texts[2]);
        measure(m, has_theirs);
        if (m->ours.contest.median < 0)
            snprintf(m->reason, sizeof(m->reason), "Tenon failed");
        else if (has_theirs && m->row->allowed >= 0)
            compare(m);
    }
    tn_function_destroy(m->function);
    for (uint64_t i = 0; i < m->num_inputs; i++)
        tn_release(m->inputs[i]);
    lang_tree_finish(&m->tree);
    for (size_t i = 0; i < COUNT(texts); i++)
        free(texts[i]);
}

// --- the table -------------------------------------------------------------------------

struct mean {
    double logs;
    int count;
};

static void add_ratio(struct mean *mean, double ratio)
{
    mean->logs += ratio > 0 ? log(ratio) : 0;
    mean->count += ratio > 0;
}

static double ratio_of(const struct measured *m)
{
    return m->theirs.contest.median > 0 && m->ours.contest.median > 0
               ? m->theirs.contest.median / m->ours.contest.median
               : -1;
}

// "12.34 GB/s", of arithmetic where the case has some. Small sizes have no rate.
static const char *rate_of(const struct measured *m, char out[32])
{
    double ours = m->ours.contest.median, work = m->row->work;
    out[0] = '\0';
    if (ours > 0 && !m->bench->quick)
        snprintf(out, 32, "%.1f %s",
                 (work > MANY * m->bytes ? work : m->bytes) / ours * 1e-9,
                 work > MANY * m->bytes ? "GFLOP/s" : "GB/s");
    return out;
}

// A number, or "-" where there is none.
static const char *figure(double value, int digits, char out[32])
{
    if (value < 0)
        return "-";
    snprintf(out, 32, "%.*f", digits, value);
    return out;
}

static void print_case(const struct measured *m)
{
    FILE *out = m->bench->out;
    const double factor = 1e6;
    char text[6][32];
    const char *ours = figure(m->ours.contest.median * factor, 1, text[0]);
    const char *ours_least = figure(m->ours.least * factor, 1, text[1]);
    const char *theirs = figure(m->theirs.contest.median * factor, 1, text[2]);
    const char *theirs_least = figure(m->theirs.least * factor, 1, text[3]);
    const char *ratio = figure(ratio_of(m), 2, text[4]), *rate = rate_of(m, text[5]);
    if (m->bench->style == STYLE_MARKDOWN)
        fprintf(out, "| %s | %s | %s | %s | %s | %s%s |\n", m->name, ours, theirs, ratio,
                rate, m->wrong ? "WRONG " : "", m->reason);
    else
        fprintf(out, "%-62s %10s %10s %10s %10s %7s  %-15s %s%s", m->name, ours, ours_least,
                theirs, theirs_least, ratio, rate, m->wrong ? "WRONG " : "", m->reason);
    if (m->bench->style == STYLE_TEXT && m->error >= 0)
        fprintf(out, "%.0e", m->error);
    if (m->bench->style == STYLE_TEXT)
        fputc('\n', out);
    fflush(out);
}

static json_t *json_of(const struct measured *m)
{
    return json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:b, s:s}",
                     "group", m->row->group, "name", m->name, "seconds",
                     m->ours.contest.median, "least", m->ours.least, "peer_seconds",
                     m->theirs.contest.median, "peer_least", m->theirs.least, "ratio",
                     ratio_of(m), "bytes", m->bytes, "work", m->row->work, "error",
                     m->error, "wrong", m->wrong, "reason", m->reason);
}

// Whether a case is measured; its name as it is told.
static bool is_wanted(const struct bench *bench, const struct bench_case *row, char *name,
                      size_t size)
{
    char full[256];
    char *text = case_text(row->name, bench->pinned ? SIZE_CPU : SIZE_GPU);
    snprintf(name, size, "%s", text ? text : row->name);
    free(text);
    snprintf(full, sizeof(full), "%s/%s", row->group, name);
    if (row->where && row->where != (bench->pinned ? ON_CPU : ON_GPU))
        return false;
    if (bench->quick && row->whole && !bench->pinned)
        return false;
    return !bench->only || strstr(full, bench->only) || fnmatch(bench->only, full, 0) == 0;
}

static void print_mean(const struct bench *bench, const char *name, const struct mean *mean)
{
    double value = mean->count ? exp(mean->logs / mean->count) : -1;
    char text[32];
    if (bench->style == STYLE_MARKDOWN)
        fprintf(bench->out, "| **%s**, geometric mean of %d | | | **%s** | | |\n", name,
                mean->count, figure(value, 2, text));
    else
        fprintf(bench->out, "%-62s %51s  geometric mean of %d\n", name,
                figure(value, 2, text), mean->count);
}

struct means {
    struct mean group, all, goals, others;
};

static void add_case(const struct measured *m, struct means *means)
{
    int goal = m->bench->pinned ? GOAL_CPU : GOAL_GPU;
    double ratio = ratio_of(m);
    add_ratio(&means->group, ratio);
    add_ratio(&means->all, ratio);
    add_ratio(m->row->goal & goal ? &means->goals : &means->others, ratio);
}

// One group of the table, from row `first`; the row behind it.
static size_t run_group(struct bench *bench, struct peers *peers, size_t first,
                        struct means *means, json_t *told)
{
    const char *group = bench_cases[first].group;
    bool is_told = bench->style != STYLE_JSON, has_title = false;
    char name[sizeof(((struct measured *)0)->name)];
    size_t i = first;
    means->group = (struct mean){0};
    for (; i < num_bench_cases && strcmp(bench_cases[i].group, group) == 0; i++) {
        if (!is_wanted(bench, &bench_cases[i], name, sizeof(name)))
            continue;
        if (!has_title && bench->style == STYLE_TEXT)
            title(bench, "%s", group);
        has_title = true;
        struct measured *m = calloc(1, sizeof(*m));
        if (!m)
            return num_bench_cases;
        m->bench = bench;
        m->peers = peers->has_torch ? peers : NULL;
        m->row = &bench_cases[i];
        memcpy(m->name, name, sizeof(name));
        run_case(m);
        if (is_told)
            print_case(m);
        add_case(m, means);
        bench->failed |= m->wrong || m->ours.contest.median < 0;
        json_array_append_new(told, json_of(m));
        free(m);
    }
    if (has_title && is_told)
        print_mean(bench, group, &means->group);
    return i;
}

static void print_head(const struct bench *bench)
{
    if (bench->style == STYLE_TEXT)
        fprintf(bench->out, "%-62s %10s %10s %10s %10s %7s\n",
                "microseconds, medians and least", "Tenon", "least", "PyTorch", "least",
                "ratio");
    if (bench->style == STYLE_MARKDOWN)
        fputs("\n| case | Tenon, us | PyTorch, us | ratio | of Tenon | |\n"
              "|---|---|---|---|---|---|\n",
              bench->out);
}

static void run_cases(struct bench *bench, const char *device)
{
    struct peers peers;
    struct means means = {0};
    json_t *told = json_array();
    char *machine = bench_machine(bench);
    peers_start(&peers, bench, device);
    if (bench->style != STYLE_JSON)
        fprintf(bench->out, "%s; %s.\n", machine, peers.names);
    print_head(bench);
    for (size_t i = 0; i < num_bench_cases;)
        i = run_group(bench, &peers, i, &means, told);
    if (bench->style == STYLE_JSON) {
        json_t *whole = json_pack("{s:s, s:s, s:i, s:o}", "machine", machine, "peer",
                                  peers.names, "threads", bench->threads, "cases", told);
        json_dumpf(whole, bench->out, JSON_INDENT(1));
        fputc('\n', bench->out);
        json_decref(whole);
    } else {
        print_mean(bench, "cases with a goal", &means.goals);
        print_mean(bench, "other cases", &means.others);
        print_mean(bench, "all", &means.all);
        json_decref(told);
    }
    free(machine);
    peers_stop(&peers);
}

void bench_cpu(struct bench *bench)
{
    run_cases(bench, "cpu");
}

void bench_gpu(struct bench *bench)
{
    run_cases(bench, "cuda");
}
