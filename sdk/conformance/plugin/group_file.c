// SPDX-License-Identifier: MIT
// The shared object as a file. The plugin is not loaded here, but libraries that it needs
// are.
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <tenon/tenon.h>
#include <unistd.h>
#include "groups.h"
#include "../kit/elf_file.h"

// --- segments --------------------------------------------------------------------------

static void check_file_stack(struct kit *k, const struct elf_file *elf)
{
    bool seen = false;
    if (!check_begin(k, "file.stack", NULL))
        return;
    for (uint32_t i = 0; i < elf->num_segments; i++)
        if (elf->segments[i].p_type == PT_GNU_STACK) {
            seen = true;
            if (elf->segments[i].p_flags & PF_X)
                check_fail(k, "it asks for an executable stack: link with -z noexecstack");
        }
    if (!seen)
        check_fail(k, "it does not say that its stack is not executable (no GNU_STACK "
                      "segment): link with -z noexecstack");
    check_end(k);
}

static void check_file_segments(struct kit *k, const struct elf_file *elf)
{
    if (!check_begin(k, "file.segments", NULL))
        return;
    for (uint32_t i = 0; i < elf->num_segments; i++) {
        const Elf64_Phdr *s = &elf->segments[i];
        if (s->p_type == PT_LOAD && s->p_flags & PF_W && s->p_flags & PF_X)
            check_fail(k, "segment %u at 0x%llx is writable and executable", i,
                       (unsigned long long)s->p_vaddr);
    }
    check_end(k);
}

// --- the dynamic section ---------------------------------------------------------------

static uint64_t dynamic_or_0(const struct elf_file *elf, int64_t tag)
{
    uint64_t value;
    return elf_dynamic(elf, tag, &value) ? value : 0;
}

static void check_file_relocations(struct kit *k, const struct elf_file *elf)
{
    uint64_t ignored;
    if (!check_begin(k, "file.text-relocations", NULL))
        return;
    if (elf_dynamic(elf, DT_TEXTREL, &ignored) || dynamic_or_0(elf, DT_FLAGS) & DF_TEXTREL)
        check_fail(k, "its code is written to when it is loaded: compile with -fPIC");
    check_end(k);
}

static void check_file_tls(struct kit *k, const struct elf_file *elf, bool is_sanitized)
{
    if (!check_begin(k, "file.tls", NULL))
        return;
    if (is_sanitized)
        check_skip(k, "sanitizers have variables of that model");
    else if (dynamic_or_0(elf, DT_FLAGS) & DF_STATIC_TLS)
        check_fail(k, "thread-local variables of the initial-exec model take room that the "
                      "process has little of: leave out -ftls-model=initial-exec");
    check_end(k);
}

static void check_file_links(struct kit *k, const struct elf_file *elf)
{
    uint64_t at = 0;
    const char *name;
    if (!check_begin(k, "file.links", NULL))
        return;
    while ((name = elf_needed(elf, &at)) != NULL)
        if (strncmp(name, "libtenon", 8) == 0)
            check_fail(k, "it links %s: a plugin gets all it needs from the host's table",
                       name);
    check_end(k);
}

// Every directory of a search path must be $ORIGIN or lie below it.
static void check_file_search_path(struct kit *k, const struct elf_file *elf)
{
    static const struct {
        int64_t tag;
        const char *name;
    } paths[] = {{DT_RPATH, "RPATH"}, {DT_RUNPATH, "RUNPATH"}};
    if (!check_begin(k, "file.search-path", NULL))
        return;
    for (size_t i = 0; i < COUNT(paths); i++) {
        uint64_t at;
        if (!elf_dynamic(elf, paths[i].tag, &at))
            continue;
        const char *path = elf_string(elf, at);
        for (const char *p = path; p && *p; p = strchr(p, ':') ? strchr(p, ':') + 1 : NULL)
            if ((strncmp(p, "$ORIGIN", 7) != 0 && strncmp(p, "${ORIGIN}", 9) != 0) ||
                strstr(p, "/.."))
                check_fail(k, "%s is \"%s\", expected directories below $ORIGIN",
                           paths[i].name, path);
    }
    check_end(k);
}

// The compiler's start files add one constructor and one destructor.
static void check_file_array(struct kit *k, const struct elf_file *elf, const char *check,
                             int64_t size_tag, const char *what, bool is_sanitized)
{
    if (!check_begin(k, check, NULL))
        return;
    uint64_t count = dynamic_or_0(elf, size_tag) / sizeof(void *);
    if (is_sanitized)
        check_skip(k, "sanitizers add their own");
    else if (count > 1)
        check_fail(k, "%llu functions run %s, beside the compiler's own",
                   (unsigned long long)count - 1, what);
    check_end(k);
}

// --- symbols ---------------------------------------------------------------------------

static bool file_group_is_defined(const Elf64_Sym *symbol)
{
    unsigned bind = ELF64_ST_BIND(symbol->st_info);
    return symbol->st_shndx != SHN_UNDEF && bind != STB_LOCAL &&
           ELF64_ST_VISIBILITY(symbol->st_other) == STV_DEFAULT;
}

// gcc's address sanitizer exports one more symbol for each exported variable.
static bool is_sanitizers(const char *name)
{
    return strncmp(name, "__odr_asan.", 11) == 0;
}

