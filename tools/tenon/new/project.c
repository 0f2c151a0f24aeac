// SPDX-License-Identifier: MIT
// Makes projects from templates, for `tenon new`.
#include "project.h"
#include "base/file.h"
#include "files/folder.h"
#include "files/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_TEMPLATE (1 << 20) // bytes
#define MAX_NESTING 8

// --- values ----------------------------------------------------------------------------

static const char *find_value(const struct project *project, const char *key, size_t size)
{
    for (int64_t i = (int64_t)project->num_values - 1; i >= 0; i--)
        if (strlen(project->values[i].key) == size &&
            memcmp(project->values[i].key, key, size) == 0)
            return project->values[i].value;
    return NULL;
}

int project_set(struct project *project, const char *key, const char *format, ...)
{
    char *value = NULL;
    va_list list;
    va_start(list, format);
    int size = vasprintf(&value, format, list);
    va_end(list);
    if (size < 0 || project->num_values == PROJECT_MAX_VALUES)
        return oops_memory();
    project->values[project->num_values].key = key;
    project->values[project->num_values++].value = value;
    return 0;
}

// --- templates -------------------------------------------------------------------------

struct rendering {
    const struct project *project;
    const char *template; // for messages
    FILE *out;
    int line;
    int depth;  // depth of nested %if
    int hidden; // depth at which lines began to be left out; 0: none are
    bool else_seen[MAX_NESTING + 1];
};

static void new_project_write_line(struct rendering *r, const char *line, const char *end)
{
    for (const char *at = line; at < end; at++) {
        const char *close = *at == '@' ? memchr(at + 1, '@', (size_t)(end - at - 1)) : NULL;
        const char *value =
            close ? find_value(r->project, at + 1, (size_t)(close - at - 1)) : NULL;
        if (value) {
            fputs(value, r->out);
            at = close;
        } else {
            fputc(*at, r->out);
        }
    }
    fputc('\n', r->out);
}

static bool new_project_is_word(const char *line, const char *end, const char *word)
{
    size_t size = strlen(word);
    return (size_t)(end - line) >= size && memcmp(line, word, size) == 0;
}

// Executes a line that starts with '%'.
static int new_project_obey(struct rendering *r, const char *line, const char *end)
{
    if (new_project_is_word(line, end, "%if ") && r->depth < MAX_NESTING) {
        const char *value = find_value(r->project, line + 4, (size_t)(end - line - 4));
        r->else_seen[++r->depth] = false;
        if (!r->hidden && !(value && *value))
            r->hidden = r->depth;
    } else if (new_project_is_word(line, end, "%else") && r->depth &&
               !r->else_seen[r->depth]) {
        r->else_seen[r->depth] = true;
        if (r->hidden == r->depth)
            r->hidden = 0;
        else if (!r->hidden)
            r->hidden = r->depth;
    } else if (new_project_is_word(line, end, "%end") && r->depth) {
        if (r->hidden == r->depth)
            r->hidden = 0;
        r->depth--;
    } else {
        return oops("template %s:%d: got '%.*s', expected %%if KEY, %%else or %%end",
                    r->template, r->line, (int)(end - line), line);
    }
    return 0;
}

static int new_project_render(struct rendering *r, const char *text)
{
    for (const char *line = text, *end; *line; line = end + (*end == '\n')) {
        end = line + strcspn(line, "\n");
        r->line++;
        int failed = 0;
        if (*line == '%')
            failed = new_project_obey(r, line, end);
        else if (!r->hidden)
            new_project_write_line(r, line, end);
        if (failed)
            return failed;
    }
    return r->depth == 0 ? 0 : oops("template %s: an %%if has no %%end", r->template);
}

// --- folders ---------------------------------------------------------------------------

// Folders of the templates: installed, and in a build folder.
static const char *const folders[] = {"../" TN_DATADIR "/tenon", "../../sdk"};

int project_begin(struct project *project, const char *name)
{
    struct stat info;
    struct folder here;
    char prefix[NAME_MAX + 1];
    *project = (struct project){.name = name, .staging.fd = -1};
    if (lstat(name, &info) == 0)
        return oops("'%s' is there already: nothing was written", name);
    if (!find_beside(folders, COUNT(folders), "templates", project->templates))
        return oops("the templates are not installed (" TN_DATADIR "/tenon/templates)");
    int failed = folder_open(".", &here);
    if (failed)
        return failed;
    snprintf(prefix, sizeof(prefix), ".%s.", name);
    failed = folder_stage(&here, prefix, &project->staging);
    folder_close(&here);
    return failed;
}

static int make_parent(const char *path)
{
    char *parent = strndup(path, (size_t)(strrchr(path, '/') - path));
    int failed = parent ? folder_make(parent) : oops_memory();
    free(parent);
    return failed;
}

int project_add(struct project *project, const char *template, const char *file)
{
    char path[2 * PATH_MAX], *text, *made = NULL;
    size_t size = 0;
    uint64_t read;
    snprintf(path, sizeof(path), "%s/%s.tpl", project->templates, template);
    int failed = file_read(path, MAX_TEMPLATE, &text, &read);
    if (failed)
        return failed;
    struct rendering r = {
        .project = project, .template = template, .out = open_memstream(&made, &size)};
    failed = r.out ? new_project_render(&r, text) : oops_memory();
    if (r.out && fclose(r.out))
        failed = oops_memory();
    snprintf(path, sizeof(path), "%s/%s", project->staging.path, file);
    failed = failed ? failed : make_parent(path);
    failed = failed ? failed : file_write(path, made, size);
    free(made);
    free(text);
    return failed;
}

int project_commit(struct project *project)
{
    mode_t mask = umask(0);
    umask(mask);
    if (fchmod(project->staging.fd, 0777 & ~mask) ||
        renameat2(AT_FDCWD, project->staging.path, AT_FDCWD, project->name,
                  RENAME_NOREPLACE))
        return oops("cannot make %s: %s", project->name, strerror(errno));
    folder_close(&project->staging);
    return 0;
}

void project_finish(struct project *project)
{
    folder_discard(&project->staging);
    for (size_t i = 0; i < project->num_values; i++)
        free(project->values[i].value);
    *project = (struct project){.staging.fd = -1};
}
