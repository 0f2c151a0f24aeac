# @NAME@

An op pack for Tenon: `@NAME@.@OP@` is `alpha * x + beta * y`.

```
meson setup build && ninja -C build && meson test -C build
tenon plugin install build/@ID@
tenon eval '@NAME@.@OP@(x, y, alpha=4, beta=2)' x=[1,2] y=[10,20]
```
%if python

For Python:

```
pip install .
python -c "import tenon as tn; print(tn.@NAME@.@OP@(tn.ones([2]), tn.ones([2]), alpha=4))"
```
%end

| file | |
|---|---|
| `plugin.c` | the operator |
%if glsl
| `@OP@.comp` | its shader |
%end
| `test.c` | the operator called from C, through the header that the build makes |
| `meson.build` | the build, and tests |
%if python
| `pyproject.toml`, `wheel.py` | the wheel for Python |
%end
| `.github/workflows/ci.yml` | an example of continuous integration |

License: @LICENSE@.
