// SPDX-License-Identifier: MIT
// tenon why: tells where something runs and why not elsewhere, in sentences.
#include "commands.h"
#include "ops/op.h"
#include "devices/devices.h"
#include "plugins/find.h"
#include "base/table.h"
#include "kernels/launch.h"
#include "why.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char details[] =
    "For an expression: the device and kernel of each node, and for each other candidate\n"
    "why it was turned down; on Vulkan the module that each step launches. For a plugin:\n"
    "whether it can be used, or what is wrong and what to do. For an operator: where it\n"
    "comes from, and what can run it. For a backend: its devices and whether they are\n"
    "used, or why it has none. 'last' tells of the last run of any application that was\n"
    "started with TENON_WHY=FILE.\n"
    "\n"
    "  tenon why 'softmax(x @ y)' x=x.npy y=y.npy\n"
    "  TENON_BACKEND=vulkan,cpu-blas tenon why 'x // 2' x=[1,2,3]\n"
    "  tenon why plugin org.tenon.vulkan\n"
    "  tenon why backend vulkan\n"
    "  tenon why backend vulkan:1\n"
    "  tenon why op nn.conv2d\n"
    "  tenon why last FILE\n";

// --- an expression ---------------------------------------------------------------------

static void say_how(const json_t *node)
{
    const char *kernel = text_of(node, "kernel");
    if (strcmp(kernel, "expression") == 0)
        say("as an expression, which fuses with those beside it");
    else if (strcmp(kernel, "reference") == 0)
        say("with its reference kernel, the plain one that always works");
    else if (strcmp(kernel, "host") == 0)
        say("between its steps: the host calls it, and runs its graphs there");
    else if (strcmp(kernel, "decomposition") == 0)
        say("as the simpler operators it is made of");
    else
        say("with kernel '%s' of %s", kernel, text_of(node, "plugin"));
}

// Prints the types of all outputs: "f32[2] and i32[2]". Those of earlier versions tell the
// first alone.
static void say_types(const json_t *node)
{
    const json_t *types = json_object_get(node, "types");
    size_t count = json_array_size(types);
    if (count == 0)
        say("%s", text_of(node, "type"));
    for (size_t i = 0; i < count; i++) {
        const char *type = json_string_value(json_array_get(types, i));
        say("%s%s", i == 0 ? "" : i + 1 == count ? " and " : ", ", type ? type : "?");
    }
}

static void say_node(const json_t *node, bool full)
{
    json_int_t depth = json_integer_value(json_object_get(node, "depth"));
    int indent = depth > 0 && depth < 20 ? (int)depth * 2 : 0;
    const char *device = text_of(node, "device"), *first = text_of(node, "instead_of");
    const char *name = text_of(node, "name"), *text = full ? text_of(node, "text") : "";
    say("%*s%s%s%s, giving ", indent, "", name, *name ? " = " : "",
        *text ? text : text_of(node, "op"));
    say_types(node);
    say(", runs ");
    if (*device) {
        say("on %s ", device);
        say_how(node);
        say(".\n");
    } else {
        say("nowhere.\n");
    }
    if (*first)
        say("%*s  It falls back: %s comes first, but turned it down.\n", indent, "", first);
    size_t i;
    json_t *candidate;
    json_array_foreach(json_object_get(node, "rejected"), i, candidate)
        say("%*s  not %s: %s\n", indent, "", text_of(candidate, "candidate"),
            text_of(candidate, "reason"));
}

// Prints an input: "x", "step 3", "step 3 output 1", "2.5".
static void say_source(const json_t *source, const json_t *leaves)
{
    const json_t *leaf = json_object_get(source, "leaf");
    const json_t *step = json_object_get(source, "step");
    const json_t *number = json_object_get(source, "number");
    json_int_t output = json_integer_value(json_object_get(source, "output"));
    if (leaf) {
        json_int_t id = json_integer_value(leaf);
        const char *name = text_of(json_array_get(leaves, (size_t)id), "name");
        if (*name)
            say("%s", name);
        else
            say("data %" JSON_INTEGER_FORMAT, id);
    } else if (step) {
        say("step %" JSON_INTEGER_FORMAT, json_integer_value(step));
        if (output)
            say(" output %" JSON_INTEGER_FORMAT, output);
    } else {
        const char *text = json_string_value(number);
        if (text)
            say("%s", text);
        else
            say("%.9g", json_number_value(number));
    }
}

