// SPDX-License-Identifier: MIT
// The conformance kit, started by `tenon check`. Without --child it is the parent process,
// which starts itself as a child for each group of checks and never executes the plugin's
// code.
//
//   tenon-conformance PLUGIN.so|DIRECTORY|ID [--json] [--seed N] [--report FILE]
//       [--only GLOB] [--devices GLOB] [--with BACKENDS] [--exceptions FILE]
//       [--examples FILE] [--samples N] [--timeout S]
//   tenon-conformance --list
#include <dirent.h>
#include <fnmatch.h>
#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>
#include <tenon/tenon.h>
#include <time.h>
#include <unistd.h>
#include "checks.h"
#include "kit/child.h"

enum { STATUS_PASS = 0, STATUS_FAIL = 1, STATUS_USAGE = 2 };

struct kit_options {
    struct run_options run;
    const char *subject, *report, *exceptions;
    const char *child, *resume, *seed, *timeout; // texts of the options
    bool json, list;
};

// --- command line ----------------------------------------------------------------------

static int conformance_usage(const char *problem, const char *argument)
{
    fprintf(
        stderr,
        "tenon-conformance: %s%s\n"
        "usage: tenon check PLUGIN.so|DIRECTORY|ID [--json] [--seed N] [--report FILE]\n"
        "       [--only GLOB] [--devices GLOB] [--with BACKENDS] [--exceptions FILE]\n"
        "       [--examples FILE] [--samples N] [--timeout S]\n"
        "       tenon check --list\n",
        problem, argument);
    return STATUS_USAGE;
}

static int options_parse(struct kit_options *o, int argc, char **argv)
{
    const struct {
        const char *name;
        const char **text;
        bool *flag;
    } known[] = {
        {"--json", NULL, &o->json},
        {"--list", NULL, &o->list},
        {"--seed", &o->seed, NULL},
        {"--report", &o->report, NULL},
        {"--only", &o->run.only, NULL},
        {"--exceptions", &o->exceptions, NULL},
        {"--examples", &o->run.examples, NULL},
        {"--samples", &o->run.samples, NULL},
        {"--devices", &o->run.devices, NULL},
        {"--with", &o->run.with, NULL},
        {"--timeout", &o->timeout, NULL},
        {"--child", &o->child, NULL},
        {"--folder", &o->run.folder, NULL},
        {"--resume", &o->resume, NULL},
    };
    bool is_literal = false; // after "--"
    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        while (k < COUNT(known) && strcmp(known[k].name, argv[i]) != 0)
            k++;
        if (is_literal || k == COUNT(known)) {
            if (!is_literal && strcmp(argv[i], "--") == 0) {
                is_literal = true;
                continue;
            }
            if ((!is_literal && argv[i][0] == '-') || o->subject)
                return conformance_usage("unexpected argument ", argv[i]);
            o->subject = argv[i];
        } else if (known[k].flag) {
            *known[k].flag = true;
        } else if (i + 1 < argc) {
            *known[k].text = argv[++i];
        } else {
            return conformance_usage("no value after ", argv[i]);
        }
    }
    char *end = NULL;
    o->run.seed = o->seed ? strtoull(o->seed, &end, 0) : 1;
    if (o->seed && (*end || !*o->seed))
        return conformance_usage("not a number: ", o->seed);
    if (o->run.samples && (strtol(o->run.samples, &end, 10) < 1 || *end))
        return conformance_usage("not a number of samples: ", o->run.samples);
    o->run.timeout = o->timeout ? strtod(o->timeout, &end) : 30;
    if (o->timeout && (*end || !(o->run.timeout > 0)))
        return conformance_usage("not a number of seconds: ", o->timeout);
    return o->subject || o->list ? 0 : conformance_usage("no plugin given", "");
}

// --- the plugin ------------------------------------------------------------------------

// Finds the only shared object of a directory. False: there is none, or several.
static bool find_in_directory(const char *path, char file[PATH_MAX])
{
    DIR *directory = opendir(path);
    int found = 0;
    for (struct dirent *e; directory && (e = readdir(directory)) != NULL;)
        if (fnmatch("*.so", e->d_name, 0) == 0) {
            format_text(file, PATH_MAX, "%s/%s", path, e->d_name);
            found++;
        }
    if (directory)
        closedir(directory);
    return found == 1;
}

static bool find_installed(const char *id, char file[PATH_MAX])
{
    tn_runtime *runtime;
    bool found = false;
    if (tn_runtime_open(NULL, &runtime)) {
        fprintf(stderr, "tenon check: %s\n", tn_last_error());
        return false;
    }
    for (uint64_t i = 0; i < tn_plugin_count(runtime) && !found; i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        found = tn_plugin_get(runtime, i, &info) == TN_OK && strcmp(info.id, id) == 0 &&
                info.state != TN_PLUGIN_SHADOWED && info.file && info.file[0] &&
                realpath(info.file, file);
    }
    tn_runtime_close(runtime);
    return found;
}

static bool conformance_find_plugin(const char *subject, char file[PATH_MAX])
{
    struct stat info;
    char inside[PATH_MAX];
    if (stat(subject, &info) == 0 && S_ISDIR(info.st_mode))
        return find_in_directory(subject, inside) && realpath(inside, file);
    if (strchr(subject, '/') || fnmatch("*.so", subject, 0) == 0)
        return realpath(subject, file) != NULL;
    return find_installed(subject, file);
}

