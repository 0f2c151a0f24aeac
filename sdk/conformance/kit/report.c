// SPDX-License-Identifier: MIT
// The report: collects results, applies exceptions, prints text and JSON.
#include "report.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>

// Prints with control characters escaped: texts come in part from the plugin and its
// driver, and must not control the terminal.
static void report_tell(FILE *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void report_tell(FILE *out, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int size = vasprintf(&text, format, args);
    va_end(args);
    if (size < 0)
        return;
    uint64_t room = tn_text_printable(text, 0, NULL, 0) + 1;
    char *shown = malloc(room);
    if (shown) {
        tn_text_printable(text, 0, shown, room);
        fputs(shown, out);
    }
    free(shown);
    free(text);
}

static const char *const outcome_names[NUM_OUTCOMES] = {"pass", "fail", "warn", "skip",
                                                        "excepted"};

void report_add(struct report *report, const struct check_info *check, const char *subject,
                enum outcome outcome, const char *detail, uint64_t cases, uint64_t failures)
{
    if (report->count == report->capacity) {
        size_t capacity = report->capacity ? report->capacity * 2 : 64;
        void *grown = realloc(report->results, capacity * sizeof(*report->results));
        if (!grown)
            abort(); // in the parent process: no result can be saved
        report->results = grown;
        report->capacity = capacity;
    }
    report->results[report->count++] = (struct result){
        .check = check,
        .subject = strdup(subject),
        .detail = strdup(detail),
        .outcome = outcome,
        .cases = cases,
        .failures = failures,
    };
}

void report_finish(struct report *report)
{
    for (size_t i = 0; i < report->count; i++) {
        free(report->results[i].subject);
        free(report->results[i].detail);
    }
    free(report->results);
    *report = (struct report){0};
}

void report_settle(struct report *report, struct exceptions *exceptions)
{
    for (size_t i = 0; i < report->count; i++) {
        struct result *r = &report->results[i];
        r->exception = exceptions_find(exceptions, r->check->name, r->subject);
        if (r->exception && r->outcome == FAILED) {
            r->outcome = EXCEPTED;
        } else if (r->exception && r->outcome == PASSED && !report->samples &&
                   strcmp(r->exception->kind, "sometimes") != 0) {
            char text[DETAIL_SIZE];
            format_text(text, sizeof(text), "passed, but is excepted (%s): %s",
                        r->exception->kind, r->exception->reason);
            free(r->detail);
            r->detail = strdup(text);
            r->outcome = FAILED;
        }
        report->counts[r->outcome]++;
    }
}

// --- text ------------------------------------------------------------------------------

static size_t group_size(const struct check_info *check)
{
    return strcspn(check->name, ".");
}

static bool same_group(const struct result *a, const struct result *b)
{
    size_t size = group_size(a->check);
    return size == group_size(b->check) &&
           strncmp(a->check->name, b->check->name, size) == 0;
}

// Prints one line a group; results of a group are adjacent.
static void print_groups(const struct report *report, FILE *out)
{
    for (size_t i = 0, end; i < report->count; i = end) {
        uint64_t counts[NUM_OUTCOMES] = {0}, cases = 0;
        for (end = i;
             end < report->count && same_group(&report->results[i], &report->results[end]);
             end++) {
            counts[report->results[end].outcome]++;
            cases += report->results[end].cases;
        }
        report_tell(out, "  %-10.*s %4llu passed",
                    (int)group_size(report->results[i].check),
                    report->results[i].check->name, (unsigned long long)counts[PASSED]);
        static const char *const words[NUM_OUTCOMES] = {NULL, "FAILED", "warned", "skipped",
                                                        "excepted"};
        for (int o = FAILED; o < NUM_OUTCOMES; o++)
            if (counts[o])
                report_tell(out, ", %llu %s", (unsigned long long)counts[o], words[o]);
        if (cases)
            report_tell(out, "  (%llu cases)", (unsigned long long)cases);
        report_tell(out, "\n");
    }
}

static void kit_report_print_findings(const struct report *report, enum outcome outcome,
                                      const char *title, FILE *out)
{
    for (size_t i = 0; i < report->count; i++) {
        const struct result *r = &report->results[i];
        if (r->outcome != outcome)
            continue;
        report_tell(out, "%s %s%s%s [%s]\n", title, r->check->name,
                    r->subject[0] ? " " : "", r->subject, r->check->requirement);
        report_tell(out, "     %s\n", r->detail);
        if (outcome == FAILED)
            report_tell(out, "     Expected: %s\n", r->check->expects);
        if (r->failures > 1)
            report_tell(out, "     %llu failures in %llu cases; this is the first.\n",
                        (unsigned long long)r->failures, (unsigned long long)r->cases);
        if (outcome == EXCEPTED)
            report_tell(out, "     %s: %s\n", r->exception->kind, r->exception->reason);
    }
}

// Prints one line for each skipped check, with its first reason; --json has all.
static void print_skips(const struct report *report, FILE *out)
{
    for (size_t i = 0; i < report->count; i++) {
        const struct result *r = &report->results[i];
        size_t first = 0, more = 0, others = 0;
        if (r->outcome != SKIPPED)
            continue;
        while (report->results[first].outcome != SKIPPED ||
               report->results[first].check != r->check)
            first++;
        if (first < i)
            continue; // counted in the line of `first`
        for (size_t n = i + 1; n < report->count; n++) {
            const struct result *next = &report->results[n];
            bool is_like = next->outcome == SKIPPED && next->check == r->check;
            more += is_like;
            others += is_like && strcmp(next->detail, r->detail) != 0;
        }
        report_tell(out, "skip %s%s%s", r->check->name, r->subject[0] ? " " : "",
                    r->subject);
        if (more)
            report_tell(out, " and %zu more", more);
        report_tell(out, ": %s", r->detail);
        if (others)
            report_tell(out, " (%zu of them for other reasons: --json)", others);
        report_tell(out, "\n");
    }
}

// run.ends is reported between checks, so --only cannot select it.
static bool can_replay(const struct result *r)
{
    return r->outcome == FAILED && strcmp(r->check->name, "run.ends") != 0;
}

static void print_option(const char *name, const char *value, FILE *out)
{
    if (value)
        report_tell(out, " %s '%s'", name, value);
}

// Prints the command that repeats the first failure, with the same cases.
static void print_replay(const struct report *report, FILE *out)
{
    size_t i = 0;
    while (i < report->count && !can_replay(&report->results[i]))
        i++;
    if (i == report->count)
        return;
    const struct result *r = &report->results[i];
    report_tell(out, "One again: tenon check %s --seed %llu --only '%s%s%s'", report->file,
                (unsigned long long)report->seed, r->check->name, r->subject[0] ? " " : "",
                r->subject);
    print_option("--devices", report->devices, out);
    print_option("--with", report->with, out);
    print_option("--examples", report->examples, out);
    print_option("--samples", report->samples, out);
    report_tell(out, "\n");
}

void report_text(const struct report *report, FILE *out)
{
    report_tell(out, "%s\n\n", report->file);
    print_groups(report, out);
    report_tell(out, "\n");
    kit_report_print_findings(report, FAILED, "FAIL", out);
    kit_report_print_findings(report, EXCEPTED, "known", out);
    print_skips(report, out);
    kit_report_print_findings(report, WARNED, "WARN", out); // last: skips are many
    report_tell(out,
                "%s: %llu passed, %llu failed, %llu warned, %llu skipped, %llu excepted "
                "in %.1f s, seed %llu\n",
                report->counts[FAILED] ? "FAIL" : "PASS",
                (unsigned long long)report->counts[PASSED],
                (unsigned long long)report->counts[FAILED],
                (unsigned long long)report->counts[WARNED],
                (unsigned long long)report->counts[SKIPPED],
                (unsigned long long)report->counts[EXCEPTED], report->seconds,
                (unsigned long long)report->seed);
    print_replay(report, out);
}

// --- JSON ------------------------------------------------------------------------------

static json_t *kit_report_result_json(const struct result *r)
{
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I}", "check", r->check->name, "subject",
                  r->subject, "outcome", outcome_names[r->outcome], "detail", r->detail,
                  "requirement", r->check->requirement, "cases", (json_int_t)r->cases,
                  "failures", (json_int_t)r->failures);
    if (object && r->exception)
        json_object_set_new(object, "exception",
                            json_pack("{s:s, s:s}", "kind", r->exception->kind, "reason",
                                      r->exception->reason));
    return object;
}

void report_json(const struct report *report, FILE *out)
{
    json_t *results = json_array(), *counts = json_object();
    for (size_t i = 0; i < report->count; i++)
        json_array_append_new(results, kit_report_result_json(&report->results[i]));
    for (int o = 0; o < NUM_OUTCOMES; o++)
        json_object_set_new(counts, outcome_names[o],
                            json_integer((json_int_t)report->counts[o]));
    json_t *root = json_pack("{s:s, s:I, s:s, s:f, s:o, s:o}", "file", report->file, "seed",
                             (json_int_t)report->seed, "verdict",
                             report->counts[FAILED] ? "fail" : "pass", "seconds",
                             report->seconds, "counts", counts, "results", results);
    json_dumpf(root, out, JSON_INDENT(1) | JSON_ENSURE_ASCII);
    report_tell(out, "\n");
    json_decref(root);
}
