// SPDX-License-Identifier: MIT
// The exported symbol, and the tables from query: sizes, names, numbers. Attributes, inputs
// and expressions of primitives are validated by the core, when entry.accepted loads the
// plugin.
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <regex.h>
#include <tenon/launches.h>
#include "groups.h"
#include "../kit/elf_file.h"
#include "../kit/subject.h"

static bool entry_group_matches(const char *text, const char *pattern)
{
    regex_t compiled;
    if (!text || regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB))
        return false;
    bool good = regexec(&compiled, text, 0, NULL, 0) == 0;
    regfree(&compiled);
    return good;
}

// --- the symbol ------------------------------------------------------------------------

static void check_entry_header(struct kit *k, const struct subject *s)
{
    const tn_plugin *e = s->entry;
    if (check_begin(k, "entry.magic", NULL)) {
        if (e->magic != TN_PLUGIN_MAGIC)
            check_fail(k, "magic is %#llx, expected %#llx", (unsigned long long)e->magic,
                       (unsigned long long)TN_PLUGIN_MAGIC);
        check_end(k);
    }
    if (check_begin(k, "entry.size", NULL)) {
        if (e->struct_size != sizeof(*e))
            check_fail(k, "struct_size is %u, expected %zu, which these headers know",
                       e->struct_size, sizeof(*e));
        // Sanitizers put poisoned memory behind variables.
        uint64_t behind = e->sanitizer == TN_SANITIZER_NONE ? 0 : 64;
        if (s->entry_size &&
            (s->entry_size < e->struct_size || s->entry_size > e->struct_size + behind))
            check_fail(k, "struct_size is %u, but the symbol has %llu bytes",
                       e->struct_size, (unsigned long long)s->entry_size);
        check_end(k);
    }
    if (check_begin(k, "entry.reserved", NULL)) {
        if (e->flags || e->reserved)
            check_fail(k, "flags are %#x and reserved is %#x, expected 0", e->flags,
                       e->reserved);
        check_end(k);
    }
    if (check_begin(k, "entry.abi", NULL)) {
        if (e->abi_minor_min > e->abi_minor_max || e->abi_minor_min > TN_ABI_MINOR)
            check_fail(k, "it speaks ABI minors %u to %u, this kit 0 to %u",
                       e->abi_minor_min, e->abi_minor_max, TN_ABI_MINOR);
        check_end(k);
    }
}

static void check_entry_texts(struct kit *k, const tn_plugin *e)
{
    if (check_begin(k, "entry.id", NULL)) {
        if (!entry_group_matches(e->id, "^[a-z0-9][a-z0-9-]*(\\.[a-z0-9-]+)+$") ||
            strlen(e->id) > 63)
            check_fail(k,
                       "id is '%.80s', expected a reverse domain of [a-z0-9.-], at most "
                       "63 bytes",
                       e->id ? e->id : "NULL");
        check_end(k);
    }
    if (check_begin(k, "entry.version", NULL)) {
        if (!entry_group_matches(e->version, "^[0-9]{1,9}[.][0-9]{1,9}[.][0-9]{1,9}"
                                             "([-+][0-9A-Za-z.+-]+)?$") ||
            strlen(e->version) > 31)
            check_fail(k,
                       "version is '%.80s', expected MAJOR.MINOR.PATCH, at most 31 "
                       "bytes",
                       e->version ? e->version : "NULL");
        check_end(k);
    }
    if (check_begin(k, "entry.vendor", NULL)) {
        if (!e->vendor || !e->vendor[0] || strlen(e->vendor) > 63)
            check_fail(k, "vendor is '%.80s', expected 1 to 63 bytes",
                       e->vendor ? e->vendor : "NULL");
        check_end(k);
    }
}

