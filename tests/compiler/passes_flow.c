// SPDX-License-Identifier: MIT
// Local variables, control flow and calls, as passes rewrite them; each pass alone; and
// what the reader refuses.
#include "rows.h"

// --- local variables ---------------------------------------------------------------------

static const struct row locals[] = {
    {"a variable of one block", "%v = OpVariable %to_local Function\n",
     "OpStore %v %x\n%a = OpLoad %uint %v\nOpStore %p0 %a\n", "!Function_uint", 0},
    {"a variable that two ways write", "%v = OpVariable %to_local Function\n",
     "%c = OpIEqual %bool %x %u1\nOpStore %v %x\nOpSelectionMerge %join None\n"
     "OpBranchConditional %c %then %join\n%then = OpLabel\nOpStore %v %u4\n"
     "OpBranch %join\n%join = OpLabel\n%a = OpLoad %uint %v\nOpStore %p0 %a\n",
     "1 OpPhi\n!OpVariable %_ptr_Function", 0},
    {"no phi that nobody reads", "%v = OpVariable %to_local Function\n",
     "%c = OpIEqual %bool %x %u1\nOpSelectionMerge %join None\n"
     "OpBranchConditional %c %then %join\n%then = OpLabel\nOpStore %v %u4\n"
     "%a = OpLoad %uint %v\nOpStore %p0 %a\nOpBranch %join\n%join = OpLabel\n",
     "!OpPhi\nOpStore @ %uint_4", 0},
    {"a counter of a loop", "%v = OpVariable %to_local Function %u0\n",
     "OpBranch %top\n%top = OpLabel\nOpLoopMerge %end %next None\nOpBranch %test\n"
     "%test = OpLabel\n%i = OpLoad %uint %v\n%c = OpULessThan %bool %i %x\n"
     "OpBranchConditional %c %body %end\n%body = OpLabel\nOpStore %p0 %i\n"
     "OpBranch %next\n%next = OpLabel\n%j = OpLoad %uint %v\n%k = OpIAdd %uint %j %u1\n"
     "OpStore %v %k\nOpBranch %top\n%end = OpLabel\n",
     "1 OpPhi %uint %uint_0 \n!Function_uint\n1 OpLoopMerge", 0},
    {"undefined where nothing was written", "%v = OpVariable %to_local Function\n",
     "%a = OpLoad %uint %v\nOpStore %p0 %a\n", "OpUndef", 0},
    {"an array by constants", "%v = OpVariable %to_four Function\n",
     "%e1 = OpAccessChain %to_local %v %u1\n%e3 = OpAccessChain %to_local %v %u3\n"
     "OpStore %e1 %x\nOpStore %e3 %u4\n%a = OpLoad %uint %e1\n%b = OpLoad %uint "
     "%e3\n" INTEGERS("IMul", "%a", "%b"),
     "!OpVariable %_ptr_Function\nOpIMul %uint", 0},
    {"an array by an index stays", "%v = OpVariable %to_four Function\n",
     "%e1 = OpAccessChain %to_local %v %u1\n%e = OpAccessChain %to_local %v %x\n"
     "OpStore %e1 %x\n%a = OpLoad %uint %e\nOpStore %p0 %a\n",
     "1 OpVariable %_ptr_Function", 0},
    {"beyond an array's end stays", "%v = OpVariable %to_four Function\n",
     "%e = OpAccessChain %to_local %v %u32\nOpStore %e %x\n"
     "%e1 = OpAccessChain %to_local %v %u1\n%a = OpLoad %uint %e1\n"
     "OpStore %p0 %a\n",
     "OpVariable %_ptr_Function", 0},
    {"a member of a struct's vector", "%v = OpVariable %to_pair Function\n",
     "%e = OpAccessChain %to_local %v %u1 %u1\nOpStore %e %x\n"
     "%w = OpLoad %pair %v\n%a = OpCompositeExtract %uint %w 1 1\nOpStore %p0 %a\n",
     "!OpVariable %_ptr_Function\n!OpComposite", 0},
    {"never read", "%v = OpVariable %to_four Function\n",
     "%e = OpAccessChain %to_local %v %x\nOpStore %e %x\n", "!Function_uint\n!OpStore", 0},
    {"a private variable", "",
     "%a = OpLoad %uint %private\nOpStore %private %x\n%b = OpLoad %uint "
     "%private\n" INTEGERS("IAdd", "%a", "%b"),
     "!Private\nOpIAdd %uint %uint_3 @", 0},
    {"a private array by an index", "",
     "%e = OpAccessChain %to_private %privates %x\n%f = OpAccessChain %to_private "
     "%privates %u1\n"
     "OpStore %f %x\n%a = OpLoad %uint %e\nOpStore %p0 %a\n",
     "!Private\n1 OpVariable %_ptr_Function", 0},
    {"volatile stays", "%v = OpVariable %to_local Function\n",
     "OpStore %v %x Volatile\n%a = OpLoad %uint %v Volatile\nOpStore %p0 %a\n",
     "OpVariable %_ptr_Function", 0},
};

