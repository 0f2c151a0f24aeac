// SPDX-License-Identifier: MIT
// Status codes: what a function returns, and what its caller may do next.
//
// Threads. Constants only.
#ifndef TENON_STATUS_H
#define TENON_STATUS_H

#include <stdint.h>

// Every function of Tenon and of a plugin that can fail returns one of these codes. The
// line that finds a fault records one message (what was got, what was expected, where)
// through tn_host.fail; all callers above pass the code on unchanged. Outputs are written
// on TN_OK only.
//
//   tn_status status = step_one(host);
//   if (status == TN_OK)
//       status = step_two(host);
//   return status; // the message of the step that failed is recorded already
//
// Numbers are ABI and never change. Code that gets one that it does not know treats it as a
// failure.
typedef int32_t tn_status;
enum {
    TN_OK = 0,
    TN_ERR_ARGUMENT = -1,    // wrong shape, dtype, attribute or call: correct the call
    TN_ERR_UNSUPPORTED = -2, // valid, but not here: ask another device, kernel or rule
    TN_ERR_NOT_FOUND = -3,   // no such name: correct it, or install what provides it
    TN_ERR_MEMORY = -4,      // out of memory: free some and try again
    TN_ERR_DEVICE = -5,      // the device is lost: close and open it again
    TN_ERR_IO = -6,          // the system refused (file, disk, permission): mend the cause
    TN_ERR_REFUSED = -7,  // damaged, untrusted or incompatible: replace the plugin or file
    TN_ERR_INTERNAL = -8, // a plugin or the core broke its contract: report it
};

#endif // TENON_STATUS_H
