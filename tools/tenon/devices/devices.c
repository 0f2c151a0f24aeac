// SPDX-License-Identifier: MIT
// tenon devices: lists the devices of every installed backend.
#include "devices.h"
#include "commands.h"
#include "base/table.h"
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>

static const char details[] =
    "Loads every backend and asks its drivers, which takes a moment. The column \"use\" "
    "is\n"
    "the device's position in TENON_BACKEND; '-' is not used. To use one:\n"
    "\n"
    "  TENON_BACKEND=vulkan:0,cpu-blas tenon eval '1 + 1'\n"
    "\n"
    "With --probe, each backend is first tried in a process of its own. One that crashes\n"
    "there or does not answer in time is put in quarantine: it is not loaded until it\n"
    "changes ('tenon plugin retry ID' ends that).\n";

// "16.0 GB"; "-" when unknown.
static json_t *memory_text(uint64_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1000 && unit + 1 < COUNT(units); unit++)
        value /= 1000;
    return bytes ? json_sprintf("%.*f %s", unit ? 1 : 0, value, units[unit])
                 : json_string("-");
}

static json_t *devices_command_row_of(const tn_device_summary *d)
{
    json_t *row =
        json_pack("{s:s, s:s, s:i, s:i, s:s, s:s, s:s, s:I, s:o, s:s}", "backend",
                  d->backend, "plugin", d->plugin, "index", (int)d->index, "selected",
                  (int)d->selected, "name", d->name, "driver", d->driver, "features",
                  d->features, "memory_size", (json_int_t)d->memory_size, "memory",
                  memory_text(d->memory_size), "reason", d->reason ? d->reason : "");
    json_object_set_new(row, "libraries", json_string(d->libraries));
    json_object_set_new(row, "warning", json_string(d->warning));
    json_object_set_new(row, "remedy", json_string(d->remedy));
    json_object_set_new(
        row, "with",
        json_sprintf("%s%s%s", d->driver, d->libraries[0] ? "; " : "", d->libraries));
    bool absent = d->reason && d->reason[0];
    json_object_set_new(row, "device",
                        absent ? json_string(d->backend)
                               : json_sprintf("%s:%u", d->backend, d->index));
    json_object_set_new(row, "use",
                        d->selected ? json_integer((json_int_t)d->selected) : json_null());
    return row;
}

static int devices_command_print_rows(const json_t *rows)
{
    static const struct column columns[] = {
        {"device", "device"}, {"use", "use"},     {"name", "name"},
        {"memory", "memory"}, {"with", "driver"}, {"features", "features"},
    };
    if (!json_array_size(rows)) {
        say("no backend is installed; 'tenon plugins' lists what is\n");
        return 0;
    }
    int failed = table_print(rows, columns, COUNT(columns));
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        const char *reason = text_of(row, "reason"), *warning = text_of(row, "warning");
        if (reason[0])
            say("\n%s has no device: %s\n", text_of(row, "backend"), reason);
        if (warning[0])
            say("\n%s: %s: %s\n", text_of(row, "device"), warning, text_of(row, "remedy"));
    }
    return failed;
}

int devices_json(tn_runtime *runtime, json_t *rows)
{
    uint64_t count = 0;
    if (tn_devices(runtime, NULL, &count))
        return oops_library();
    tn_device_summary *devices = calloc(count + 1, sizeof(*devices));
    if (!devices)
        return oops_memory();
    for (uint64_t i = 0; i < count; i++)
        devices[i].struct_size = sizeof(*devices);
    int failed = tn_devices(runtime, devices, &count) ? oops_library() : 0;
    for (uint64_t i = 0; !failed && i < count; i++)
        json_array_append_new(rows, devices_command_row_of(&devices[i]));
    free(devices);
    return failed;
}

static int devices_command_list(bool json)
{
    tn_runtime *runtime;
    int failed = open_runtime(&runtime);
    if (failed)
        return failed;
    json_t *rows = json_array();
    failed = devices_json(runtime, rows);
    if (!failed)
        failed = json ? json_print(rows) : devices_command_print_rows(rows);
    json_decref(rows);
    tn_runtime_close(runtime);
    return failed;
}

int cmd_devices(const struct command *self, int argc, char **argv)
{
    struct command mine = *self;
    mine.details = details;
    bool json = false, probe = false;
    const char *timeout = "30";
    const struct option options[] = {
        {"probe", 0, NULL, "try each backend in a process of its own", NULL, &probe},
        {"timeout", 0, "S", "seconds that one may take with --probe (30)", &timeout, NULL},
        {"json", 0, NULL, "print JSON", NULL, &json}};
    struct args args;
    int64_t seconds = 0;
    int failed = args_parse(&mine, options, COUNT(options), 0, 0, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    failed = args_integer("timeout", timeout, 1, 3600, &seconds);
    if (!failed && probe)
        failed = probe_backends((int)seconds);
    return failed ? failed : devices_command_list(json);
}
