// SPDX-License-Identifier: MIT
// The passes of `spirv-opt -O`. Debian 12's crash on arrays of a specialised size, so a
// child process runs them, and gives the words through a pipe.
#include <spirv-tools/optimizer.hpp>

#include <algorithm>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern "C" {
#include "peer.h"
}

static bool optimise(const struct glsl_result *module, std::vector<uint32_t> *words)
{
    bool is_new = module->num_words > 1 && module->words[1] > 0x00010300;
    spvtools::Optimizer optimizer(is_new ? SPV_ENV_VULKAN_1_3 : SPV_ENV_VULKAN_1_1);
    spvtools::OptimizerOptions options;
    optimizer.RegisterPerformancePasses();
    options.set_run_validator(false);
    return optimizer.Run(module->words, module->num_words, words, options);
}

// The child: the words go into the pipe. Ends the process.
[[noreturn]] static void run_child(const struct glsl_result *module, int out)
{
    std::vector<uint32_t> words;
    if (!optimise(module, &words))
        _exit(1);
    const char *bytes = reinterpret_cast<const char *>(words.data());
    size_t left = words.size() * sizeof(words[0]);
    while (left > 0) {
        ssize_t count = write(out, bytes, left);
        if (count <= 0)
            _exit(1);
        bytes += count;
        left -= static_cast<size_t>(count);
    }
    _exit(0);
}

static std::vector<char> read_all(int in)
{
    std::vector<char> bytes;
    char block[4096];
    ssize_t count;
    while ((count = read(in, block, sizeof(block))) > 0)
        bytes.insert(bytes.end(), block, block + count);
    return bytes;
}

extern "C" bool spirv_optimise_all(struct glsl_result *module)
{
    int ends[2], status = 1;
    if (pipe(ends))
        return false;
    pid_t child = fork();
    if (child == 0)
        run_child(module, ends[1]);
    close(ends[1]);
    std::vector<char> bytes = read_all(ends[0]);
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0 || bytes.empty())
        return false;
    uint32_t *words = static_cast<uint32_t *>(malloc(bytes.size()));
    if (!words)
        return false;
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char *>(words));
    free(module->words);
    module->words = words;
    module->num_words = bytes.size() / sizeof(uint32_t);
    return true;
}
