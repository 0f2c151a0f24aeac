// SPDX-License-Identifier: MIT
// The words of the language, as tables. A word of a table is no identifier, whichever
// extensions are on; the front end says which extension a word needs.
#ifndef KERNELS_COMPILER_KEYWORD_H
#define KERNELS_COMPILER_KEYWORD_H

// clang-format off

// Types: X(word, component, columns, rows). A scalar has one of each, a vector one column.
// matCxR has C columns of R rows.
#define KEYWORD_TYPES(X)                                                                   \
    X(void, VOID, 0, 0) X(bool, BOOL, 1, 1) X(bvec2, BOOL, 1, 2) X(bvec3, BOOL, 1, 3)      \
    X(bvec4, BOOL, 1, 4) X(int, INT32, 1, 1) X(int32_t, INT32, 1, 1)                       \
    X(ivec2, INT32, 1, 2) X(ivec3, INT32, 1, 3) X(ivec4, INT32, 1, 4)                      \
    X(i32vec2, INT32, 1, 2) X(i32vec3, INT32, 1, 3) X(i32vec4, INT32, 1, 4)                \
    X(uint, UINT32, 1, 1) X(uint32_t, UINT32, 1, 1) X(uvec2, UINT32, 1, 2)                 \
    X(uvec3, UINT32, 1, 3) X(uvec4, UINT32, 1, 4) X(u32vec2, UINT32, 1, 2)                 \
    X(u32vec3, UINT32, 1, 3) X(u32vec4, UINT32, 1, 4) X(int8_t, INT8, 1, 1)                \
    X(i8vec2, INT8, 1, 2) X(i8vec3, INT8, 1, 3) X(i8vec4, INT8, 1, 4)                      \
    X(uint8_t, UINT8, 1, 1) X(u8vec2, UINT8, 1, 2) X(u8vec3, UINT8, 1, 3)                  \
    X(u8vec4, UINT8, 1, 4) X(int16_t, INT16, 1, 1) X(i16vec2, INT16, 1, 2)                 \
    X(i16vec3, INT16, 1, 3) X(i16vec4, INT16, 1, 4) X(uint16_t, UINT16, 1, 1)              \
    X(u16vec2, UINT16, 1, 2) X(u16vec3, UINT16, 1, 3) X(u16vec4, UINT16, 1, 4)             \
    X(int64_t, INT64, 1, 1) X(i64vec2, INT64, 1, 2) X(i64vec3, INT64, 1, 3)                \
    X(i64vec4, INT64, 1, 4) X(uint64_t, UINT64, 1, 1) X(u64vec2, UINT64, 1, 2)             \
    X(u64vec3, UINT64, 1, 3) X(u64vec4, UINT64, 1, 4) X(float, FLOAT32, 1, 1)              \
    X(float32_t, FLOAT32, 1, 1) X(vec2, FLOAT32, 1, 2) X(vec3, FLOAT32, 1, 3)              \
    X(vec4, FLOAT32, 1, 4) X(f32vec2, FLOAT32, 1, 2) X(f32vec3, FLOAT32, 1, 3)             \
    X(f32vec4, FLOAT32, 1, 4) X(mat2, FLOAT32, 2, 2) X(mat3, FLOAT32, 3, 3)                \
    X(mat4, FLOAT32, 4, 4) X(mat2x2, FLOAT32, 2, 2) X(mat2x3, FLOAT32, 2, 3)               \
    X(mat2x4, FLOAT32, 2, 4) X(mat3x2, FLOAT32, 3, 2) X(mat3x3, FLOAT32, 3, 3)             \
    X(mat3x4, FLOAT32, 3, 4) X(mat4x2, FLOAT32, 4, 2) X(mat4x3, FLOAT32, 4, 3)             \
    X(mat4x4, FLOAT32, 4, 4) X(f32mat2, FLOAT32, 2, 2) X(f32mat3, FLOAT32, 3, 3)           \
    X(f32mat4, FLOAT32, 4, 4) X(f32mat2x2, FLOAT32, 2, 2) X(f32mat2x3, FLOAT32, 2, 3)      \
    X(f32mat2x4, FLOAT32, 2, 4) X(f32mat3x2, FLOAT32, 3, 2)                                \
    X(f32mat3x3, FLOAT32, 3, 3) X(f32mat3x4, FLOAT32, 3, 4)                                \
    X(f32mat4x2, FLOAT32, 4, 2) X(f32mat4x3, FLOAT32, 4, 3)                                \
    X(f32mat4x4, FLOAT32, 4, 4) X(float16_t, FLOAT16, 1, 1) X(f16vec2, FLOAT16, 1, 2)      \
    X(f16vec3, FLOAT16, 1, 3) X(f16vec4, FLOAT16, 1, 4) X(f16mat2, FLOAT16, 2, 2)          \
    X(f16mat3, FLOAT16, 3, 3) X(f16mat4, FLOAT16, 4, 4) X(f16mat2x2, FLOAT16, 2, 2)        \
    X(f16mat2x3, FLOAT16, 2, 3) X(f16mat2x4, FLOAT16, 2, 4)                                \
    X(f16mat3x2, FLOAT16, 3, 2) X(f16mat3x3, FLOAT16, 3, 3)                                \
    X(f16mat3x4, FLOAT16, 3, 4) X(f16mat4x2, FLOAT16, 4, 2)                                \
    X(f16mat4x3, FLOAT16, 4, 3) X(f16mat4x4, FLOAT16, 4, 4) X(double, FLOAT64, 1, 1)       \
    X(float64_t, FLOAT64, 1, 1) X(dvec2, FLOAT64, 1, 2) X(dvec3, FLOAT64, 1, 3)            \
    X(dvec4, FLOAT64, 1, 4) X(f64vec2, FLOAT64, 1, 2) X(f64vec3, FLOAT64, 1, 3)            \
    X(f64vec4, FLOAT64, 1, 4) X(dmat2, FLOAT64, 2, 2) X(dmat3, FLOAT64, 3, 3)              \
    X(dmat4, FLOAT64, 4, 4) X(dmat2x2, FLOAT64, 2, 2) X(dmat2x3, FLOAT64, 2, 3)            \
    X(dmat2x4, FLOAT64, 2, 4) X(dmat3x2, FLOAT64, 3, 2) X(dmat3x3, FLOAT64, 3, 3)          \
    X(dmat3x4, FLOAT64, 3, 4) X(dmat4x2, FLOAT64, 4, 2) X(dmat4x3, FLOAT64, 4, 3)          \
    X(dmat4x4, FLOAT64, 4, 4) X(f64mat2, FLOAT64, 2, 2) X(f64mat3, FLOAT64, 3, 3)          \
    X(f64mat4, FLOAT64, 4, 4) X(f64mat2x2, FLOAT64, 2, 2) X(f64mat2x3, FLOAT64, 2, 3)      \
    X(f64mat2x4, FLOAT64, 2, 4) X(f64mat3x2, FLOAT64, 3, 2)                                \
    X(f64mat3x3, FLOAT64, 3, 3) X(f64mat3x4, FLOAT64, 3, 4)                                \
    X(f64mat4x2, FLOAT64, 4, 2) X(f64mat4x3, FLOAT64, 4, 3)                                \
    X(f64mat4x4, FLOAT64, 4, 4) X(bfloat16_t, BFLOAT16, 1, 1)                              \
    X(bf16vec2, BFLOAT16, 1, 2) X(bf16vec3, BFLOAT16, 1, 3)                                \
    X(bf16vec4, BFLOAT16, 1, 4)

