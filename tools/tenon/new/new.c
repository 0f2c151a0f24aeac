// SPDX-License-Identifier: MIT
// tenon new: creates a project that builds with the installed SDK and passes its tests as
// it is.
#include "commands.h"
#include "ops/op.h"
#include "new.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// --- names -----------------------------------------------------------------------------

static bool new_command_is_identifier(const char *name)
{
    size_t size = strlen(name);
    if (size == 0 || size > NEW_MAX_NAME || !islower((unsigned char)name[0]))
        return false;
    for (const char *c = name; *c; c++)
        if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) && *c != '_')
            return false;
    return true;
}

// Words of C and GLSL, and names that the templates use.
static bool new_command_is_taken(const char *name)
{
    static const char *const words[] = {
        "auto",     "bool",     "break",  "buffer",   "case",    "char",   "const",
        "continue", "default",  "do",     "double",   "else",    "enum",   "extern",
        "false",    "float",    "for",    "goto",     "if",      "in",     "inline",
        "inout",    "input",    "int",    "layout",   "long",    "main",   "out",
        "output",   "register", "return", "restrict", "row",     "sample", "short",
        "signed",   "sizeof",   "static", "struct",   "switch",  "true",   "typedef",
        "union",    "unsigned", "void",   "volatile", "uniform", "while",  "x",
        "y"};
    for (size_t i = 0; i < COUNT(words); i++)
        if (strcmp(words[i], name) == 0)
            return true;
    return false;
}

static int check_name(const char *what, const char *name)
{
    static const char *const ours[] = {"base",  "ffi",  "fft", "nn",    "null",
                                       "tenon", "test", "tn",  "vulkan"};
    if (!new_command_is_identifier(name))
        return misuse("'%s' cannot be the name of %s: expected a C identifier in lower "
                      "case of at most %d characters, such as 'smooth2'",
                      name, what, NEW_MAX_NAME);
    for (size_t i = 0; i < COUNT(ours); i++)
        if (strcmp(ours[i], name) == 0)
            return misuse("'%s' cannot be the name of %s: Tenon uses it", name, what);
    return 0;
}

// The operator's name becomes a variable's, and compilers warn if a library function has
// it.
static int check_op(const char *op)
{
    if (!new_command_is_identifier(op) || new_command_is_taken(op))
        return misuse("--op: '%s' cannot be an operator's name here: expected a C "
                      "identifier in lower case that is no word of C",
                      op);
    return dlsym(RTLD_DEFAULT, op)
               ? misuse("--op: '%s' cannot be an operator's name here: the C library has a "
                        "function of this name",
                        op)
               : 0;
}

// Parts of [a-z0-9-] between dots, at least two.
static int new_command_check_id(const char *id)
{
    size_t size = strlen(id), parts = 1;
    bool good = size > 0 && size <= 63 && isalnum((unsigned char)id[0]);
    for (size_t i = 0; good && i < size; i++) {
        bool dot = id[i] == '.';
        good = dot ? isalnum((unsigned char)id[i + 1]) != 0
                   : islower((unsigned char)id[i]) || isdigit((unsigned char)id[i]) ||
                         id[i] == '-';
        parts += dot;
    }
    if (!good || parts < 2)
        return misuse("--id: '%s' is no plugin id: expected parts of [a-z0-9-] between "
                      "dots, at most 63 characters, such as com.example.smooth",
                      id);
    if (strncmp(id, "org.tenon.", 10) == 0)
        return misuse("--id: '%s' would be one of Tenon's own plugins", id);
    return 0;
}

static int check_vendor(const char *vendor)
{
    bool good = vendor[0] && strlen(vendor) <= 63;
    for (const char *c = vendor; good && *c; c++)
        good = (unsigned char)*c >= ' ' && !strchr("\"\\'@%", *c);
    return good ? 0
                : misuse("--vendor: got '%s', expected at most 63 characters without "
                         "quotes, backslashes, @ and %%",
                         vendor);
}

static int check_license(const char *license)
{
    static const char *const known[] = {"MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause",
                                        "ISC", "MPL-2.0",    "0BSD",         NULL};
    for (size_t i = 0; known[i]; i++)
        if (strcmp(known[i], license) == 0)
            return 0;
    const char *near = nearest(license, known);
    return misuse("--license: no text of '%s'%s%s%s; there are MIT, Apache-2.0, "
                  "BSD-2-Clause, BSD-3-Clause, ISC, MPL-2.0 and 0BSD",
                  license, near ? "; did you mean '" : "", near ? near : "",
                  near ? "'?" : "");
}

