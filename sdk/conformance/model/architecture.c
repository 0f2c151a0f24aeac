// SPDX-License-Identifier: MIT
// The names of architectures that a plugin's selectors have.
#include "group_model.h"

const char *model_architecture(const struct models *m, uint32_t index)
{
    const tn_selectors *own = m->subject.entry->query(TN_IFACE_SELECTORS);
    uint32_t found = 0;
    for (uint32_t i = 0; own && i < own->num_items; i++) {
        const tn_selector *s =
            (const void *)((const char *)own->items + (uint64_t)i * own->item_size);
        if (strcmp(s->interface, TN_IFACE_MODEL) == 0 &&
            strcmp(s->kind, "architecture") == 0 && found++ == index)
            return s->value;
    }
    return NULL;
}
