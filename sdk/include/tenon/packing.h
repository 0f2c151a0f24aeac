// SPDX-License-Identifier: MIT
// Packings: the orders in which kernels read rows of quantised weights fastest. For authors
// of backends, who bring them, and for applications that load weights.
//
// A packing reorders the rows of one plain format (<tenon/ops/quant.h>), losing nothing:
// unpacked rows have the bytes that were packed. The attribute `format` of pack "quant"
// takes a packing's id wherever it takes a format's name:
//
//   backend       its kernels accept the id, and its table lists the packing (tn_backend)
//   application   asks which one a device wants (tn_selected_packing), and applies
//                 quant.pack once to what it has loaded
//   pack "quant"  finds the packing by its id, and unpacks the rows wherever the kernels
//                 are not: references, TENON_CHECK, other devices
//
// For the last one a plugin also answers its query with the packing, by the id
// TN_IFACE_PACKING(id), which its TN_IFACE_LIST has. The packings of <tenon/ops/quant.h>
// are known without that.
//
// Arrays. Packed rows are a u8 array [n, rows_bytes(n, k) / n], with n rows of k elements:
// so the number of rows stays what it is. In arrays of a higher rank each matrix of the
// last two axes is packed alone.
//
// Threads. Constant data and pure functions: any thread. None fails, allocates, or keeps a
// pointer. What an id means is frozen with its first release.
#ifndef TENON_PACKING_H
#define TENON_PACKING_H

#include <stddef.h>
#include <stdint.h>

// The most bytes of a packing's id.
#define TN_PACKING_MAX_ID 95

// The interface of the packing "com.acme.pairs": "tn.packing.com.acme.pairs/1".
#define TN_IFACE_PACKING(id) "tn.packing." id "/1"

// Flags of a packing.
enum {
    // Kernels of the backend that lists it read several matrices of packed rows too, arrays
    // of rank 3 (quant.experts_matmul). Without it they read those as plain rows.
    TN_PACKING_STACKED = 1,
};

// A packing. In tn_backend a plain array: elements are tn_backend.packing_size bytes apart.
typedef struct tn_packing tn_packing;
struct tn_packing {
    uint32_t struct_size;
    uint32_t flags; // TN_PACKING_...
    const char *id; // [a-z0-9_.-] with a "." at least, as a plugin's id: "com.acme.pairs"
    const char *format; // the name of the plain format: "q4_0"

    // Rows that are packed together, and read together by whoever wants one of them. Whole
    // groups, and what is left behind them, lie one behind the other, each packed alone. 0:
    // all rows of a matrix are one group.
    int64_t group;

    // The bytes of `rows` packed rows of `columns` elements: a multiple of `rows`, at least
    // 1 a row, and more with more columns. `rows` is at least 1, `columns` a multiple of
    // the format's block, at least one block. -1: they are beyond 2^63 - 1. [any]
    int64_t (*rows_bytes)(const tn_packing *self, int64_t rows, int64_t columns);

    // Writes packed rows: rows_bytes(rows, columns) bytes at `packed`, each of them. Reads
    // plain rows, one behind the other, of any contents. The two do not overlap, and need
    // not be aligned. [any]
    void (*pack)(const tn_packing *self, const uint8_t *plain, int64_t rows,
                 int64_t columns, uint8_t *packed);

    // The reverse of `pack`. Reads bytes of any contents: those that no `pack` has written
    // give any rows. [any]
    void (*unpack)(const tn_packing *self, const uint8_t *packed, int64_t rows,
                   int64_t columns, uint8_t *plain);
};

#endif // TENON_PACKING_H
