// SPDX-License-Identifier: MIT
// Threefry-2x32 of 20 rounds (Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers:
// as easy as 1, 2, 3"): two words encrypted under a key of two words. What random numbers
// of packs "base" and "random" are made of, as a text for expressions and as a macro for
// kernels: the same rounds.
//
//   // In a rule: the words a60 and b60 of each element's number.
//   build->expr(build, "k0, k1 -> " TN_THREEFRY_TEXT("u32(index)", "u32(0)") "a60", ...);
//   // In a kernel: x and y are encrypted in place.
//   uint32_t x = 3, y = 0;
//   TN_THREEFRY(uint32_t, x, y, key[0], key[1]);
//
// What the words are encrypted from is the caller's: "base" takes the low and the high half
// of an element's number, "random" by default the high and the low one, which is JAX's
// order, and pairs of numbers in MLX's (<tenon/ops/random_attrs.h>).
//
// Threads. Macros: any thread.
#ifndef TENON_OPS_THREEFRY_H
#define TENON_OPS_THREEFRY_H

// The parity constant of the key schedule, 0x1BD11BDA: the third word of a key is the
// exclusive or of the other two and of this. The text below has it as a number, since an
// expression knows no macro.
#define TN_THREEFRY_PARITY 466688986

// One round of the words x and y: x += y; y = rotate_left(y, left) ^ x. Expressions assign
// a name once, so each round has names of its own: x and y are a<a> and b<b> before the
// round, a<c> and b<d> after it. right = 32 - left.
#define TN_THREEFRY_ROUND_TEXT(a, b, c, d, left, right)                                    \
    "a" #c " = a" #a " + b" #b "; "                                                        \
    "b" #d " = ((b" #b " << " #left ") | (b" #b " >> " #right ")) ^ a" #c "; "
#define TN_THREEFRY_FOUR_TEXT(n, r0, l0, r1, l1, r2, l2, r3, l3)                           \
    TN_THREEFRY_ROUND_TEXT(n##0, n##0, n##1, n##1, r0, l0)                                 \
    TN_THREEFRY_ROUND_TEXT(n##1, n##1, n##2, n##2, r1, l1)                                 \
    TN_THREEFRY_ROUND_TEXT(n##2, n##2, n##3, n##3, r2, l2)                                 \
    TN_THREEFRY_ROUND_TEXT(n##3, n##3, n##4, n##4, r3, l3)
// Four rounds by the constants of the two groups that take turns, each distance of a
// rotation with what is left of 32 bits beside it.
#define TN_THREEFRY_ODD_TEXT(n) TN_THREEFRY_FOUR_TEXT(n, 13, 19, 15, 17, 26, 6, 6, 26)
#define TN_THREEFRY_EVEN_TEXT(n) TN_THREEFRY_FOUR_TEXT(n, 17, 15, 29, 3, 16, 16, 24, 8)
// Key injection after every four rounds: adds two key words and the number of the
// injection.
#define TN_THREEFRY_INJECT_TEXT(from, to, ka, kb, count)                                   \
    "a" #to "0 = a" #from "4 + " #ka "; b" #to "0 = b" #from "4 + (" #kb " + " #count ");" \
    " "

// Definitions of an expression over the key words k0 and k1: the words `x` and `y`, texts
// of u32 values, encrypted, as a60 and b60. They take 124 instructions of the 256 that a
// program may have, and the names k2, a10 to a60 and b10 to b60.
#define TN_THREEFRY_TEXT(x, y)                                                             \
    "k2 = k0 ^ k1 ^ u32(466688986); a10 = " x " + k0; b10 = " y                            \
    " + k1; " TN_THREEFRY_ODD_TEXT(1) TN_THREEFRY_INJECT_TEXT(1, 2, k1, k2, 1)             \
        TN_THREEFRY_EVEN_TEXT(2) TN_THREEFRY_INJECT_TEXT(2, 3, k2, k0, 2)                  \
            TN_THREEFRY_ODD_TEXT(3) TN_THREEFRY_INJECT_TEXT(3, 4, k0, k1, 3)               \
                TN_THREEFRY_EVEN_TEXT(4) TN_THREEFRY_INJECT_TEXT(4, 5, k1, k2, 4)          \
                    TN_THREEFRY_ODD_TEXT(5) TN_THREEFRY_INJECT_TEXT(5, 6, k2, k0, 5)

// The same in C, where sums of u32 wrap: a function that uses it stands in a sanitizer's
// list of such functions where unsigned sums are checked.
#define TN_THREEFRY_ROUND(x, y, left)                                                      \
    x += y;                                                                                \
    y = ((y << (left)) | (y >> (32 - (left)))) ^ x
// Four rounds with the constants of odd and of even groups.
#define TN_THREEFRY_ODD(x, y)                                                              \
    TN_THREEFRY_ROUND(x, y, 13);                                                           \
    TN_THREEFRY_ROUND(x, y, 15);                                                           \
    TN_THREEFRY_ROUND(x, y, 26);                                                           \
    TN_THREEFRY_ROUND(x, y, 6)
#define TN_THREEFRY_EVEN(x, y)                                                             \
    TN_THREEFRY_ROUND(x, y, 17);                                                           \
    TN_THREEFRY_ROUND(x, y, 29);                                                           \
    TN_THREEFRY_ROUND(x, y, 16);                                                           \
    TN_THREEFRY_ROUND(x, y, 24)
// Adds two key words, and to the second the number of the injection.
#define TN_THREEFRY_INJECT(x, y, ka, kb, count)                                            \
    x += ka;                                                                               \
    y += kb + count
// Encrypts the variables x and y of type T under the key words k0 and k1: uint32_t, or a
// vector of uint32_t. x and y are names of variables; k0 and k1 are read several times, and
// are not changed.
#define TN_THREEFRY(T, x, y, k0, k1)                                                       \
    do {                                                                                   \
        T tn_k2 = (k0) ^ (k1) ^ TN_THREEFRY_PARITY;                                        \
        x += (k0);                                                                         \
        y += (k1);                                                                         \
        TN_THREEFRY_ODD(x, y);                                                             \
        TN_THREEFRY_INJECT(x, y, (k1), tn_k2, 1);                                          \
        TN_THREEFRY_EVEN(x, y);                                                            \
        TN_THREEFRY_INJECT(x, y, tn_k2, (k0), 2);                                          \
        TN_THREEFRY_ODD(x, y);                                                             \
        TN_THREEFRY_INJECT(x, y, (k0), (k1), 3);                                           \
        TN_THREEFRY_EVEN(x, y);                                                            \
        TN_THREEFRY_INJECT(x, y, (k1), tn_k2, 4);                                          \
        TN_THREEFRY_ODD(x, y);                                                             \
        TN_THREEFRY_INJECT(x, y, tn_k2, (k0), 5);                                          \
    } while (0)

#endif // TENON_OPS_THREEFRY_H
