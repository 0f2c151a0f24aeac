// SPDX-License-Identifier: MIT
// tenon op: one operator's inputs, attributes, meaning, rules and kernels.
#include "op.h"
#include "commands.h"
#include "plugins/find.h"
#include "base/table.h"
#include "describe.h"
#include "described.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char details[] =
    "  tenon op matmul\n"
    "  tenon op nn.conv2d --json\n"
    "  tenon why op nn.conv2d      which kernels could run, and where it comes from\n";

// --- looking up ------------------------------------------------------------------------

// True when `name` ("add", "base.add", "base.add/1") means `id` ("base.add/1").
static bool ops_op_is_named(const char *id, const char *name)
{
    size_t whole = strlen(id), bare = strcspn(id, "/"), length = strlen(name);
    const char *dot = strchr(id, '.');
    if ((length == whole || length == bare) && strncmp(id, name, length) == 0)
        return true;
    return dot && bare - (size_t)(dot + 1 - id) == length &&
           strncmp(dot + 1, name, length) == 0;
}

// Fails when a plugin that is not in use provides the operator.
static int provided_by_unused(const tn_runtime *runtime, const char *name)
{
    for (uint64_t i = 0, n = tn_plugin_count(runtime); i < n; i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        if (tn_plugin_get(runtime, i, &info))
            continue;
        for (const char *const *id = info.primitives; id && *id; id++)
            if (ops_op_is_named(*id, name) && info.reason && info.reason[0])
                return oops("no operator '%s': plugin %s provides it, but is %s: %s", name,
                            info.id, plugin_state_name(info.state), info.reason);
    }
    return 0;
}

// Fails with the operators whose names have `part` in them; 0 where there are none.
static int suggest_whole(const char *const *ids, const char *part)
{
    enum { SHORTEST = 3, MOST = 6 };
    char list[MOST * 80] = "";
    size_t used = 0, found = 0;
    for (; ids && *ids && strlen(part) >= SHORTEST; ids++) {
        size_t bare = strcspn(*ids, "/");
        if (!memmem(*ids, bare, part, strlen(part)) || found++ >= MOST)
            continue;
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s'%.*s'",
                                 used ? ", " : "", bare < 72 ? (int)bare : 72, *ids);
    }
    if (found == 0)
        return 0;
    return oops("no operator '%s'; did you mean %s%s%s?", part, found > 1 ? "one of " : "",
                list, found > MOST ? ", ..." : "");
}

// Fails with the nearest name; pack and revision are left out of the comparison.
static int ops_op_suggest(tn_runtime *runtime, const char *name)
{
    const char *const *ids = tn_primitive_names(runtime);
    size_t count = 0;
    while (ids && ids[count])
        count++;
    char(*bare)[128] = calloc(count + 1, sizeof(*bare));
    const char **names = calloc(count + 1, sizeof(*names));
    const char *near = NULL;
    for (size_t i = 0; bare && names && i < count; i++) {
        const char *dot = strchr(ids[i], '.');
        const char *start = strchr(name, '.') || !dot ? ids[i] : dot + 1;
        snprintf(bare[i], sizeof(*bare), "%.*s", (int)strcspn(start, "/"), start);
        names[i] = bare[i];
    }
    if (bare && names)
        near = nearest(name, names);
    if (near)
        oops("no operator '%s'; did you mean '%s'?", name, near);
    else if (count == 0 && !tn_primitive_find(runtime, name))
        oops("%s", tn_last_error()); // tells which folders were searched
    else
        oops("no operator '%s'; 'tenon ops' lists them", name);
    free(names);
    free(bare);
    return EXIT_OOPS;
}

int no_primitive(tn_runtime *runtime, const char *name)
{
    int failed = provided_by_unused(runtime, name);
    if (!failed)
        failed = suggest_whole(tn_primitive_names(runtime), name);
    return failed ? failed : ops_op_suggest(runtime, name);
}

// --- collecting ------------------------------------------------------------------------

// The dtypes that an input may have.
static json_t *dtypes_json(const tn_input_info *input)
{
    json_t *list = json_array();
    uint32_t set = input->dtypes ? input->dtypes : TN_FIRST_DTYPES;
    for (tn_dtype dtype = TN_DTYPE_NONE + 1; dtype < TN_NUM_DTYPES; dtype++)
        if (tn_dtype_in(dtype, set))
            json_array_append_new(list, json_string(dtype_name(dtype)));
    return list;
}