// --- shared by all kinds ---------------------------------------------------------------

static int set_common(struct project *project, struct new_options *o)
{
    time_t now = time(NULL);
    struct tm date = {0};
    localtime_r(&now, &date);
    if (!o->id) {
        snprintf(o->default_id, sizeof(o->default_id), "com.example.%s", o->name);
        for (char *c = o->default_id; *c; c++)
            *c = *c == '_' ? '-' : *c;
        o->id = o->default_id;
    }
    int failed = project_set(project, "NAME", "%s", o->name);
    failed = failed ? failed : project_set(project, "ID", "%s", o->id);
    failed = failed ? failed : project_set(project, "LICENSE", "%s", o->license);
    failed = failed ? failed : project_set(project, "VENDOR", "%s", o->vendor);
    failed = failed ? failed : project_set(project, "YEAR", "%d", 1900 + date.tm_year);
    failed = failed ? failed : project_set(project, "c", "%s", o->c ? "1" : "");
    failed = failed ? failed : project_set(project, "glsl", "%s", o->glsl ? "1" : "");
    failed = failed ? failed : project_set(project, "vjp", "%s", o->with_vjp ? "1" : "");
    failed = failed ? failed : project_set(project, "python", "%s", o->python ? "1" : "");
    return failed
               ? failed
               : project_set(project, "PACKAGES",
                             "build-essential ca-certificates curl libarchive13 libffi8 "
                             "libjansson-dev libopenblas-dev libsodium-dev meson "
                             "ninja-build pkg-config zlib1g%s",
                             o->glsl ? " libvulkan1 mesa-vulkan-drivers spirv-tools" : "");
}

static int add_common(struct project *project, const struct new_options *o)
{
    char license[64];
    snprintf(license, sizeof(license), "licenses/%s", o->license);
    int failed = project_add(project, license, "LICENSE");
    failed = failed ? failed : project_add(project, "common/gitignore", ".gitignore");
    return failed ? failed
                  : project_add(project, "common/ci.yml", ".github/workflows/ci.yml");
}

static int add_op_pack(struct project *project, const struct new_options *o)
{
    char shader[NEW_MAX_NAME + 8];
    snprintf(shader, sizeof(shader), "%s.comp", o->op);
    int failed = project_set(project, "OP", "%s", o->op);
    failed =
        failed ? failed : project_set(project, "kernels", "%s", o->c || o->glsl ? "1" : "");
    failed = failed ? failed : project_add(project, "op-pack/meson.build", "meson.build");
    failed = failed ? failed : project_add(project, "op-pack/plugin.c", "plugin.c");
    if (!failed && o->glsl)
        failed = project_add(project, "op-pack/shader.comp", shader);
    failed = failed ? failed : project_add(project, "op-pack/test.c", "test.c");
    if (!failed && o->python)
        failed = project_add(project, "op-pack/pyproject.toml", "pyproject.toml");
    if (!failed && o->python)
        failed = project_add(project, "op-pack/wheel.py", "wheel.py");
    return failed ? failed : project_add(project, "op-pack/README.md", "README.md");
}

static int add_backend(struct project *project, const struct new_options *o)
{
    static const char *const files[] = {"meson.build", "backend.h", "device.c",
                                        "queue.c",     "weights.c", "check.examples.json",
                                        "README.md"};
    int failed = 0;
    (void)o;
    for (size_t i = 0; i < COUNT(files) && !failed; i++) {
        char template[64];
        snprintf(template, sizeof(template), "backend/%s", files[i]);
        failed = project_add(project, template, files[i]);
    }
    return failed;
}

static int add_format(struct project *project, const struct new_options *o)
{
    char magic[2 * NEW_MAX_NAME + 3]; // the name and a space, in hexadecimal
    for (size_t i = 0; i <= strlen(o->name); i++)
        snprintf(magic + 2 * i, 3, "%02x", o->name[i] ? (unsigned char)o->name[i] : ' ');
    int failed = project_set(project, "MAGIC", "%s", magic);
    failed = failed ? failed : project_add(project, "format/meson.build", "meson.build");
    failed = failed ? failed : project_add(project, "format/plugin.c", "plugin.c");
    return failed ? failed : project_add(project, "format/README.md", "README.md");
}

static int add_model(struct project *project, const struct new_options *o)
{
    (void)o;
    int failed = project_add(project, "model/meson.build", "meson.build");
    failed = failed ? failed : project_add(project, "model/plugin.c", "plugin.c");
    return failed ? failed : project_add(project, "model/README.md", "README.md");
}

