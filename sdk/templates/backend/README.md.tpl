# @NAME@

A backend for Tenon that runs every operator, in plain loops on one thread.

```
meson setup build && ninja -C build && meson test -C build
tenon plugin install build/@ID@
TENON_BACKEND=@NAME@ tenon eval 'sum(x * x)' x=[1,2,3]
```

| file | |
|---|---|
| `backend.h` | structs and functions of both C files |
| `device.c` | devices, buffers, and the table of the backend |
| `queue.c` | compiling segments, running and awaiting submissions |
| `meson.build` | the build, and tests |
| `.github/workflows/ci.yml` | an example of continuous integration |

License: @LICENSE@.
