// SPDX-License-Identifier: MIT
// The cost of kernels that launches share: the time of each kernel's launches, beside the
// time of code that is baked for each launch.
#include "base/table.h"
#include "commands.h"

#include <stdio.h>
#include <string.h>

// Sums over launches. Those without baked code are counted, and not part of the sums.
struct sums {
    double folded_us, baked_us;
    json_int_t measured, not_baked, not_run, differing;
    const char *reason; // why a launch has no baked code; NULL: each has
};

static void kernel_cost_add_launch(struct sums *sums, const json_t *launch)
{
    const json_t *cost = json_object_get(launch, "cost");
    const char *reason = cost ? text_of(cost, "not_baked") : "";
    sums->not_run += !cost;
    sums->not_baked += cost && *reason;
    if (*reason)
        sums->reason = reason;
    if (!cost || *reason)
        return;
    sums->measured++;
    sums->folded_us += json_number_value(json_object_get(cost, "folded_us"));
    sums->baked_us += json_number_value(json_object_get(cost, "baked_us"));
    sums->differing += json_integer_value(json_object_get(cost, "differing")) > 0;
}

static json_t *kernel_cost_pack(const struct sums *sums)
{
    json_t *cost =
        json_pack("{s:I, s:f, s:f, s:I, s:I, s:I}", "measured", sums->measured, "folded_us",
                  sums->folded_us, "baked_us", sums->baked_us, "not_baked", sums->not_baked,
                  "not_run", sums->not_run, "differing", sums->differing);
    if (sums->measured > 0 && sums->baked_us > 0)
        json_object_set_new(cost, "ratio", json_real(sums->folded_us / sums->baked_us));
    if (sums->reason)
        json_object_set_new(cost, "reason", json_string(sums->reason));
    return cost;
}

// Packs the times of all launches in one run.
static json_t *pack_run(const struct sums *all, const double whole_us[2])
{
    json_t *run = json_pack("{s:I, s:f, s:f}", "measured", all->measured, "folded_us",
                            whole_us[0], "baked_us", whole_us[1]);
    if (whole_us[1] > 0)
        json_object_set_new(run, "ratio", json_real(whole_us[0] / whole_us[1]));
    return run;
}

void add_costs(json_t *report, const double whole_us[2])
{
    const json_t *sites = json_object_get(report, "sites");
    struct sums all = {0};
    json_t *kernel, *site;
    size_t i, k;
    json_array_foreach(json_object_get(report, "kernels"), i, kernel)
    {
        struct sums own = {0};
        json_array_foreach(sites, k, site)
        {
            if (strcmp(text_of(site, "kernel"), text_of(kernel, "kernel")) == 0)
                kernel_cost_add_launch(&own, site);
        }
        json_object_set_new(kernel, "cost", kernel_cost_pack(&own));
    }
    json_array_foreach(sites, k, site) kernel_cost_add_launch(&all, site);
    json_object_set_new(report, "cost", kernel_cost_pack(&all));
    json_object_set_new(report, "run", pack_run(&all, whole_us));
}

static void kernel_cost_set_number(json_t *row, const char *key, const json_t *cost,
                                   const char *format)
{
    const json_t *value = json_object_get(cost, key);
    char text[32];
    if (!value)
        return;
    snprintf(text, sizeof(text), format, json_number_value(value));
    json_object_set_new(row, key, json_string(text));
}

// "2 differ; 1 not run; 3 not baked: ...".
static void set_note(json_t *row, const json_t *cost)
{
    json_int_t differing = json_integer_value(json_object_get(cost, "differing"));
    json_int_t not_run = json_integer_value(json_object_get(cost, "not_run"));
    json_int_t not_baked = json_integer_value(json_object_get(cost, "not_baked"));
    char text[256] = "", *at = text, *end = text + sizeof(text);
    if (differing > 0)
        at += snprintf(at, (size_t)(end - at), "; %lld differ", (long long)differing);
    if (not_run > 0)
        at += snprintf(at, (size_t)(end - at), "; %lld not run", (long long)not_run);
    if (not_baked > 0)
        snprintf(at, (size_t)(end - at), "; %lld not baked: the code %.150s",
                 (long long)not_baked, text_of(cost, "reason"));
    json_object_set_new(row, "note", json_string(*text ? text + 2 : ""));
}

static int append_row(json_t *rows, const char *name, const json_t *cost)
{
    json_t *row = json_object();
    json_object_set_new(row, "name", json_string(name));
    json_object_set(row, "measured", json_object_get(cost, "measured"));
    kernel_cost_set_number(row, "folded_us", cost, "%.1f");
    kernel_cost_set_number(row, "baked_us", cost, "%.1f");
    kernel_cost_set_number(row, "ratio", cost, "%.3f");
    set_note(row, cost);
    return json_array_append_new(rows, row);
}

int print_costs(const json_t *report)
{
    static const struct column columns[] = {
        {"name", "kernel"},       {"measured", "launches"}, {"folded_us", "folded us"},
        {"baked_us", "baked us"}, {"ratio", "ratio"},       {"note", "note"}};
    json_t *rows = json_array(), *kernel;
    size_t i;
    json_array_foreach(json_object_get(report, "kernels"), i, kernel)
        append_row(rows, text_of(kernel, "name"), json_object_get(kernel, "cost"));
    append_row(rows, "all", json_object_get(report, "cost"));
    append_row(rows, "all in one run", json_object_get(report, "run"));
    say("\n");
    int failed = table_print(rows, columns, sizeof(columns) / sizeof(columns[0]));
    json_decref(rows);
    return failed;
}
