// SPDX-License-Identifier: MIT
// tenon doctor: variables. A child opens a runtime, and its warnings become findings.
#include "base/child.h"
#include "doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Turns a warning, "tenon: warn: config: ...", into a finding. Other warnings of plugins
// are left to the other examinations.
static void doctor_variables_read_line(struct doctor *doctor, const char *line)
{
    static const char config[] = "tenon: warn: config: ",
                      plugin[] = "tenon: warn: plugin: ";
    if (strncmp(line, config, strlen(config)) == 0) {
        found(doctor, WRONG, "variables", NULL, "%s", line + strlen(config));
    } else if (strncmp(line, plugin, strlen(plugin)) == 0) {
        const char *text = line + strlen(plugin);
        bool key = strstr(text, ".pub is not used") || strstr(text, "no key is trusted");
        if (key || strncmp(text, "TENON_", 6) == 0)
            found(doctor, WRONG, key ? "trust" : "variables", NULL, "%s", text);
    }
}

// Opens a runtime in a child and reads its warnings, which TENON_LOG may otherwise hide.
static void open_in_child(struct doctor *doctor)
{
    static const char *const args[] = {"plugins", "--json", NULL};
    const char *log = getenv("TENON_LOG");
    char variable[512];
    snprintf(variable, sizeof(variable), "TENON_LOG=%s%sconfig=warn,plugin=warn",
             log ? log : "", log && *log ? "," : "");
    const char *const variables[] = {variable, NULL};
    struct child child;
    if (!run_child(doctor, "variables", args, variables, &child))
        return;
    char *text = child.err, *line;
    while ((line = strsep(&text, "\n")))
        doctor_variables_read_line(doctor, line);
    child_finish(&child);
}

static void open_here(struct doctor *doctor)
{
    static const char *const quiet[] = {"TENON_LOG=off", NULL};
    const tn_runtime_options options = {.struct_size = sizeof(options), .variables = quiet};
    if (tn_runtime_open(&options, &doctor->runtime))
        found(doctor, WRONG, "variables", "correct it or unset it", "%s", tn_last_error());
}

static unsigned list_set(char *text, size_t size)
{
    unsigned count = 0;
    size_t used = 0;
    text[0] = '\0';
    for (char **entry = environ; *entry; entry++)
        if (strncmp(*entry, "TENON_", 6) == 0 && used < size) {
            used += (size_t)snprintf(text + used, size - used, "%s%s", count ? ", " : "",
                                     *entry);
            count++;
        }
    return count;
}

void examine_variables(struct doctor *doctor)
{
    char text[800];
    unsigned before = doctor->num_wrong, count = list_set(text, sizeof(text));
    open_here(doctor);
    if (doctor->runtime)
        open_in_child(doctor);
    if (doctor->num_wrong == before)
        found(doctor, GOOD, "variables", NULL, "%s", count ? text : "none is set");
}