static void check_file_exports(struct kit *k, const struct elf_file *elf)
{
    bool found = false;
    if (!check_begin(k, "file.exports", NULL))
        return;
    for (uint64_t i = 1; i < elf->num_symbols; i++) {
        const Elf64_Sym *symbol = &elf->symbols[i];
        if (!file_group_is_defined(symbol) ||
            is_sanitizers(elf_string(elf, symbol->st_name)))
            continue;
        check_case(k);
        bool entry = strcmp(elf_string(elf, symbol->st_name), "tn_plugin_v1") == 0;
        if (!entry)
            check_fail(k,
                       "it exports '%s', expected tn_plugin_v1 alone: compile with "
                       "-fvisibility=hidden, link static libraries with "
                       "-Wl,--exclude-libs,ALL",
                       elf_string(elf, symbol->st_name));
        found |= entry;
    }
    if (!found)
        check_fail(k, "it exports no tn_plugin_v1: is there a TN_PLUGIN(...)?");
    check_end(k);
}

static void check_file_unloadable(struct kit *k, const struct elf_file *elf)
{
    if (!check_begin(k, "file.unloadable", NULL))
        return;
    if (dynamic_or_0(elf, DT_FLAGS_1) & DF_1_NODELETE)
        check_fail(k, "it is linked with -z nodelete, and stays in the process for ever");
    for (uint64_t i = 1; i < elf->num_symbols; i++)
        if (file_group_is_defined(&elf->symbols[i]) &&
            ELF64_ST_BIND(elf->symbols[i].st_info) == STB_GNU_UNIQUE)
            check_fail(k,
                       "'%s' is a GNU unique symbol, which keeps it in the process for "
                       "ever: compile with -fno-gnu-unique",
                       elf_string(elf, elf->symbols[i].st_name));
    check_end(k);
}

enum { MAX_NEEDED = 32 };

// Loads the libraries that the plugin needs, but not the plugin. Returns how many.
static uint32_t file_group_open_needed(struct kit *k, const struct elf_file *elf,
                                       void **handles)
{
    uint64_t at = 0;
    uint32_t count = 0;
    const char *name;
    while ((name = elf_needed(elf, &at)) != NULL && count < MAX_NEEDED) {
        handles[count] = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
        if (handles[count])
            count++;
        else
            check_skip(k, "%s lies in no standard directory: not looked into", name);
    }
    return count;
}

static void check_file_symbols(struct kit *k, const struct elf_file *elf, bool is_sanitized)
{
    void *handles[MAX_NEEDED];
    if (!check_begin(k, "file.symbols", NULL))
        return;
    uint32_t count = file_group_open_needed(k, elf, handles);
    if (is_sanitized)
        check_skip(k, "sanitizers leave symbols to the program");
    for (uint64_t i = 1; i < elf->num_symbols && strcmp(k->outcome, "skip") != 0; i++) {
        const Elf64_Sym *symbol = &elf->symbols[i];
        bool found =
            symbol->st_shndx != SHN_UNDEF || ELF64_ST_BIND(symbol->st_info) != STB_GLOBAL;
        const char *name = elf_string(elf, symbol->st_name);
        for (uint32_t n = 0; n < count && !found; n++)
            found = dlsym(handles[n], name) != NULL;
        check_case(k);
        if (!found)
            check_fail(k,
                       "it needs '%s', which none of the libraries it names has: link "
                       "with -Wl,-z,defs",
                       name);
    }
    check_end(k);
}

// --- identity --------------------------------------------------------------------------

static void check_file_note(struct kit *k, const struct elf_file *elf, tn_note *note)
{
    *note = (tn_note){0};
    int count = elf_notes(elf, note);
    if (!check_begin(k, "file.note", NULL))
        return;
    if (count != 1)
        check_fail(k,
                   "it has %d Tenon notes, expected 1: write TN_PLUGIN(...) once, and "
                   "link without --gc-sections or keep .note.tenon",
                   count);
    else if (note->magic != TN_PLUGIN_MAGIC)
        check_fail(k, "its note has a wrong magic number");
    else if (note->abi_minor_min > note->abi_minor_max)
        check_fail(k, "its oldest ABI minor is %u, its newest %u", note->abi_minor_min,
                   note->abi_minor_max);
    check_end(k);
}

static void check_file_manifest(struct kit *k)
{
    char path[PATH_MAX], manifest[PATH_MAX + 16];
    if (!check_begin(k, "file.manifest", NULL))
        return;
    format_text(path, sizeof(path), "%s", k->file);
    const char *folder = dirname(path);
    format_text(manifest, sizeof(manifest), "%s/plugin.json", folder);
    if (access(manifest, F_OK) != 0)
        check_skip(k, "there is no plugin.json beside it");
    else if (tn_plugin_verify(folder))
        check_fail(k, "%s", tn_last_error());
    check_end(k);
}

void group_file(struct kit *k)
{
    struct elf_file elf;
    const char *wrong = elf_read(&elf, k->file);
    if (check_begin(k, "file.format", NULL)) {
        if (wrong)
            check_fail(k, "%s", wrong);
        check_end(k);
    }
    if (!wrong) {
        tn_note note;
        check_file_note(k, &elf, &note);
        bool is_sanitized = note.sanitizer != TN_SANITIZER_NONE;
        check_file_exports(k, &elf);
        check_file_links(k, &elf);
        check_file_symbols(k, &elf, is_sanitized);
        check_file_tls(k, &elf, is_sanitized);
        check_file_stack(k, &elf);
        check_file_segments(k, &elf);
        check_file_relocations(k, &elf);
        check_file_array(k, &elf, "file.constructors", DT_INIT_ARRAYSZ, "when it is loaded",
                         is_sanitized);
        check_file_array(k, &elf, "file.destructors", DT_FINI_ARRAYSZ,
                         "when it is unloaded", is_sanitized);
        check_file_search_path(k, &elf);
        check_file_unloadable(k, &elf);
        check_file_manifest(k);
    }
    elf_finish(&elf);
}
