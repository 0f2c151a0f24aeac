# @NAME@

An op pack for Tenon: `@NAME@.@OP@` is `alpha * x + beta * y`.

```
meson setup build && ninja -C build && meson test -C build
tenon plugin install build/@ID@
tenon eval '@NAME@.@OP@(x, y, alpha=4, beta=2)' x=[1,2] y=[10,20]
```

| file | |
|---|---|
| `plugin.c` | the operator |
%if glsl
| `@OP@.comp` | its shader |
%end
| `test.c` | the operator called from C, through the header that the build makes |
| `meson.build` | the build, and tests |
| `.github/workflows/ci.yml` | an example of continuous integration |

License: @LICENSE@.
