// SPDX-License-Identifier: MIT
// Attribute structs of the primitives of pack "random": for plugins that bring kernels or
// rules for these primitives. Each struct is frozen with the revision of its primitives.
//
//   // In a kernel for "random.bits/1".
//   const tn_random_bits_attrs *attrs = call->attrs;
//   bool halves = attrs->layout == TN_RANDOM_HALVES;
//
// random.bits, random.random and random.standard_normal are what kernels are written for;
// all other operators of the pack are composites over these three.
//
// The core fills the structs, defaults included; they are borrowed for the call, and infer
// has accepted the values.
//
// Threads. Plain data: any thread.
#ifndef TENON_OPS_RANDOM_ATTRS_H
#define TENON_OPS_RANDOM_ATTRS_H

#include <tenon/attr.h>
#include <tenon/types.h>

// tn_random_bits_attrs.layout: which words of Threefry-2x32 (<tenon/ops/threefry.h>)
// element i of n gets, and how words become floats.
enum {
    // Words (x, y) are the high and the low half of i, encrypted; 32 bits
    // are x ^ y, 64 bits x << 32 | y. An element's bits depend on the key
    // and its number alone. Floats take as many bits as a mantissa has.
    // JAX's numbers (jax_threefry_partitionable on, which is its
    // default).
    TN_RANDOM_COUNTERS = 0,
    // The n words are cut in halves: encrypting (i, i + h), h = n / 2 rounded up, gives
    // words i and i + h; of an odd n a 0 takes the place of word n. 64 bits are two words,
    // of which all high ones come before all low ones. Words of 8 and 16 bits lie one
    // behind the other in words of 32. f32 is the word divided by 2^32. MLX's numbers, and
    // JAX's bits without the flag.
    TN_RANDOM_HALVES = 1,
};

// random.bits/1, random.random/1, random.standard_normal/1 (key: u32[2]): random bits,
// numbers in [0, 1), and numbers of the normal distribution, sqrt(2) erfinv(2 u - 1) with
// u = random, the least of which is replaced so that 2 u - 1 stays above -1.
typedef struct tn_random_bits_attrs {
    tn_ints shape;  // required
    int64_t dtype;  // bits: u8, u16, u32 (if NONE) or u64; others: a float dtype, NONE: f32
    int64_t layout; // TN_RANDOM_...
} tn_random_bits_attrs;

#endif // TENON_OPS_RANDOM_ATTRS_H
