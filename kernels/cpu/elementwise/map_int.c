// SPDX-License-Identifier: MIT
// Operations on integers and bool.
#include <math.h>
#include "map_loops.h"
#include "variants.h"

// Whether processors of the variant have an instruction that rounds a vector of floats.
#if defined(__SSE4_1__) || defined(__aarch64__)
#define ROUNDS_VECTORS 1
#else
#define ROUNDS_VECTORS 0
#endif

// The sum of MIDDLE and a whole number of up to 51 bits has that number in its low bits.
#define MIDDLE 0x1.8p52
#define MIDDLE_BITS UINT64_C(0x4338000000000000)

// ENTRY, for TN_EXPR_OPS: a table entry for each instruction whose operands may be
// integers, nothing for the others.
#define ENTRY_NONE(name)
#define ENTRY_ANY(name) [TN_EXPR_##name] = GLUE(name, OF_##name),
#define ENTRY_NUMBER ENTRY_ANY
#define ENTRY_INTEGER ENTRY_ANY
#define ENTRY_BITS ENTRY_ANY
#define ENTRY_NUMBER_COMPLEX ENTRY_ANY
#define ENTRY_ANY_COMPLEX ENTRY_ANY
#define ENTRY_FLOAT ENTRY_NONE
#define ENTRY_FLOAT_COMPLEX ENTRY_NONE
#define ENTRY_COMPLEX ENTRY_NONE
#define ENTRY_PARTS ENTRY_NONE
#define ENTRY_BOOL ENTRY_NONE
#define ENTRY_ROW_NUMBER ENTRY_NONE
#define ENTRY_ROW_ANY ENTRY_NONE
#define ENTRY(name, text, operands, class, dtypes) ENTRY_##dtypes(name)

// The type whose loop an instruction runs: SIGNED where signedness makes no difference to
// the bits of results, so that both types of a width share a loop.
#define OF_NEG SIGNED
#define OF_INVERT SIGNED
#define OF_ADD SIGNED
#define OF_SUB SIGNED
#define OF_MUL SIGNED
#define OF_AND SIGNED
#define OF_OR SIGNED
#define OF_XOR SIGNED
#define OF_SHL SIGNED
#define OF_EQ SIGNED
#define OF_NE SIGNED
#define OF_SELECT SIGNED
#define OF_ABS N
#define OF_SIGN N
#define OF_SHR N
#define OF_DIV N
#define OF_MOD N
#define OF_POW N
#define OF_MIN N
#define OF_MAX N
#define OF_LT N
#define OF_LE N
#define OF_GT N
#define OF_GE N

#define T int8_t
#define N i8
#define SIGNED i8
#define W 8
#define IS_SIGNED 1
#define MAPPER MAP2
#include "map_int.inc.h"

#define T int16_t
#define N i16
#define SIGNED i16
#define W 16
#define IS_SIGNED 1
#define MAPPER MAP2
#include "map_int.inc.h"

#define T int32_t
#define N i32
#define SIGNED i32
#define W 32
#define IS_SIGNED 1
#define MAPPER MAP2S
#include "map_int.inc.h"

#define T int64_t
#define N i64
#define SIGNED i64
#define W 64
#define IS_SIGNED 1
#define MAPPER MAP2S
#include "map_int.inc.h"

#define T uint8_t
#define N u8
#define SIGNED i8
#define W 8
#define IS_SIGNED 0
#define MAPPER MAP2
#include "map_int.inc.h"

#define T uint16_t
#define N u16
#define SIGNED i16
#define W 16
#define IS_SIGNED 0
#define MAPPER MAP2
#include "map_int.inc.h"

#define T uint32_t
#define N u32
#define SIGNED i32
#define W 32
#define IS_SIGNED 0
#define MAPPER MAP2
#include "map_int.inc.h"

#define T uint64_t
#define N u64
#define SIGNED i64
#define W 64
#define IS_SIGNED 0
#define MAPPER MAP2
#include "map_int.inc.h"

// bool: bytes that are 0 or 1, so MIN is AND, NE is XOR, and most loops are those of bytes.
MAP1(not_bool, uint8_t, uint8_t, !x)

cpu_map_fn *const V(cpu_map_bool)[CPU_NUM_OPS] = {
    [TN_EXPR_NOT] = not_bool, [TN_EXPR_INVERT] = not_bool,  [TN_EXPR_MIN] = AND_i8,
    [TN_EXPR_MAX] = OR_i8,    [TN_EXPR_AND] = AND_i8,       [TN_EXPR_OR] = OR_i8,
    [TN_EXPR_XOR] = XOR_i8,   [TN_EXPR_EQ] = EQ_i8,         [TN_EXPR_NE] = XOR_i8,
    [TN_EXPR_LT] = LT_u8,     [TN_EXPR_LE] = LE_u8,         [TN_EXPR_GT] = GT_u8,
    [TN_EXPR_GE] = GE_u8,     [TN_EXPR_SELECT] = SELECT_i8,
};
