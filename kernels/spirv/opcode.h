// SPDX-License-Identifier: MIT
// The instructions of SPIR-V that compute shaders have, as one table. Names and numbers are
// those of the SPIR-V specification 1.6 and its registered extensions.
//
// A pattern has a character for each operand behind the instruction's first word:
//   t  the result's type    r  the result    i  an id    l  a literal    s  a string
//   I  ids to the end       L  literals to the end
//   m  memory operands: a mask, the alignment where bit 1 is set, then an id for each of
//      bits 3 and 4
//   P  pairs of a literal and an id to the end (OpSwitch; literals as wide as the selector)
//   o  the opcode in OpSpecConstantOp; that instruction's operands follow
//   ?  the operands that follow are optional; I, L, m and P are optional without it
//
// A pattern begins with '!' if the instruction has effects, so that it stays although
// nobody reads its result. It begins with '~' if the instruction has no effects, but its
// result depends on more than its operands (memory, active invocations, position), so that
// two equal instructions may not be merged. All others are pure.
#ifndef KERNELS_SPIRV_OPCODE_H
#define KERNELS_SPIRV_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

#define SPIRV_OPS_CORE(X)                                                                  \
    X(Nop, 0, "")                                                                          \
    X(Undef, 1, "tr")                                                                      \
    X(SourceContinued, 2, "s")                                                             \
    X(Source, 3, "ll?is")                                                                  \
    X(SourceExtension, 4, "s")                                                             \
    X(Name, 5, "is")                                                                       \
    X(MemberName, 6, "ils")                                                                \
    X(String, 7, "rs")                                                                     \
    X(Line, 8, "ill")                                                                      \
    X(Extension, 10, "s")                                                                  \
    X(ExtInstImport, 11, "rs")                                                             \
    X(ExtInst, 12, "trilI")                                                                \
    X(MemoryModel, 14, "ll")                                                               \
    X(EntryPoint, 15, "lisI")                                                              \
    X(ExecutionMode, 16, "ilL")                                                            \
    X(Capability, 17, "l")                                                                 \
    X(TypeVoid, 19, "r")                                                                   \
    X(TypeBool, 20, "r")                                                                   \
    X(TypeInt, 21, "rll")                                                                  \
    X(TypeFloat, 22, "rl?l")                                                               \
    X(TypeVector, 23, "ril")                                                               \
    X(TypeMatrix, 24, "ril")                                                               \
    X(TypeArray, 28, "rii")                                                                \
    X(TypeRuntimeArray, 29, "ri")                                                          \
    X(TypeStruct, 30, "rI")                                                                \
    X(TypePointer, 32, "rli")                                                              \
    X(TypeFunction, 33, "riI")                                                             \
    X(TypeForwardPointer, 39, "il")                                                        \
    X(ConstantTrue, 41, "tr")                                                              \
    X(ConstantFalse, 42, "tr")                                                             \
    X(Constant, 43, "trL")                                                                 \
    X(ConstantComposite, 44, "trI")                                                        \
    X(ConstantNull, 46, "tr")                                                              \
    X(SpecConstantTrue, 48, "tr")                                                          \
    X(SpecConstantFalse, 49, "tr")                                                         \
    X(SpecConstant, 50, "trL")                                                             \
    X(SpecConstantComposite, 51, "trI")                                                    \
    X(SpecConstantOp, 52, "troI")                                                          \
    X(Function, 54, "~trli")                                                               \
    X(FunctionParameter, 55, "~tr")                                                        \
    X(FunctionEnd, 56, "")                                                                 \
    X(FunctionCall, 57, "!triI")                                                           \
    X(Variable, 59, "~trl?i")                                                              \
    X(Load, 61, "~trim")                                                                   \
    X(Store, 62, "!iim")                                                                   \
    X(CopyMemory, 63, "!iimm")                                                             \
    X(AccessChain, 65, "triI")                                                             \
    X(InBoundsAccessChain, 66, "triI")                                                     \
    X(PtrAccessChain, 67, "triiI")                                                         \
    X(ArrayLength, 68, "tril")                                                             \
    X(InBoundsPtrAccessChain, 70, "triiI")                                                 \
    X(Decorate, 71, "ilL")                                                                 \
    X(MemberDecorate, 72, "illL")                                                          \
    X(VectorExtractDynamic, 77, "trii")                                                    \
    X(VectorInsertDynamic, 78, "triii")                                                    \
    X(VectorShuffle, 79, "triiL")                                                          \
    X(CompositeConstruct, 80, "trI")                                                       \
    X(CompositeExtract, 81, "triL")                                                        \
    X(CompositeInsert, 82, "triiL")                                                        \
    X(CopyObject, 83, "tri")                                                               \
    X(Transpose, 84, "tri")                                                                \
    X(ConvertFToU, 109, "tri")                                                             \
    X(ConvertFToS, 110, "tri")                                                             \
    X(ConvertSToF, 111, "tri")                                                             \
    X(ConvertUToF, 112, "tri")                                                             \
    X(UConvert, 113, "tri")                                                                \
    X(SConvert, 114, "tri")                                                                \
    X(FConvert, 115, "tri")                                                                \
    X(QuantizeToF16, 116, "tri")                                                           \
    X(ConvertPtrToU, 117, "tri")                                                           \
    X(ConvertUToPtr, 120, "tri")                                                           \
    X(Bitcast, 124, "tri")                                                                 \
    X(SNegate, 126, "tri")                                                                 \
    X(FNegate, 127, "tri")                                                                 \
    X(IAdd, 128, "trii")                                                                   \
    X(FAdd, 129, "trii")                                                                   \
    X(ISub, 130, "trii")                                                                   \
    X(FSub, 131, "trii")                                                                   \
    X(IMul, 132, "trii")                                                                   \
    X(FMul, 133, "trii")                                                                   \
    X(UDiv, 134, "trii")                                                                   \
    X(SDiv, 135, "trii")                                                                   \
    X(FDiv, 136, "trii")                                                                   \
    X(UMod, 137, "trii")                                                                   \
    X(SRem, 138, "trii")                                                                   \
    X(SMod, 139, "trii")                                                                   \
    X(FRem, 140, "trii")                                                                   \
    X(FMod, 141, "trii")                                                                   \
    X(VectorTimesScalar, 142, "trii")                                                      \
    X(MatrixTimesScalar, 143, "trii")                                                      \
    X(VectorTimesMatrix, 144, "trii")                                                      \
    X(MatrixTimesVector, 145, "trii")                                                      \
    X(MatrixTimesMatrix, 146, "trii")                                                      \
    X(OuterProduct, 147, "trii")                                                           \
    X(Dot, 148, "trii")                                                                    \
    X(IAddCarry, 149, "trii")                                                              \
    X(ISubBorrow, 150, "trii")                                                             \
    X(UMulExtended, 151, "trii")                                                           \
    X(SMulExtended, 152, "trii")                                                           \
    X(Any, 154, "tri")                                                                     \
    X(All, 155, "tri")                                                                     \
    X(IsNan, 156, "tri")                                                                   \
    X(IsInf, 157, "tri")                                                                   \
    X(LogicalEqual, 164, "trii")                                                           \
    X(LogicalNotEqual, 165, "trii")                                                        \
    X(LogicalOr, 166, "trii")                                                              \
    X(LogicalAnd, 167, "trii")                                                             \
    X(LogicalNot, 168, "tri")                                                              \
    X(Select, 169, "triii")                                                                \
    X(IEqual, 170, "trii")                                                                 \
    X(INotEqual, 171, "trii")                                                              \
    X(UGreaterThan, 172, "trii")                                                           \
    X(SGreaterThan, 173, "trii")                                                           \
    X(UGreaterThanEqual, 174, "trii")                                                      \
    X(SGreaterThanEqual, 175, "trii")                                                      \
    X(ULessThan, 176, "trii")                                                              \
    X(SLessThan, 177, "trii")                                                              \
    X(ULessThanEqual, 178, "trii")                                                         \
    X(SLessThanEqual, 179, "trii")                                                         \
    X(FOrdEqual, 180, "trii")                                                              \
    X(FUnordEqual, 181, "trii")                                                            \
    X(FOrdNotEqual, 182, "trii")                                                           \
    X(FUnordNotEqual, 183, "trii")                                                         \
    X(FOrdLessThan, 184, "trii")                                                           \
    X(FUnordLessThan, 185, "trii")                                                         \
    X(FOrdGreaterThan, 186, "trii")                                                        \
    X(FUnordGreaterThan, 187, "trii")                                                      \
    X(FOrdLessThanEqual, 188, "trii")                                                      \
    X(FUnordLessThanEqual, 189, "trii")                                                    \
    X(FOrdGreaterThanEqual, 190, "trii")                                                   \
    X(FUnordGreaterThanEqual, 191, "trii")                                                 \
    X(ShiftRightLogical, 194, "trii")                                                      \
    X(ShiftRightArithmetic, 195, "trii")                                                   \
    X(ShiftLeftLogical, 196, "trii")                                                       \
    X(BitwiseOr, 197, "trii")                                                              \
    X(BitwiseXor, 198, "trii")                                                             \
    X(BitwiseAnd, 199, "trii")                                                             \
    X(Not, 200, "tri")                                                                     \
    X(BitFieldInsert, 201, "triiii")                                                       \
    X(BitFieldSExtract, 202, "triii")                                                      \
    X(BitFieldUExtract, 203, "triii")                                                      \
    X(BitReverse, 204, "tri")                                                              \
    X(BitCount, 205, "tri")                                                                \
    X(ControlBarrier, 224, "!iii")                                                         \
    X(MemoryBarrier, 225, "!ii")                                                           \
    X(AtomicLoad, 227, "!triii")                                                           \
    X(AtomicStore, 228, "!iiii")                                                           \
    X(AtomicExchange, 229, "!triiii")                                                      \
    X(AtomicCompareExchange, 230, "!triiiiii")                                             \
    X(AtomicIIncrement, 232, "!triii")                                                     \
    X(AtomicIDecrement, 233, "!triii")                                                     \
    X(AtomicIAdd, 234, "!triiii")                                                          \
    X(AtomicISub, 235, "!triiii")                                                          \
    X(AtomicSMin, 236, "!triiii")                                                          \
    X(AtomicUMin, 237, "!triiii")                                                          \
    X(AtomicSMax, 238, "!triiii")                                                          \
    X(AtomicUMax, 239, "!triiii")                                                          \
    X(AtomicAnd, 240, "!triiii")                                                           \
    X(AtomicOr, 241, "!triiii")                                                            \
    X(AtomicXor, 242, "!triiii")                                                           \
    X(Phi, 245, "~trI")                                                                    \
    X(LoopMerge, 246, "!iilL")                                                             \
    X(SelectionMerge, 247, "!il")                                                          \
    X(Label, 248, "r")                                                                     \
    X(Branch, 249, "!i")                                                                   \
    X(BranchConditional, 250, "!iiiL")                                                     \
    X(Switch, 251, "!iiP")                                                                 \
    X(Kill, 252, "!")                                                                      \
    X(Return, 253, "!")                                                                    \
    X(ReturnValue, 254, "!i")                                                              \
    X(Unreachable, 255, "!")                                                               \
    X(NoLine, 317, "")                                                                     \
    X(ModuleProcessed, 330, "s")                                                           \
    X(ExecutionModeId, 331, "ilI")                                                         \
    X(DecorateId, 332, "ilI")                                                              \
    X(GroupNonUniformElect, 333, "~tri")                                                   \
    X(GroupNonUniformAll, 334, "~trii")                                                    \
    X(GroupNonUniformAny, 335, "~trii")                                                    \
    X(GroupNonUniformAllEqual, 336, "~trii")                                               \
    X(GroupNonUniformBroadcast, 337, "~triii")                                             \
    X(GroupNonUniformBroadcastFirst, 338, "~trii")                                         \
    X(GroupNonUniformBallot, 339, "~trii")                                                 \
    X(GroupNonUniformInverseBallot, 340, "~trii")                                          \
    X(GroupNonUniformBallotBitExtract, 341, "~triii")                                      \
    X(GroupNonUniformBallotBitCount, 342, "~trili")                                        \
    X(GroupNonUniformBallotFindLSB, 343, "~trii")                                          \
    X(GroupNonUniformBallotFindMSB, 344, "~trii")                                          \
    X(GroupNonUniformShuffle, 345, "~triii")                                               \
    X(GroupNonUniformShuffleXor, 346, "~triii")                                            \
    X(GroupNonUniformShuffleUp, 347, "~triii")                                             \
    X(GroupNonUniformShuffleDown, 348, "~triii")                                           \
    X(GroupNonUniformIAdd, 349, "~trili?i")                                                \
    X(GroupNonUniformFAdd, 350, "~trili?i")                                                \
    X(GroupNonUniformIMul, 351, "~trili?i")                                                \
    X(GroupNonUniformFMul, 352, "~trili?i")                                                \
    X(GroupNonUniformSMin, 353, "~trili?i")                                                \
    X(GroupNonUniformUMin, 354, "~trili?i")                                                \
    X(GroupNonUniformFMin, 355, "~trili?i")                                                \
    X(GroupNonUniformSMax, 356, "~trili?i")                                                \
    X(GroupNonUniformUMax, 357, "~trili?i")                                                \
    X(GroupNonUniformFMax, 358, "~trili?i")                                                \
    X(GroupNonUniformBitwiseAnd, 359, "~trili?i")                                          \
    X(GroupNonUniformBitwiseOr, 360, "~trili?i")                                           \
    X(GroupNonUniformBitwiseXor, 361, "~trili?i")                                          \
    X(GroupNonUniformLogicalAnd, 362, "~trili?i")                                          \
    X(GroupNonUniformLogicalOr, 363, "~trili?i")                                           \
    X(GroupNonUniformLogicalXor, 364, "~trili?i")                                          \
    X(GroupNonUniformQuadBroadcast, 365, "~triii")                                         \
    X(GroupNonUniformQuadSwap, 366, "~triii")                                              \
    X(CopyLogical, 400, "tri")                                                             \
    X(PtrEqual, 401, "trii")                                                               \
    X(PtrNotEqual, 402, "trii")                                                            \
    X(PtrDiff, 403, "trii")