static void check_entry_identity(struct kit *k, const tn_plugin *e)
{
    struct elf_file elf;
    tn_note note = {0};
    if (!check_begin(k, "entry.identity", NULL))
        return;
    if (elf_read(&elf, k->file) || elf_notes(&elf, &note) != 1)
        check_skip(k, "there is no one note to compare with");
    else if (strcmp(e->id, note.id) != 0 || strcmp(e->version, note.version) != 0 ||
             strcmp(e->vendor, note.vendor) != 0)
        check_fail(k, "the symbol says %s %s of %s, the note %.63s %.31s of %.63s", e->id,
                   e->version, e->vendor, note.id, note.version, note.vendor);
    else if (e->abi_minor_min != note.abi_minor_min ||
             e->abi_minor_max != note.abi_minor_max || e->sanitizer != note.sanitizer)
        check_fail(k, "symbol and note differ in ABI range or sanitizer");
    if (e->sanitizer != TN_SANITIZER_HERE)
        check_fail(k, "its sanitizer tag is %u, this kit's %d: a process has one",
                   e->sanitizer, TN_SANITIZER_HERE);
    elf_finish(&elf);
    check_end(k);
}

// --- query -----------------------------------------------------------------------------

static const char *const interfaces[] = {
    TN_IFACE_OPS,         TN_IFACE_OPS_CHECK, TN_IFACE_BACKEND,
    TN_IFACE_DEVICE_LOSS, "tn.format/1",      "tn.model/1",
    "tn.tokenizer/1",     "tn.collective/1",  TN_IFACE_LIST};

// Selectors belong to interfaces that query answers. Selectors that the core would refuse
// in a manifest fail here, where the plugin's author looks.
static void check_entry_selectors(struct kit *k, const tn_plugin *e)
{
    const tn_selectors *own = e->query(TN_IFACE_SELECTORS);
    if (!check_begin(k, "entry.selectors", NULL))
        return;
    if (!own)
        check_skip(k, "it has no selectors");
    for (uint32_t i = 0; own && i < own->num_items; i++) {
        const tn_selector *s =
            (const void *)((const char *)own->items + (uint64_t)i * own->item_size);
        check_case(k);
        if (!s->interface || !s->kind || !s->value)
            check_fail(k, "selector %u has a member that is NULL", i);
        else if (!e->query(s->interface))
            check_fail(k, "selector %u is of \"%s\", for which query gives NULL", i,
                       s->interface);
        else if (!s->kind[0] ||
                 strspn(s->kind, "abcdefghijklmnopqrstuvwxyz0123456789-") !=
                     strlen(s->kind) ||
                 strlen(s->kind) > 31)
            check_fail(k, "selector %u is of kind \"%s\", expected [a-z][a-z0-9-]*", i,
                       s->kind);
        else if (!s->value[0] || strlen(s->value) > 127)
            check_fail(k, "selector %u has a value of %zu bytes, expected 1 to 127", i,
                       strlen(s->value));
        else if (strcmp(s->kind, TN_SELECT_MAGIC) == 0 &&
                 (strspn(s->value, "0123456789abcdef?") != strlen(s->value) ||
                  strlen(s->value) % 2))
            check_fail(k, "selector %u is \"%s\", expected bytes in hexadecimal, or ??", i,
                       s->value);
    }
    check_end(k);
}

// Interfaces that Tenon does not define are named in the plugin's TN_IFACE_LIST.
static void check_entry_listed(struct kit *k, const tn_plugin *e)
{
    const char *const *name = e->query(TN_IFACE_LIST);
    for (; name && *name; name++) {
        check_case(k);
        if (!e->query(*name))
            check_fail(k, "it lists \"%s\", and query gives NULL for that", *name);
    }
}

