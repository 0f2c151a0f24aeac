// SPDX-License-Identifier: MIT
// The grid of a batched product of matrices: what matmul.comp, matmul_wide.comp, matmul_matrix.comp
// and matmul_matrix2.comp share. The including file defines multiply(), NUM_BATCH, STEP_X, STEP_Y,
// STEP_Z, `args`, the positions where the operands of a batch begin: a_start, b_start, out_start, and
// TILE, or TILE_ROWS and TILE_COLUMNS where these differ.
#ifdef TILE
#define TILE_ROWS TILE
#define TILE_COLUMNS TILE
#endif
void start_batch(uint batch)
{
    uint rest = batch;
    a_start = args.a_offset;
    b_start = args.b_offset;
    out_start = args.out_offset + batch * args.rows * args.columns;
    for (uint axis = NUM_BATCH; axis-- > 0u;) {
        uint next = axis > 0u ? rest / args.extent[axis] : 0u;
        uint c = rest - next * args.extent[axis];
        a_start += c * args.a_stride[axis];
        b_start += c * args.b_stride[axis];
        rest = next;
    }
}

// The tile of a workgroup. PANEL: tiles are taken in panels of so many rows of them, column by column,
// so that workgroups which run together read the same parts of both operands; needs a grid as
// large as the product's. Without it, by rows.
uvec2 first_tile()
{
#ifdef PANEL
    if (STEP_X == 0u && STEP_Y == 0u) {
        uint width = (args.columns + TILE_COLUMNS - 1u) / TILE_COLUMNS;
        uint height = (args.rows + TILE_ROWS - 1u) / TILE_ROWS;
        uint at = gl_WorkGroupID.y * width + gl_WorkGroupID.x;
        uint first = at / (PANEL * width) * PANEL, rest = at % (PANEL * width);
        uint rows = min(PANEL, height - first);
        return uvec2(rest / rows, first + rest % rows);
    }
#endif
    return gl_WorkGroupID.xy;
}

// Terms of a product. HAS_PARTS: where products are parts of one product's terms, the last one
// may have fewer, which stand behind the extents of the axes.
uint terms_of(uint batch)
{
#ifdef HAS_PARTS
    if (NUM_BATCH < 6u && args.extent[5] != 0u && batch + 1u == args.num_batches)
        return args.extent[5];
#endif
    return args.terms;
}

// One tile for each workgroup. Where the device's grid is smaller than the product's,
// workgroups take further tiles.
void main()
{
    uint batch = gl_WorkGroupID.z;
    do {
        start_batch(batch);
        uvec2 first = first_tile();
        uint y = first.y;
        do {
            uint x = first.x;
            do {
                multiply(y, x, args.rows, args.columns, 0u, terms_of(batch));
                x += STEP_X;
            } while (STEP_X != 0u && x * TILE_COLUMNS < args.columns);
            y += STEP_Y;
        } while (STEP_Y != 0u && y * TILE_ROWS < args.rows);
        batch += STEP_Z;
    } while (STEP_Z != 0u && batch < args.num_batches);
}
