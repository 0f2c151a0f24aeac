// SPDX-License-Identifier: MIT
// tenon eval: computes an expression over arrays.
#include "commands.h"
#include "base/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/file.h>

#include "base/file.h"
#include "print.h"
#include "save.h"

static const char details[] =
    "Operators have Python's signs and NumPy's names; every installed operator can be\n"
    "called by its name ('tenon ops' lists them). Arrays come by position, attributes\n"
    "behind them or by name, and one that is a graph is a text with an arrow. Values are\n"
    "files of any installed format, FILE:NAME for one array of several, or literals.\n"
    "\n"
    "  tenon eval '1 + 1'\n"
    "  tenon eval 'sum(x * x, axis=1)' x=[[1,2],[3,4]]\n"
    "  tenon eval 'm = mean(x); sqrt(mean((x - m) ** 2))' x=data.npy\n"
    "  tenon eval 'x[1:, ::-1, 0], x[..., -1]' x=data.npy\n"
    "  tenon eval 'astype(x, f16)' x=2.5 -o half.npy\n"
    "  tenon eval 'x ** 3 + 2 * y' x=2.0 y=1.0 --grad x,y -o all.safetensors\n"
    "  tenon eval 'y = sum((x @ w) ** 2); w - 0.1 * grad(y, w)' x=[[1.0,2]] w=[3.0,4]\n"
    "  tenon eval 'sgd(p, g, m)[0]; x.T @ x.mT' p=[1.0] g=[2.0] m=[0.0] x=[[1,2],[3,4]]\n"
    "  tenon eval 'x @ w' x=[[1,2],[3,4]] w=[1,10] --vmap x\n"
    "  tenon eval 'while_loop(x, body=\"x -> x / 2\", times=3)' x=8.0\n"
    "  tenon eval 'acme.axpby(x, y, alpha=4, beta=2)' x=x.npy y=y.npy\n"
    "\n"
    "--grad computes how the result (or the sum of its elements) changes with each named\n"
    "value; in the expression grad(y, x, ...) is the gradient of y by each of the others.\n"
    "An integer literal has no gradient: write 2.0.\n"
    "\n"
    "-o writes everything that is computed instead of printing it: FILE.npy holds one\n"
    "array, FILE.safetensors any number (result or result.0 and on, grad.x).\n"
    "\n"
    "--save writes the graph instead of computing it: for values of these types, with the\n"
    "names of the values and of what is computed, and the gradients. @FILE runs such a\n"
    "graph, @FILE:SIGNATURE one of several in a file; 'tenon graph FILE' lists them.\n"
    "\n"
    "  tenon eval 'tanh(x @ w)' x=x.npy w=w.npy --save layer.graph\n"
    "  tenon eval @layer.graph x=[[1,2]] w=w.npy\n"
    "\n"
    "--vmap computes the expression for each slice along the first axis of the named\n"
    "values, all at once; others are the same for each. Gradients are then each slice's.\n";

struct eval_command_request {
    const char *output; // NULL: print
    const char *grad;   // "x,y", or NULL
    const char *vmap;   // the same
    bool json;
    const char *save;      // FILE, or NULL
    const char *signature; // its name
};

// --- gradients -------------------------------------------------------------------------

struct gradients {
    char *names; // the list, cut into words; owned
    const char *name[64];
    tn_array *wrt[64];
    tn_array *array[64];
    size_t count;
};

static int split_names(const struct session *session, const char *list, struct gradients *g)
{
    char *rest = g->names = strdup(list), *word;
    if (!rest)
        return oops_memory();
    while ((word = strsep(&rest, ","))) {
        if (g->count == COUNT(g->name))
            return misuse("--grad: more than %zu names", COUNT(g->name));
        g->name[g->count] = word;
        size_t input;
        int failed = session_find_input(session, "--grad", word, &input);
        if (failed)
            return failed;
        g->wrt[g->count++] = session->inputs[input];
    }
    return 0;
}

// Builds the gradients of the result, or of the sum of its elements.
static int eval_command_build_gradients(struct session *session, const char *list,
                                        struct gradients *g)
{
    int failed = split_names(session, list, g);
    if (failed)
        return failed;
    if (session->results.count != 1)
        return misuse("--grad needs an expression with one result, this one has %zu",
                      session->results.count);
    tn_array *result = session->results.items[0];
    const char *needs;
    if (lang_gradients(session->scope, result, g->wrt, g->count, g->array, &needs))
        return needs ? oops("--grad needs %s; this one is %s", needs,
                            dtype_name(tn_array_type(result)->dtype))
                     : oops_scope(session->scope);
    return 0;
}

