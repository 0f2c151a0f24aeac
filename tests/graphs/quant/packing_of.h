// SPDX-License-Identifier: MIT
// The packing that the first device of a runtime wants for a format.
#ifndef TESTS_GRAPHS_QUANT_PACKING_OF_H
#define TESTS_GRAPHS_QUANT_PACKING_OF_H

#include <tenon/selected.h>
#include "../support/common.h"

static inline const char *packing_of(tn_runtime *rt, const char *format)
{
    const tn_packing *packing = NULL;
    uint64_t count = 1;
    tn_selected_device device = {.struct_size = sizeof(device)};
    must(NULL, tn_selected_devices(rt, &device, &count));
    must(NULL, tn_selected_packing(rt, device.device, format, &packing));
    return packing ? packing->id : NULL;
}

#endif // TESTS_GRAPHS_QUANT_PACKING_OF_H