static void say_inputs(const json_t *step, const json_t *leaves)
{
    const json_t *inputs = json_object_get(step, "inputs");
    size_t i;
    json_t *source;
    json_array_foreach(inputs, i, source)
    {
        say("%s", i ? ", " : " of ");
        say_source(source, leaves);
    }
}

static void say_transfer(const json_t *transfer, const json_t *leaves)
{
    const char *from = text_of(transfer, "from");
    say("  step %" JSON_INTEGER_FORMAT ": %s",
        json_integer_value(json_object_get(transfer, "id")), text_of(transfer, "label"));
    say_inputs(transfer, leaves);
    say("%s%s to %s, %" JSON_INTEGER_FORMAT " bytes\n", *from ? " from " : "", from,
        text_of(transfer, "to"), json_integer_value(json_object_get(transfer, "bytes")));
}

static void say_step(const json_t *step, const json_t *leaves, bool full)
{
    const char *text = full ? text_of(step, "text") : "";
    say("  step %" JSON_INTEGER_FORMAT ": %s (%s)",
        json_integer_value(json_object_get(step, "id")),
        *text ? text : text_of(step, "label"), text_of(step, "kernel"));
    say_inputs(step, leaves);
    say("\n");
}

static void say_segments(const json_t *plan, bool full)
{
    const json_t *leaves = json_object_get(plan, "leaves");
    size_t i, j;
    json_t *segment, *part;
    json_array_foreach(json_object_get(plan, "segments"), i, segment)
    {
        const json_t *steps = json_object_get(segment, "steps");
        const json_t *transfers = json_object_get(segment, "transfers");
        if (json_array_size(transfers))
            say("\nBefore submission %zu:\n", i + 1);
        json_array_foreach(transfers, j, part) say_transfer(part, leaves);
        say("\nSubmission %zu, on %s: %zu step%s.\n", i + 1, text_of(segment, "device"),
            json_array_size(steps), json_array_size(steps) == 1 ? "" : "s");
        json_array_foreach(steps, j, part) say_step(part, leaves, full);
    }
}

// Prints remedies for nodes that fall back or run nowhere, once for all nodes.
static void say_remedies(const json_t *nodes)
{
    bool fell_back = false, nowhere = false;
    size_t i;
    json_t *node;
    json_array_foreach(nodes, i, node)
    {
        fell_back |= *text_of(node, "instead_of") != '\0';
        nowhere |= !*text_of(node, "device");
    }
    if (fell_back)
        say("\nTo change where a node runs, remove the reason that is given for it, or "
            "install a plugin\nwith a kernel for it. TENON_FALLBACK=error makes falling "
            "back an error, allow silences\nthe warning.\n");
    if (nowhere)
        say("\nName one more backend in TENON_BACKEND ('tenon devices' lists them), "
            "remove the reason\nthat is given above, or install a plugin with a kernel "
            "for it.\n");
}

// Prints the modules of kernels that run for the steps, each once, on devices that report
// launches.
static void say_launches(const json_t *launches)
{
    size_t i;
    json_t *launch, *seen = json_object();
    char line[256];
    json_array_foreach(launches, i, launch)
    {
        snprintf(line, sizeof(line), "  %s: %s\n", text_of(launch, "step"),
                 text_of(launch, "name"));
        if (json_object_get(seen, line))
            continue;
        say("%s%s", json_object_size(seen) == 0 ? "\nLaunches, by step:\n" : "", line);
        json_object_set_new(seen, line, json_true());
    }
    json_decref(seen);
}

int say_plan(const json_t *plan, bool full)
{
    const json_t *nodes = json_object_get(plan, "nodes");
    size_t i;
    json_t *node;
    json_array_foreach(nodes, i, node) say_node(node, full);
    say_remedies(nodes);
    if (!json_array_size(nodes))
        say("Nothing is computed: the values are known already.\n");
    say_segments(plan, full);
    say_launches(json_object_get(plan, "launches"));
    return 0;
}

// The launches of the session's plan, where a backend reports them; else an empty array.
static json_t *launches_of(struct session *session)
{
    json_t *launches = NULL;
    double whole_us[2];
    if (launches_plan(session, false, &launches, whole_us) == 0)
        return launches;
    forget_oops(); // the explanation has the reason
    return json_array();
}

