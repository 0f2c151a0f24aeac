// SPDX-License-Identifier: MIT
// `tenon bench cpu` and `tenon bench gpu`: every case through tn_function, called and
// waited for, in turns with PyTorch in a process of its own, whose results are compared.
#include "cases.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUND_SECONDS 3e-3 // a round makes calls for about so long
#define GPU_SECONDS 0.1    // calls before the rounds on a GPU, whose clocks fall while idle
#define SLOW_SECONDS 0.05  // calls that take longer have fewer rounds
#define SLOW_ROUNDS 3
#define MANY 16           // operations a byte: from here on arithmetic is the bound
#define SAMPLES (1 << 18) // of a result, at most about so many elements are compared

struct side {
    struct contestant contest;
    double least;
};

// Elements of a result at equal distances.
struct bench_cases_sample {
    tn_dtype dtype;
    uint64_t count, stride, size; // elements of the result; bytes of the sample
    void *data;                   // owned
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
    struct bench_cases_sample samples[CASE_MAX_OUTPUTS];
    bool has_samples;
    struct side ours, theirs;
    double error;     // greatest difference over the greatest element; < 0: not compared
    bool wrong;       // the error is above what is allowed
    bool late;        // --seconds were over
    char reason[200]; // why there is no time; ""
};

// --- Tenon -----------------------------------------------------------------------------