Test(passes, local_variables)
{
    CHECK_ROWS(locals);
}

// --- control flow ------------------------------------------------------------------------

static const struct row flows[] = {
    {"a branch that is known", "",
     "OpSelectionMerge %join None\nOpBranchConditional %false %then %else\n%then = "
     "OpLabel\n"
     "OpStore %p0 %u1\nOpBranch %join\n%else = OpLabel\nOpStore %p0 %u2\nOpBranch %join\n"
     "%join = OpLabel\n%r = OpPhi %uint %u3 %then %u4 %else\nOpStore %p1 %r\n",
     "1 OpLabel\n!OpPhi\n!OpStore @ %uint_1\n%uint_4", 0},
    {"a switch that is known", "",
     "OpSelectionMerge %join None\nOpSwitch %u2 %other 1 %one 2 %two\n%one = OpLabel\n"
     "OpStore %p0 %u1\nOpBranch %join\n%two = OpLabel\nOpStore %p0 %u2\nOpBranch %join\n"
     "%other = OpLabel\nOpStore %p0 %u3\nOpBranch %join\n%join = OpLabel\n",
     "1 OpStore\n%uint_2", 0},
    {"a selection that does nothing", "",
     "%c = OpIEqual %bool %x %u1\nOpSelectionMerge %join None\n"
     "OpBranchConditional %c %then %join\n%then = OpLabel\nOpBranch %join\n%join = "
     "OpLabel\n",
     "1 OpLabel\n!OpIEqual", 0},
    {"a loop that is never entered", "",
     "OpBranch %top\n%top = OpLabel\nOpLoopMerge %end %next Unroll\n"
     "OpBranchConditional %false %body %end\n%body = OpLabel\nOpStore %p0 %x\n"
     "OpBranch %next\n%next = OpLabel\nOpBranch %top\n%end = OpLabel\n",
     "!OpStore", 0},
    {"hints of loops", "",
     "OpBranch %top\n%top = OpLabel\n%i = OpPhi %uint %u0 %entry %k %next\n"
     "OpLoopMerge %end %next Unroll\nOpBranch %test\n%test = OpLabel\n"
     "%c = OpULessThan %bool %i %x\nOpBranchConditional %c %body %end\n%body = OpLabel\n"
     "OpStore %p0 %i\nOpBranch %next\n%next = OpLabel\n%k = OpIAdd %uint %i %u1\n"
     "OpBranch %top\n%end = OpLabel\n",
     "Unroll\n5 OpLabel", 0},
    {"specialised branches stay", "",
     "%c = OpIEqual %bool %spec %u1\nOpSelectionMerge %join None\n"
     "OpBranchConditional %c %then %join\n%then = OpLabel\nOpStore %p0 %u1\n"
     "OpBranch %join\n%join = OpLabel\n",
     "OpBranchConditional\nOpStore", 0},
};

Test(passes, control_flow)
{
    CHECK_ROWS(flows);
}

// --- functions ---------------------------------------------------------------------------

#define CALL "%r = OpFunctionCall %uint %f %x\nOpStore %p0 %r\n"
#define BEGIN                                                                              \
    "%f = OpFunction %uint None %function\n%a = OpFunctionParameter %uint\n%begin = "      \
    "OpLabel\n"
#define END "OpFunctionEnd\n"

