# SPDX-License-Identifier: @LICENSE@
# Needs an installed Tenon, found through pkg-config.
project('@NAME@', 'c', version: '0.1.0', license: '@LICENSE@', meson_version: '>=1.0.0',
  default_options: ['c_std=c11', 'buildtype=release', 'warning_level=2'])

id = '@ID@'
sdk = dependency('tenon-sdk') # headers; links nothing
tool = find_program(sdk.get_variable('tool'))
tenon = find_program(sdk.get_variable('tenon'))
%if glsl

# The shader, as text and compiled.
shader = custom_target(input: '@NAME@.comp', output: '@NAME@_shader.h',
  command: [tool, 'shader', '--name', '@NAME@', '-o', '@OUTPUT@', '@INPUT@'])
%end

%if glsl
plugin = shared_module(id, 'plugin.c', shader, name_prefix: '',
  dependencies: [sdk, meson.get_compiler('c').find_library('m')],
  gnu_symbol_visibility: 'hidden')
%else
plugin = shared_module(id, 'plugin.c', name_prefix: '',
  dependencies: [sdk, meson.get_compiler('c').find_library('m')],
  gnu_symbol_visibility: 'hidden')
%end

# build/@ID@/: the plugin and its manifest.
staged = custom_target(input: plugin, output: id + '.staged', build_by_default: true,
  command: [tool, 'stage', '--id', id, '--license', files('LICENSE'),
            '--source', files('plugin.c'),
            '--directory', meson.current_build_dir(), '--stamp', '@OUTPUT@', '@INPUT@'])
build = meson.current_build_dir()

# For every user of this machine: meson install. For you alone: tenon plugin install.
meson.add_install_script(tool, 'install', build / id,
  '--directory', sdk.get_variable('plugindir'))

# meson test
test('check', tenon, args: ['check', build / id], depends: staged, timeout: 300)
%if softmax
test('softmax', tool, depends: staged,
  args: ['expect', build, 'nn.softmax(astype([[0, 0], [800, 800]], f32))', '0.5', '0.5', '0.5',
         '0.5', '--backend', 'cpu-blas', '--kernel', '@NAME@_c'])
%end
%if elementwise
%if c
test('kernel on cpu-blas', tool, depends: staged,
  args: ['expect', build, '@EXAMPLE@',
         '--backend', 'cpu-blas', '--kernel', '@NAME@_c'])
%end
%if glsl
foreach backend, kernel : {'vulkan': '@NAME@_spirv', 'vulkan-jit': '@NAME@_glsl'}
  test('kernel on ' + backend, tool, depends: staged, # skipped where there is no device
    args: ['expect', build, '@EXAMPLE@',
           '--backend', backend, '--kernel', kernel])
endforeach
%end
%end
