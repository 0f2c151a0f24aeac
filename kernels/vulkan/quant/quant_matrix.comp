#version 460
// SPDX-License-Identifier: MIT
// Some rows of x times the transposed matrix of quantised weights on cooperative matrices
// (of 16x16x16, sums in f32). FORMAT: as in quant.glsl. Weights become f16, and so has x
// (quant_x.comp).
//
// A subgroup has 32 columns of the result and takes steps of 32 terms, on its own: it decodes the
// weights of a step to its part of shared memory, once for the up to 32 rows of x of a workgroup,
// and multiplies them there, while those of its next step are on their way. ACROSS of the sixteen
// subgroups have columns of their own, the others share their steps, and sums meet in the end. So the
// loop has no barrier of the workgroup, and each weight is read once.
//
// Terms are in the order of parts and of part_halves() (quant.glsl). x lies in tiles of 16 rows and
// 16 terms.
#include "program/types.glsl"
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define SUBGROUPS 16u
#define GROUP 512
layout(local_size_x = GROUP) in; // subgroups of 32
layout(constant_id = 0) const uint W_ODD = 0;     // 1: w begins at an odd byte
layout(constant_id = 1) const uint IS_PACKED = 0; // as in quant_halves.comp
layout(constant_id = 2) const uint ACROSS = 1;
layout(constant_id = 3) const uint ROW_TILES = 2; // of 16 rows of x, of a workgroup
layout(std430, binding = 0) readonly buffer X { uvec4 d[]; } x_source;
layout(std430, binding = 2) writeonly buffer Out { float d[]; } result;
layout(push_constant) uniform Args {
    uint rows, columns, terms;
    uint w_offset, out_offset; // of w in units (quant.glsl)
    uint scales_at;            // of rows of x, in x
} args;
#define W_BINDING 1
#define PAIRS_BINDING 3
#define HALVES f16
bool w_odd()
{
    return W_ODD != 0u;
}
bool w_in_pairs()
{
    return IS_PACKED >= 2u;
}
#include "quant.glsl"

#define COLUMNS 32u
#define TERMS 32u
#define PITCH (TERMS / 8u + 1u)    // lines of eight elements of a column: one more spreads them over the banks
#define SUMS_PITCH (COLUMNS / 4u + 1u)
#define LOADS (TERMS / 8u)         // parts of an invocation, of a step
shared uvec4 staged[SUBGROUPS * COLUMNS * PITCH];

#define OWN gl_SubgroupInvocationID
uint first_column, first_staged; // of the subgroup
uvec4 next[LOADS]; // of the next step, as it lies in memory
Head heads[LOADS];

// The column and the part of load i of this invocation. Adjacent invocations read adjacent memory.
uvec2 loaded_position(uint i)
{
    if (IS_PACKED != 0u)
        return uvec2(OWN % 16u + i / 2u * 16u, i % 2u * 2u + OWN / 16u);
    return uvec2(OWN / 4u + i * 8u, OWN % 4u);
}

void load_step(uint at)
{
    uint num_packed = IS_PACKED == 0u ? 0u : args.columns / 16u * 16u;
    [[unroll]] for (uint i = 0u; i < LOADS; i++) {
        uvec2 position = loaded_position(i);
        uint column = min(first_column + position.x, args.columns - 1u);
        if (IS_PACKED == 3u)
            num_packed = column + 1u;
        Row from = weight_row(args.w_offset, column, args.terms, num_packed);
        uint step = min(at, args.terms / 32u - 1u);
        next[i] = part_fetch(from, step, position.y);
        if (IS_PACKED == 0u || i % 2u == 0u)
            heads[i] = head_fetch(from, step);
    }
}

// Columns among this invocation's whose weights are beyond f16: they are computed again in the end.
uint excess[LOADS];
shared uint is_exceeded[SUBGROUPS * COLUMNS];

void keep_step(uint at)
{
    [[unroll]] for (uint i = 0u; i < LOADS; i++) {
        uvec2 position = loaded_position(i);
        uvec4 part = part_unpack(next[i], heads[IS_PACKED == 0u ? i : i & ~1u], at, position.y);
        staged[first_staged + position.x * PITCH + position.y] = part_floats(part);
        excess[IS_PACKED != 0u ? i / 2u : i] |= part_excess(part);
    }
}

#define MATRIX_A coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define MATRIX_B coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define SUMS coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
SUMS sums[2][2];
MATRIX_A a[TERMS / 16u][2]; // of the next step

void load_x(uint x_tile, uint row_tiles)
{
    [[unroll]] for (uint k = 0u; k < TERMS / 16u; k++)
        [[unroll]] for (uint i = 0u; i < 2u; i++)
            if (i < ROW_TILES)
                coopMatLoad(a[k][i], x_source.d, (x_tile + i * row_tiles + k) * 32u, 2u,
                            gl_CooperativeMatrixLayoutRowMajor);
}

