// SPDX-License-Identifier: MIT
// A product of small matrices, whose time is latency: workgroups of 256 invocations compute
// tiles of TILE x TILE outputs, so that even a small product keeps many processors busy, and
// PARTS invocations share the terms of each output. A slice of DEPTH terms costs one wait for
// memory. Shared memory is read four terms at a time. ACC is float. The including file defines
// what matmul.glsl asks for.
#define PARTS (256u / (TILE * TILE))
#define DEPTH 64u
#define LOADS (DEPTH * TILE / 256u) // of each operand, per invocation and slice
#define PITCH (DEPTH / 4u + 1u)     // of a row in shared memory; 1: no bank conflicts

shared vec4 slice_a[TILE * PITCH]; // rows of a
shared vec4 slice_b[TILE * PITCH]; // columns of b
shared float part_sums[256];

// The (term, row or column) of element `i` that an invocation loads. Adjacent
// invocations take terms or rows, whichever lie closer together in memory.
uvec2 loaded_position(uint i, uint along_k)
{
    uint at = gl_LocalInvocationIndex + 256u * i;
    return along_k != 0u ? uvec2(at % DEPTH, at / DEPTH) : uvec2(at / TILE, at % TILE);
}

// Loads an invocation's elements of the slice that begins at term k: zeros out of bounds.
void load_slice(uvec2 first, uvec2 size, uint k, uint k_end, out float a[LOADS],
                out float b[LOADS])
{
    [[unroll]] for (uint i = 0u; i < LOADS; i++) {
        uvec2 at_a = loaded_position(i, A_ALONG_K), at_b = loaded_position(i, B_ALONG_K);
        a[i] = b[i] = 0.0;
        if (k + at_a.x < k_end && first.y + at_a.y < size.y)
            a[i] = load_a(first.y + at_a.y, k + at_a.x);
        if (k + at_b.x < k_end && first.x + at_b.y < size.x)
            b[i] = load_b(k + at_b.x, first.x + at_b.y);
    }
}

// Computes one tile of rows x columns outputs, from terms [k_begin, k_end).
void multiply(uint tile_row, uint tile_column, uint rows, uint columns, uint k_begin,
              uint k_end)
{
    uint at = gl_LocalInvocationIndex;
    uint x = at % TILE, part = at / TILE % PARTS, y = at / (TILE * PARTS);
    uvec2 first = uvec2(tile_column, tile_row) * TILE, size = uvec2(columns, rows);
    float next_a[LOADS], next_b[LOADS];
    vec4 sums = vec4(0);
    load_slice(first, size, k_begin, k_end, next_a, next_b);
    for (uint k = k_begin + DEPTH;; k += DEPTH) {
        [[unroll]] for (uint i = 0u; i < LOADS; i++) {
            uvec2 a = loaded_position(i, A_ALONG_K), b = loaded_position(i, B_ALONG_K);
            slice_a[a.y * PITCH + a.x / 4u][a.x % 4u] = next_a[i];
            slice_b[b.y * PITCH + b.x / 4u][b.x % 4u] = next_b[i];
        }
        barrier();
        bool has_next = k < k_end;
        if (has_next) // on its way while this slice is multiplied
            load_slice(first, size, k, k_end, next_a, next_b);
        [[unroll]] for (uint i = 0u; i < DEPTH / 4u; i += PARTS)
            sums += slice_a[y * PITCH + part + i] * slice_b[x * PITCH + part + i];
        if (!has_next)
            break;
        barrier();
    }
    float sum = (sums.x + sums.y) + (sums.z + sums.w);
    part_sums[at] = sum;
    barrier(); // also before the next product's slices
    first += uvec2(x, y);
    if (part != 0u || first.y >= rows || first.x >= columns)
        return;
    [[unroll]] for (uint i = 1u; i < PARTS; i++)
        sum += part_sums[at + i * TILE];
    store(first.y, first.x, sum);
}
