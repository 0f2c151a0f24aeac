// SPDX-License-Identifier: MIT
// plugin.json: a manifest that is accepted says nothing that its readers do not expect.
#include "fuzz.h"
#include "plugin/find/manifest.h"
#include "plugin/find/names.h"

static void check_texts(const struct manifest *m)
{
    FUZZ_CHECK(id_valid(m->id) && version_valid(m->version), "'%s' '%s'", m->id,
               m->version);
    FUZZ_CHECK(manifest_object(m), "the shared object is among the files");
    for (uint32_t i = 0; i < m->num_files; i++)
        FUZZ_CHECK(file_name_valid(m->files[i].name), "'%s'", m->files[i].name);
    for (uint32_t i = 0; i < m->num_kernels; i++) // as TENON_KERNELS takes them apart
        FUZZ_CHECK(strrchr(m->kernel_texts[i], ' '), "'%s'", m->kernel_texts[i]);
    for (uint32_t i = 0; i < m->num_selectors; i++)
        FUZZ_CHECK(selector_valid(m->selectors[i].kind, m->selectors[i].value), "'%s'",
                   m->selector_texts[i]);
    FUZZ_CHECK(!m->selector_texts[m->num_selectors],
               "the list of selectors ends with NULL");
    FUZZ_CHECK(!m->backend_names[m->num_backends] && !m->primitive_ids[m->num_primitives] &&
                   !m->kernel_texts[m->num_kernels],
               "lists end with NULL");
}

void fuzz_one(const uint8_t *data, size_t size)
{
    struct manifest manifest = {0};
    struct reason reason = {0};
    char *text = fuzz_text(data, size);
    tn_status status = manifest_parse(text, size, "plugin.json", &manifest, &reason);
    if (status == TN_OK)
        check_texts(&manifest);
    FUZZ_CHECK(status != TN_OK || !memchr(text, 0, size), "JSON has no NUL");
    FUZZ_CHECK(status == TN_OK || (fail_text()[0] && !manifest.arena.blocks),
               "a failure has a text");
    manifest_finish(&manifest);
    free(text);
}
