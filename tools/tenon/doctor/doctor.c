// SPDX-License-Identifier: MIT
// tenon doctor: what is installed, what is wrong, what to do.
#include "commands.h"
#include "base/table.h"
#include "doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char details[] =
    "Looks at variables, folders of plugins, each plugin, trust, the cache, drivers and\n"
    "devices. Code of plugins runs in processes of its own, with a time limit. The status\n"
    "is 0 when nothing is wrong, else 1.\n";

static const char *const kinds[] = {[GOOD] = "good", [NOTE] = "note", [WRONG] = "wrong"};

void found(struct doctor *doctor, enum finding kind, const char *topic, const char *remedy,
           const char *format, ...)
{
    char text[1200];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    json_t *said = json_string(text);
    for (char *c = text; !said && *c; c++) // not UTF-8: bytes beyond ASCII are replaced
        *c = *c & 0x80 ? '?' : *c;
    json_array_append_new(doctor->findings,
                          json_pack("{s:s, s:s, s:o, s:s}", "topic", topic, "kind",
                                    kinds[kind], "text", said ? said : json_string(text),
                                    "remedy", remedy ? remedy : ""));
    doctor->num_wrong += kind == WRONG;
}

bool run_child(struct doctor *doctor, const char *topic, const char *const *args,
               const char *const *variables, struct child *out)
{
    if (child_run(args, variables, doctor->seconds, out) == 0)
        return true;
    found(doctor, WRONG, topic, NULL,
          "'tenon %s' was not examined: no process could be started", args[0]);
    return false;
}

static void doctor_print_findings(const json_t *findings)
{
    const char *last = "";
    size_t i;
    json_t *finding;
    say("tenon %s\n", TN_VERSION);
    json_array_foreach(findings, i, finding)
    {
        const char *topic = text_of(finding, "topic"), *kind = text_of(finding, "kind");
        bool wrong = strcmp(kind, kinds[WRONG]) == 0;
        say_line("%-10s %-6s %s", strcmp(topic, last) ? topic : "", wrong ? "WRONG" : kind,
                 text_of(finding, "text"));
        if (*text_of(finding, "remedy"))
            say_line("%-10s %-6s to do: %s", "", "", text_of(finding, "remedy"));
        last = topic;
    }
}

static void doctor_examine(struct doctor *doctor)
{
    examine_variables(doctor);
    examine_folders(doctor);
    examine_plugins(doctor);
    examine_trust(doctor);
    examine_processor(doctor);
    examine_drivers(doctor);
    examine_devices(doctor);
    examine_run(doctor);
    examine_cache(doctor);
}

static int doctor_report(const struct doctor *doctor, bool json)
{
    int failed = 0;
    if (json) {
        json_t *all = json_pack("{s:s, s:i, s:O}", "version", TN_VERSION, "wrong",
                                (int)doctor->num_wrong, "findings", doctor->findings);
        failed = json_print(all);
        json_decref(all);
    } else {
        doctor_print_findings(doctor->findings);
        if (!doctor->num_wrong)
            say("Nothing is wrong.\n");
    }
    // A child that could not be started added no finding; doctor itself did not fail.
    forget_oops();
    if (!failed && doctor->num_wrong)
        failed = oops("%u thing%s wrong", doctor->num_wrong,
                      doctor->num_wrong == 1 ? " is" : "s are");
    return failed;
}

int cmd_doctor(const struct command *self, int argc, char **argv)
{
    struct command mine = *self;
    mine.details = details;
    bool json = false;
    const char *timeout = "30";
    int64_t seconds;
    const struct option options[] = {
        {"json", 0, NULL, "print JSON", NULL, &json},
        {"timeout", 0, "S", "seconds that a driver may take (30)", &timeout, NULL}};
    struct args args;
    int failed = args_parse(&mine, options, COUNT(options), 0, 0, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    failed = args_integer("timeout", timeout, 1, 3600, &seconds);
    if (failed)
        return failed;
    struct doctor doctor = {.findings = json_array(), .seconds = (int)seconds};
    doctor_examine(&doctor);
    failed = doctor_report(&doctor, json);
    json_decref(doctor.findings);
    tn_runtime_close(doctor.runtime);
    return failed;
}
