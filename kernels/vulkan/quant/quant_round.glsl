// SPDX-License-Identifier: MIT
// Rounding of x to bytes: 32 elements, which four adjacent invocations of a subgroup share, to
// multiples of their greatest magnitude / 127.
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require

// Rounds eight elements, and gives the scale of their bytes. As integers the bits of magnitudes are
// in their order, and those of infinities and NaNs are the greatest: then the scale is not finite
// either.
uvec2 rounded_eight(vec4 low_four, vec4 high_four, out float scale)
{
    vec4 x[2] = vec4[2](low_four, high_four);
    uvec4 size = max(floatBitsToUint(x[0]) & 0x7fffffffu, floatBitsToUint(x[1]) & 0x7fffffffu);
    uint most = max(max(size.x, size.y), max(size.z, size.w));
    most = max(most, subgroupShuffleXor(most, 1u));
    most = max(most, subgroupShuffleXor(most, 2u));
    bool is_finite = most < 0x7f800000u;
    // Below 2^-119 the factor would be infinite, or nearly: what is so small counts as 0.
    float factor = is_finite && most > 0x04000000u ? 127.0 / uintBitsToFloat(most) : 0.0;
    uvec2 bytes;
    [[unroll]] for (uint i = 0u; i < 2u; i++) {
        // In the low bits of a float of 1.5 * 2^23 is the nearest integer, even of two.
        vec4 scaled = is_finite ? x[i] * factor : vec4(0.0);
        uvec4 q = floatBitsToUint(scaled + 12582912.0) & 0xffu;
        bytes[i] = q.x | q.y << 8 | q.z << 16 | q.w << 24;
    }
    scale = uintBitsToFloat(is_finite ? most : 0x7fc00000u) * (1.0 / 127.0);
    return bytes;
}
