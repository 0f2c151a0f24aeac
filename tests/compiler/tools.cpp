// SPDX-License-Identifier: MIT
// What the comparison has of SPIRV-Tools: the validator, the disassembler, the optimiser.
#include <spirv-tools/optimizer.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

extern "C" {
#include "compilers.h"
#include "tools.h"
}

// Words of a module that is inlined in a moment.
enum { MOST_INLINED = 30000 };

static spv_target_env environment_of(const uint32_t *words, size_t count)
{
    return count > 1 && words[1] > 0x00010300 ? SPV_ENV_VULKAN_1_3 : SPV_ENV_VULKAN_1_1;
}

extern "C" bool spirv_validate(const uint32_t *words, size_t count, char reason[256])
{
    spvtools::SpirvTools tools(environment_of(words, count));
    std::string told;
    tools.SetMessageConsumer(
        [&told](spv_message_level_t, const char *, const spv_position_t &, const char *text) {
            if (told.empty())
                told = text;
        });
    bool valid = tools.Validate(words, count);
    std::snprintf(reason, 256, "%s", told.substr(0, told.find('\n')).c_str());
    return valid;
}

extern "C" char *spirv_text(const uint32_t *words, size_t count)
{
    spvtools::SpirvTools tools(environment_of(words, count));
    std::string text;
    tools.Disassemble(words, count, &text,
                      SPV_BINARY_TO_TEXT_OPTION_INDENT | SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES);
    return strdup(text.c_str());
}

extern "C" bool spirv_drop_dead(const uint32_t *words, size_t count, struct glsl_result *out)
{
    spvtools::Optimizer optimizer(environment_of(words, count));
    std::vector<uint32_t> made;
    optimizer.SetMessageConsumer([](spv_message_level_t, const char *, const spv_position_t &,
                                    const char *) {});
    optimizer.RegisterPass(spvtools::CreateEliminateDeadFunctionsPass());
    if (count < MOST_INLINED)
        optimizer.RegisterPass(spvtools::CreateInlineExhaustivePass());
    optimizer.RegisterPass(spvtools::CreateDeadBranchElimPass());
    optimizer.RegisterPass(spvtools::CreateAggressiveDCEPass(false));
    optimizer.RegisterPass(spvtools::CreateDeadVariableEliminationPass());
    optimizer.RegisterPass(spvtools::CreateEliminateDeadConstantPass());
    spvtools::OptimizerOptions options;
    options.set_run_validator(false);
    if (!optimizer.Run(words, count, &made, options))
        return false;
    out->num_words = made.size();
    out->words = static_cast<uint32_t *>(malloc(made.size() * sizeof(uint32_t)));
    if (!out->words)
        abort();
    memcpy(out->words, made.data(), made.size() * sizeof(uint32_t));
    return true;
}

extern "C" bool optimised_compile(const struct glsl_source *source, struct glsl_result *out)
{
    if (!compiler_glslang.compile(source, out))
        return false;
    spvtools::Optimizer optimizer(environment_of(out->words, out->num_words));
    // Those of `spirv-opt -O` that do not crash on arrays of a specialised size.
    optimizer.RegisterPass(spvtools::CreateMergeReturnPass());
    optimizer.RegisterPass(spvtools::CreateInlineExhaustivePass());
    optimizer.RegisterPass(spvtools::CreateScalarReplacementPass(100));
    optimizer.RegisterPass(spvtools::CreateLocalMultiStoreElimPass());
    optimizer.RegisterPass(spvtools::CreateRedundancyEliminationPass());
    optimizer.RegisterPass(spvtools::CreateBlockMergePass());
    optimizer.RegisterPass(spvtools::CreateCFGCleanupPass());
    std::vector<uint32_t> words;
    spvtools::OptimizerOptions options;
    options.set_run_validator(false);
    // Interfaces stay: what a shader declares and does not use is declared by the result.
    options.set_preserve_bindings(true);
    options.set_preserve_spec_constants(true);
    if (optimizer.Run(out->words, out->num_words, &words, options)) {
        free(out->words);
        out->num_words = words.size();
        out->words = static_cast<uint32_t *>(malloc(words.size() * sizeof(uint32_t)));
        if (!out->words)
            abort();
        memcpy(out->words, words.data(), words.size() * sizeof(uint32_t));
    }
    return true;
}