static json_t *inputs_json(const tn_primitive *primitive)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < primitive->num_inputs; i++) {
        const tn_input_info *input = &primitive->inputs[i];
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:o, s:b, s:b, s:b}", "name", input->name, "doc",
                            input->doc ? input->doc : "", "dtypes", dtypes_json(input),
                            "optional", (input->flags & TN_INPUT_OPTIONAL) != 0, "variadic",
                            (input->flags & TN_INPUT_VARIADIC) != 0, "constant",
                            (input->flags & TN_INPUT_CONSTANT) != 0));
    }
    return list;
}

static json_t *outputs_json(const tn_primitive *primitive)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < num_outputs(primitive); i++) {
        tn_output_info output = output_info(primitive, i);
        json_array_append_new(list, json_pack("{s:s, s:s, s:b}", "name", output.name, "doc",
                                              output.doc ? output.doc : "", "variadic",
                                              counts_outputs(primitive)));
    }
    return list;
}

static json_t *attrs_json(const tn_primitive *primitive)
{
    json_t *list = json_array();
    char text[64];
    for (uint32_t i = 0; i < primitive->attrs.num_fields; i++) {
        tn_attr_field field = attr_field(&primitive->attrs, i);
        json_t *attr = json_pack("{s:s, s:s, s:s, s:s}", "name", field.name, "kind",
                                 attr_kind_name(&field), "default",
                                 attr_default(&field, text, sizeof(text)), "doc",
                                 field.doc ? field.doc : "");
        if (field.kind == TN_ATTR_CHOICE)
            json_object_set_new(attr, "choices", json_strings(field.choices));
        json_array_append_new(list, attr);
    }
    return list;
}

static json_t *rules_json(const tn_primitive *p)
{
    const struct {
        const char *name;
        bool present;
    } rules[] = {
        {"expr", p->expr},   {"decompose", p->decompose}, {"reference", p->reference},
        {"infer", p->infer}, {"view", p->view},           {"vjp", p->vjp},
        {"jvp", p->jvp},     {"vmap", p->vmap},           {"run", TN_HAS(p, run)},
    };
    json_t *list = json_array();
    for (size_t i = 0; i < COUNT(rules); i++)
        if (rules[i].present)
            json_array_append_new(list, json_string(rules[i].name));
    return list;
}

// Rules that the core derives from others, as core/transform does.
static json_t *derived_json(const tn_primitive *p)
{
    bool has_meaning = p->expr || p->decompose;
    const struct {
        const char *name;
        bool derived;
    } rules[] = {
        {"vjp", !p->vjp && has_meaning},
        {"jvp", !p->jvp && (has_meaning || p->vjp)},
        {"vmap", !p->vmap && has_meaning},
    };
    json_t *list = json_array();
    for (size_t i = 0; i < COUNT(rules); i++)
        if (rules[i].derived && p->num_inputs > 0)
            json_array_append_new(list, json_string(rules[i].name));
    return list;
}

// Primitives that a device may compute together with this one (tn_pair_rule).
static json_t *pair_rules_json(const tn_primitive *p)
{
    json_t *list = json_array();
    uint32_t count = TN_HAS(p, pair_rules) ? p->num_pair_rules : 0;
    for (uint32_t i = 0; i < count; i++) {
        const tn_pair_rule *n =
            (const void *)((const char *)p->pair_rules + (size_t)i * p->pair_rule_size);
        json_array_append_new(list, json_string(n->primitive));
    }
    return list;
}

// Kernels of every usable plugin, from manifests, which list "primitive family name".
static json_t *kernels_json(const tn_runtime *runtime, const char *id)
{
    json_t *list = json_array();
    size_t length = strlen(id);
    for (uint64_t i = 0, n = tn_plugin_count(runtime); i < n; i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        if (tn_plugin_get(runtime, i, &info) ||
            (info.state != TN_PLUGIN_FOUND && info.state != TN_PLUGIN_LOADED))
            continue;
        for (const char *const *k = info.kernels; k && *k; k++) {
            if (strncmp(*k, id, length) != 0 || (*k)[length] != ' ')
                continue;
            const char *family = *k + length + 1, *name = strchr(family, ' ');
            if (name)
                json_array_append_new(list, json_pack("{s:s#, s:s, s:s}", "family", family,
                                                      (int)(name - family), "name",
                                                      name + 1, "plugin", info.id));
        }
    }
    return list;
}

// The plugin in use whose manifest lists the operator.
static const char *ops_op_provider(const tn_runtime *runtime, const char *primitive)
{
    for (uint64_t i = 0, n = tn_plugin_count(runtime); i < n; i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        if (tn_plugin_get(runtime, i, &info) || !plugin_is_in_use(&info))
            continue;
        for (const char *const *id = info.primitives; id && *id; id++)
            if (strcmp(*id, primitive) == 0)
                return info.id;
    }
    return "";
}

