// SPDX-License-Identifier: MIT
// Marks of a conversation's form, and ranges of messages in which no mark is found.
#ifndef LM_MARKS_H
#define LM_MARKS_H

#include "../engine/model.h"
#include "template.h"

// Gives the ranges of a conversation's text in which no control token is found, for free():
// those of its `count` messages, split within each text that is a mark. A mark is a
// user-defined token of the form or of an image (`image`; NULL: there are none), or a token
// that begins or ends texts.
tn_status lm_plain_ranges(tn_lm *model, const struct chat_template *form, const char *image,
                          const char *text, const struct chat_range *ranges, uint64_t count,
                          tn_text_range **out_plain, uint64_t *out_count);

#endif // LM_MARKS_H
