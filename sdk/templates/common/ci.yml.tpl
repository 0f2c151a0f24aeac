# An example for GitHub Actions. The repository's variable TENON_ARCHIVE is the address of an
# installed Tenon, packed with `tar -C /usr/local -czf tenon.tar.gz .`
on: [push, pull_request]
jobs:
  test:
    runs-on: ubuntu-latest
    container: debian:12
    env:
      DEBIAN_FRONTEND: noninteractive
    steps:
      - uses: actions/checkout@v4
      - run: apt-get update
      - run: apt-get install -y --no-install-recommends @PACKAGES@
      - run: curl -fL "${{ vars.TENON_ARCHIVE }}" | tar -xz -C /usr/local && ldconfig
      - run: meson setup --werror build && ninja -C build
      - run: meson test -C build --print-errorlogs
      - uses: actions/upload-artifact@v4
        with:
          name: @ID@
          path: build/@ID@
