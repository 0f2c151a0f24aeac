// SPDX-License-Identifier: MIT
#include "peer.h"

#include <stdio.h>
#include <string.h>
#include "oracle.h"
#include "tools.h"

bool peer_compile_alone(const struct glsl_source *source, struct glsl_result *out)
{
    if (!glslang_compile(source, out))
        return false;
    if (source->flags & GLSL_KEEPS_FUNCTIONS || spirv_optimise_all(out))
        return true;
    fprintf(stderr, "# peer without some passes: the optimiser crashes on a kernel\n");
    glslang_result_finish(out);
    return optimised_compile(source, out);
}

bool peer_compile(const struct glsl_source *source, struct glsl_result *out)
{
    if (peer_compile_alone(source, out))
        return true;
    fprintf(stderr, "# peer: glslang refuses a kernel, which has the other's code: %s\n",
            out->message);
    glslang_result_finish(out);
    return glsl_compile(source, out);
}

const char *peer_compiler_version(void)
{
    return "glslang, optimised";
}

void peer_compiler_unload(void)
{
    glslang_compiler_unload();
}
