// SPDX-License-Identifier: MIT
#include "launch.h"
#include "base/table.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>
#include <tenon/launches.h>

#define HASH_TEXT 33 // 32 digits, and a NUL

static const char *kernels_launch_hash_text(const uint64_t hash[2], char text[HASH_TEXT])
{
    snprintf(text, HASH_TEXT, "%016llx%016llx", (unsigned long long)hash[0],
             (unsigned long long)hash[1]);
    return text;
}

// Hashes the size, too, so that the end of a list differs from the beginning of the next.
static void kernels_launch_add(struct sha256_ctx *state, const void *bytes, uint64_t size)
{
    sha256_update(state, sizeof(size), (const uint8_t *)&size);
    if (size > 0)
        sha256_update(state, size, bytes);
}

// The hash of what was added so far; more may be added.
static const char *digest_text(const struct sha256_ctx *state, char text[HASH_TEXT])
{
    struct sha256_ctx copy = *state;
    uint64_t hash[2];
    sha256_digest(&copy, sizeof(hash), (uint8_t *)hash);
    return kernels_launch_hash_text(hash, text);
}

static json_t *spec_of(const tn_planned_launch *launch)
{
    json_t *spec = json_object();
    char id[16];
    for (uint32_t i = 0; i < launch->num_spec; i++) {
        snprintf(id, sizeof(id), "%u", launch->spec[2 * i]);
        json_object_set_new(spec, id, json_integer(launch->spec[2 * i + 1]));
    }
    return spec;
}

static json_t *kernels_launch_row_of(const tn_planned_launch *launch)
{
    char code[HASH_TEXT], kernel[HASH_TEXT], exact[HASH_TEXT], baked[HASH_TEXT];
    const uint64_t word = sizeof(uint32_t);
    struct sha256_ctx state;
    sha256_init(&state);
    kernels_launch_add(&state, launch->pipeline, sizeof(launch->pipeline));
    kernels_launch_add(&state, launch->groups, sizeof(launch->groups));
    kernels_launch_add(&state, launch->push, launch->num_push * word);
    kernels_launch_add(&state, launch->constants, launch->num_constants * word);
    digest_text(&state, exact);
    kernels_launch_add(&state, launch->ranges,
                       2 * launch->num_operands * sizeof(launch->ranges[0]));
    digest_text(&state, baked);
    return json_pack(
        "{s:o, s:o, s:o, s:[I,I,I], s:I, s:I, s:o, s:I, s:s, s:s, s:s, s:s}", "device",
        json_text(launch->device), "step", json_text(launch->step), "name",
        json_text(launch->name), "groups", (json_int_t)launch->groups[0],
        (json_int_t)launch->groups[1], (json_int_t)launch->groups[2], "push_bytes",
        (json_int_t)(launch->num_push * word), "constant_bytes",
        (json_int_t)(launch->num_constants * word), "spec", spec_of(launch), "code_bytes",
        (json_int_t)launch->code_bytes, "code",
        kernels_launch_hash_text(launch->code, code), "kernel",
        kernels_launch_hash_text(launch->pipeline, kernel), "exact", exact, "baked", baked);
}

struct listening {
    json_t *rows;
    json_t *numbers;    // by "exact": number of a measurement, from 1
    json_t *costs;      // measured costs by number - 1; null: not measured
    double whole_us[2]; // of runs of all launches: as they are, with baked code
    bool failed;
};

static void kernels_launch_take(void *context, const tn_planned_launch *launch)
{
    struct listening *listening = context;
    listening->failed |=
        json_array_append_new(listening->rows, kernels_launch_row_of(launch)) != 0;
}

// --- measuring -------------------------------------------------------------------------

// Gives a launch the number of its measurement: launches that differ only in the positions
// of their operands share one. kernels_launch_take() has just got the same launch.
static uint64_t kernels_launch_want(void *context, const tn_planned_launch *launch)
{
    struct listening *listening = context;
    size_t count = json_array_size(listening->rows);
    const char *exact = text_of(json_array_get(listening->rows, count - 1), "exact");
    (void)launch;
    const json_t *seen = json_object_get(listening->numbers, exact);
    if (seen)
        return (uint64_t)json_integer_value(seen);
    uint64_t number = json_array_size(listening->costs) + 1;
    listening->failed |=
        json_array_append_new(listening->costs, json_null()) ||
        json_object_set_new(listening->numbers, exact, json_integer((json_int_t)number));
    return number;
}