static const struct row functions[] = {
    {"one block", "", CALL, "!OpFunctionCall\nOpIMul\n1 OpFunction ",
     BEGIN "%m = OpIMul %uint %a %a\nOpReturnValue %m\n" END},
    {"twice", "", CALL "%s = OpFunctionCall %uint %f %u3\nOpStore %p1 %s\n",
     "!OpFunctionCall\n1 OpIMul\n%uint_9", // one of the two is a constant
     BEGIN "%m = OpIMul %uint %a %a\nOpReturnValue %m\n" END},
    {"an early return", "", CALL, "!OpFunctionCall\n!OpLoopMerge\n1 OpPhi",
     BEGIN "%c = OpIEqual %bool %a %u1\nOpSelectionMerge %j None\n"
           "OpBranchConditional %c %t %j\n%t = OpLabel\nOpReturnValue %u4\n%j = OpLabel\n"
           "%m = OpIMul %uint %a %a\nOpReturnValue %m\n" END},
    {"two early returns", "", CALL, "!OpFunctionCall\n!OpLoopMerge\n2 OpPhi",
     BEGIN "%c = OpIEqual %bool %a %u1\nOpSelectionMerge %j None\n"
           "OpBranchConditional %c %t %j\n%t = OpLabel\nOpReturnValue %u4\n%j = OpLabel\n"
           "%d = OpIEqual %bool %a %u2\nOpSelectionMerge %k None\n"
           "OpBranchConditional %d %l %k\n%l = OpLabel\nOpReturnValue %u3\n%k = OpLabel\n"
           "%m = OpIMul %uint %a %a\nOpReturnValue %m\n" END},
    {"returns of both ways", "", CALL, "!OpFunctionCall\n!OpLoopMerge\n1 OpPhi",
     BEGIN "%c = OpIEqual %bool %a %u1\nOpSelectionMerge %j None\n"
           "OpBranchConditional %c %t %e\n%t = OpLabel\nOpReturnValue %u4\n%e = OpLabel\n"
           "OpReturnValue %u3\n%j = OpLabel\nOpUnreachable\n" END},
    {"a return in a way that may go on", "", CALL, "!OpFunctionCall\n1 OpLoopMerge\nOpPhi",
     BEGIN "%c = OpIEqual %bool %a %u1\nOpSelectionMerge %j None\n"
           "OpBranchConditional %c %t %j\n%t = OpLabel\n%d = OpULessThan %bool %a %spec\n"
           "OpSelectionMerge %k None\nOpBranchConditional %d %l %k\n%l = OpLabel\n"
           "OpReturnValue %u3\n%k = OpLabel\nOpBranch %j\n%j = OpLabel\n"
           "%m = OpIMul %uint %a %a\nOpReturnValue %m\n" END},
    {"a return in a loop stays", "", CALL, "OpFunctionCall\n2 OpFunction ",
     BEGIN "OpBranch %top\n%top = OpLabel\n%i = OpPhi %uint %u0 %begin %n %next\n"
           "OpLoopMerge %end %next None\nOpBranch %test\n%test = OpLabel\n"
           "%c = OpULessThan %bool %i %a\nOpBranchConditional %c %body %end\n"
           "%body = OpLabel\n%d = OpIEqual %bool %i %spec\nOpSelectionMerge %j None\n"
           "OpBranchConditional %d %t %j\n%t = OpLabel\nOpReturnValue %i\n%j = OpLabel\n"
           "OpBranch %next\n%next = OpLabel\n%n = OpIAdd %uint %i %u1\nOpBranch %top\n"
           "%end = OpLabel\nOpReturnValue %u4\n" END},
    {"a variable begins anew", "", CALL, "!OpFunctionCall\n!OpVariable %_ptr_Function",
     "%f = OpFunction %uint None %function\n%a = OpFunctionParameter %uint\n%begin = "
     "OpLabel\n"
     "%v = OpVariable %to_local Function %u3\n%o = OpLoad %uint %v\n"
     "%m = OpIMul %uint %o %a\nOpStore %v %m\n%q = OpLoad %uint %v\nOpReturnValue "
     "%q\n" END},
    {"in a loop of one block", "",
     "OpBranch %top\n%top = OpLabel\n%i = OpPhi %uint %u0 %entry %k %top\n"
     "%r = OpFunctionCall %uint %f %i\nOpStore %p0 %r\n%k = OpIAdd %uint %i %u1\n"
     "%c = OpULessThan %bool %k %x\nOpLoopMerge %end %top None\n"
     "OpBranchConditional %c %top %end\n%end = OpLabel\n",
     "!OpFunctionCall\n2 OpPhi\n1 OpLoopMerge",
     BEGIN "%c2 = OpIEqual %bool %a %u1\nOpSelectionMerge %j None\n"
           "OpBranchConditional %c2 %t %j\n%t = OpLabel\nOpReturnValue %u4\n%j = OpLabel\n"
           "%m = OpIMul %uint %a %a\nOpReturnValue %m\n" END},
    {"decorations come along", "", CALL, "!OpFunctionCall\nNoContraction",
     BEGIN "%g = OpBitcast %float %a\n%precise = OpFMul %float %g %g\n"
           "%h = OpBitcast %uint %precise\nOpReturnValue %h\n" END},
    {"a private variable of two functions", "",
     CALL "%b = OpLoad %uint %private\nOpStore %p1 %b\n", "1 OpVariable %_ptr_Private",
     BEGIN "OpBranch %top\n%top = OpLabel\nOpLoopMerge %end %next None\nOpBranch %body\n"
           "%body = OpLabel\n%d = OpIEqual %bool %a %spec\nOpSelectionMerge %j None\n"
           "OpBranchConditional %d %t %j\n%t = OpLabel\nOpStore %private %a\n"
           "OpReturnValue %a\n%j = OpLabel\nOpBranch %next\n%next = OpLabel\n"
           "OpBranchConditional %true %top %end\n%end = OpLabel\nOpReturnValue %u4\n" END},
    {"never called", "", "OpStore %p0 %x\n", "1 OpFunction ",
     BEGIN "%m = OpIMul %uint %a %a\nOpReturnValue %m\n" END},
};