static int write_project(struct new_options *o,
                         int (*add)(struct project *project, const struct new_options *o))
{
    struct project project;
    int failed = project_begin(&project, o->name);
    failed = failed ? failed : set_common(&project, o);
    failed = failed ? failed : add_common(&project, o);
    failed = failed ? failed : add(&project, o);
    failed = failed ? failed : project_commit(&project);
    project_finish(&project);
    if (failed)
        return failed;
    say("wrote %s/; now try\n\n"
        "  meson setup %s/build %s\n"
        "  ninja -C %s/build\n"
        "  tenon plugin install %s/build/%s\n",
        o->name, o->name, o->name, o->name, o->name, o->id);
    return 0;
}

// --- the kinds -------------------------------------------------------------------------

// Options that every kind takes.
#define NEW_OPTIONS(o)                                                                     \
    {"id", 0, "ID", "id of the plugin (com.example.NAME)", &(o).id, NULL},                 \
        {"license",    0,   "SPDX", "MIT (default), Apache-2.0, BSD-3-Clause, ...",        \
         &(o).license, NULL},                                                              \
    {                                                                                      \
        "vendor", 0, "NAME", "who makes it, for the plugin and its license", &(o).vendor,  \
            NULL                                                                           \
    }

static int check_common(struct new_options *o, const char *what, const struct args *args)
{
    o->name = args->items[0];
    int failed = check_name(what, o->name);
    if (!failed && o->id)
        failed = new_command_check_id(o->id);
    failed = failed ? failed : check_vendor(o->vendor);
    return failed ? failed : check_license(o->license);
}

