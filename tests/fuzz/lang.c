// SPDX-License-Identifier: MIT
// The language of `tenon eval`: parsed, and its graph built with the installed operators,
// whose rules see hostile shapes and attributes. Nothing is computed.
#include "fuzz.h"
#include "lang/lang.h"

enum { RUNTIME_LASTS = 2000 }; // inputs: a runtime keeps what it has read

static tn_runtime *runtime;
static unsigned used;

static void fresh_runtime(void)
{
    static const char *const variables[] = {"TENON_LOG=off", "TENON_BACKEND=null", NULL};
    if (runtime && used++ < RUNTIME_LASTS)
        return;
    tn_runtime_close(runtime);
    used = 0;
    const tn_runtime_options options = {.struct_size = sizeof(options),
                                        .variables = variables};
    FUZZ_CHECK(tn_runtime_open(&options, &runtime) == TN_OK, "%s", tn_last_error());
}

// Inputs x (2, 3), i (4) of integers and b (2, 3) of bool.
static void bind(tn_scope *scope, struct lang_names *names)
{
    static const char data[64];
    lang_names_set(names, "x", tn_from_data(scope, TN_F32, TN_SHAPE(2, 3), data));
    lang_names_set(names, "i", tn_from_data(scope, TN_I64, TN_SHAPE(4), data));
    lang_names_set(names, "b", tn_from_data(scope, TN_BOOL, TN_SHAPE(2, 3), data));
}

static void build(const struct lang_tree *tree)
{
    struct lang_names names = {0};
    struct lang_results results = {0};
    fresh_runtime();
    tn_scope *scope = tn_scope_open(runtime);
    FUZZ_CHECK(scope, "out of memory");
    bind(scope, &names);
    if (lang_eval(tree, scope, &names, &results))
        FUZZ_CHECK(oops_text()[0] && !results.items, "a failure has a text and no results");
    for (size_t i = 0; i < results.count; i++)
        FUZZ_CHECK(results.items[i] && tn_array_type(results.items[i])->rank <= TN_MAX_RANK,
                   "result %zu", i);
    free(results.items);
    lang_names_finish(&names);
    tn_scope_close(scope);
}

// Children come before their users: evaluation is one loop.
static void check_order(const struct lang_tree *tree)
{
    for (uint32_t i = 0; i < tree->num_nodes; i++)
        for (uint32_t k = 0; k < tree->nodes[i].count; k++)
            FUZZ_CHECK(tree->children[tree->nodes[i].first + k] < i, "node %u", i);
}

void fuzz_one(const uint8_t *data, size_t size)
{
    struct lang_tree tree = {0};
    char *text = fuzz_text(data, size);
    forget_oops();
    if (lang_parse(text, &tree)) {
        FUZZ_CHECK(oops_text()[0], "a failure has a text");
    } else {
        check_order(&tree);
        build(&tree);
        lang_tree_finish(&tree);
    }
    free(text);
}