static void take_cost(void *context, uint64_t number, const tn_launch_cost *cost)
{
    struct listening *listening = context;
    if (number == 0) {
        listening->whole_us[0] += cost->folded_ns * 1e-3;
        listening->whole_us[1] += cost->baked_ns * 1e-3;
        return;
    }
    json_t *row =
        json_pack("{s:f, s:f, s:I, s:I}", "folded_us", cost->folded_ns * 1e-3, "baked_us",
                  cost->baked_ns * 1e-3, "baked_bytes", (json_int_t)cost->baked_bytes,
                  "differing", (json_int_t)cost->differing);
    if (cost->reason)
        json_object_set_new(row, "not_baked", json_text(cost->reason));
    listening->failed |= json_array_set_new(listening->costs, number - 1, row) != 0;
}

// Sets the cost of each launch to its measurement, which several launches may share.
static void share_costs(const struct listening *listening)
{
    json_t *row;
    size_t i;
    json_array_foreach(listening->rows, i, row)
    {
        const json_t *number = json_object_get(listening->numbers, text_of(row, "exact"));
        size_t at = (size_t)json_integer_value(number);
        json_t *cost = at > 0 ? json_array_get(listening->costs, at - 1) : NULL;
        if (cost)
            json_object_set(row, "cost", cost);
    }
}

// --- backends with the interface of launches --------------------------------------------

#define MAX_BACKENDS 16

// Makes a backend report its launches to `listening`; NULL: it stops.
static int kernels_launch_ask(const char *plugin, const tn_launches *launches,
                              const tn_host *host, struct listening *listening)
{
    if (!listening)
        return launches->watch(host, NULL, NULL) ? oops_library() : 0;
    if (launches->watch(host, kernels_launch_take, listening))
        return oops_library();
    if (!listening->costs)
        return 0;
    if (!TN_HAS(launches, measure))
        return oops("%s tells its launches, and measures none", plugin);
    return launches->measure(host, kernels_launch_want, take_cost, listening)
               ? oops_library()
               : 0;
}

// Asks every backend that can report launches. One that cannot be loaded plans nothing.
static int kernels_launch_listen(tn_runtime *runtime, struct listening *listening)
{
    tn_provider found[MAX_BACKENDS] = {{.struct_size = sizeof(found[0])}};
    uint64_t count = MAX_BACKENDS;
    if (tn_providers(runtime, TN_IFACE_LAUNCHES, found, &count))
        return oops_library();
    for (uint64_t i = 0; i < count && i < MAX_BACKENDS; i++) {
        const void *table;
        const tn_host *host;
        if (tn_provider_load(runtime, TN_IFACE_LAUNCHES, found[i].plugin, &table, &host))
            continue;
        int failed = kernels_launch_ask(found[i].plugin, table, host, listening);
        if (failed)
            return failed;
    }
    return 0;
}

static int kernels_launch_evaluate(struct session *session)
{
    return tn_eval_n(session->scope, session->results.items, session->results.count)
               ? oops_scope(session->scope)
               : 0;
}

int launches_plan(struct session *session, bool measures, json_t **out, double whole_us[2])
{
    struct listening listening = {.rows = json_array()};
    if (measures) {
        listening.numbers = json_object();
        listening.costs = json_array();
    }
    bool has_all = listening.rows && (!measures || (listening.numbers && listening.costs));
    int failed =
        has_all ? kernels_launch_listen(session->runtime, &listening) : oops_memory();
    if (!failed)
        failed = measures ? kernels_launch_evaluate(session) : session_plan(session);
    if (!failed && listening.failed)
        failed = oops_memory();
    if (!failed && measures)
        share_costs(&listening);
    if (!failed)
        failed = kernels_launch_listen(session->runtime, NULL);
    json_decref(listening.numbers);
    json_decref(listening.costs);
    if (failed)
        json_decref(listening.rows);
    else
        *out = listening.rows;
    memcpy(whole_us, listening.whole_us, sizeof(listening.whole_us));
    return failed;
}