static void check_entry_query(struct kit *k, const tn_plugin *e)
{
    static const char *const unknown[] = {"", "tn.ops/2", "tn.ops", "tn.ops/10",
                                          "com.nobody.nothing/1"};
    if (check_begin(k, "entry.unknown", NULL)) {
        for (size_t i = 0; i < COUNT(unknown); i++) {
            check_case(k);
            if (e->query(unknown[i]))
                check_fail(k, "query(\"%s\") gives something", unknown[i]);
        }
        check_end(k);
    }
    if (check_begin(k, "entry.constant", NULL)) {
        for (size_t i = 0; i < COUNT(interfaces); i++) {
            check_case(k);
            char copy[32]; // a copy: query has to compare the text, not the pointer
            format_text(copy, sizeof(copy), "%s", interfaces[i]);
            if (e->query(interfaces[i]) != e->query(copy))
                check_fail(k, "query(\"%s\") gives another table each time", copy);
        }
        check_end(k);
    }
    if (check_begin(k, "entry.brings", NULL)) {
        bool any = false;
        for (size_t i = 0; i < COUNT(interfaces); i++)
            any |= e->query(interfaces[i]) != NULL;
        const tn_ops *ops = e->query(TN_IFACE_OPS);
        if (!any)
            check_warn(k, "it brings no interface that Tenon knows");
        else if (ops && ops->num_primitives + ops->num_kernels == 0)
            check_warn(k, "its operator pack is empty");
        check_entry_listed(k, e);
        check_end(k);
    }
}

// --- tables ----------------------------------------------------------------------------

static void check_entry_size(struct kit *k, const char *what, const void *table,
                             uint32_t known)
{
    const uint32_t *size = table;
    check_case(k);
    if (!table)
        check_fail(k, "%s is NULL", what);
    else if (*size != known)
        check_fail(k, "%s: struct_size is %u, expected %u", what, *size, known);
}

static void check_entry_modules(struct kit *k, const char *what,
                                const tn_vulkan_kernel *kernel)
{
    if (!kernel->modules || !kernel->num_modules ||
        kernel->module_size != sizeof(tn_vulkan_module)) {
        check_fail(k, "%s: got %u modules of %u bytes, expected at least one of %u", what,
                   kernel->num_modules, kernel->module_size,
                   (unsigned)sizeof(tn_vulkan_module));
        return;
    }
    for (uint32_t i = 0; i < kernel->num_modules; i++)
        if ((!kernel->modules[i].code && !kernel->unpack) || !kernel->modules[i].code_size)
            check_fail(k, "%s: module %u has no code", what, i);
    if (kernel->num_push > 32 || (kernel->num_push && !kernel->push) ||
        (!kernel->plan && !kernel->elements_per_group))
        check_fail(k, "%s: no plan, and a wrong number of push fields or of elements",
                   what);
}

static void check_entry_payload(struct kit *k, const tn_kernel *kernel)
{
    const tn_vulkan_kernel *vulkan = kernel->payload;
    const tn_cpu_kernel *cpu = kernel->payload;
    char what[120];
    format_text(what, sizeof(what), "payload of kernel '%s'", kernel->name);
    if (strcmp(kernel->family, TN_FAMILY_CPU) == 0) {
        check_entry_size(k, what, kernel->payload, sizeof(tn_cpu_kernel));
        if (cpu && !cpu->launch)
            check_fail(k, "%s: launch is NULL", what);
    } else if (strncmp(kernel->family, "vulkan.", 7) == 0) {
        check_entry_size(k, what, kernel->payload, sizeof(tn_vulkan_kernel));
        if (vulkan)
            check_entry_modules(k, what, vulkan);
    }
}

// Checks the element size that stands beside an array in a table.
static void check_entry_elements(struct kit *k, const char *id, const char *what,
                                 const void *array, uint64_t got, uint64_t expected)
{
    if (array && got != expected)
        check_fail(k, "%s: %s is %llu, expected %llu", id, what, (unsigned long long)got,
                   (unsigned long long)expected);
}