static int run_op_pack(const struct command *self, int argc, char **argv)
{
    struct new_options o = NEW_DEFAULTS;
    bool expr = false; // ignored: the expression defines the operator
    const struct option options[] = {
        {"expr", 0, NULL, "an operator that is an expression (default)", NULL, &expr},
        {"c", 0, NULL, "add a kernel in C", NULL, &o.c},
        {"glsl", 0, NULL, "add a kernel in GLSL, also compiled to SPIR-V", NULL, &o.glsl},
        {"with-vjp", 0, NULL, "add a derivative written by hand", NULL, &o.with_vjp},
        {"python", 0, NULL, "add what pip makes a wheel of", NULL, &o.python},
        {"op", 0, "NAME", "name of the operator (axpby)", &o.op, NULL},
        NEW_OPTIONS(o)};
    struct args args;
    int failed = args_parse(self, options, COUNT(options), 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    failed = check_common(&o, "an op pack", &args);
    failed = failed ? failed : check_op(o.op);
    failed = failed ? failed : write_project(&o, add_op_pack);
    if (!failed)
        say("  tenon eval '%s.%s(x, y, alpha=4, beta=2)' x=[1,2] y=[10,20]\n", o.name,
            o.op);
    if (!failed && o.python)
        say("\nand for Python\n\n  pip install ./%s\n", o.name);
    return failed;
}

static int run_backend(const struct command *self, int argc, char **argv)
{
    struct new_options o = NEW_DEFAULTS;
    const struct option options[] = {NEW_OPTIONS(o)};
    struct args args;
    int failed = args_parse(self, options, COUNT(options), 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    failed = check_common(&o, "a backend", &args);
    failed = failed ? failed : write_project(&o, add_backend);
    if (!failed)
        say("  TENON_BACKEND=%s tenon eval 'sum(x * x)' x=[1,2,3]\n", o.name);
    return failed;
}

static int run_format(const struct command *self, int argc, char **argv)
{
    struct new_options o = NEW_DEFAULTS;
    const struct option options[] = {NEW_OPTIONS(o)};
    struct args args;
    int failed = args_parse(self, options, COUNT(options), 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    failed = check_common(&o, "a format", &args);
    failed = failed ? failed : write_project(&o, add_format);
    if (!failed)
        say("  tenon eval 'x * 2' x=[1.0,2] -o doubled.%s\n", o.name);
    return failed;
}

static int run_model(const struct command *self, int argc, char **argv)
{
    struct new_options o = NEW_DEFAULTS;
    const struct option options[] = {NEW_OPTIONS(o)};
    struct args args;
    int failed = args_parse(self, options, COUNT(options), 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    failed = check_common(&o, "an architecture", &args);
    failed = failed ? failed : write_project(&o, add_model);
    if (!failed)
        say("  tenon bench llm --random architecture=%s,layers=2,width=64,heads=4,"
            "kv_heads=2,inner=128,format=f32\n",
            o.name);
    return failed;
}

// The primitive, or its newest revision before that has kernels. NULL: a composite has
// none.
static const tn_primitive *with_kernels(tn_runtime *runtime, const tn_primitive *primitive)
{
    const char *slash = strrchr(primitive->id, '/');
    unsigned long revision = strtoul(slash + 1, NULL, 10);
    const tn_primitive *found = primitive;
    while (found && !found->infer && !found->expr && revision-- > 1) {
        char id[256];
        snprintf(id, sizeof(id), "%.*s/%lu", (int)(slash - primitive->id), primitive->id,
                 revision);
        found = tn_primitive_find(runtime, id);
    }
    return found && (found->infer || found->expr) ? found : NULL;
}

// The primitive belongs to the runtime, which stays open while the files are written.
static int write_kernels(struct new_options *o)
{
    tn_runtime *runtime;
    int failed = open_runtime(&runtime);
    if (failed)
        return failed;
    o->runtime = runtime;
    const tn_primitive *target = tn_primitive_find(runtime, o->target);
    o->primitive = target ? with_kernels(runtime, target) : NULL;
    failed = o->primitive ? write_project(o, new_kernels_add)
             : target     ? misuse("%s is made of other primitives: kernels are for those, "
                                       "which 'tenon why op' shows",
                                   target->id)
                          : no_primitive(runtime, o->target);
    if (!failed)
        say("  tenon op %s\n", o->primitive->id);
    tn_runtime_close(runtime);
    return failed;
}

static int run_kernels(const struct command *self, int argc, char **argv)
{
    struct new_options o = NEW_DEFAULTS;
    const struct option options[] = {
        {"for", 0, "OPERATOR", "what the kernels are for", &o.target, NULL},
        {"c", 0, NULL, "a kernel in C (default)", NULL, &o.c},
        {"glsl", 0, NULL, "a kernel in GLSL, also compiled to SPIR-V", NULL, &o.glsl},
        NEW_OPTIONS(o)};
    struct args args;
    int failed = args_parse(self, options, COUNT(options), 1, 1, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    failed = check_common(&o, "a pack of kernels", &args);
    if (!failed && !o.target)
        failed = misuse("which operator are the kernels for? --for nn.softmax");
    o.c = o.c || !o.glsl;
    return failed ? failed : write_kernels(&o);
}

static const struct command new_commands[] = {
    {"new op-pack", "NAME [--expr] [--c] [--glsl] [--with-vjp] ...",
     "begin an op pack: operators of your own",
     "The folder NAME gets an operator NAME.axpby, alpha * x + beta * y, its tests, a\n"
     "license, and an example of continuous integration.\n"
     "\n"
     "  tenon new op-pack smooth --c --glsl --license Apache-2.0\n",
     run_op_pack},
    {"new backend", "NAME ...", "begin a backend: devices of your own",
     "The folder NAME gets a backend that computes everything on the CPU, plainly, to\n"
     "start from.\n"
     "\n"
     "  tenon new backend mine --id com.acme.mine\n",
     run_backend},
    {"new format", "NAME ...", "begin a format: files of arrays of your own",
     "The folder NAME gets a plugin that reads and writes files *.NAME of one array. The\n"
     "files are found by their extension, or by their first bytes.\n"
     "\n"
     "  tenon new format acme --id com.acme.files\n",
     run_format},
    {"new model", "NAME ...", "begin an architecture of language models of your own",
     "The folder NAME gets a plugin that builds the layers of models whose file says\n"
     "general.architecture NAME: attention and a gated feed-forward side by side.\n"
     "\n"
     "  tenon new model acme --id com.acme.models\n",
     run_model},
    {"new kernels", "NAME --for OPERATOR [--c] [--glsl] ...",
     "begin kernels for somebody else's operator",
     "An elementwise operator gets a kernel that computes its expression, nn.softmax one\n"
     "for rows. Any other gets a kernel that accepts nothing yet: so that everything "
     "works\n"
     "as before until it does.\n"
     "\n"
     "  tenon new kernels quick --for nn.softmax\n"
     "  tenon new kernels fast_relu --for nn.relu --c --glsl\n",
     run_kernels},
};

int cmd_new(const struct command *self, int argc, char **argv)
{
    static const struct command_group group = {
        "tenon new",
        "Begins a project of a few small files that builds with the installed SDK alone.",
        new_commands, COUNT(new_commands)};
    (void)self;
    return commands_run(&group, argc, argv);
}