// --- output ----------------------------------------------------------------------------

static int print_result(struct session *session, tn_array *array, const char *title)
{
    struct host_array host;
    int failed = host_array_read(session->scope, array, &host);
    if (failed)
        return failed;
    if (title)
        say("d/d%s ", title);
    failed = array_print(&host);
    host_array_finish(&host);
    return failed;
}

static int print_text(struct session *session, const struct gradients *g)
{
    int failed = 0;
    for (size_t i = 0; !failed && i < session->results.count; i++)
        failed = print_result(session, session->results.items[i], NULL);
    for (size_t i = 0; !failed && i < g->count; i++)
        failed = print_result(session, g->array[i], g->name[i]);
    return failed;
}

static json_t *eval_command_result_json(struct session *session, tn_array *array)
{
    struct host_array host;
    if (host_array_read(session->scope, array, &host))
        return NULL;
    json_t *json = array_json(&host);
    host_array_finish(&host);
    return json;
}

static int print_as_json(struct session *session, const struct gradients *g)
{
    json_t *results = json_array(), *gradients = json_object();
    int failed = 0;
    for (size_t i = 0; !failed && i < session->results.count; i++)
        if (json_array_append_new(
                results, eval_command_result_json(session, session->results.items[i])))
            failed = oops_memory();
    for (size_t i = 0; !failed && i < g->count; i++)
        if (json_object_set_new(gradients, g->name[i],
                                eval_command_result_json(session, g->array[i])))
            failed = oops_memory();
    json_t *all = json_pack("{s:o, s:o}", "results", results, "gradients", gradients);
    if (!failed)
        failed = json_print(all);
    json_decref(all);
    return failed;
}

// Arrays that -o writes: the results, then the gradients, each with its name.
struct saved {
    tn_array **arrays;
    char **names; // owned
    size_t count;
};

__attribute__((format(printf, 3, 4))) static int
add_saved(struct saved *saved, tn_array *array, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vasprintf(&saved->names[saved->count], format, args);
    va_end(args);
    if (length < 0)
        return oops_memory();
    saved->arrays[saved->count++] = array;
    return 0;
}

// "result", or "result.0" and on when there are several, and "grad.x" for each gradient.
static int collect_saved(const struct session *session, const struct gradients *g,
                         struct saved *saved)
{
    const struct lang_results *results = &session->results;
    size_t count = results->count + g->count;
    int failed = 0;
    *saved = (struct saved){.arrays = calloc(count, sizeof(*saved->arrays)),
                            .names = calloc(count, sizeof(*saved->names))};
    if (!saved->arrays || !saved->names)
        return oops_memory();
    if (results->count == 1)
        failed = add_saved(saved, results->items[0], "result");
    for (size_t i = 0; !failed && results->count > 1 && i < results->count; i++)
        failed = add_saved(saved, results->items[i], "result.%zu", i);
    for (size_t i = 0; !failed && i < g->count; i++)
        failed = add_saved(saved, g->array[i], "grad.%s", g->name[i]);
    return failed;
}

static void saved_finish(struct saved *saved)
{
    for (size_t i = 0; i < saved->count; i++)
        free(saved->names[i]);
    free(saved->names);
    free(saved->arrays);
}

// A failure shows when the file is committed, with its reason.
static tn_status eval_command_write_stream(void *stream, const void *data, uint64_t size)
{
    fwrite(data, 1, size, stream);
    return TN_OK;
}

static int save_to(struct session *session, const struct saved *saved, const char *path,
                   tn_save_options *options, FILE *stream)
{
    bool is_npy = options->plugin || ends_with(path, ".npy");
    options->write = eval_command_write_stream;
    options->context = stream;
    return tn_save(session->scope, path, saved->arrays,
                   is_npy ? NULL : (const char *const *)saved->names, saved->count, options)
               ? oops_scope(session->scope)
               : 0;
}

static int eval_command_save_file(struct session *session, const struct saved *saved,
                                  const char *path, tn_save_options *options)
{
    struct new_file file;
    int failed = new_file_open(&file, path);
    if (failed)
        return failed;
    failed = save_to(session, saved, path, options, file.stream);
    if (!failed)
        failed = new_file_commit(&file); // also reports failed writes
    new_file_abandon(&file);
    return failed;
}

