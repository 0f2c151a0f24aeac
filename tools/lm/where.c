// SPDX-License-Identifier: MIT
// tenon model show --where: which layers each device would get. Loads no weights.
#include "lm.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void print_part(const tn_lm_part *part, const tn_lm_info *info)
{
    char line[512], shown[4 * sizeof(line)];
    snprintf(line, sizeof(line),
             "%s (%s): layers %" PRId64 " to %" PRId64
             ", %.1f MB of weights, %.1f MB of caches",
             part->device, part->name, part->first, part->end - 1,
             1e-6 * (double)part->weight_bytes,
             1e-6 * (double)part->cache_bytes * (double)info->sequences);
    tn_text_printable(line, TN_TEXT_ONE_LINE, shown, sizeof(shown));
    printf("%s\n", shown);
}

static void lm_where_print_json(const tn_lm_part *parts, uint64_t count,
                                const tn_lm_info *info)
{
    printf("[");
    for (uint64_t i = 0; i < count; i++)
        printf("%s{\"device\": \"%s\", \"first\": %" PRId64 ", \"end\": %" PRId64
               ", \"weight_bytes\": %" PRIu64 ", \"cache_bytes\": %" PRIu64 "}",
               i ? ", " : "", parts[i].device, parts[i].first, parts[i].end,
               parts[i].weight_bytes, parts[i].cache_bytes * (uint64_t)info->sequences);
    printf("]\n");
}

int run_where(const struct lm_options *given)
{
    struct opened opened;
    tn_lm_part *parts;
    uint64_t count = 0;
    tn_lm_info info = {.struct_size = sizeof(info)};
    if (open_alone(given, &opened))
        return 1;
    tn_lm_describe(opened.lm, &info);
    int failed = list_parts(&opened, &parts, &count);
    for (uint64_t i = 0; i < count && !failed && !given->json; i++)
        print_part(&parts[i], &info);
    if (!failed && given->json)
        lm_where_print_json(parts, count, &info);
    else if (!failed)
        printf("caches of %s, for %" PRId64 " sequence%s of %" PRId64 " positions\n",
               info.cache, info.sequences, info.sequences == 1 ? "" : "s", info.context);
    if (!failed && (fflush(stdout) || ferror(stdout)))
        failed = stop("cannot write the output");
    free(parts);
    close_model(&opened);
    return failed;
}
