// SPDX-License-Identifier: MIT
// The outputs of a sample: making, freeing and comparing them.
#include "outputs.h"

void outputs_new(const struct sample *s, enum layout_kind kind, unsigned char poison,
                 struct array out[MAX_OUT])
{
    memset(out, 0, MAX_OUT * sizeof(*out));
    for (uint32_t i = 0; i < s->num_outputs; i++)
        out[i] = array_new(&s->outputs[i], kind, poison);
}

void outputs_free(struct array out[MAX_OUT])
{
    for (int i = 0; i < MAX_OUT; i++)
        array_free(&out[i]);
}

const char *outputs_compare(const struct sample *s, const struct array *got,
                            const struct array *want, double tolerance)
{
    for (uint32_t i = 0; i < s->num_outputs; i++) {
        const char *failure = array_compare(&got[i], &want[i], tolerance,
                                            sample_magnitude(s, &want[i]), NULL);
        if (failure)
            return failure;
    }
    return NULL;
}