static int eval_command_write_output(struct session *session, const struct gradients *g,
                                     const char *path)
{
    bool is_stream = strcmp(path, "-") == 0;
    bool is_npy = is_stream || ends_with(path, ".npy");
    tn_save_options options = {.struct_size = sizeof(options)};
    struct saved saved;
    if (is_npy && session->results.count + g->count != 1)
        return misuse("-o %s: a .npy file holds one array, got %zu, results and gradients "
                      "together; write FILE.safetensors",
                      path, session->results.count + g->count);
    if (is_stream && tn_provider_find(session->runtime, "tn.format/1", "extension", "npy",
                                      &options.plugin))
        return oops_library();
    int failed = collect_saved(session, g, &saved);
    if (!failed && is_stream)
        failed = save_to(session, &saved, path, &options, stdout);
    else if (!failed)
        failed = eval_command_save_file(session, &saved, path, &options);
    if (!failed && is_stream && (fflush(stdout) || ferror(stdout)))
        failed = oops("cannot write the output");
    saved_finish(&saved);
    return failed;
}

// Evaluates results and gradients at once, so that shared nodes are computed once.
static int eval_command_evaluate(struct session *session, const struct gradients *g)
{
    size_t n = session->results.count + g->count;
    tn_array **all = calloc(n, sizeof(*all));
    if (!all)
        return oops_memory();
    memcpy(all, session->results.items, session->results.count * sizeof(*all));
    memcpy(all + session->results.count, g->array, g->count * sizeof(*all));
    int failed = tn_eval_n(session->scope, all, n) ? oops_scope(session->scope) : 0;
    free(all);
    return failed;
}

static int name_result(struct save_results *out, tn_array *array, const char *stem,
                       const char *name)
{
    if (out->count == COUNT(out->items))
        return misuse("--save: more than %zu results", COUNT(out->items));
    snprintf(out->names[out->count], sizeof(out->names[0]), "%s%s", stem, name);
    out->items[out->count++] = array;
    return 0;
}

// Builds the results and gradients of what is saved, with the names that -o gives them.
static int build_saved(struct session *session, void *user, struct save_results *out)
{
    const struct eval_command_request *request = user;
    struct gradients g = {0};
    char number[32];
    int failed = session->results.count ? 0 : session_build(session);
    if (!failed && request->grad)
        failed = eval_command_build_gradients(session, request->grad, &g);
    const struct lang_results *results = &session->results;
    out->count = 0;
    for (size_t i = 0; !failed && i < results->count; i++) {
        snprintf(number, sizeof(number), ".%zu", i);
        failed =
            name_result(out, results->items[i], "result", results->count > 1 ? number : "");
    }
    for (size_t i = 0; !failed && i < g.count; i++)
        failed = name_result(out, g.array[i], "grad.", g.name[i]);
    free(g.names);
    return failed;
}

static int eval_command_respond(struct session *session,
                                const struct eval_command_request *request)
{
    struct gradients g = {0};
    int failed =
        request->grad ? eval_command_build_gradients(session, request->grad, &g) : 0;
    if (!failed)
        failed = eval_command_evaluate(session, &g);
    if (!failed && request->output)
        failed = eval_command_write_output(session, &g, request->output);
    else if (!failed)
        failed = request->json ? print_as_json(session, &g) : print_text(session, &g);
    free(g.names);
    return failed;
}

int cmd_eval(const struct command *self, int argc, char **argv)
{
    struct command mine = *self;
    mine.details = details;
    struct eval_command_request request = {0};
    const struct option options[] = {
        {"output", 'o', "FILE", "file for the results: .npy or .safetensors",
         &request.output, NULL},
        {"grad", 0, "NAME,...", "also compute gradients", &request.grad, NULL},
        {"vmap", 0, "NAME,...", "compute for each slice of these", &request.vmap, NULL},
        {"json", 0, NULL, "print JSON", NULL, &request.json},
        {"save", 0, "FILE", "file for the graph", &request.save, NULL},
        {"signature", 0, "NAME", "name of the graph in the file (main)", &request.signature,
         NULL},
    };
    struct args args;
    int failed = args_parse(&mine, options, COUNT(options), 1, -1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    if (request.save && (request.output || request.vmap || request.json))
        return misuse("--save does not go with -o, --vmap and --json: nothing is computed");
    if (request.signature && !request.save)
        return misuse("--signature is for --save; write @FILE:NAME to run one");
    struct session session;
    failed = session_open_mapped(&session, args.items, args.count, request.vmap);
    if (failed)
        return failed;
    failed = request.save
                 ? graph_write(&session, build_saved, &request,
                               request.signature ? request.signature : "main", request.save)
                 : eval_command_respond(&session, &request);
    session_close(&session);
    return failed;
}
