// SPDX-License-Identifier: MIT
// The note of a shared object: an accepted one holds ended and valid texts.
#include "fuzz.h"
#include "plugin/find/names.h"
#include "plugin/load/note.h"

void fuzz_one(const uint8_t *data, size_t size)
{
    tn_note note;
    struct reason reason = {0};
    memset(&note, 0xa5, sizeof(note));
    if (note_read(fuzz_file(data, size), "plugin.so", &note, &reason) != TN_OK) {
        FUZZ_CHECK(reason.text[0] && note.magic == UINT64_C(0xa5a5a5a5a5a5a5a5),
                   "a failure has a reason and writes nothing");
        return;
    }
    FUZZ_CHECK(id_valid(note.id) && version_valid(note.version), "'%s'", note.id);
    FUZZ_CHECK(memchr(note.vendor, 0, sizeof(note.vendor)), "the vendor ends");
    FUZZ_CHECK(note.abi_minor_min <= note.abi_minor_max, "the range of the ABI");
}