Test(passes, calls)
{
    CHECK_ROWS(functions);
}

Test(passes, functions_that_are_kept)
{
    static const struct row called = {
        "called", "", CALL, "OpFunctionCall\n2 OpFunction \n1 OpIMul", // and not inlined
        BEGIN "%m = OpIMul %uint %a %a\n%n = OpIMul %uint %a %a\n%o = OpIAdd %uint %m %n\n"
              "OpReturnValue %o\n" END};
    static const struct row not_called = {
        "not called", "", "OpStore %p0 %x\n", "2 OpFunction ",
        BEGIN "%m = OpIMul %uint %a %a\nOpReturnValue %m\n" END};
    check_row(&called, PASS_ALL, GLSL_KEEPS_FUNCTIONS);
    check_row(&not_called, PASS_ALL, GLSL_KEEPS_FUNCTIONS);
}

// Each pass alone leaves a valid module, and so do all but one.
Test(passes, one_by_one)
{
    static const struct {
        const struct row *rows;
        size_t count;
    } tables[] = {{locals, sizeof(locals) / sizeof(locals[0])},
                  {flows, sizeof(flows) / sizeof(flows[0])},
                  {functions, sizeof(functions) / sizeof(functions[0])}};
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
        for (size_t i = 0; i < tables[t].count; i++)
            for (uint32_t pass = 1; pass < PASS_ALL; pass *= 2) {
                struct row row = tables[t].rows[i];
                row.expected = "";
                check_row(&row, pass, 0);
                check_row(&row, PASS_ALL & ~pass, 0);
            }
}

// --- what the reader refuses -------------------------------------------------------------

static const struct {
    const char *what, *body, *says;
} refused[] = {
    {"two definitions", "%q = OpIAdd %uint %x %u1\n", "defined twice"},
    {"a use before the definition", "OpStore %p0 %q\n%q = OpIAdd %uint %x %u1\n",
     "not defined before"},
    {"a type as a value", "OpStore %p0 %uint\n", "not defined, or not in this function"},
    {"a value of another type", "OpStore %p0 %im7\n", "does not fit"},
    {"a member that is not there", "%q = OpCompositeExtract %uint %c12 2\n",
     "does not fit"},
    {"a variable in the middle",
     "OpBranch %l\n%l = OpLabel\n"
     "%q = OpVariable %to_local Function\n",
     "does not fit"},
    {"a phi for another block", "OpBranch %l\n%l = OpLabel\n%q = OpPhi %uint %u1 %l\n",
     "one value for each predecessor"},
    {"a branch to the first block", "OpBranch %entry\n%l = OpLabel\n", "first block"},
    {"a branch to a value", "OpBranch %x\n%l = OpLabel\n", "not defined"},
    {"a call of a value", "%q = OpFunctionCall %uint %u1\n", "does not fit the function"},
    {"a merge that is not last",
     "OpSelectionMerge %l None\nOpStore %p0 %x\nOpBranch %l\n"
     "%l = OpLabel\n",
     "does not fit"},
};

Test(passes, refused_words)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        char *text = NULL;
        bool twice = i == 0;
        cr_assert(
            ge(int,
               asprintf(&text, "%s%s%s%s%s%s%s", head, types, start, loads, refused[i].body,
                        twice ? "%qq = OpIAdd %uint %x %u1\n" : "", finish),
               0));
        size_t num_words;
        uint32_t *words = assemble(text, &num_words);
        if (twice) // the second result gets the first one's id
            for (size_t at = 5; at < num_words; at += words[at] >> 16)
                if (words[at] == (5U << 16 | OpIAdd))
                    words[at + 2] = words[3] - 2;
        struct glsl_result result;
        bool fine = rewrite(words, num_words, 0, 0, &result);
        cr_assert(not(fine), "%s is accepted", refused[i].what);
        check_says(result.message, refused[i].says);
        free(words);
        free(text);
    }
}
