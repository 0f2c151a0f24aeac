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
shader = custom_target(input: '@OP@.comp', output: '@OP@_shader.h',
  command: [tool, 'shader', '--name', '@OP@', '-o', '@OUTPUT@', '@INPUT@'])
%end

libm = meson.get_compiler('c').find_library('m') # functions such as exp()
%if glsl
plugin = shared_module(id, 'plugin.c', shader, name_prefix: '', dependencies: [sdk, libm],
  gnu_symbol_visibility: 'hidden')
%else
plugin = shared_module(id, 'plugin.c', name_prefix: '', dependencies: [sdk, libm],
  gnu_symbol_visibility: 'hidden')
%end

# build/@ID@/: the plugin, its manifest and the C header of its operators.
staged = custom_target(input: plugin, output: [id + '.staged', '@NAME@.h'],
  command: [tool, 'stage', '--id', id, '--license', files('LICENSE'),
            '--source', files('plugin.c'), '--header', '@OUTPUT1@',
            '--directory', meson.current_build_dir(), '--stamp', '@OUTPUT0@', '@INPUT@'],
  build_by_default: true)
build = meson.current_build_dir()

# For every user of this machine: meson install. For you alone: tenon plugin install.
meson.add_install_script(tool, 'install', build / id,
  '--directory', sdk.get_variable('plugindir'))

# meson test
test('check', tenon, args: ['check', build / id], depends: staged, timeout: 300)
env = environment()
env.prepend('TENON_PLUGIN_PATH', build)
test('call from C', executable('call', 'test.c', staged[1], dependencies: dependency('tenon')),
  depends: staged, env: env)
test('eval', tool, depends: staged,
  args: ['expect', build, '@NAME@.@OP@([1, 2], [10, 20], alpha=4, beta=2)', '24', '48'])
%if kernels
in_f32 = ['x = astype([1, 2], f32); y = astype([10, 20], f32); ' +
          '@NAME@.@OP@(x, y, alpha=4, beta=2)', '24', '48']
%end
%if c
test('kernel on cpu-blas', tool, depends: staged,
  args: ['expect', build] + in_f32 + ['--backend', 'cpu-blas', '--kernel', '@OP@_c'])
%end
%if glsl
foreach backend, kernel : {'vulkan': '@OP@_spirv', 'vulkan-jit': '@OP@_glsl'}
  test('kernel on ' + backend, tool, depends: staged, # skipped where there is no device
    args: ['expect', build] + in_f32 + ['--backend', backend, '--kernel', kernel])
endforeach
%end