// Instructions whose numbers are at least 512, sorted by number.
#define SPIRV_OPS_MORE(X)                                                                  \
    X(SubgroupBallotKHR, 4421, "~tri")                                                     \
    X(SubgroupFirstInvocationKHR, 4422, "~tri")                                            \
    X(SubgroupAllKHR, 4428, "~tri")                                                        \
    X(SubgroupAnyKHR, 4429, "~tri")                                                        \
    X(SubgroupAllEqualKHR, 4430, "~tri")                                                   \
    X(GroupNonUniformRotateKHR, 4431, "~triii?i")                                          \
    X(SubgroupReadInvocationKHR, 4432, "~trii")                                            \
    X(SDot, 4450, "trii?l")                                                                \
    X(UDot, 4451, "trii?l")                                                                \
    X(SUDot, 4452, "trii?l")                                                               \
    X(SDotAccSat, 4453, "triii?l")                                                         \
    X(UDotAccSat, 4454, "triii?l")                                                         \
    X(SUDotAccSat, 4455, "triii?l")                                                        \
    X(TypeCooperativeMatrixKHR, 4456, "riiiii")                                            \
    X(CooperativeMatrixLoadKHR, 4457, "~trii?im")                                          \
    X(CooperativeMatrixStoreKHR, 4458, "!iii?im")                                          \
    X(CooperativeMatrixMulAddKHR, 4459, "~triii?l")                                        \
    X(CooperativeMatrixLengthKHR, 4460, "tri")                                             \
    X(ReadClockKHR, 5056, "!tri")                                                          \
    X(CooperativeMatrixConvertNV, 5293, "~tri")                                            \
    X(GroupNonUniformPartitionNV, 5296, "~tri")                                            \
    X(TypeCooperativeMatrixNV, 5358, "riiii")                                              \
    X(CooperativeMatrixLoadNV, 5359, "~triiim")                                            \
    X(CooperativeMatrixStoreNV, 5360, "!iiiim")                                            \
    X(CooperativeMatrixMulAddNV, 5361, "~triii")                                           \
    X(CooperativeMatrixLengthNV, 5362, "tri")                                              \
    X(CooperativeMatrixReduceNV, 5366, "!trili")                                           \
    X(CooperativeMatrixLoadTensorNV, 5367, "!triiimlI")                                    \
    X(CooperativeMatrixStoreTensorNV, 5368, "!iiimlI")                                     \
    X(CooperativeMatrixPerElementOpNV, 5369, "!triiI")                                     \
    X(TypeTensorLayoutNV, 5370, "rii")                                                     \
    X(TypeTensorViewNV, 5371, "riiI")                                                      \
    X(CreateTensorLayoutNV, 5372, "tr")                                                    \
    X(TensorLayoutSetDimensionNV, 5373, "triI")                                            \
    X(TensorLayoutSetStrideNV, 5374, "triI")                                               \
    X(TensorLayoutSliceNV, 5375, "triI")                                                   \
    X(TensorLayoutSetClampValueNV, 5376, "trii")                                           \
    X(CreateTensorViewNV, 5377, "tr")                                                      \
    X(TensorViewSetDimensionNV, 5378, "triI")                                              \
    X(TensorViewSetStrideNV, 5379, "triI")                                                 \
    X(TensorViewSetClipNV, 5382, "triiiii")                                                \
    X(TensorLayoutSetBlockSizeNV, 5384, "triI")                                            \
    X(CooperativeMatrixTransposeNV, 5390, "~tri")                                          \
    X(AtomicFMinEXT, 5614, "!triiii")                                                      \
    X(AtomicFMaxEXT, 5615, "!triiii")                                                      \
    X(AssumeTrueKHR, 5630, "!i")                                                           \
    X(ExpectKHR, 5631, "trii")                                                             \
    X(AtomicFAddEXT, 6035, "!triiii")

