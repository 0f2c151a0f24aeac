# @NAME@

A backend for Tenon: it computes everything, on one thread, plainly.

```
meson setup build && ninja -C build && meson test -C build
tenon plugin install build/@ID@
TENON_BACKEND=@NAME@ tenon eval 'sum(x * x)' x=[1,2,3]
```

| file | |
|---|---|
| `backend.h` | what the two below share |
| `device.c` | devices, buffers, and the table of the backend |
| `queue.c` | what a step becomes, how it is started and awaited |
| `meson.build` | the build, and tests |
| `.github/workflows/ci.yml` | an example of continuous integration |

License: @LICENSE@.
