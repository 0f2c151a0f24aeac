// SPDX-License-Identifier: MIT
// Values: constants, identities, equal values, memory. Each row is a small module: what is
// in the result, what is not, and that it is valid.
#include "rows.h"

// --- constants ---------------------------------------------------------------------------

static const struct row constants[] = {
    {"sums wrap", "", INTEGERS("IAdd", "%umax", "%u3"), "OpStore @ %uint_2\n!OpIAdd", 0},
    {"differences wrap", "", INTEGERS("ISub", "%u1", "%u2"), "%uint_4294967295", 0},
    {"products wrap", "", INTEGERS("IMul", "%umax", "%u3"), "%uint_4294967293", 0},
    {"division by zero stays", "", INTEGERS("UDiv", "%u3", "%u0"), "OpUDiv", 0},
    {"remainder by zero stays", "", INTEGERS("UMod", "%u3", "%u0"), "OpUMod", 0},
    {"long shifts stay", "", INTEGERS("ShiftLeftLogical", "%u1", "%u32"), "OpShiftLeft", 0},
    {"shifts", "", INTEGERS("ShiftLeftLogical", "%u3", "%u4"), "%uint_48", 0},
    {"arithmetic shift", "",
     "%r = OpShiftRightArithmetic %int %im7 %u1\n%q = OpBitcast %uint %r\nOpStore %p0 %q\n",
     "%uint_4294967292\n!OpShift", 0},
    {"division rounds to zero", "",
     "%r = OpSDiv %int %im7 %i2\n%q = OpBitcast %uint %r\nOpStore %p0 %q\n",
     "%uint_4294967293", 0},
    {"remainder has the dividend's sign", "",
     "%r = OpSRem %int %im7 %i2\n%q = OpBitcast %uint %r\nOpStore %p0 %q\n",
     "%uint_4294967295", 0},
    {"modulo has the divisor's sign", "",
     "%r = OpSMod %int %im7 %i2\n%q = OpBitcast %uint %r\nOpStore %p0 %q\n",
     "OpStore @ %uint_1\n", 0},
    {"signed comparison", "", "%c = OpSLessThan %bool %umax %u1\n" STORE_B("%c"),
     "OpStore @ %uint_3", 0},
    {"unsigned comparison", "", "%c = OpULessThan %bool %umax %u1\n" STORE_B("%c"),
     "OpStore @ %uint_4", 0},
    {"narrowing keeps the low bits", "",
     "%l = OpUConvert %ulong %umax\n%m = OpIAdd %ulong %l %l\n%r = OpUConvert %uint %m\n"
     "OpStore %p0 %r\n",
     "%uint_4294967294\n!OpIAdd", 0},
    {"vectors", "",
     "%v = OpIAdd %v2uint %c12 %c12\n%r = OpCompositeExtract %uint %v 1\nOpStore %p0 %r\n",
     "OpStore @ %uint_4\n!OpIAdd", 0},
    {"specialisation constants stay", "", INTEGERS("IAdd", "%spec", "%u1"), "OpIAdd %uint",
     0},
    {"exact float sum", "", "%r = OpFAdd %float %f1 %f3h\n" STORE_F("%r"),
     "%uint_1083179008", 0},
    {"float sum that rounds stays", "", "%r = OpFAdd %float %f0_1 %f0_2\n" STORE_F("%r"),
     "OpFAdd", 0},
    {"float product that rounds stays", "",
     "%r = OpFMul %float %f0_1 %f0_2\n" STORE_F("%r"), "OpFMul", 0},
    {"overflow stays", "", "%r = OpFMul %float %fbig %fbig\n" STORE_F("%r"), "OpFMul", 0},
    {"subnormal result stays", "", "%r = OpFMul %float %fmin %fmin\n" STORE_F("%r"),
     "OpFMul", 0},
    {"subnormal operand stays", "", "%r = OpFAdd %float %fsub %f1\n" STORE_F("%r"),
     "OpFAdd", 0},
    {"NaN stays", "", "%c = OpFOrdEqual %bool %fnan %fnan\n" STORE_B("%c"), "OpFOrdEqual",
     0},
    {"division of floats stays", "", "%r = OpFDiv %float %f3h %f1\n" STORE_F("%r"),
     "OpFDiv", 0},
    {"float comparison", "", "%c = OpFUnordLessThan %bool %f1 %f3h\n" STORE_B("%c"),
     "OpStore @ %uint_3", 0},
    {"float to integer", "", "%r = OpConvertFToU %uint %f3h\nOpStore %p0 %r\n",
     "OpStore @ %uint_3", 0},
    {"float that is too large stays", "",
     "%r = OpConvertFToU %uint %fbig\nOpStore %p0 %r\n", "OpConvertFToU", 0},
    {"double to float", "", "%r = OpFConvert %float %d3\n" STORE_F("%r"),
     "%uint_1077936128", 0},
    {"integer to float that rounds stays", "",
     "%r = OpConvertUToF %float %umax\n" STORE_F("%r"), "OpConvertUToF", 0},
    {"bit cast", "", STORE_F("%fnan"), "%uint_2143289344", 0},
};