static void check_entry_primitive(struct kit *k, const tn_primitive *p)
{
    const char *id = p && p->id ? p->id : "a primitive";
    check_entry_size(k, id, p, sizeof(*p));
    if (!p)
        return;
    check_entry_elements(k, id, "attrs.field_size",
                         p->attrs.num_fields ? p->attrs.fields : NULL, p->attrs.field_size,
                         sizeof(tn_attr_field));
    check_entry_elements(k, id, "input_size", p->inputs, p->input_size,
                         sizeof(tn_input_info));
    check_entry_elements(k, id, "output_size", p->outputs, p->output_size,
                         sizeof(tn_output_info));
    check_entry_elements(k, id, "in_place_size", p->in_place, p->in_place_size,
                         sizeof(tn_in_place));
    if (!p->doc || !p->doc[0])
        check_warn(k, "%s has no doc", p->id);
}

static void check_entry_ops(struct kit *k, const tn_ops *ops)
{
    check_entry_size(k, "tn_ops", ops, sizeof(*ops));
    for (uint32_t i = 0; i < ops->num_primitives; i++)
        check_entry_primitive(k, ops->primitives[i]);
    for (uint32_t i = 0; i < ops->num_kernels; i++) {
        const tn_kernel *kernel = ops->kernels[i];
        check_entry_size(k, kernel && kernel->name ? kernel->name : "a kernel", kernel,
                         sizeof(*kernel));
        if (!kernel)
            continue;
        check_entry_elements(k, kernel->name ? kernel->name : "a kernel", "operand_size",
                             kernel->operands, kernel->operand_size,
                             sizeof(tn_operand_rule));
        if (!kernel->primitive || !kernel->family || !kernel->name)
            check_fail(k, "kernel %u lacks primitive, kernel family or name", i);
        else
            check_entry_payload(k, kernel);
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(ops->kernels[j]->primitive, kernel->primitive) == 0 &&
                strcmp(ops->kernels[j]->name, kernel->name) == 0 &&
                strcmp(ops->kernels[j]->family, kernel->family) == 0)
                check_fail(k, "two kernels for %s are named '%s'", kernel->primitive,
                           kernel->name);
    }
}

static void check_entry_tables(struct kit *k, const tn_plugin *e)
{
    if (!check_begin(k, "entry.tables", NULL))
        return;
    const tn_ops *ops = e->query(TN_IFACE_OPS);
    const tn_ops_check *check = e->query(TN_IFACE_OPS_CHECK);
    const tn_backend *backend = e->query(TN_IFACE_BACKEND);
    if (ops)
        check_entry_ops(k, ops);
    if (check)
        check_entry_size(k, "tn_ops_check", check, sizeof(*check));
    if (backend)
        check_entry_size(k, "tn_backend", backend, sizeof(*backend));
    const tn_device_loss *loss = e->query(TN_IFACE_DEVICE_LOSS);
    if (loss)
        check_entry_size(k, "tn_device_loss", loss, sizeof(*loss));
    if (loss && (!loss->lose || !backend))
        check_fail(k, "%s without %s", TN_IFACE_DEVICE_LOSS,
                   backend ? "lose" : "a backend");
    const tn_launches *launches = e->query(TN_IFACE_LAUNCHES);
    if (launches)
        check_entry_size(k, "tn_launches", launches, sizeof(*launches));
    if (launches && (!launches->watch || !backend))
        check_fail(k, "%s without %s", TN_IFACE_LAUNCHES, backend ? "watch" : "a backend");
    check_end(k);
}

// Loads the plugin with the core, which validates each record.
static void check_entry_accepted(struct kit *k, const tn_plugin *e)
{
    const char *why = "";
    if (!check_begin(k, "entry.accepted", NULL))
        return;
    tn_runtime *runtime = subject_runtime(k, NULL, &why);
    const tn_ops *ops = e->query(TN_IFACE_OPS);
    if (!runtime)
        check_fail(k, "%s", why);
    else if (tn_plugin_load(runtime, e->id))
        check_fail(k, "%s", tn_last_error());
    for (uint32_t i = 0; runtime && ops && i < ops->num_primitives; i++) {
        check_case(k);
        if (!check_failed(k) && !tn_primitive_find(runtime, ops->primitives[i]->id))
            check_fail(k, "%s", tn_last_error());
    }
    tn_runtime_close(runtime);
    check_end(k);
}

