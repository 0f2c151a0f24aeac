// SPDX-License-Identifier: MIT
// Loads the plugin under test, and stages a copy of it for runtimes.
#include "subject.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <sys/stat.h>
#include "elf_file.h"

bool subject_load(struct subject *subject, const char *file, const char **out_why)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    *subject = (struct subject){.handle = dlopen(file, RTLD_NOW | RTLD_LOCAL)};
    if (!subject->handle) {
        *out_why = dlerror();
        return false;
    }
    subject->entry = dlsym(subject->handle, "tn_plugin_v1");
    if (!subject->entry) {
        *out_why = "it exports no tn_plugin_v1";
        dlclose(subject->handle);
        subject->handle = NULL;
        return false;
    }
    if (dladdr1(subject->entry, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol)
        subject->entry_size = symbol->st_size;
    return true;
}

tn_status subject_start(struct subject *subject, struct fake_host *host)
{
    tn_status status = subject->entry->init ? subject->entry->init(host->table) : TN_OK;
    subject->is_started = status == TN_OK;
    return status;
}

void subject_stop(struct subject *subject, struct fake_host *host)
{
    if (subject->is_started && subject->entry->deinit)
        subject->entry->deinit(host->table);
    subject->is_started = false;
    host->own = NULL;
}

void subject_unload(struct subject *subject, struct fake_host *host)
{
    if (!subject->handle)
        return;
    subject_stop(subject, host);
    dlclose(subject->handle);
    *subject = (struct subject){0};
}

bool subject_open(struct subject *subject, struct fake_host *host, struct kit *k)
{
    const char *why;
    if (!fake_host_init(host, 0))
        return false;
    if (!subject_load(subject, k->file, &why))
        return false;
    // The other groups rely on these members alone; the group `entry` checks the rest.
    if (subject->entry->magic == TN_PLUGIN_MAGIC && subject->entry->query &&
        subject_start(subject, host) == TN_OK) {
        host->own = subject->entry;
        return true;
    }
    subject_unload(subject, host);
    return false;
}

static const void *subject_interface(const struct subject *subject, const char *id,
                                     uint64_t size)
{
    const uint32_t *table = subject->entry->query(id); // begins with struct_size
    return table && *table >= size ? table : NULL;
}

const tn_ops *subject_ops(const struct subject *subject)
{
    return subject_interface(subject, TN_IFACE_OPS, sizeof(tn_ops));
}

const tn_backend *subject_backend(const struct subject *subject)
{
    return subject_interface(subject, TN_IFACE_BACKEND, sizeof(tn_backend));
}

// --- for a runtime ---------------------------------------------------------------------

static bool subject_copy_file(const char *from, const char *to)
{
    char buffer[65536];
    size_t n;
    FILE *in = fopen(from, "rb"), *out = in ? fopen(to, "wb") : NULL;
    bool good = out != NULL;
    while (good && (n = fread(buffer, 1, sizeof(buffer), in)) > 0)
        good = fwrite(buffer, 1, n, out) == n;
    good = good && !ferror(in);
    if (in)
        fclose(in);
    if (out)
        good = fclose(out) == 0 && good;
    return good && chmod(to, 0755) == 0;
}

static bool subject_write_text(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    bool good = out && fputs(text, out) >= 0;
    return out && fclose(out) == 0 && good;
}

// Reads the id from the file's note. The plugin's directory must have this name.
static bool subject_read_id(const char *file, char id[64])
{
    struct elf_file elf;
    tn_note note = {0};
    bool found = !elf_read(&elf, file) && elf_notes(&elf, &note) == 1 &&
                 memchr(note.id, 0, sizeof(note.id)) && note.id[0] && !strchr(note.id, '/');
    elf_finish(&elf);
    memcpy(id, note.id, 64);
    return found;
}

static bool subject_describe(const char *file, char **out_manifest)
{
    tn_runtime *runtime = NULL;
    bool good = tn_runtime_open(NULL, &runtime) == TN_OK &&
                tn_plugin_describe(runtime, file, out_manifest) == TN_OK;
    tn_runtime_close(runtime);
    return good;
}

// Writes <plugins>/<id>/{<id>.so, plugin.json}. False: *out_why is the reason.
static bool subject_stage(struct kit *k, const char *plugins, const char **out_why)
{
    char path[PATH_MAX], file[PATH_MAX], id[64], *manifest = NULL;
    struct stat info;
    *out_why = "it has no one note with an id";
    if (!subject_read_id(k->file, id))
        return false;
    format_text(path, sizeof(path), "%s/%s/plugin.json", plugins, id);
    if (stat(path, &info) == 0)
        return true; // an earlier group has staged it
    mkdir(plugins, 0755);
    format_text(file, sizeof(file), "%s/%s", plugins, id);
    mkdir(file, 0755);
    format_text(file, sizeof(file), "%s/%s/%s.so", plugins, id, id);
    if (!subject_copy_file(k->file, file)) {
        *out_why = strerror(errno);
        return false;
    }
    if (!subject_describe(file, &manifest)) {
        *out_why = tn_last_error();
        return false;
    }
    bool good = subject_write_text(path, manifest);
    tn_text_free(manifest);
    *out_why = strerror(errno);
    return good;
}

// True when the runtime would load the staged copy.
static bool subject_is_chosen(const tn_runtime *runtime, const char *plugins,
                              const char **out_why)
{
    for (uint64_t i = 0; i < tn_plugin_count(runtime); i++) {
        tn_plugin_info info = {.struct_size = sizeof(info)};
        if (tn_plugin_get(runtime, i, &info) || !info.directory ||
            strncmp(info.directory, plugins, strlen(plugins)) != 0)
            continue;
        *out_why = info.reason && info.reason[0] ? info.reason : "it is not used";
        return info.state == TN_PLUGIN_FOUND || info.state == TN_PLUGIN_LOADED;
    }
    *out_why = "the runtime does not find it";
    return false;
}

tn_runtime *subject_runtime(struct kit *k, const char *variable, const char **out_why)
{
    return subject_runtime_with(k, (const char *const[]){variable, NULL}, out_why);
}

tn_runtime *subject_runtime_on(struct kit *k, const char *device, const char *kernels,
                               const char **out_why)
{
    char backend[256], list[300];
    const char *variables[] = {backend, "TENON_FALLBACK=allow", kernels ? list : NULL,
                               NULL};
    format_text(backend, sizeof(backend), "TENON_BACKEND=%s%s%s", device,
                k->with ? "," : "", k->with ? k->with : "");
    format_text(list, sizeof(list), "TENON_KERNELS=%s", kernels ? kernels : "");
    return subject_runtime_with(k, variables, out_why);
}

tn_runtime *subject_runtime_with(struct kit *k, const char *const *variables,
                                 const char **out_why)
{
    static char why[DETAIL_SIZE];
    char plugins[PATH_MAX];
    const char *reason = "";
    tn_runtime *runtime = NULL;
    format_text(plugins, sizeof(plugins), "%s/plugins", k->folder);
    if (!subject_stage(k, plugins, &reason)) {
        *out_why = format_text(why, sizeof(why), "%s", reason);
        return NULL;
    }
    tn_runtime_options options = {.plugin_path = plugins, .variables = variables};
    if (tn_runtime_open(&options, &runtime)) {
        *out_why = format_text(why, sizeof(why), "%s", tn_last_error());
        return NULL;
    }
    if (subject_is_chosen(runtime, plugins, &reason))
        return runtime;
    *out_why = format_text(why, sizeof(why), "%s", reason);
    tn_runtime_close(runtime);
    return NULL;
}
