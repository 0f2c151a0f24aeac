// SPDX-License-Identifier: MIT
// tenon kernels: which kernels a graph needs, and which of its launches share one.
#include "commands.h"
#include "base/table.h"
#include "launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- counting --------------------------------------------------------------------------

static json_int_t kernels_command_number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

// Counts the values of `key` among the rows whose `where` is `is` (where NULL: all rows):
// an object of numbers by value.
static json_t *kernels_command_tally(const json_t *rows, const char *key, const char *where,
                                     const char *is)
{
    json_t *found = json_object(), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        const char *value = text_of(row, key);
        if (!where || strcmp(text_of(row, where), is) == 0)
            json_object_set_new(found, value,
                                json_integer(kernels_command_number_of(found, value) + 1));
    }
    return found;
}

static json_int_t count_of(const json_t *rows, const char *key, const char *where,
                           const char *is)
{
    json_t *found = kernels_command_tally(rows, key, where, is);
    json_int_t count = (json_int_t)json_object_size(found);
    json_decref(found);
    return count;
}

// Bytes of code of the rows; rows with the same value of `key` share code and count once.
static json_int_t kernels_command_bytes_of(const json_t *rows, const char *key)
{
    json_t *seen = json_object(), *row;
    json_int_t bytes = 0;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        const char *value = text_of(row, key);
        if (!json_object_get(seen, value))
            bytes += kernels_command_number_of(row, "code_bytes");
        json_object_set_new(seen, value, json_true());
    }
    json_decref(seen);
    return bytes;
}

// One row for each kernel of the device, in the order of their first launches: the members
// that its launches share, and their number.
static json_t *kernels_of(const json_t *launches)
{
    static const char *const shared[] = {"name", "device",     "push_bytes",
                                         "spec", "code_bytes", "code"};
    json_t *kernels = json_array(),
           *sites = kernels_command_tally(launches, "kernel", NULL, NULL), *row;
    size_t i;
    json_array_foreach(launches, i, row)
    {
        const char *id = text_of(row, "kernel");
        if (!json_object_get(sites, id))
            continue;
        json_t *kernel = json_object();
        json_object_set_new(kernel, "kernel", json_string(id));
        for (size_t k = 0; k < COUNT(shared); k++)
            json_object_set(kernel, shared[k], json_object_get(row, shared[k]));
        json_object_set(kernel, "launches", json_object_get(sites, id));
        json_object_set_new(kernel, "exact",
                            json_integer(count_of(launches, "exact", "kernel", id)));
        json_array_append_new(kernels, kernel);
        json_object_del(sites, id);
    }
    json_decref(sites);
    return kernels;
}

static json_t *report_of(json_t *launches)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:{s:I, s:I, s:I, s:I}, s:o, s:O}",
                     "launches", (json_int_t)json_array_size(launches), "baked",
                     count_of(launches, "baked", NULL, NULL), "exact",
                     count_of(launches, "exact", NULL, NULL), "folded",
                     count_of(launches, "kernel", NULL, NULL), "modules",
                     count_of(launches, "code", NULL, NULL), "code_bytes", "baked",
                     kernels_command_bytes_of(launches, "baked"), "exact",
                     kernels_command_bytes_of(launches, "exact"), "folded",
                     kernels_command_bytes_of(launches, "kernel"), "modules",
                     kernels_command_bytes_of(launches, "code"), "kernels",
                     kernels_of(launches), "sites", launches);
}

// --- printing --------------------------------------------------------------------------

// "0=128 1=4", or "-".
static json_t *spec_text(const json_t *spec)
{
    char text[256] = "-";
    size_t at = 0;
    const char *id;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)spec, id, value)
    {
        if (at < sizeof(text))
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s=%lld", at ? " " : "",
                                   id, (long long)json_integer_value(value));
    }
    return json_string(text);
}

static void for_people(json_t *row)
{
    char text[96];
    const json_t *groups = json_object_get(row, "groups");
    json_object_set_new(row, "spec", spec_text(json_object_get(row, "spec")));
    json_object_set_new(row, "size",
                        json_string(size_text(
                            (uint64_t)kernels_command_number_of(row, "code_bytes"), text)));
    if (!groups)
        return;
    snprintf(text, sizeof(text), "%lldx%lldx%lld",
             (long long)json_integer_value(json_array_get(groups, 0)),
             (long long)json_integer_value(json_array_get(groups, 1)),
             (long long)json_integer_value(json_array_get(groups, 2)));
    json_object_set_new(row, "groups", json_string(text));
}

