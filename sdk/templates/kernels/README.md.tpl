# @NAME@

Kernels for Tenon's operator `@FOR@`.

```
meson setup build && ninja -C build && meson test -C build
tenon plugin install build/@ID@
tenon op @FOR@
```

| file | |
|---|---|
| `plugin.c` | the kernels |
%if glsl
| `@NAME@.comp` | a shader |
%end
| `meson.build` | the build, and tests |
| `.github/workflows/ci.yml` | an example of continuous integration |

License: @LICENSE@.
