// SPDX-License-Identifier: MIT
// Mapped files that become shorter while they are used, by which the kernel ends a process
// with SIGBUS.
#ifndef TOOLS_TENON_BASE_SHORTENED_H
#define TOOLS_TENON_BASE_SHORTENED_H

// Installs a handler that, for such a SIGBUS, prints a message with the file's name and
// exits with status 1. Any other SIGBUS ends the process as before.
void tell_shortened_files(void);

#endif // TOOLS_TENON_BASE_SHORTENED_H