// --- running ---------------------------------------------------------------------------

// False when no check of the group can match `only`, judged by the letters before its first
// wildcard or dot.
static bool group_is_wanted(const struct check_group *group, const char *only)
{
    char whole[64];
    if (only && only[0] == '!') { // all but a group, "!suite.*", or but some checks
        format_text(whole, sizeof(whole), "%s.", group->name);
        return fnmatch(only + 1, whole, 0) != 0;
    }
    size_t plain = only ? strcspn(only, "*?[.") : 0, size = strlen(group->name);
    return strncmp(group->name, only ? only : "", plain < size ? plain : size) == 0;
}

static int remove_entry(const char *path, const struct stat *info, int kind,
                        struct FTW *ignored)
{
    (void)info, (void)kind, (void)ignored;
    return remove(path);
}

// Fails where the printed text has not arrived.
static int conformance_end_output(int status)
{
    if ((!ferror(stdout) && !fflush(stdout)) || status != STATUS_PASS)
        return status;
    fprintf(stderr, "tenon-conformance: cannot write the output\n");
    return STATUS_FAIL;
}

static int write_report(const struct report *report, const struct kit_options *o)
{
    FILE *out = o->report ? fopen(o->report, "w") : stdout;
    if (!out) {
        perror(o->report);
        return STATUS_USAGE;
    }
    if (o->json)
        report_json(report, out);
    else
        report_text(report, out);
    bool failed = o->report && ferror(out) != 0;
    if ((o->report && fclose(out)) || failed) {
        perror(o->report);
        return STATUS_USAGE;
    }
    if (o->report && !o->json)
        printf("%s: %s\n", report->counts[FAILED] ? "FAIL" : "PASS", o->report);
    return report->counts[FAILED] ? STATUS_FAIL : STATUS_PASS;
}

// Path of a file beside the plugin, or NULL when it does not exist.
static const char *conformance_find_beside(const char *file, const char *name,
                                           char path[PATH_MAX])
{
    const char *slash = strrchr(file, '/');
    format_text(path, PATH_MAX, "%.*s%s", slash ? (int)(slash - file) + 1 : 0, file, name);
    return access(path, R_OK) == 0 ? path : NULL;
}

static int conformance_run_all(struct kit_options *o, struct exceptions *exceptions)
{
    char folder[] = "/tmp/tenon-check-XXXXXX";
    struct timespec begin, end;
    struct report report = {.file = o->run.file,
                            .examples = o->run.examples,
                            .samples = o->run.samples,
                            .devices = o->run.devices,
                            .with = o->run.with,
                            .seed = o->run.seed};
    if (!mkdtemp(folder)) {
        perror("/tmp");
        return STATUS_USAGE;
    }
    o->run.folder = folder;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (const struct check_group *group = all_groups; group->name; group++)
        if (group_is_wanted(group, o->run.only))
            child_run(&report, &o->run, group->name);
    clock_gettime(CLOCK_MONOTONIC, &end);
    report.seconds =
        (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9;
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    report_settle(&report, exceptions);
    int status = report.count
                     ? write_report(&report, o)
                     : conformance_usage("nothing of this plugin is checked by --only ",
                                         o->run.only);
    report_finish(&report);
    return status;
}

static int conformance_run_child(const struct kit_options *o)
{
    const struct check_group *group = group_find(o->child);
    struct kit kit = {
        .checks = all_checks,
        .file = o->run.file,
        .folder = o->run.folder,
        .only = o->run.only,
        .devices = o->run.devices,
        .with = o->run.with,
        .examples = o->run.examples,
        .seed = o->run.seed,
        .samples = o->run.samples ? (uint32_t)strtoul(o->run.samples, NULL, 10) : 24,
        .resume = o->resume ? strtoull(o->resume, NULL, 10) : 0,
    };
    if (!group)
        return conformance_usage("no group is named ", o->child);
    group->run(&kit);
    fflush(NULL);
    _exit(0); // skips exit handlers, which the check process.exit covers
}

static int conformance_run_list(void)
{
    for (const struct check_info *check = all_checks; check->name; check++)
        printf("%-24s %-4s %s\n", check->name, check->requirement, check->expects);
    return conformance_end_output(STATUS_PASS);
}

int main(int argc, char **argv)
{
    struct kit_options o = {0};
    char file[PATH_MAX], examples[PATH_MAX], known[PATH_MAX];
    int status = options_parse(&o, argc, argv);
    if (status)
        return status;
    if (o.list)
        return conformance_run_list();
    if (!conformance_find_plugin(o.subject, file))
        return conformance_usage("no plugin there or of this name: ", o.subject);
    o.run.file = file;
    o.run.checks = all_checks;
    if (o.child)
        return conformance_run_child(&o);
    struct exceptions exceptions = {0};
    if (!o.run.examples)
        o.run.examples = conformance_find_beside(file, "check.examples.json", examples);
    if (!o.exceptions)
        o.exceptions = conformance_find_beside(file, "check.exceptions", known);
    status = o.exceptions && !exceptions_read(&exceptions, o.exceptions)
                 ? STATUS_USAGE
                 : conformance_run_all(&o, &exceptions);
    exceptions_finish(&exceptions);
    return conformance_end_output(status);
}