Test(passes, constants)
{
    CHECK_ROWS(constants);
}

static const struct row identities[] = {
    {"x + 0", "", INTEGERS("IAdd", "%u0", "%x"), "!OpIAdd", 0},
    {"x * 1", "", INTEGERS("IMul", "%x", "%u1"), "!OpIMul", 0},
    {"x * 0", "", INTEGERS("IMul", "%x", "%u0"), "!OpIMul\n%uint_0", 0},
    {"x - x", "", INTEGERS("ISub", "%x", "%x"), "!OpISub", 0},
    {"x & x", "", INTEGERS("BitwiseAnd", "%x", "%x"), "!OpBitwiseAnd", 0},
    {"x << 0", "", INTEGERS("ShiftLeftLogical", "%x", "%u0"), "!OpShift", 0},
    {"0 - x", "", INTEGERS("ISub", "%u0", "%x"), "OpISub", 0},
    {"of another type", "",
     "%r = OpIAdd %int %x %u0\n%q = OpBitcast %uint %r\nOpStore %p0 %q\n", "OpIAdd", 0},
    {"x == x", "", "%c = OpIEqual %bool %x %x\n" STORE_B("%c"), "OpStore @ %uint_3", 0},
    {"float x + 0 stays", "",
     "%f = OpBitcast %float %x\n%r = OpFAdd %float %f %f0\n" STORE_F("%r"), "OpFAdd", 0},
    {"float x + -0 stays", "",
     "%f = OpBitcast %float %x\n%r = OpFAdd %float %f %fm0\n" STORE_F("%r"), "OpFAdd", 0},
    {"float x * 1 stays", "",
     "%f = OpBitcast %float %x\n%r = OpFMul %float %f %f1\n" STORE_F("%r"), "OpFMul", 0},
    {"not not", "",
     "%c = OpIEqual %bool %x %u1\n%d = OpLogicalNot %bool %c\n%e = OpLogicalNot %bool "
     "%d\n" STORE_B("%e"),
     "!OpLogicalNot", 0},
    {"and true", "",
     "%c = OpIEqual %bool %x %u1\n%d = OpLogicalAnd %bool %true %c\n" STORE_B("%d"),
     "!OpLogicalAnd\nOpIEqual", 0},
    {"choice of one thing", "",
     "%c = OpIEqual %bool %x %u1\n%r = OpSelect %uint %c %x %x\nOpStore %p0 %r\n",
     "!OpSelect\n!OpIEqual", 0},
    {"member of a construct", "",
     "%v = OpCompositeConstruct %v2uint %x %u1\n%w = OpCompositeConstruct %v3uint %u4 %v\n"
     "%r = OpCompositeExtract %uint %w 1\nOpStore %p0 %r\n",
     "!OpComposite", 0},
    {"member beside an insertion", "",
     "%v = OpCompositeConstruct %v2uint %x %u1\n%w = OpCompositeInsert %v2uint %u4 %v 0\n"
     "%r = OpCompositeExtract %uint %w 1\nOpStore %p0 %r\n",
     "!OpComposite\nOpStore @ %uint_1", 0},
    {"shuffled member", "",
     "%v = OpCompositeConstruct %v2uint %x %u1\n%w = OpVectorShuffle %v2uint %v %c12 1 3\n"
     "%r = OpCompositeExtract %uint %w 1\nOpStore %p0 %r\n",
     "!OpVectorShuffle\nOpStore @ %uint_2", 0},
    {"put together again", "",
     "%v = OpCompositeConstruct %v2uint %x %u1\n%s = OpIAdd %v2uint %v %v\n"
     "%a = OpCompositeExtract %uint %s 0\n%b = OpCompositeExtract %uint %s 1\n"
     "%w = OpCompositeConstruct %v2uint %a %b\n%t = OpIMul %v2uint %w %v\n"
     "%r = OpCompositeExtract %uint %t 1\nOpStore %p0 %r\n",
     "1 OpCompositeConstruct\n1 OpCompositeExtract", 0},
};