static int bench_cases_apply(struct measured *m, tn_scope *s, tn_array *const *inputs,
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

static tn_status bench_cases_body(tn_scope *s, tn_array *const *inputs, uint64_t num_inputs,
                                  tn_array **outputs, uint64_t num_outputs, void *user)
{
    struct measured *m = user;
    struct lang_results results = {0};
    (void)num_inputs;
    if (bench_cases_apply(m, s, inputs, &results))
        return tn_scope_status(s) ? tn_scope_status(s) : TN_ERR_ARGUMENT;
    memcpy(outputs, results.items, num_outputs * sizeof(*outputs));
    free(results.items);
    return tn_scope_status(s);
}

static bool call_ours(struct measured *m)
{
    tn_array *outputs[CASE_MAX_OUTPUTS];
    tn_scope *s = tn_scope_open(m->bench->runtime);
    bool good = !tn_function_call(m->function, s, m->inputs, m->num_inputs, outputs,
                                  m->num_outputs) &&
                !tn_eval_n(s, outputs, m->num_outputs);
    if (!good)
        failed_run(s);
    tn_scope_close(s);
    return good;
}

// Short calls run once more before the clock starts: the other side has filled the caches.
static double run_ours(struct contestant *self, uint64_t times)
{
    struct measured *m = self->state;
    bool good = true;
    if (m->bench->threads > 1) // the peer's threads wait for more work for a while
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    if (times > 1)
        good = call_ours(m);
    double begin = now_seconds();
    for (uint64_t i = 0; i < times && good; i++)
        good = call_ours(m);
    return good ? now_seconds() - begin : -1;
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
    good = good && !tn_scope_status(s) && !bench_cases_apply(m, s, m->inputs, &results) &&
           results.count <= CASE_MAX_OUTPUTS;
    for (size_t i = 0; good && i < results.count; i++)
        m->bytes += case_bytes(tn_array_type(results.items[i]));
    m->num_outputs = results.count;
    good = good &&
           !tn_function_create(m->bench->runtime, bench_cases_body, m, NULL, &m->function);
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

static bool take_sample(tn_scope *s, tn_array *array, struct bench_cases_sample *out)
{
    struct host_array host = {0};
    if (host_array_read(s, array, &host))
        return false;
    uint64_t size = (uint64_t)tn_dtype_bytes(host.dtype), count = host.bytes / size;
    uint64_t stride = count / SAMPLES | 1, samples = (count + stride - 1) / stride;
    *out = (struct bench_cases_sample){host.dtype, count, stride, samples * size,
                                       malloc(samples * size + 1)};
    for (uint64_t i = 0; out->data && i < samples; i++)
        memcpy((char *)out->data + i * size, (char *)host.data + i * stride * size, size);
    host_array_finish(&host);
    return out->data != NULL;
}

static void take_samples(struct measured *m)
{
    tn_array *outputs[CASE_MAX_OUTPUTS];
    tn_scope *s = tn_scope_open(m->bench->runtime);
    m->has_samples = !tn_function_call(m->function, s, m->inputs, m->num_inputs, outputs,
                                       m->num_outputs);
    for (uint64_t i = 0; i < m->num_outputs && m->has_samples; i++)
        m->has_samples = take_sample(s, outputs[i], &m->samples[i]);
    tn_scope_close(s);
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

// Compares one result; the peer has its own at the same positions.
static double compare_one(struct measured *m, const struct bench_cases_sample *sample,
                          int index)
{
    json_t *answer = peers_ask(
        m->peers,
        json_pack("{s:s, s:i, s:s, s:I, s:I, s:f}", "do", "compare", "index", index,
                  "dtype", tn_dtype_name(sample->dtype), "count", (json_int_t)sample->count,
                  "stride", (json_int_t)sample->stride, "allowed", m->row->allowed),
        sample->data, sample->size);
    json_t *error = json_object_get(answer, "error");
    double found = json_is_number(error) ? json_number_value(error) : INFINITY;
    m->wrong |= !json_is_true(json_object_get(answer, "good"));
    json_decref(answer);
    return found;
}

static void bench_cases_compare(struct measured *m)
{
    m->error = 0;
    for (uint64_t i = 0; i < m->num_outputs; i++)
        m->error = fmax(m->error, compare_one(m, &m->samples[i], (int)i));
}

// --- a case ----------------------------------------------------------------------------

static enum case_size bench_cases_size_of(const struct bench *bench,
                                          const struct bench_case *row)
{
    enum case_size full = bench->pinned ? SIZE_CPU : SIZE_GPU;
    return !bench->quick ? full : row->whole ? SIZE_CPU : SIZE_QUICK;
}

// Measures the sides in turns. Long calls get few rounds. A round has at least two of all
// other calls: run_ours() fills the caches only before several.
static void bench_cases_measure(struct measured *m, struct side *const *sides, size_t count)
{
    struct contestant list[2];
    int rounds = m->bench->quick ? 1 : m->bench->rounds;
    for (size_t i = 0; i < count; i++) {
        list[i] = sides[i]->contest;
        list[i].times = 1;
        if (m->bench->quick)
            continue;
        if (!m->bench->pinned)
            bench_times(&list[i], GPU_SECONDS);
        if (list[i].run(&list[i], 1) < SLOW_SECONDS)
            list[i].times = bench_times(&list[i], ROUND_SECONDS / 2) * 2;
        else
            rounds = rounds < SLOW_ROUNDS ? rounds : SLOW_ROUNDS;
    }
    contest(list, count, rounds, 1);
    for (size_t i = 0; i < count; i++)
        *sides[i] = (struct side){list[i], bench_least(&list[i], rounds)};
}

static void bench_cases_prepare(struct measured *m)
{
    m->error = m->ours.contest.median = m->theirs.contest.median = -1;
    m->ours.least = m->theirs.least = -1;
}

// Frees the memory of Tenon's side, but for the samples.
static void end_ours(struct measured *m)
{
    tn_function_destroy(m->function);
    for (uint64_t i = 0; i < m->num_inputs; i++)
        tn_release(m->inputs[i]);
    lang_tree_finish(&m->tree);
}

static char *text_for(const struct measured *m, const char *text)
{
    return case_text(text, bench_cases_size_of(m->bench, m->row));
}

static bool start_ours(struct measured *m)
{
    char *inputs = text_for(m, m->row->inputs), *ours = text_for(m, m->row->ours);
    bool good = inputs && ours && begin_ours(m, inputs, ours);
    free(inputs);
    free(ours);
    return good;
}

static bool start_theirs(struct measured *m)
{
    char *theirs = text_for(m, m->row->theirs ? m->row->theirs : m->row->ours);
    bool good = m->peers && theirs && begin_theirs(m, theirs);
    free(theirs);
    return good;
}

// Whether a share of the seconds that --seconds gives is over.
static bool is_late(struct measured *m, double share)
{
    bool late = m->bench->seconds > 0 &&
                now_seconds() > m->bench->began + share * m->bench->seconds;
    if (late && !m->reason[0])
        snprintf(m->reason, sizeof(m->reason), "no time was left");
    m->late |= late;
    return late;
}

// Measures Tenon and PyTorch in turns.
static void bench_cases_run_together(struct measured *m)
{
    if (is_late(m, 1))
        return;
    if (start_ours(m)) {
        bool has_theirs = start_theirs(m);
        bench_cases_measure(m, (struct side *[]){&m->ours, &m->theirs}, has_theirs ? 2 : 1);
        if (has_theirs && m->row->allowed >= 0)
            take_samples(m);
        if (m->has_samples)
            bench_cases_compare(m);
    }
    end_ours(m);
}

// Measures Tenon alone; run_theirs_apart() measures PyTorch later.
static void run_ours_apart(struct measured *m)
{
    if (is_late(m, 0.6))
        return;
    if (start_ours(m)) {
        bench_cases_measure(m, (struct side *[]){&m->ours}, 1);
        if (m->row->allowed >= 0)
            take_samples(m);
    }
    end_ours(m);
}

static void run_theirs_apart(struct measured *m)
{
    if (m->ours.contest.median < 0 || is_late(m, 1) || !start_theirs(m))
        return;
    if (m->has_samples)
        bench_cases_compare(m);
    bench_cases_measure(m, (struct side *[]){&m->theirs}, 1);
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
static const char *bench_cases_figure(double value, int digits, char out[32])
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
    const char *ours = bench_cases_figure(m->ours.contest.median * factor, 1, text[0]);
    const char *ours_least = bench_cases_figure(m->ours.least * factor, 1, text[1]);
    const char *theirs = bench_cases_figure(m->theirs.contest.median * factor, 1, text[2]);
    const char *theirs_least = bench_cases_figure(m->theirs.least * factor, 1, text[3]);
    const char *ratio = bench_cases_figure(ratio_of(m), 2, text[4]),
               *rate = rate_of(m, text[5]);
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

// Whether a case is measured; writes its name with the extents to `name`.
static bool bench_cases_is_wanted(const struct bench *bench, const struct bench_case *row,
                                  char *name, size_t size)
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
    if (bench->style == STYLE_MARKDOWN && mean->count)
        fprintf(bench->out, "| %s, geometric mean of %d | | | **%s** | | |\n", name,
                mean->count, bench_cases_figure(value, 2, text));
    if (bench->style == STYLE_TEXT)
        fprintf(bench->out, "%-62s %51s  geometric mean of %d\n", name,
                bench_cases_figure(value, 2, text), mean->count);
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

// The cases that are wanted, in order; ends at the first without a bench. free() it.
static struct measured *list_cases(struct bench *bench)
{
    size_t count = num_bench_cases + num_bench_nn_cases, n = 0;
    struct measured *list = calloc(count + 1, sizeof(*list));
    for (size_t i = 0; list && i < count; i++) {
        const struct bench_case *row =
            i < num_bench_cases ? &bench_cases[i] : &bench_nn_cases[i - num_bench_cases];
        struct measured *m = &list[n];
        if (!bench_cases_is_wanted(bench, row, m->name, sizeof(m->name)))
            continue;
        m->bench = bench;
        m->row = row;
        bench_cases_prepare(m);
        n++;
    }
    return list;
}

static void tell_case(struct measured *m, struct means *means, json_t *told)
{
    struct bench *bench = m->bench;
    bool failed = m->ours.contest.median < 0 && !m->late;
    if (failed && !m->reason[0])
        snprintf(m->reason, sizeof(m->reason), "Tenon failed");
    if (bench->style == STYLE_TEXT || (bench->style == STYLE_MARKDOWN && !m->late))
        print_case(m);
    add_case(m, means);
    bench->failed |= m->wrong || failed;
    json_array_append_new(told, json_of(m));
}

// One group of the table from its first case on; the case behind it.
static struct measured *run_group(struct measured *m, struct peers *peers,
                                  struct means *means, json_t *told)
{
    struct bench *bench = m->bench;
    const char *group = m->row->group;
    if (bench->style == STYLE_TEXT)
        title(bench, "%s", group);
    if (bench->style == STYLE_MARKDOWN)
        fprintf(bench->out, "| **%s** | | | | | |\n", group);
    means->group = (struct mean){0};
    for (; m->bench && strcmp(m->row->group, group) == 0; m++) {
        m->peers = peers->has_torch ? peers : NULL;
        if (bench->pinned)
            bench_cases_run_together(m);
        else
            run_theirs_apart(m);
        tell_case(m, means, told);
        for (uint64_t i = 0; i < m->num_outputs; i++)
            free(m->samples[i].data);
    }
    if (bench->style != STYLE_JSON)
        print_mean(bench, group, &means->group);
    return m;
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

static void tell_json(struct bench *bench, const char *machine, const struct peers *peers,
                      json_t *told)
{
    json_t *whole = json_pack("{s:s, s:s, s:i, s:O}", "machine", machine, "peer",
                              peers->names, "threads", bench->threads, "cases", told);
    json_dumpf(whole, bench->out, JSON_INDENT(1));
    fputc('\n', bench->out);
    json_decref(whole);
}

static void run_cases(struct bench *bench, const char *device)
{
    struct peers peers;
    struct means means = {0};
    json_t *told = json_array();
    bench->began = now_seconds();
    char *machine = bench_machine(bench);
    struct measured *list = list_cases(bench);
    for (struct measured *m = list; m && m->bench && !bench->pinned; m++)
        run_ours_apart(m);
    peers_start(&peers, bench, device);
    if (bench->style != STYLE_JSON)
        fprintf(bench->out, "%s; %s.\n", machine, peers.names);
    print_head(bench);
    for (struct measured *m = list; m && m->bench;)
        m = run_group(m, &peers, &means, told);
    if (bench->style == STYLE_JSON) {
        tell_json(bench, machine, &peers, told);
    } else {
        print_mean(bench, "cases with a goal", &means.goals);
        print_mean(bench, "other cases", &means.others);
        print_mean(bench, "all", &means.all);
    }
    json_decref(told);
    free(machine);
    free(list);
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