json_t *op_json(const tn_runtime *runtime, const tn_primitive *primitive)
{
    char *call = signature(primitive);
    json_t *all = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "id",
        primitive->id, "doc", primitive->doc ? primitive->doc : "", "plugin",
        ops_op_provider(runtime, primitive->id), "signature", call ? call : "", "expr",
        primitive->expr ? primitive->expr : "", "effects",
        primitive->effects ? primitive->effects : "", "inputs", inputs_json(primitive),
        "outputs", outputs_json(primitive), "attributes", attrs_json(primitive), "rules",
        rules_json(primitive), "derived", derived_json(primitive), "pair_rules",
        pair_rules_json(primitive), "kernels", kernels_json(runtime, primitive->id));
    free(call);
    return all;
}

// --- printing --------------------------------------------------------------------------

static int print_section(const json_t *all, const char *key, const char *title,
                         const struct column *columns, size_t num_columns)
{
    const json_t *rows = json_object_get(all, key);
    if (!json_array_size(rows))
        return 0;
    say("\n%s\n", title);
    return table_print(rows, columns, num_columns);
}

static void ops_op_print_list(const char *title, const json_t *names)
{
    size_t i;
    json_t *name;
    if (json_array_size(names) == 0)
        return;
    say("%s", title);
    json_array_foreach(names, i, name) say("%s%s", i ? ", " : "", json_string_value(name));
    say("\n");
}

static bool runs_on_host(const json_t *all)
{
    const json_t *rules = json_object_get(all, "rules");
    bool found = false;
    for (size_t i = 0; i < json_array_size(rules) && !found; i++)
        found = strcmp(json_string_value(json_array_get(rules, i)), "run") == 0;
    return found;
}

static int print_op(const json_t *all)
{
    static const struct column documented[] = {{"name", "name"}, {"doc", "meaning"}};
    static const struct column attrs[] = {
        {"name", "name"}, {"kind", "kind"}, {"default", "default"}, {"doc", "meaning"}};
    static const struct column kernels[] = {
        {"family", "kernel family"}, {"name", "kernel"}, {"plugin", "plugin"}};
    say("%s\n\n%s\n\nfrom     %s\n", text_of(all, "signature"), text_of(all, "doc"),
        text_of(all, "plugin"));
    if (text_of(all, "expr")[0])
        say("is       %s\n", text_of(all, "expr"));
    if (text_of(all, "effects")[0])
        say("effects  %s, one after the other\n", text_of(all, "effects"));
    ops_op_print_list("rules    ", json_object_get(all, "rules"));
    ops_op_print_list("derived  ", json_object_get(all, "derived"));
    ops_op_print_list("takes in ", json_object_get(all, "pair_rules"));
    int failed = print_section(all, "inputs", "Inputs", documented, COUNT(documented));
    if (!failed)
        failed = print_section(all, "outputs", "Outputs", documented, COUNT(documented));
    if (!failed)
        failed = print_section(all, "attributes", "Attributes", attrs, COUNT(attrs));
    if (!failed)
        failed = print_section(all, "kernels", "Kernels", kernels, COUNT(kernels));
    if (!failed && !json_array_size(json_object_get(all, "kernels")))
        say("\nNo kernels: %s.\n",
            text_of(all, "expr")[0] ? "every backend runs its expression"
            : runs_on_host(all)     ? "the host runs it between the steps of devices"
                                    : "its reference or decomposition runs");
    return failed;
}

static int find_op(struct described *described, tn_runtime *runtime, const char *name,
                   const tn_primitive **out_primitive)
{
    const char *id = described_id(runtime, name);
    if (!id) {
        const tn_primitive *found = tn_primitive_find(runtime, name);
        id = found ? found->id : NULL;
    }
    return id ? described_find(described, id, out_primitive) : no_primitive(runtime, name);
}

int cmd_op(const struct command *self, int argc, char **argv)
{
    struct command mine = *self;
    mine.details = details;
    bool json = false;
    const struct option options[] = {{"json", 0, NULL, "print JSON", NULL, &json}};
    struct args args;
    int failed = args_parse(&mine, options, COUNT(options), 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    tn_runtime *runtime;
    failed = open_runtime(&runtime);
    if (failed)
        return failed;
    struct described *described = NULL;
    const tn_primitive *primitive = NULL;
    failed = described_create(runtime, &described);
    if (!failed)
        failed = find_op(described, runtime, args.items[0], &primitive);
    if (!failed) {
        json_t *all = op_json(runtime, primitive);
        failed = json ? json_print(all) : print_op(all);
        json_decref(all);
    }
    described_free(described);
    tn_runtime_close(runtime);
    return failed;
}