Test(passes, identities)
{
    CHECK_ROWS(identities);
}

// --- equal values and memory -------------------------------------------------------------

static const struct row values[] = {
    {"equal values are one", "",
     "%a = OpIAdd %uint %x %u3\n%b = OpIAdd %uint %u3 %x\n%r = OpIMul %uint %a %b\n"
     "OpStore %p0 %r\n",
     "1 OpIAdd", 0},
    {"below a branch", "",
     "%a = OpIAdd %uint %x %u3\nOpStore %p0 %a\n%c = OpIEqual %bool %x %u1\n"
     "OpSelectionMerge %join None\nOpBranchConditional %c %then %join\n%then = OpLabel\n"
     "%b = OpIAdd %uint %x %u3\nOpStore %p1 %b\nOpBranch %join\n%join = OpLabel\n",
     "1 OpIAdd", 0},
    {"not across branches", "",
     "%c = OpIEqual %bool %x %u1\nOpSelectionMerge %join None\n"
     "OpBranchConditional %c %then %else\n%then = OpLabel\n%a = OpIAdd %uint %x %u3\n"
     "OpStore %p0 %a\nOpBranch %join\n%else = OpLabel\n%b = OpIAdd %uint %x %u3\n"
     "OpStore %p1 %b\nOpBranch %join\n%join = OpLabel\n",
     "2 OpIAdd", 0},
    {"precise and not precise are two", "",
     "%f = OpBitcast %float %x\n%precise = OpFMul %float %f %f3h\n"
     "%b = OpFMul %float %f %f3h\n%s = OpFSub %float %precise %b\n" STORE_F("%s"),
     "2 OpFMul\nNoContraction", 0},
    {"operands of floats keep their order", "",
     "%f = OpBitcast %float %x\n%a = OpFAdd %float %f %f3h\n%b = OpFAdd %float %f3h %f\n"
     "%s = OpFSub %float %a %b\n" STORE_F("%s"),
     "2 OpFAdd", 0},
    {"inputs are loaded once", "", "%y = OpLoad %uint %id\n" INTEGERS("IAdd", "%x", "%y"),
     "1 OpLoad", 0},
    {"loaded once", "",
     "%a = OpLoad %uint %p1\n%b = OpLoad %uint %p1\n" INTEGERS("IMul", "%a", "%b"),
     "1 OpLoad", 0},
    {"what was stored", "", "OpStore %p1 %x\n%a = OpLoad %uint %p1\nOpStore %p0 %a\n",
     "1 OpLoad", 0},
    {"two buffers may be one", "",
     "%a = OpLoad %uint %p1\nOpStore %p0 %a\n%b = OpLoad %uint %p1\nOpStore %p0 %b\n",
     "2 OpLoad", 0},
    {"shared memory is no buffer", "",
     "%a = OpLoad %uint %p1\nOpStore %shared %a\n%b = OpLoad %uint %p1\nOpStore %p0 %b\n",
     "1 OpLoad", 0},
    {"two shared variables", "",
     "OpStore %shared %x\nOpStore %other_shared %u1\n%b = OpLoad %uint %shared\n"
     "OpStore %p0 %b\n",
     "1 OpLoad", 0},
    {"a barrier between", "",
     "OpStore %shared %x\nOpControlBarrier %u2 %u2 %u264\n%b = OpLoad %uint %shared\n"
     "OpStore %p0 %b\n",
     "2 OpLoad", 0},
    {"an atomic operation between", "",
     "%a = OpLoad %uint %p1\n%o = OpAtomicIAdd %uint %p1 %u1 %u0 %a\n"
     "%b = OpLoad %uint %p1\n" INTEGERS("IAdd", "%o", "%b"),
     "2 OpLoad", 0},
    {"nobody reads it, but it is volatile", "", "%a = OpLoad %uint %p1 Volatile\n",
     "1 OpLoad", 0},
    {"volatile", "",
     "%a = OpLoad %uint %p1 Volatile\n%b = OpLoad %uint %p1 Volatile\n" INTEGERS(
         "IMul", "%a", "%b"),
     "2 OpLoad", 0},
};

Test(passes, values)
{
    CHECK_ROWS(values);
}
