// SPDX-License-Identifier: MIT
// tenon doctor: Vulkan's drivers, devices, and one evaluation. Drivers run in child
// processes.
#include "base/child.h"
#include "base/table.h"
#include "doctor.h"
#include "files/paths.h"
#include "devices/probe.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- Vulkan's drivers --------------------------------------------------------------------

// Appends the names of the driver manifests in a folder. Returns how many there are.
static unsigned add_manifests(const char *folder, const char *below, char *text,
                              size_t size)
{
    char pattern[1024];
    glob_t found = {0};
    size_t used = strlen(text);
    snprintf(pattern, sizeof(pattern), "%s%s/*.json", folder, below);
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && used < size; i++)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                                     strrchr(found.gl_pathv[i], '/') + 1);
    unsigned count = (unsigned)found.gl_pathc;
    globfree(&found);
    return count;
}

static unsigned list_manifests(char *text, size_t size)
{
    static const char *const system[] = {"/etc", "/usr/local/etc", "/usr/local/share",
                                         "/usr/share"};
    char *home;
    unsigned count = 0;
    for (size_t i = 0; i < COUNT(system); i++)
        count += add_manifests(system[i], "/vulkan/icd.d", text, size);
    if (user_data("vulkan/icd.d", &home) && home)
        count += add_manifests(home, "", text, size);
    free(home);
    return count;
}

void examine_drivers(struct doctor *doctor)
{
    char text[600] = "";
    const char *given = getenv("VK_DRIVER_FILES");
    if (!has_device_kernels(doctor, "vulkan."))
        return;
    if (!given || !*given)
        given = getenv("VK_ICD_FILENAMES");
    if (given && *given)
        found(doctor, NOTE, "Vulkan", NULL, "drivers are those that a variable names: %s",
              given);
    else if (list_manifests(text, sizeof(text)))
        found(doctor, GOOD, "Vulkan", NULL, "drivers: %s", text);
    else
        found(doctor, NOTE, "Vulkan",
              "install the GPU's driver, or mesa-vulkan-drivers for a software one",
              "no driver is installed");
}

// --- devices ---------------------------------------------------------------------------

// True when TENON_BACKEND names this backend without "?", which allows for its absence.
static bool doctor_devices_is_wanted(const struct doctor *doctor, const char *backend)
{
    const char *list = tn_config(doctor->runtime, "TENON_BACKEND");
    size_t length = strlen(backend);
    while (list && *list) {
        size_t size = strcspn(list, ",");
        if (strncmp(list, backend, length) == 0 && strcspn(list, ":,?") == length &&
            list[size - 1] != '?')
            return true;
        list += size + (list[size] == ',');
    }
    return false;
}

static void doctor_say_device(struct doctor *doctor, const json_t *row)
{
    const char *backend = text_of(row, "backend"), *reason = text_of(row, "reason");
    json_int_t position = json_integer_value(json_object_get(row, "selected"));
    char use[48] = "";
    if (position > 0)
        snprintf(use, sizeof(use), ", number %d of those that are used", (int)position);
    bool wrong = doctor_devices_is_wanted(doctor, backend) || strstr(reason, "quarantine");
    if (reason[0])
        found(doctor, wrong ? WRONG : NOTE, "devices", NULL, "%s has no device: %s",
              backend, reason);
    else
        found(doctor, GOOD, "devices", NULL, "%s: %s%s", text_of(row, "device"),
              text_of(row, "name"), use);
}

static void say_libraries(struct doctor *doctor, const json_t *row)
{
    const char *warning = text_of(row, "warning"), *libraries = text_of(row, "libraries");
    if (warning[0])
        found(doctor, WRONG, "libraries", text_of(row, "remedy"), "%s: %s",
              text_of(row, "device"), warning);
    else if (libraries[0])
        found(doctor, GOOD, "libraries", NULL, "%s: %s", text_of(row, "device"), libraries);
}

static int say_fault(void *context, const char *id, const char *fault, bool is_own)
{
    found(context, WRONG, "devices",
          is_own ? "'tenon devices --probe' keeps it from being loaded until it changes; "
                   "report it"
                 : "try again: what ended it was no fault of its own",
          "%s %s while it listed its devices", id, fault);
    return 0;
}

static void say_devices(struct doctor *doctor, const char *text)
{
    json_t *rows = json_loads(text, 0, NULL), *row;
    size_t i;
    json_array_foreach(rows, i, row) doctor_say_device(doctor, row);
    json_array_foreach(rows, i, row) say_libraries(doctor, row);
    json_decref(rows);
}

void examine_devices(struct doctor *doctor)
{
    static const char *const args[] = {"devices", "--json", NULL};
    static const char *const variables[] = {"TENON_LOG=off", NULL};
    char fault[CHILD_FAULT];
    struct child child;
    if (!doctor->runtime || !run_child(doctor, "devices", args, variables, &child))
        return;
    if (child_fault(&child, fault)) {
        unsigned before = doctor->num_wrong;
        probe_each(doctor->runtime, doctor->seconds, say_fault, doctor);
        if (doctor->num_wrong == before)
            found(doctor, WRONG, "devices", NULL, "'tenon devices' %s", fault);
    } else {
        say_devices(doctor, child.out);
    }
    child_finish(&child);
}

// --- one evaluation --------------------------------------------------------------------

// The first line of a child's error output, without "tenon: ".
static const char *first_line(char *text)
{
    text[strcspn(text, "\n")] = '\0';
    return strncmp(text, "tenon: ", 7) == 0 ? text + 7 : text;
}

void examine_run(struct doctor *doctor)
{
    static const char *const args[] = {"eval", "[1.0] + 1", NULL};
    static const char *const variables[] = {"TENON_LOG=off",
                                            "TENON_TRACE=", "TENON_WHY=", NULL};
    char fault[CHILD_FAULT];
    struct child child;
    if (!doctor->runtime || !run_child(doctor, "run", args, variables, &child))
        return;
    if (child_fault(&child, fault))
        found(doctor, WRONG, "run", NULL, "tenon eval '[1.0] + 1' %s", fault);
    else if (child.status)
        found(doctor, WRONG, "run", NULL, "tenon eval '[1.0] + 1': %s",
              first_line(child.err));
    else
        found(doctor, GOOD, "run", NULL, "tenon eval '[1.0] + 1' computes");
    child_finish(&child);
}
