// SPDX-License-Identifier: MIT
// Operations on integers and bool.
#include "variant.h"

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

// bool: bytes that are 0 or 1.
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
    [CPU_OP_NOT] = not_bool, [CPU_OP_INVERT] = not_bool,    [CPU_OP_MIN] = and_bool,
    [CPU_OP_MAX] = or_bool,  [CPU_OP_AND] = and_bool,       [CPU_OP_OR] = or_bool,
    [CPU_OP_XOR] = xor_bool, [CPU_OP_EQ] = eq_bool,         [CPU_OP_NE] = xor_bool,
    [CPU_OP_LT] = lt_bool,   [CPU_OP_LE] = le_bool,         [CPU_OP_GT] = gt_bool,
    [CPU_OP_GE] = ge_bool,   [CPU_OP_SELECT] = select_bool,
};
