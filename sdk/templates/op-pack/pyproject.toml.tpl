# SPDX-License-Identifier: @LICENSE@
# `pip install .` builds the plugin by meson and installs it for the package `tenon`.
[build-system]
requires = []
build-backend = "wheel"
backend-path = ["."]
