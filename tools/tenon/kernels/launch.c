// SPDX-License-Identifier: MIT
#include "launch.h"
#include "base/table.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <tenon/launches.h>

#define HASH_TEXT 33 // 32 digits, and a NUL

static const char *hash_text(const uint64_t hash[2], char text[HASH_TEXT])
{
    snprintf(text, HASH_TEXT, "%016llx%016llx", (unsigned long long)hash[0],
             (unsigned long long)hash[1]);
    return text;
}

// Sizes keep what one list ends with apart from what the next begins with.
static void add(struct sha256_ctx *state, const void *bytes, uint64_t size)
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
    return hash_text(hash, text);
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

static json_t *row_of(const tn_planned_launch *launch)
{
    char code[HASH_TEXT], kernel[HASH_TEXT], exact[HASH_TEXT], baked[HASH_TEXT];
    const uint64_t word = sizeof(uint32_t);
    struct sha256_ctx state;
    sha256_init(&state);
    add(&state, launch->pipeline, sizeof(launch->pipeline));
    add(&state, launch->groups, sizeof(launch->groups));
    add(&state, launch->push, launch->num_push * word);
    add(&state, launch->constants, launch->num_constants * word);
    digest_text(&state, exact);
    add(&state, launch->places, 2 * launch->num_operands * sizeof(launch->places[0]));
    digest_text(&state, baked);
    return json_pack(
        "{s:o, s:o, s:o, s:[I,I,I], s:I, s:I, s:o, s:I, s:s, s:s, s:s, s:s}", "device",
        json_text(launch->device), "step", json_text(launch->step), "name",
        json_text(launch->name), "groups", (json_int_t)launch->groups[0],
        (json_int_t)launch->groups[1], (json_int_t)launch->groups[2], "push_bytes",
        (json_int_t)(launch->num_push * word), "constant_bytes",
        (json_int_t)(launch->num_constants * word), "spec", spec_of(launch), "code_bytes",
        (json_int_t)launch->code_bytes, "code", hash_text(launch->code, code), "kernel",
        hash_text(launch->pipeline, kernel), "exact", exact, "baked", baked);
}

struct listening {
    json_t *rows;
    bool failed;
};

static void take(void *context, const tn_planned_launch *launch)
{
    struct listening *listening = context;
    listening->failed |= json_array_append_new(listening->rows, row_of(launch)) != 0;
}

// --- the backends that tell ------------------------------------------------------------

#define MAX_BACKENDS 16

// Asks every backend that tells its launches. One that cannot be loaded plans nothing.
static int listen(tn_runtime *runtime, struct listening *listening)
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
        const tn_launches *launches = table;
        if (launches->watch(host, take, listening))
            return oops_library();
    }
    return 0;
}

int launches_plan(struct session *session, json_t **out)
{
    struct listening listening = {.rows = json_array()};
    int failed = listening.rows ? listen(session->runtime, &listening) : oops_memory();
    if (!failed)
        failed = session_plan(session);
    if (!failed && listening.failed)
        failed = oops_memory();
    if (failed)
        json_decref(listening.rows);
    else
        *out = listening.rows;
    return failed;
}
