// SPDX-License-Identifier: MIT
// Puts a plugin in quarantine: quarantine ID REASON.
#include <stdio.h>
#include <tenon/tenon.h>

int main(int argc, char **argv)
{
    tn_runtime *runtime;
    if (argc != 3)
        return 2;
    tn_status status = tn_runtime_open(NULL, &runtime);
    if (status == TN_OK)
        status = tn_plugin_quarantine(runtime, argv[1], argv[2]);
    if (status != TN_OK)
        fprintf(stderr, "%s\n", tn_last_error());
    tn_runtime_close(runtime);
    return status != TN_OK;
}
