# SPDX-License-Identifier: @LICENSE@
# Needs an installed Tenon, found through pkg-config.
project('@NAME@', 'c', version: '0.1.0', license: '@LICENSE@', meson_version: '>=1.0.0',
  default_options: ['c_std=c11', 'buildtype=release', 'warning_level=2'])

id = '@ID@'
sdk = dependency('tenon-sdk') # headers; links nothing
tool = find_program(sdk.get_variable('tool'))
tenon = find_program(sdk.get_variable('tenon'))

plugin = shared_module(id, 'device.c', 'queue.c', 'weights.c', name_prefix: '',
  dependencies: [sdk, meson.get_compiler('c').find_library('m'), dependency('threads')],
  gnu_symbol_visibility: 'hidden')

# build/@ID@/: the plugin and its manifest.
staged = custom_target(input: plugin, output: id + '.staged', build_by_default: true,
  command: [tool, 'stage', '--id', id, '--license', files('LICENSE'),
            '--source', files('device.c'), '--resource', files('check.examples.json'),
            '--directory', meson.current_build_dir(), '--stamp', '@OUTPUT@', '@INPUT@'])
build = meson.current_build_dir()

# For every user of this machine: meson install. For you alone: tenon plugin install.
meson.add_install_script(tool, 'install', build / id,
  '--directory', sdk.get_variable('plugindir'))

# meson test
test('check', tenon, args: ['check', build / id], depends: staged, timeout: 300)
examples = {
  'program': ['exp(0 * [1.0, 2.0]) + 1', '2', '2'],
  'reference': ['sum([1.0, 2.0, 3.0] * 2)', '12'],
  'matrix product': ['[[1.0, 2.0], [3.0, 4.0]] @ [[1.0], [1.0]]', '3', '7'],
}
foreach name, example : examples
  test(name, tool, args: ['expect', build] + example + ['--backend', '@NAME@'],
    depends: staged)
endforeach
