// SPDX-License-Identifier: MIT
// "@FILE:SIGNATURE" instead of an expression: a graph that was saved, applied to the named
// values.
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Splits "@FILE:SIGNATURE". A file whose own name has a colon comes first.
static int lang_file_split(const char *item, char **out_path, char **out_signature)
{
    char *path = strdup(item + 1);
    char *colon = path && access(path, F_OK) != 0 ? strrchr(path, ':') : NULL;
    if (!path)
        return oops_memory();
    if (colon)
        *colon = 0;
    *out_path = path;
    *out_signature = colon ? colon + 1 : NULL;
    return 0;
}

static int no_signature(const tn_graph_file *file, const char *path, const char *name)
{
    char list[256] = "";
    size_t at = 0;
    for (uint64_t i = 0; i < file->num_signatures && at < sizeof(list); i++)
        at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", at ? ", " : "",
                               file->signatures[i]->name);
    if (name)
        return oops("%s has no signature '%s' (it has %s)", path, name, list);
    return misuse("%s has several signatures: write @%s:NAME, with one of %s", path, path,
                  list);
}

static int lang_file_choose(struct session *session, const char *path, const char *name)
{
    const tn_graph_file *file = session->file;
    if (!name && file->num_signatures == 1)
        session->signature = file->signatures[0];
    for (uint64_t i = 0; name && i < file->num_signatures; i++)
        if (strcmp(file->signatures[i]->name, name) == 0)
            session->signature = file->signatures[i];
    return session->signature ? 0 : no_signature(file, path, name);
}

int session_load(struct session *session, const char *item)
{
    static const tn_graph_load_options map = {.struct_size = sizeof(map),
                                              .flags = TN_FILE_MAP};
    char *path = NULL, *name = NULL;
    int failed = lang_file_split(item, &path, &name);
    if (!failed && tn_graph_load(session->runtime, path, &map, &session->file))
        failed = oops_library();
    if (!failed)
        failed = lang_file_choose(session, path, name);
    free(path);
    return failed;
}

// --- applying ----------------------------------------------------------------------------

static int list_inputs(const struct session *session, const char *what, const char *name)
{
    const tn_graph_signature *s = session->signature;
    char list[256] = "";
    size_t at = 0;
    for (uint64_t i = 0; i < s->num_inputs && at < sizeof(list); i++)
        at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", at ? ", " : "",
                               s->input_names[i]);
    return misuse("%s '%s': signature '%s' takes %s", what, name, s->name,
                  *list ? list : "no values");
}

static int check_names(const struct session *session)
{
    const tn_graph_signature *s = session->signature;
    for (size_t i = 0; i < session->num_inputs; i++) {
        const char *name = session->names.items[i].name;
        uint64_t k = 0;
        while (k < s->num_inputs && strcmp(s->input_names[k], name) != 0)
            k++;
        if (k == s->num_inputs)
            return list_inputs(session, "unknown value", name);
    }
    return 0;
}

// Makes a stand-in for a value that is not given.
static tn_array *lang_file_stand_in(const struct session *session, const tn_type *type,
                                    const tn_shape *shape, const char *name)
{
    tn_ints extents = {.count = (uint32_t)shape->rank, .given = 1};
    memcpy(extents.value, shape->extent, sizeof(extents.value));
    tn_array *made = tn_op(session->scope, "base.full", NULL, 0,
                           tn_attrs("shape", &extents, "dtype", (int64_t)type->dtype));
    return tn_name(session->scope, made, name);
}

// Zeros in memory.
static int make_zeros(const struct session *session, const tn_type *type,
                      const tn_shape *shape, tn_array **out)
{
    uint64_t elements, bytes;
    char text[SHAPE_TEXT];
    if (!type_bytes(type->dtype, shape, &elements, &bytes))
        return oops("%s of %s has too many bytes", dtype_name(type->dtype),
                    shape_text(shape, text));
    void *zeros = calloc(bytes + 1, 1);
    if (!zeros)
        return oops_memory();
    *out = tn_from_data(session->scope, type->dtype, shape, zeros);
    free(zeros);
    return 0;
}

// Gives the named value in the dtype of the signature: literals have a dtype of their own.
static int take_input(struct session *session, uint64_t i, tn_array **out)
{
    const tn_graph_signature *s = session->signature;
    const tn_type *wanted = &s->graph->inputs[i];
    tn_array *given = lang_names_find(&session->names, s->input_names[i]);
    char got[SHAPE_TEXT], expected[SHAPE_TEXT];
    tn_shape shape = {.rank = wanted->rank}, own = {0};
    memcpy(shape.extent, wanted->extent, sizeof(shape.extent));
    int failed = 0;
    if (!given && session->warms) {
        failed = make_zeros(session, wanted, &shape, &given);
    } else if (!given && session->draws) {
        given = lang_file_stand_in(session, wanted, &shape, s->input_names[i]);
    } else if (!given) {
        return list_inputs(session, "missing value", s->input_names[i]);
    }
    if (!given)
        return failed ? failed : oops_scope(session->scope);
    own.rank = tn_array_type(given)->rank;
    memcpy(own.extent, tn_array_type(given)->extent, sizeof(own.extent));
    if (strcmp(shape_text(&own, got), shape_text(&shape, expected)) != 0)
        return oops("%s has shape %s, signature '%s' takes %s", s->input_names[i], got,
                    s->name, expected);
    *out = tn_array_type(given)->dtype == wanted->dtype
               ? given
               : tn_op(session->scope, "base.astype", TN_IN(given),
                       tn_attrs("dtype", (int64_t)wanted->dtype));
    return *out ? 0 : oops_scope(session->scope);
}

int session_apply(struct session *session)
{
    const tn_graph_signature *s = session->signature;
    struct lang_results *results = &session->results;
    tn_array **inputs = calloc(s->num_inputs + 1, sizeof(*inputs));
    results->items = calloc(s->graph->num_outputs + 1, sizeof(*results->items));
    int failed = inputs && results->items ? check_names(session) : oops_memory();
    for (uint64_t i = 0; !failed && i < s->num_inputs; i++)
        failed = take_input(session, i, &inputs[i]);
    if (!failed && tn_graph_body(session->scope, inputs, s->num_inputs, results->items,
                                 s->graph->num_outputs, (void *)(uintptr_t)s))
        failed = oops_scope(session->scope);
    results->count = s->graph->num_outputs;
    free(inputs);
    return failed;
}