static int why_expression(char *const *items, int count, bool json, bool full)
{
    struct session session;
    char *text = NULL;
    json_error_t error;
    int failed = session_open(&session, items, count);
    if (failed)
        return failed;
    json_t *launches = launches_of(&session);
    if (tn_explain(session.scope, session.results.items, session.results.count, &text)) {
        failed = oops_scope(session.scope);
    } else {
        json_t *plan = json_loads(text, 0, &error);
        if (plan)
            json_object_set(plan, "launches", launches);
        if (!plan)
            failed = oops("the explanation is no JSON: %s", error.text);
        else
            failed = json ? json_print(plan) : say_plan(plan, full);
        if (!failed && *text_of(plan, "message"))
            failed = oops("%s", text_of(plan, "message"));
        json_decref(plan);
    }
    json_decref(launches);
    tn_text_free(text);
    session_close(&session);
    return failed;
}

// --- a plugin --------------------------------------------------------------------------

// Adds a row for each directory that holds the id: the plugin in use, and why others are
// not.
static bool say_plugins(tn_runtime *runtime, const char *id, json_t *rows)
{
    bool found = false;
    for (uint64_t i = 0, n = tn_plugin_count(runtime); i < n; i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        if (tn_plugin_get(runtime, i, &info) || !plugin_is_named(&info, id))
            continue;
        found = true;
        const char *reason = info.reason ? info.reason : "";
        bool usable = info.state == TN_PLUGIN_FOUND || info.state == TN_PLUGIN_LOADED;
        bool loads = usable && tn_plugin_load(runtime, id) == TN_OK;
        if (usable && !loads)
            reason = tn_last_error();
        if (usable)
            tn_plugin_get(runtime, i, &info); // loading changed its state
        json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:s, s:b, s:s}", "id", id,
                                              "version", info.version, "directory",
                                              info.directory, "state",
                                              plugin_state_name(info.state), "usable",
                                              loads, "reason", reason));
    }
    return found;
}

static int why_plugin(tn_runtime *runtime, const char *id, bool json)
{
    json_t *rows = json_array(), *row;
    size_t i;
    int failed = say_plugins(runtime, id, rows) ? 0 : no_plugin(runtime, id);
    if (!failed && json)
        failed = json_print(rows);
    else if (!failed)
        json_array_foreach(rows, i, row)
        {
            const char *version = text_of(row, "version");
            say("%s%s%s in %s ", id, *version ? " " : "", version,
                text_of(row, "directory"));
            if (json_is_true(json_object_get(row, "usable")))
                say("is used: its checks pass and it loads.\n");
            else
                say("is not used (%s): %s\n", text_of(row, "state"),
                    text_of(row, "reason"));
        }
    json_decref(rows);
    return failed;
}

// --- an operator -----------------------------------------------------------------------

static void say_operator(const json_t *op)
{
    const json_t *kernels = json_object_get(op, "kernels"), *rules;
    rules = json_object_get(op, "rules");
    size_t i;
    json_t *item;
    say("%s comes from plugin %s.\n", text_of(op, "id"), text_of(op, "plugin"));
    json_array_foreach(kernels, i, item)
        say("Backends that consume %s can run kernel '%s' of plugin %s.\n",
            text_of(item, "family"), text_of(item, "name"), text_of(item, "plugin"));
    if (text_of(op, "expr")[0])
        say("Every backend that runs expressions can run it: %s\n", text_of(op, "expr"));
    json_array_foreach(rules, i, item)
    {
        const char *rule = json_string_value(item);
        if (strcmp(rule, "decompose") == 0)
            say("Every backend can run it as the operators it is made of.\n");
        if (strcmp(rule, "reference") == 0)
            say("CPU backends can run its reference kernel when nothing faster fits.\n");
    }
    say("What one use of it chooses: tenon why '%.*s(...)'\n",
        (int)strcspn(text_of(op, "id"), "/"), text_of(op, "id"));
}

static int why_op(tn_runtime *runtime, const char *name, bool json)
{
    const tn_primitive *primitive = tn_primitive_find(runtime, name);
    int failed = 0;
    if (!primitive)
        return no_primitive(runtime, name);
    json_t *op = op_json(runtime, primitive);
    if (json)
        failed = json_print(op);
    else
        say_operator(op);
    json_decref(op);
    if (!failed && tn_primitive_check(runtime, name))
        failed = oops_library();
    return failed;
}

// --- a backend -------------------------------------------------------------------------

static void why_command_say_device(const json_t *row)
{
    json_int_t position = json_integer_value(json_object_get(row, "selected"));
    const char *reason = text_of(row, "reason"), *device = text_of(row, "device");
    if (reason[0])
        say("%s has no device: %s\n", device, reason);
    else if (position > 0)
        say("%s, %s, is used: it is number %" JSON_INTEGER_FORMAT " of the devices.\n",
            device, text_of(row, "name"), position);
    else
        say("%s, %s, is not used: TENON_BACKEND=%s uses it.\n", device,
            text_of(row, "name"), device);
}

