// SPDX-License-Identifier: MIT
// Operations on integers and bool.
#include "variant.h"

// ENTRY, for TN_EXPR_OPS: a table entry for each instruction whose operands may be
// integers, nothing for the others.
#define ENTRY_NONE(name)
#define ENTRY_ANY(name) [TN_EXPR_##name] = F(name),
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

#define T int8_t
#define N i8
#define W 8
#define IS_SIGNED 1
#define MAPPER MAP2
#include "map_int.inc.h"

#define T int16_t
#define N i16
#define W 16
#define IS_SIGNED 1
#define MAPPER MAP2
#include "map_int.inc.h"

#define T int32_t
#define N i32
#define W 32
#define IS_SIGNED 1
#define MAPPER MAP2S
#include "map_int.inc.h"

#define T int64_t
#define N i64
#define W 64
#define IS_SIGNED 1
#define MAPPER MAP2S
#include "map_int.inc.h"

#define T uint8_t
#define N u8
#define W 8
#define IS_SIGNED 0
#define MAPPER MAP2
#include "map_int.inc.h"

#define T uint16_t
#define N u16
#define W 16
#define IS_SIGNED 0
#define MAPPER MAP2
#include "map_int.inc.h"

#define T uint32_t
#define N u32
#define W 32
#define IS_SIGNED 0
#define MAPPER MAP2
#include "map_int.inc.h"

#define T uint64_t
#define N u64
#define W 64
#define IS_SIGNED 0
#define MAPPER MAP2
#include "map_int.inc.h"

// bool: bytes that are 0 or 1, so MIN is AND, and NE is XOR.
MAP1(not_bool, uint8_t, uint8_t, !x)
MAP2(and_bool, uint8_t, uint8_t, x &y)
MAP2(or_bool, uint8_t, uint8_t, x | y)
MAP2(xor_bool, uint8_t, uint8_t, x ^ y)
MAP2(eq_bool, uint8_t, uint8_t, x == y)
MAP2(lt_bool, uint8_t, uint8_t, x < y)
MAP2(le_bool, uint8_t, uint8_t, x <= y)
MAP2(gt_bool, uint8_t, uint8_t, x > y)
MAP2(ge_bool, uint8_t, uint8_t, x >= y)
SELECT(select_bool, uint8_t)

cpu_map_fn *const V(cpu_map_bool)[CPU_NUM_OPS] = {
    [TN_EXPR_NOT] = not_bool, [TN_EXPR_INVERT] = not_bool,    [TN_EXPR_MIN] = and_bool,
    [TN_EXPR_MAX] = or_bool,  [TN_EXPR_AND] = and_bool,       [TN_EXPR_OR] = or_bool,
    [TN_EXPR_XOR] = xor_bool, [TN_EXPR_EQ] = eq_bool,         [TN_EXPR_NE] = xor_bool,
    [TN_EXPR_LT] = lt_bool,   [TN_EXPR_LE] = le_bool,         [TN_EXPR_GT] = gt_bool,
    [TN_EXPR_GE] = ge_bool,   [TN_EXPR_SELECT] = select_bool,
};
