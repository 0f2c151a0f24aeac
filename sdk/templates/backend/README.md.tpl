# @NAME@

A backend for Tenon that runs every operator, in plain loops on one thread.

```
meson setup build && ninja -C build && meson test -C build
tenon plugin install build/@ID@
TENON_BACKEND=@NAME@ tenon eval 'sum(x * x)' x=[1,2,3]
```

| file | |
|---|---|
| `backend.h` | structs and functions of the C files |
| `device.c` | devices, buffers, and the table of the backend |
| `queue.c` | compiling segments, running and awaiting submissions |
| `weights.c` | a packing of quantised weights, and the product that reads it |
| `check.examples.json` | applications of the product, for `tenon check` |
| `meson.build` | the build, and tests |
| `.github/workflows/ci.yml` | an example of continuous integration |

License: @LICENSE@.
