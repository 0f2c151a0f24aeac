# @NAME@

Language models of architecture `@NAME@`, for Tenon.

```
meson setup build && ninja -C build && meson test -C build
tenon plugin install build/@ID@
tenon bench llm --random architecture=@NAME@,layers=2,width=64,heads=4,kv_heads=2,inner=128,format=f32
```

| file | |
|---|---|
| `plugin.c` | the architecture: five functions, and the names of its models |
| `meson.build` | the build, and the test |
| `.github/workflows/ci.yml` | an example of continuous integration |

License: @LICENSE@.
