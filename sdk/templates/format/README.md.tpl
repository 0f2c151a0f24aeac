# @NAME@

Files `*.@NAME@` of arrays, for Tenon.

```
meson setup build && ninja -C build && meson test -C build
tenon plugin install build/@ID@
tenon eval 'x * 2' x=[1.0,2] -o doubled.@NAME@
tenon eval 'x + 1' x=@doubled.@NAME@
```

| file | |
|---|---|
| `plugin.c` | the format: four functions, and what its files are known by |
| `meson.build` | the build, and the test |
| `.github/workflows/ci.yml` | an example of continuous integration |

License: @LICENSE@.