void multiply_step()
{
    [[unroll]] for (uint k = 0u; k < TERMS / 16u; k++) {
        [[unroll]] for (uint j = 0u; j < 2u; j++) {
            MATRIX_B b;
            coopMatLoad(b, staged, first_staged + j * 16u * PITCH + k * 2u, PITCH,
                        gl_CooperativeMatrixLayoutColumnMajor);
            [[unroll]] for (uint i = 0u; i < 2u; i++)
                if (i < ROW_TILES)
                    sums[i][j] = coopMatMulAdd(a[k][i], b, sums[i][j]);
        }
    }
}

// An element in f32, of x as it is scaled.
float exact_product(uint row, uint column)
{
    Row from = weight_row(args.w_offset, column, args.terms, IS_PACKED != 0u ? args.columns / 16u * 16u : 0u);
    uint row_tiles = args.terms / 16u;
    float sum = 0.0;
    for (uint p = 0u; p < args.terms / 8u; p++) {
        uvec4 part = part_load(from, p), x = x_source.d[(row / 16u * row_tiles + p / 2u) * 32u + row % 16u * 2u + p % 2u];
        vec4 low, high, scales = part_scales(part);
        part_integers(part, low, high);
        vec4 a = vec4(unpackHalf2x16(x.x), unpackHalf2x16(x.y)), b = vec4(unpackHalf2x16(x.z), unpackHalf2x16(x.w));
        sum += dot(low.xzyw * scales.x + scales.y, a) + dot(high.xzyw * scales.z + scales.w, b);
    }
    return sum;
}

// Tells the workgroup which columns exceed f16.
void gather_excess()
{
    is_exceeded[gl_LocalInvocationIndex] = 0u;
    barrier();
    [[unroll]] for (uint i = 0u; i < LOADS; i++)
        if (excess[IS_PACKED != 0u ? i / 2u : i] != 0u)
            is_exceeded[gl_SubgroupID % ACROSS * COLUMNS + loaded_position(i).x] = 1u;
}

// Adds the sums of the subgroups that share columns, sixteen rows at a time.
void store(uint first_row)
{
    uint across = ACROSS * COLUMNS, column_of_group = gl_WorkGroupID.x * across;
    [[unroll]] for (uint i = 0u; i < 2u; i++) {
        if (i >= ROW_TILES)
            break;
        barrier();
        [[unroll]] for (uint j = 0u; j < 2u; j++)
            coopMatStore(sums[i][j], staged, gl_SubgroupID * 16u * SUMS_PITCH + j * 4u, SUMS_PITCH,
                         gl_CooperativeMatrixLayoutRowMajor);
        barrier();
        for (uint at = gl_LocalInvocationIndex; at < 16u * across; at += uint(GROUP)) {
            uint y = at / across, x = at % across;
            float sum = 0.0;
            [[unroll]] for (uint s = 0u; s < SUBGROUPS; s++)
                if (s < SUBGROUPS / ACROSS)
                    sum += uintBitsToFloat(
                        staged[((s * ACROSS + x / COLUMNS) * 16u + y) * SUMS_PITCH + x % COLUMNS / 4u][x % 4u]);
            uint row = first_row + i * 16u + y, column = column_of_group + x;
            if (row >= args.rows || column >= args.columns)
                continue;
            if (is_exceeded[x] != 0u)
                sum = exact_product(row, column);
            sum *= uintBitsToFloat(x_source.d[args.scales_at + row / 4u][row % 4u]);
            result.d[args.out_offset + row * args.columns + column] = sum;
        }
    }
}

// Waits for the subgroup's part of shared memory.
#define WAIT                                                                                       \
    controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared,                  \
                   gl_SemanticsAcquireRelease);

void main()
{
    uint first_row = gl_WorkGroupID.y * ROW_TILES * 16u, shares = SUBGROUPS / ACROSS;
    uint steps = args.terms / TERMS, row_tiles = steps * (TERMS / 16u);
    uint x_tile = first_row / 16u * row_tiles;
    first_column = (gl_WorkGroupID.x * ACROSS + gl_SubgroupID % ACROSS) * COLUMNS;
    first_staged = gl_SubgroupID * COLUMNS * PITCH;
    [[unroll]] for (uint i = 0u; i < 2u; i++)
        [[unroll]] for (uint j = 0u; j < 2u; j++)
            sums[i][j] = SUMS(0.0);
    [[unroll]] for (uint i = 0u; i < LOADS; i++)
        excess[i] = 0u;
    uint first = gl_SubgroupID / ACROSS;
    load_x(x_tile + min(first, steps - 1u) * (TERMS / 16u), row_tiles);
    load_step(first);
    for (uint at = first; at < steps; at += shares) {
        keep_step(at);
        load_step(at + shares);
        WAIT
        multiply_step();
        load_x(x_tile + min(at + shares, steps - 1u) * (TERMS / 16u), row_tiles);
        WAIT
    }
    gather_excess();
    store(first_row);
}