static void check_entry_init(struct kit *k, struct subject *s)
{
    struct fake_host host;
    if (!check_begin(k, "entry.init", NULL))
        return;
    if (!fake_host_init(&host, 0))
        check_skip(k, "out of memory");
    else if (subject_start(s, &host) != TN_OK)
        check_fail(k, "init fails: %s", host.failures ? host.text : "and does not say why");
    else if (host.failures)
        check_fail(k, "init succeeds, but recorded a failure: %s", host.text);
    if (host.table)
        subject_stop(s, &host);
    if (host.misuses)
        check_fail(k, "%s", host.misuse);
    fake_host_finish(&host);
    check_end(k);
}

// Checks the tables between init and deinit. A failure of init is reported by entry.init.
static void check_entry_started(struct kit *k, struct subject *s)
{
    struct fake_host host;
    if (fake_host_init(&host, 0) && subject_start(s, &host) == TN_OK) {
        check_entry_query(k, s->entry);
        check_entry_selectors(k, s->entry);
        check_entry_tables(k, s->entry);
        check_entry_accepted(k, s->entry);
        subject_stop(s, &host);
    }
    fake_host_finish(&host);
}

// The file's text, ended by a NUL; free it. NULL: it cannot be read.
static char *text_of_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t size = 0;
    if (file && getdelim(&text, &size, 0, file) < 0) {
        free(text);
        text = NULL;
    }
    if (file)
        fclose(file);
    return text;
}

// The number of the first line in which the texts differ.
static size_t line_of_difference(const char *a, const char *b)
{
    size_t line = 1;
    for (; *a && *a == *b; a++, b++)
        line += *a == '\n';
    return line;
}

static void check_entry_operators(struct kit *k)
{
    char folder[PATH_MAX], path[PATH_MAX + 16], *told = NULL;
    tn_runtime *runtime = NULL;
    if (!check_begin(k, "entry.operators", NULL))
        return;
    format_text(folder, sizeof(folder), "%s", k->file);
    format_text(path, sizeof(path), "%s/ops.json", dirname(folder));
    char *said = text_of_file(path);
    if (!said)
        check_skip(k, "there is no ops.json beside it");
    else if (tn_runtime_open(NULL, &runtime) ||
             tn_plugin_describe_ops(runtime, k->file, &told))
        check_fail(k, "%s", tn_last_error());
    else if (!told || strcmp(told, said) != 0)
        check_fail(k,
                   "ops.json beside it says something else than its tables, from line %zu "
                   "on: make both files anew, `tenon plugin describe FILE -o plugin.json "
                   "--ops ops.json`",
                   line_of_difference(told ? told : "", said));
    tn_text_free(told);
    tn_runtime_close(runtime);
    free(said);
    check_end(k);
}

void group_entry(struct kit *k)
{
    struct subject s;
    struct fake_host none = {0};
    const char *why = "";
    bool loaded = false;
    // The plugin is loaded even if entry.loads is not wanted: the other checks need it.
    if (check_begin(k, "entry.loads", NULL)) {
        loaded = subject_load(&s, k->file, &why);
        if (!loaded)
            check_fail(k, "%s", why);
        check_end(k);
    } else {
        loaded = subject_load(&s, k->file, &why);
    }
    if (!loaded)
        return;
    check_entry_header(k, &s);
    check_entry_texts(k, s.entry);
    bool is_readable = s.entry->magic == TN_PLUGIN_MAGIC && s.entry->id &&
                       s.entry->version && s.entry->vendor && s.entry->query;
    if (check_begin(k, "entry.query", NULL)) {
        if (!s.entry->query)
            check_fail(k, "query is NULL");
        check_end(k);
    }
    if (is_readable) {
        check_entry_identity(k, s.entry);
        check_entry_init(k, &s);
        check_entry_started(k, &s);
    }
    subject_unload(&s, &none);
    check_entry_operators(k);
}
