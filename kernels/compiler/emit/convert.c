// SPDX-License-Identifier: MIT
// Instructions of conversions between numbers.
#include "emit.h"

// Integers are widened by their own sign, and then read with the other.
static uint32_t convert_int(struct translator *t, uint32_t id, const struct type *from,
                            enum base from_base, enum base to)
{
    static const uint8_t with_sign[2][9] = {
        {0, TYPE_UINT8, TYPE_UINT16, 0, TYPE_UINT32, 0, 0, 0, TYPE_UINT64},
        {0, TYPE_INT8, TYPE_INT16, 0, TYPE_INT32, 0, 0, 0, TYPE_INT64}};
    bool is_signed = base_is_signed(from_base);
    if (base_width(from_base) != base_width(to)) {
        from_base = with_sign[is_signed][base_width(to) / 8];
        id =
            EMIT(t, is_signed ? OpSConvert : OpUConvert, type_like(t, from, from_base), id);
    }
    if (from_base != to)
        id = EMIT(t, OpBitcast, type_like(t, from, to), id);
    return id;
}

uint32_t convert_emit(struct translator *t, uint32_t id, const struct type *from,
                      enum base to)
{
    enum base base = from->base == TYPE_COOPMAT ? from->element->base : from->base;
    const struct type *type = type_like(t, from, to);
    if (type_is_matrix(type)) {
        uint32_t columns[4];
        const struct type *column = type_part(t, from);
        for (uint32_t i = 0; i < type->columns; i++)
            columns[i] =
                convert_emit(t, EMIT(t, OpCompositeExtract, column, id, i), column, to);
        return emit(t, OpCompositeConstruct, type, type->columns, columns);
    }
    if (base == TYPE_BOOL)
        return EMIT(t, OpSelect, type, id, constant_splat(t, type, 1),
                    constant_splat(t, type, 0));
    if (to == TYPE_BOOL)
        return EMIT(t, base_is_float(base) ? OpFUnordNotEqual : OpINotEqual, type, id,
                    constant_splat(t, from, 0));
    if (base_is_float(to) && base_is_float(base))
        return EMIT(t, OpFConvert, type, id);
    if (base_is_float(to) || base_is_float(base))
        use_type(t, from); // more than a change of width
    if (base_is_float(to))
        return EMIT(t, base_is_signed(base) ? OpConvertSToF : OpConvertUToF, type, id);
    if (base_is_float(base))
        return EMIT(t, base_is_signed(to) ? OpConvertFToS : OpConvertFToU, type, id);
    return convert_int(t, id, from, base, to);
}
