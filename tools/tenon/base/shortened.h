// SPDX-License-Identifier: MIT
// Mapped files that become shorter while they are used, by which the kernel ends a process
// with SIGBUS.
#ifndef TOOLS_TENON_BASE_SHORTENED_H
#define TOOLS_TENON_BASE_SHORTENED_H

// From now on such an end is told in a sentence that names the file, and has status 1. Any
// other SIGBUS ends the process as before.
void tell_shortened_files(void);

#endif // TOOLS_TENON_BASE_SHORTENED_H
