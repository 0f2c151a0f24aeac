// SPDX-License-Identifier: MIT
// Picks variants by instruction sets.
#include <stddef.h>
#include "cpu.h"
#include "cpu/attention/halves_tiles.h"

extern const struct cpu_kernels cpu_kernels_baseline;
#ifdef CPU_BUILD_X86
extern const struct cpu_kernels cpu_kernels_avx2, cpu_kernels_avx512;
#endif

const struct cpu_kernels *const *cpu_variants(void)
{
    static const struct cpu_kernels *const variants[] = {
#ifdef CPU_BUILD_X86
        &cpu_kernels_avx512, &cpu_kernels_avx2,
#endif
        &cpu_kernels_baseline, NULL};
    return variants;
}

const struct cpu_kernels *cpu_pick(uint32_t features)
{
    const struct cpu_kernels *const *variant = cpu_variants();
    while (((*variant)->needs & features) != (*variant)->needs)
        variant++; // ends at the last variant, whose `needs` is 0
    return *variant;
}

// Holds for the loops of elementwise/ that are written with MAP2S, and for the fused
// operations of several operands.
bool cpu_takes_scalars(int32_t op, int32_t dtype)
{
    const uint32_t wide = TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64) |
                          TN_DTYPE_BIT(TN_I32) | TN_DTYPE_BIT(TN_I64);
    if (op >= CPU_OP_FOURTH)
        return false;
    return cpu_is_fused(op) ||
           (tn_dtype_in(dtype, wide) && tn_expr_operands((uint32_t)op) == 2);
}

extern const struct cpu_quant_kernels cpu_quant_kernels_baseline;
#ifdef CPU_BUILD_X86
extern const struct cpu_quant_kernels cpu_quant_kernels_avx2, cpu_quant_kernels_avx512,
    cpu_quant_kernels_vnni;
#endif
#ifdef CPU_BUILD_AMX
extern const struct cpu_quant_kernels cpu_quant_kernels_amx;
#endif

const struct cpu_quant_kernels *const *cpu_quant_variants(void)
{
    static const struct cpu_quant_kernels *const variants[] = {
#ifdef CPU_BUILD_AMX
        &cpu_quant_kernels_amx,
#endif
#ifdef CPU_BUILD_X86
        &cpu_quant_kernels_vnni,     &cpu_quant_kernels_avx512,
        &cpu_quant_kernels_avx2,
#endif
        &cpu_quant_kernels_baseline, NULL};
    return variants;
}

const struct cpu_quant_kernels *cpu_quant_pick(uint32_t features)
{
    const struct cpu_quant_kernels *const *variant = cpu_quant_variants();
    while (((*variant)->needs & features) != (*variant)->needs)
        variant++; // ends at the last variant, whose `needs` is 0
    return *variant;
}

extern const struct cpu_groupwise_kernels cpu_groupwise_kernels_baseline;
#ifdef CPU_BUILD_X86
extern const struct cpu_groupwise_kernels cpu_groupwise_kernels_avx2,
    cpu_groupwise_kernels_avx512;
#endif

const struct cpu_groupwise_kernels *const *cpu_groupwise_variants(void)
{
    static const struct cpu_groupwise_kernels *const variants[] = {
#ifdef CPU_BUILD_X86
        &cpu_groupwise_kernels_avx512, &cpu_groupwise_kernels_avx2,
#endif
        &cpu_groupwise_kernels_baseline, NULL};
    return variants;
}

const struct cpu_groupwise_kernels *cpu_groupwise_pick(uint32_t features)
{
    const struct cpu_groupwise_kernels *const *variant = cpu_groupwise_variants();
    while (((*variant)->needs & features) != (*variant)->needs)
        variant++; // ends at the last variant, whose `needs` is 0
    return *variant;
}

#ifdef CPU_BUILD_X86
extern const struct cpu_groupwise_rounding cpu_groupwise_vnni;
#endif

const struct cpu_groupwise_rounding *
cpu_groupwise_rounding_pick(const struct cpu_groupwise *w, uint32_t features)
{
#ifdef CPU_BUILD_X86
    const uint32_t needs = CPU_HAS_AVX512 | CPU_HAS_VNNI;
    if ((features & needs) == needs && w->mode != TN_GROUPWISE_mxfp8 &&
        (w->bits == 2 || w->bits == 4 || w->bits == 8))
        return &cpu_groupwise_vnni;
#endif
    (void)w, (void)features;
    return NULL;
}

cpu_panels_fn cpu_panels_baseline;
cpu_pack_panels_fn cpu_pack_panels_baseline;
#ifdef CPU_BUILD_X86
cpu_panels_fn cpu_panels_avx2, cpu_panels_avx512;
cpu_pack_panels_fn cpu_pack_panels_avx2, cpu_pack_panels_avx512;
#endif
#ifdef CPU_BUILD_AMX
cpu_panels_fn cpu_panels_amx;
cpu_pack_panels_fn cpu_pack_panels_amx;
#endif

const struct cpu_panels_variant *const *cpu_panels_variants(void)
{
    static const struct cpu_panels_variant all[] = {
#ifdef CPU_BUILD_AMX
        {"amx", CPU_HAS_AVX512 | CPU_HAS_AMX, cpu_panels_amx, cpu_pack_panels_amx, true},
#endif
#ifdef CPU_BUILD_X86
        {"avx512", CPU_HAS_AVX512, cpu_panels_avx512, cpu_pack_panels_avx512, false},
        {"avx2", CPU_HAS_AVX2, cpu_panels_avx2, cpu_pack_panels_avx2, false},
#endif
        {"baseline", 0, cpu_panels_baseline, cpu_pack_panels_baseline, false},
    };
    enum { NUM = sizeof(all) / sizeof(all[0]) };
    static const struct cpu_panels_variant *const variants[] = {
        &all[0],
#if defined(CPU_BUILD_X86)
        &all[1],
        &all[2],
#endif
#ifdef CPU_BUILD_AMX
        &all[3],
#endif
        NULL
    };
    _Static_assert(sizeof(variants) / sizeof(variants[0]) == NUM + 1, "all are listed");
    return variants;
}

const struct cpu_panels_variant *cpu_panels_pick(uint32_t features)
{
    const struct cpu_panels_variant *const *variant = cpu_panels_variants();
    while (((*variant)->needs & features) != (*variant)->needs)
        variant++; // ends at the last variant, whose `needs` is 0
    return *variant;
}

const struct cpu_tiles_amx *cpu_tiles_amx_pick(uint32_t features)
{
#ifdef CPU_BUILD_AMX
    if (features & CPU_HAS_AMX)
        return &cpu_tiles_amx;
#endif
    (void)features;
    return NULL;
}

const struct attention_halves_tiles *attention_halves_pick(void)
{
#ifdef CPU_BUILD_AMX
    return &attention_halves_amx;
#else
    return NULL;
#endif
}

const struct cpu_halves_kernels *cpu_halves_tiles(void)
{
#ifdef CPU_BUILD_AMX
    return &cpu_halves_amx;
#else
    return NULL;
#endif
}
