// SPDX-License-Identifier: MIT
// All checks: name, requirement of docs/abi.md, and expected behaviour.
#include "checks.h"

const struct check_info all_checks[] = {
    // the file
    {"file.format", "P1", "a 64-bit ELF shared object for this processor"},
    {"file.exports", "P2", "tn_plugin_v1 is the one symbol that it exports"},
    {"file.links", "P3", "it links no library of Tenon's"},
    {"file.symbols", "P3", "each symbol that it needs is in a library that it names"},
    {"file.search-path", "P3", "RPATH and RUNPATH, if any, lie below $ORIGIN"},
    {"file.stack", "P4", "its stack need not be executable"},
    {"file.segments", "P4", "no segment is writable and executable"},
    {"file.text-relocations", "P4", "code is position-independent"},
    {"file.tls", "P5", "thread-local variables are of a dynamic model"},
    {"file.constructors", "P6", "nothing of its own runs when it is loaded"},
    {"file.destructors", "P6", "nothing of its own runs when it is unloaded"},
    {"file.unloadable", "P7", "nothing in the file keeps it from being unloaded"},
    {"file.note", "P8", "one Tenon note, with the magic number and a sane ABI range"},
    {"file.manifest", "P8", "plugin.json beside it, if any, belongs to this file"},
    // the symbol and its tables
    {"entry.loads", "P9", "dlopen with RTLD_NOW succeeds, and finds tn_plugin_v1"},
    {"entry.magic", "P9", "the magic number"},
    {"entry.size", "P9", "struct_size is the symbol's size and one that the headers have"},
    {"entry.reserved", "P9", "flags and reserved are 0"},
    {"entry.abi", "P9", "a range of ABI minors that holds one of this kit's"},
    {"entry.id", "P9", "an id in reverse-domain form, [a-z0-9.-]"},
    {"entry.version", "P9", "a semantic version"},
    {"entry.vendor", "P9", "a vendor's name"},
    {"entry.query", "P9", "query is there"},
    {"entry.identity", "P8", "symbol and note say the same"},
    {"entry.unknown", "P10", "query gives NULL for ids that it does not know"},
    {"entry.constant", "P10", "query gives the same table each time"},
    {"entry.brings", "P10", "it brings something, and all that it lists"},
    {"entry.selectors", "P10",
     "selectors are of its interfaces, and a manifest takes them"},
    {"entry.tables", "P11", "every table's size is known, and its entries are named"},
    {"entry.accepted", "P11", "today's core loads it and accepts every record"},
    {"entry.init", "P13", "init succeeds, and records no failure then"},
    // the process
    {"process.survives", "P12", "loading, init, deinit and unloading leave no damage"},
    {"process.rounding", "P12", "floating-point control is left alone"},
    {"process.environment", "P12", "the environment is left alone"},
    {"process.umask", "P12", "the umask is left alone"},
    {"process.limits", "P12", "resource limits are left alone"},
    {"process.locale", "P12", "the locale is left alone"},
    {"process.directory", "P12", "the working directory is left alone"},
    {"process.output", "P12", "nothing is printed: a plugin logs through the host"},
    {"process.signals", "P12", "handlers and masks of signals are left alone"},
    {"process.files", "P12", "no descriptor is left open, none of others closed"},
    {"process.init-threads", "P13", "init starts no thread"},
    {"process.threads", "P14", "no thread is left"},
    {"process.exit", "P14", "nothing is registered for the process's end"},
    // repeated loading
    {"reload.unloads", "P7", "dlclose takes its code out of the process"},
    {"reload.memory", "P15", "a hundred lives leave no memory behind"},
    {"reload.again", "P15", "init works again after deinit"},
    {"reload.threads", "P16", "a whole life on a thread that ends"},
    {"reload.other-thread", "P16", "deinit works on another thread than init"},
    // hosts
    {"host.size", "P18", "the host's table is read no further than its struct_size"},
    {"host.larger", "P18", "a newer host's unknown members are ignored"},
    {"host.services", "P19", "without services init succeeds, or says which it needs"},
    {"host.config", "P19", "odd values of variables are survived"},
    {"host.memory", "P20", "init fails cleanly when any one allocation does"},
    {"host.frees", "P20", "deinit gives back all memory of the host's"},
    {"host.retry", "P15", "init can be tried again after it failed"},
    {"host.two", "P17", "two runtimes' lives may overlap"},
    {"host.after", "P14", "the host is not used after deinit"},
    // shape rules
    {"infer.accepts", "P22", "applications are found that infer accepts"},
    {"infer.message", "P21", "infer says why it refuses, once, and never crashes"},
    {"infer.untouched", "P21", "infer writes its outputs when it succeeds, only"},
    {"infer.valid", "P22", "infer gives types that exist"},
    {"infer.pure", "P22", "infer allocates nothing and always gives the same"},
    {"infer.view", "P22", "a view is of the type that infer said, in its input's memory"},
    // attributes
    {"attrs.parse", "P25", "attributes, printed and parsed, are the same"},
    {"attrs.extremes", "P25", "odd attributes are refused or computed with"},
    // references
    {"reference.repeat", "P23", "the same inputs give the same outputs"},
    {"reference.complete", "P23", "every element of the outputs is written"},
    {"reference.guards", "P23", "nothing is written outside of the outputs"},
    {"reference.inputs", "P23", "inputs are not written to"},
    {"reference.layouts", "P23", "any layout of inputs and outputs gives the same"},
    {"reference.meanings", "P23", "reference, expression and decomposition agree"},
    // kernels
    {"kernel.values", "P24", "the kernel agrees with the primitive's definition"},
    {"kernel.threads", "P24", "however work is cut and spread over threads"},
    {"kernel.guards", "P24", "nothing is written outside of the outputs and scratch"},
    {"kernel.inputs", "P24", "inputs are not written to"},
    {"kernel.layouts", "P24", "any layout that its rules allow gives the same"},
    {"kernel.in-place", "P24", "declared pairs may share memory"},
    {"kernel.plan", "P50", "a plan keeps to the step, its scratch and the device's limits"},
    {"kernel.plan-pure", "P50", "equal steps get equal launches, wherever they lie"},
    // rules
    {"rules.vjp", "P26", "gradients agree with differences"},
    {"rules.jvp", "P26", "directional derivatives agree with differences"},
    {"rules.partial", "P26", "a cotangent or tangent that is NULL counts as zero"},
    {"rules.failure", "P27", "rules survive arrays that could not be built"},
    {"rules.vmap", "P28", "a batch gives what each of its slices gives"},
    // devices
    {"device.values", "P29", "on each device the primitive agrees with its definition"},
    {"device.layouts", "P29", "inputs that are views give the same"},
    {"device.repeated", "P29", "inputs that are broadcast in memory give the same"},
    {"device.donated", "P29", "inputs that are given away give the same"},
    {"device.kernel", "P29", "each kernel, chosen by name, agrees with the definition"},
    // a backend: its table and devices
    {"backend.table", "P30", "what is not optional is there; names and families are sound"},
    {"backend.count", "P31", "always the same number of devices, or why there are none"},
    {"backend.info", "P31", "every field is filled, and always the same"},
    {"backend.info-size", "P31", "no more than struct_size bytes are written"},
    {"backend.opens", "P32", "devices open twice at once, and again and again"},
    {"backend.frees", "P32", "closing gives back all memory of the host's"},
    {"backend.threads", "P32", "no thread is left when devices are closed"},
    {"backend.config", "P32",
     "odd values of variables are survived, or refused with words"},
    {"backend.memory", "P35", "device_open fails cleanly when any one allocation does"},
    // buffers
    {"buffer.sizes", "P33", "buffers of any size hold what is written, and do not overlap"},
    {"buffer.copies", "P33", "copies at any offset touch those bytes alone"},
    {"buffer.map", "P33", "mapped memory is aligned, constant and the same bytes"},
    {"buffer.huge", "P35", "sizes that cannot be are out of memory, with words"},
    {"buffer.memory", "P35", "buffer_create fails cleanly when any one allocation does"},
    {"buffer.frees", "P33", "buffers that come and go leave nothing behind"},
    {"buffer.info", "P34", "used, peak and reserved follow the buffers"},
    {"buffer.threads", "P36", "several threads use buffers at once"},
    {"import.bytes", "P47", "memory of the host is a buffer in place, and is left alone"},
    {"import.memory", "P35", "buffer_import fails cleanly when an allocation does"},
    {"share.fd", "P55", "memory goes by file descriptor, and is the same bytes there"},
    {"share.bad", "P55", "what is not such memory is refused, with words"},
    {"share.memory", "P35", "sharing memory fails cleanly when an allocation does"},
    {"share.copy", "P56", "buffer_copy copies those bytes, and no others"},
    // segments
    {"segment.values", "P39", "a program's results, in every dtype and layout it takes"},
    {"segment.order", "P38", "steps run as if one after the other"},
    {"segment.alias", "P38", "slots in the same memory are not mixed up"},
    {"segment.records", "P40", "steps, values, slots and bindings, longer than known"},
    {"segment.borrows", "P40", "nothing is borrowed but what the segment points to"},
    {"segment.empty", "P39", "no steps, and steps over no elements"},
    {"segment.operations", "P41", "what step_check takes compiles, what not has a reason"},
    {"segment.memory", "P35", "compiling and running fail cleanly without memory"},
    {"segment.frees", "P39", "executables that come and go leave nothing behind"},
    // the queue
    {"queue.points", "P37", "points grow, and can be waited for in any order"},
    {"queue.order", "P38", "submissions run one after the other"},
    {"queue.done", "P37", "when a point is reached its work is done"},
    {"queue.bindings", "P40", "bindings are borrowed by submit, and count each time"},
    {"queue.replay", "P39", "an executable runs again and again, leaving nothing behind"},
    {"queue.threads", "P36", "several threads wait and copy while work runs"},
    {"queue.apart", "P46", "work of one queue that does not end holds up no other queue"},
    {"queue.waits", "P46",
     "work begins after the points of other queues that it waits for"},
    {"queue.host", "P51", "work begins after the points of the host that it waits for"},
    {"queue.at-once", "P36", "many threads compile, submit and wait, on one executable"},
    {"queue.lost", "P43", "a lost device says so, and can be closed"},
    // kernels of other plugins
    {"family.cpu-call", "P44", "cpu.c/1 kernels get the call that kernel.h promises"},
    {"family.cpu-scratch", "P44", "scratch is there, of its size and aligned to 64"},
    {"family.cpu-loop", "P44", "parallel_for covers each number once, in large pieces"},
    {"family.cpu-reference", "P44", "references run where no kernel fits"},
    {"family.cpu-stages", "P44",
     "prepare, launches and finish of each step, also where a prepare fails"},
    {"family.cpu-constants", "P58",
     "prepare gets the arrays that are the same in each run"},
    {"family.cpu-fused", "P44", "operands of kernels pass through programs, also in place"},
    {"family.cpu-effects", "P44", "effects of one domain happen in the order of the steps"},
    {"family.cpu-failure", "P42",
     "a kernel's failure arrives each time it is asked for, and hurts no later work"},
    {"family.glsl", "P44", "vulkan.glsl/1 kernels run, with their push constants"},
    {"family.spirv", "P44", "vulkan.spirv/1 kernels run, with their push constants"},
    {"family.glsl-plan", "P44", "vulkan.glsl/1 kernels plan launches, which run in order"},
    {"family.spirv-plan", "P44",
     "vulkan.spirv/1 kernels plan launches, which run in order"},
    {"family.plan", "P49", "a plan that asks for what it may not is refused, with words"},
    {"family.damaged", "P41", "code that is damaged is refused, with words"},
    // a backend under a runtime, with the installed packs
    {"primitive.values", "P45", "every installed primitive agrees with its definition"},
    {"suite.test", "P45",
     "base and nn agree with plain C, over dtypes, layouts and odd values"},
    {"suite.ends", "P45", "the process that runs the suite ends normally"},
    // files of arrays
    {"format.values", "P48", "what is written is listed and read as it was"},
    {"format.damage", "P48",
     "damaged files are refused, with words, before they cost memory"},
    {"format.sink", "P48", "a file that cannot be written on ends `write`"},
    {"format.source", "P48", "a file that cannot be read on ends `list`"},
    {"format.memory", "P48", "running out of memory is told and leaves nothing"},
    // the end of a child process
    {"run.ends", "P21", "the process that runs the checks ends normally"},
    {0},
};

const struct group all_groups[] = {
    {"file", group_file},           {"entry", group_entry},
    {"process", group_process},     {"reload", group_reload},
    {"host", group_host},           {"infer", group_infer},
    {"attrs", group_attrs},         {"reference", group_reference},
    {"kernel", group_kernel},       {"rules", group_rules},
    {"device", group_device},       {"backend", group_backend},
    {"buffer", group_buffer},       {"import", group_import},
    {"share", group_share},         {"segment", group_segment},
    {"queue", group_queue},         {"family", group_family},
    {"primitive", group_primitive}, {"suite", group_suite},
    {"format", group_format},       {0},
};

const struct check_info *check_find(const char *name)
{
    for (const struct check_info *check = all_checks; check->name; check++)
        if (strcmp(check->name, name) == 0)
            return check;
    return NULL;
}

const struct group *group_find(const char *name)
{
    for (const struct group *group = all_groups; group->name; group++)
        if (strcmp(group->name, name) == 0)
            return group;
    return NULL;
}