static int by_code(const void *a, const void *b)
{
    json_t *const *x = a, *const *y = b;
    int order = strcmp(text_of(*x, "name"), text_of(*y, "name"));
    return order ? order : strcmp(text_of(*x, "code"), text_of(*y, "code"));
}

// Kernels of one code stand side by side.
static json_t *kernels_command_sorted(const json_t *rows)
{
    size_t count = json_array_size(rows);
    json_t **list = calloc(count + 1, sizeof(json_t *)), *out = json_array();
    for (size_t i = 0; list && i < count; i++)
        list[i] = json_array_get(rows, i);
    if (list && count > 0)
        qsort(list, count, sizeof(json_t *), by_code);
    for (size_t i = 0; list && i < count; i++)
        json_array_append(out, list[i]);
    free(list);
    return out;
}

static int kernels_command_print_table(json_t *rows, const struct column *columns,
                                       size_t num_columns)
{
    json_t *row;
    size_t i;
    json_array_foreach(rows, i, row) for_people(row);
    int failed = table_print(rows, columns, num_columns);
    say("\n");
    return failed;
}

static void print_count(const json_t *report, const char *key, const char *what)
{
    char size[SIZE_TEXT];
    json_int_t bytes =
        kernels_command_number_of(json_object_get(report, "code_bytes"), key);
    say("%6lld  %s, %s\n", (long long)kernels_command_number_of(report, key), what,
        size_text((uint64_t)bytes, size));
}

static int print_report(json_t *report, bool lists_launches)
{
    static const struct column of_kernels[] = {
        {"name", "kernel"},           {"launches", "launches"}, {"exact", "exact"},
        {"push_bytes", "push bytes"}, {"size", "code"},         {"spec", "constants"}};
    static const struct column of_launches[] = {
        {"step", "step"},         {"name", "kernel"},           {"device", "device"},
        {"groups", "workgroups"}, {"push_bytes", "push bytes"}, {"spec", "constants"}};
    json_t *kernels = kernels_command_sorted(json_object_get(report, "kernels"));
    int failed = 0;
    if (lists_launches)
        failed = kernels_command_print_table(json_object_get(report, "sites"), of_launches,
                                             COUNT(of_launches));
    if (!failed)
        failed = kernels_command_print_table(kernels, of_kernels, COUNT(of_kernels));
    json_decref(kernels);
    if (failed)
        return failed;
    say("%6lld  launches\n", (long long)kernels_command_number_of(report, "launches"));
    print_count(report, "baked", "kernels with constants, extents and offsets in the code");
    print_count(report, "exact", "of these differ in constants or extents");
    print_count(report, "folded", "kernels are compiled");
    print_count(report, "modules", "modules of code before specialisation");
    return 0;
}

int cmd_kernels(const struct command *self, int argc, char **argv)
{
    bool json = false, lists_launches = false, measures = false;
    const struct option options[] = {
        {"launches", 'l', NULL, "list each launch too", NULL, &lists_launches},
        {"measure", 'm', NULL, "run the graph, and measure each launch", NULL, &measures},
        {"json", 0, NULL, "print JSON", NULL, &json}};
    struct args args;
    struct session session;
    json_t *launches = NULL;
    double whole_us[2];
    int failed = args_parse(self, options, COUNT(options), 1, -1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    failed = session_open_warm(&session, args.items, args.count);
    if (failed)
        return failed;
    failed = launches_plan(&session, measures, &launches, whole_us);
    session_close(&session);
    if (failed)
        return failed;
    if (json_array_size(launches) == 0)
        failed = oops("no launch was told: backends that tell them are vulkan and "
                      "vulkan-jit (TENON_BACKEND), and something has to be computed");
    json_t *report = failed ? NULL : report_of(launches);
    if (!failed && !report)
        failed = oops_memory();
    if (!failed && measures)
        add_costs(report, whole_us);
    if (!failed)
        failed = json ? json_print(report) : print_report(report, lists_launches);
    if (!failed && measures && !json)
        failed = print_costs(report);
    json_decref(report);
    json_decref(launches);
    return failed;
}
