// SPDX-License-Identifier: MIT
// The other process of graph_file.c: runs the training step that it finds in a file.
#include "graph_step.h"

int main(int argc, char **argv)
{
    const tn_graph_file *file = NULL;
    if (argc != 3 || tn_runtime_open(NULL, &runtime) ||
        tn_graph_load(runtime, argv[1], NULL, &file)) {
        fprintf(stderr, "%s\n", tn_last_error());
        return 1;
    }
    tn_scope *s = tn_scope_open(runtime);
    train(s, file->signatures[0], argv[2]);
    tn_scope_close(s);
    tn_graph_unload(runtime, file);
    return tn_runtime_close(runtime) ? 1 : 0;
}
