// SPDX-License-Identifier: MIT
// A packing of the backend under test, for the files of its checks.
#ifndef CONFORMANCE_PACKING_PACKING_H
#define CONFORMANCE_PACKING_PACKING_H

#include <tenon/ops/quant.h>
#include "../kit/fixture.h"

struct packing {
    struct kit *kit;
    const tn_packing *record;
    const tn_quant_format *format; // the plain format
};

// Checks that rows come back from packing, and sizes hold, for any bytes and numbers of
// rows.
void packing_check_rows(const struct packing *p);

// Checks that operators of pack "quant" give the same with packed rows. Borrows the
// runtime.
void packing_check_values(const struct packing *p, tn_runtime *runtime);

#endif // CONFORMANCE_PACKING_PACKING_H