#define SPIRV_OPS(X) SPIRV_OPS_CORE(X) SPIRV_OPS_MORE(X)

#define SPIRV_OP_ENUM(name, number, pattern) Op##name = number,
enum spirv_op { SPIRV_OPS(SPIRV_OP_ENUM) };
#undef SPIRV_OP_ENUM

// The position of an instruction in the table, or SPIRV_NO_ROW.
enum { SPIRV_NO_ROW = 0xffff };
uint32_t spirv_op_row(uint32_t op);
// The pattern of an instruction, '!' or '~' included. NULL: it is not in the table.
const char *spirv_pattern(uint32_t op);
// The name of an instruction without "Op", such as "IAdd"; NULL: it is not in the table.
const char *spirv_op_name(uint32_t op);

static inline bool spirv_has_effects(const char *pattern)
{
    return pattern[0] == '!';
}

static inline bool spirv_is_pure(const char *pattern)
{
    return pattern[0] != '!' && pattern[0] != '~';
}

// Whether an instruction ends a block.
static inline bool spirv_is_end(uint32_t op)
{
    return op >= OpBranch && op <= OpUnreachable;
}

static inline bool spirv_is_type_op(uint32_t op)
{
    return (op >= OpTypeVoid && op <= OpTypeFunction) || op == OpTypeCooperativeMatrixKHR ||
           op == OpTypeCooperativeMatrixNV || op == OpTypeTensorLayoutNV ||
           op == OpTypeTensorViewNV;
}

// Whether an instruction makes a constant; specialisation constants and OpUndef count.
static inline bool spirv_is_constant_op(uint32_t op)
{
    return op == OpUndef || (op >= OpConstantTrue && op <= OpSpecConstantOp);
}

#endif // KERNELS_SPIRV_OPCODE_H