// Fails: a plugin that is not in use has the backend, or no plugin has.
static int why_command_no_backend(const tn_runtime *runtime, const char *backend)
{
    const char *names[128];
    size_t count = 0;
    for (uint64_t i = 0, n = tn_plugin_count(runtime); i < n; i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        if (tn_plugin_get(runtime, i, &info))
            continue;
        for (const char *const *name = info.backends; *name; name++) {
            if (strcmp(*name, backend) == 0 && info.reason[0])
                return oops("backend '%s': plugin %s has it, but is %s: %s", backend,
                            info.id, plugin_state_name(info.state), info.reason);
            if (count < COUNT(names) - 1)
                names[count++] = *name;
        }
    }
    names[count] = NULL;
    const char *near = nearest(backend, names);
    return near ? oops("no backend is named '%s'; did you mean '%s'?", backend, near)
                : oops("no backend is named '%s'; 'tenon devices' lists those there are",
                       backend);
}

// Fails: the backend has no device of this number.
static int no_device(const json_t *rows, const char *backend, const char *number)
{
    size_t count = json_array_size(rows);
    const char *reason = text_of(json_array_get(rows, 0), "reason");
    if (reason[0])
        return oops("%s has no device: %s", backend, reason);
    return oops("%s has no device %s: it has %zu, numbered from 0; 'tenon devices' lists "
                "what its driver found",
                backend, number, count);
}

// `name` is "vulkan", or "vulkan:0" for one of its devices.
static int why_backend(tn_runtime *runtime, const char *name, bool json)
{
    json_t *all = json_array(), *mine = json_array(), *chosen = json_array(), *row;
    const char *number = strchr(name, ':');
    char backend[64];
    size_t i;
    snprintf(backend, sizeof(backend), "%.*s", (int)strcspn(name, ":"), name);
    int failed = devices_json(runtime, all);
    json_array_foreach(all, i, row)
    {
        bool is_mine = strcmp(text_of(row, "backend"), backend) == 0;
        if (is_mine)
            json_array_append(mine, row);
        if (is_mine && (!number || strcmp(text_of(row, "device"), name) == 0))
            json_array_append(chosen, row);
    }
    if (!failed && !json_array_size(mine))
        failed = why_command_no_backend(runtime, backend);
    else if (!failed && !json_array_size(chosen))
        failed = no_device(mine, backend, number + 1);
    else if (!failed && json)
        failed = json_print(chosen);
    else if (!failed)
        json_array_foreach(chosen, i, row) why_command_say_device(row);
    json_decref(all);
    json_decref(mine);
    json_decref(chosen);
    return failed;
}

int cmd_why(const struct command *self, int argc, char **argv)
{
    struct command mine = *self;
    mine.details = details;
    bool json = false, all = false, full = false;
    const struct option options[] = {
        {"json", 0, NULL, "print JSON", NULL, &json},
        {"full", 0, NULL, "long expressions as a whole", NULL, &full},
        {"all", 0, NULL, "with 'last': all runs that the file holds", NULL, &all}};
    struct args args;
    int failed = args_parse(&mine, options, COUNT(options), 1, -1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    if (strcmp(args.items[0], "last") == 0)
        return args.count > 2
                   ? misuse("usage: tenon why last [FILE]")
                   : why_last(args.count == 2 ? args.items[1] : NULL, all, json, full);
    static const struct {
        const char *word, *what;
        int (*say)(tn_runtime *runtime, const char *name, bool json);
    } kinds[] = {{"plugin", "ID", why_plugin},
                 {"op", "NAME", why_op},
                 {"backend", "NAME", why_backend}};
    size_t kind = 0;
    while (kind < COUNT(kinds) && strcmp(args.items[0], kinds[kind].word) != 0)
        kind++;
    if (kind == COUNT(kinds))
        return why_expression(args.items, args.count, json, full);
    if (args.count != 2)
        return misuse("usage: tenon why %s %s", kinds[kind].word, kinds[kind].what);
    tn_runtime *runtime;
    failed = open_runtime(&runtime);
    if (failed)
        return failed;
    failed = kinds[kind].say(runtime, args.items[1], json);
    tn_runtime_close(runtime);
    return failed;
}