// Keywords that begin other types.
#define KEYWORD_TYPE_MAKERS(X) X(struct) X(coopmat) X(tensorLayoutNV) X(tensorViewNV)

#define KEYWORD_QUALIFIERS(X)                                                              \
    X(const) X(uniform) X(buffer) X(shared) X(in) X(out) X(inout) X(layout)                \
    X(coherent) X(volatile) X(restrict) X(readonly) X(writeonly) X(nonprivate)             \
    X(devicecoherent) X(queuefamilycoherent) X(workgroupcoherent) X(subgroupcoherent)      \
    X(precise) X(highp) X(mediump) X(lowp) X(precision)

#define KEYWORD_CONTROLS(X)                                                                \
    X(if) X(else) X(for) X(while) X(do) X(switch) X(case) X(default) X(break)              \
    X(continue) X(return) X(discard)

#define KEYWORD_VALUES(X) X(true) X(false)

// Words that GLSL reserves, or has for stages and resources that are not a kernel's.
#define KEYWORD_RESERVED(X)                                                                \
    X(attribute) X(varying) X(centroid) X(flat) X(smooth) X(noperspective) X(patch)        \
    X(sample) X(invariant) X(subroutine) X(atomic_uint) X(common) X(partition)             \
    X(active) X(asm) X(class) X(union) X(enum) X(typedef) X(template) X(this)              \
    X(resource) X(goto) X(inline) X(noinline) X(public) X(static) X(extern)                \
    X(external) X(interface) X(long) X(short) X(half) X(fixed) X(unsigned) X(superp)       \
    X(input) X(output) X(hvec2) X(hvec3) X(hvec4) X(fvec2) X(fvec3) X(fvec4)               \
    X(sampler3DRect) X(filter) X(sizeof) X(cast) X(namespace) X(using) X(sampler1D)        \
    X(sampler2D) X(sampler3D) X(samplerCube) X(sampler2DRect) X(samplerBuffer)             \
    X(sampler2DMS) X(sampler1DArray) X(sampler2DArray) X(samplerCubeArray)                 \
    X(sampler2DMSArray) X(isampler1D) X(isampler2D) X(isampler3D) X(isamplerCube)          \
    X(isampler2DRect) X(isamplerBuffer) X(isampler2DMS) X(isampler1DArray)                 \
    X(isampler2DArray) X(isamplerCubeArray) X(isampler2DMSArray) X(usampler1D)             \
    X(usampler2D) X(usampler3D) X(usamplerCube) X(usampler2DRect) X(usamplerBuffer)        \
    X(usampler2DMS) X(usampler1DArray) X(usampler2DArray) X(usamplerCubeArray)             \
    X(usampler2DMSArray) X(sampler1DShadow) X(sampler2DShadow) X(samplerCubeShadow)        \
    X(sampler2DRectShadow) X(sampler1DArrayShadow) X(sampler2DArrayShadow)                 \
    X(samplerCubeArrayShadow) X(sampler) X(samplerShadow) X(texture1D) X(texture2D)        \
    X(texture3D) X(textureCube) X(texture2DRect) X(textureBuffer) X(texture2DMS)           \
    X(texture1DArray) X(texture2DArray) X(textureCubeArray) X(texture2DMSArray)            \
    X(itexture1D) X(itexture2D) X(itexture3D) X(itextureCube) X(itexture2DRect)            \
    X(itextureBuffer) X(itexture2DMS) X(itexture1DArray) X(itexture2DArray)                \
    X(itextureCubeArray) X(itexture2DMSArray) X(utexture1D) X(utexture2D)                  \
    X(utexture3D) X(utextureCube) X(utexture2DRect) X(utextureBuffer) X(utexture2DMS)      \
    X(utexture1DArray) X(utexture2DArray) X(utextureCubeArray) X(utexture2DMSArray)        \
    X(image1D) X(image2D) X(image3D) X(imageCube) X(image2DRect) X(imageBuffer)            \
    X(image2DMS) X(image1DArray) X(image2DArray) X(imageCubeArray) X(image2DMSArray)       \
    X(iimage1D) X(iimage2D) X(iimage3D) X(iimageCube) X(iimage2DRect) X(iimageBuffer)      \
    X(iimage2DMS) X(iimage1DArray) X(iimage2DArray) X(iimageCubeArray)                     \
    X(iimage2DMSArray) X(uimage1D) X(uimage2D) X(uimage3D) X(uimageCube)                   \
    X(uimage2DRect) X(uimageBuffer) X(uimage2DMS) X(uimage1DArray) X(uimage2DArray)        \
    X(uimageCubeArray) X(uimage2DMSArray) X(subpassInput) X(subpassInputMS)                \
    X(isubpassInput) X(isubpassInputMS) X(usubpassInput) X(usubpassInputMS)

// KEYWORD_float, KEYWORD_vec4, KEYWORD_if ... Each table is one range of numbers.
#define KEYWORD_TYPE_ENUM(word, component, columns, rows) KEYWORD_##word,
#define KEYWORD_ENUM(word) KEYWORD_##word,
enum keyword {
    KEYWORD_NONE, // an identifier
    KEYWORD_TYPES(KEYWORD_TYPE_ENUM) // in the table's order, from 1
    KEYWORDS_OF_TYPES,               // behind the last type
    KEYWORD_TYPE_MAKERS(KEYWORD_ENUM)
    KEYWORDS_OF_TYPE_MAKERS,
    KEYWORD_QUALIFIERS(KEYWORD_ENUM)
    KEYWORDS_OF_QUALIFIERS,
    KEYWORD_CONTROLS(KEYWORD_ENUM)
    KEYWORD_VALUES(KEYWORD_ENUM)
    KEYWORDS_TAKEN, // numbers from here on are words that are refused
    KEYWORD_RESERVED(KEYWORD_ENUM)
    NUM_KEYWORDS,
};
#undef KEYWORD_TYPE_ENUM
#undef KEYWORD_ENUM

// clang-format on

#endif // KERNELS_COMPILER_KEYWORD_H
