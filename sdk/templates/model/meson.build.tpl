# SPDX-License-Identifier: @LICENSE@
# Needs an installed Tenon, found through pkg-config.
project('@NAME@', 'c', version: '0.1.0', license: '@LICENSE@', meson_version: '>=1.0.0',
  default_options: ['c_std=c11', 'buildtype=release', 'warning_level=2'])

id = '@ID@'
sdk = dependency('tenon-sdk') # headers; links nothing
tool = find_program(sdk.get_variable('tool'))
tenon = find_program(sdk.get_variable('tenon'))

# What decoders share: sources of the SDK that become part of this plugin.
decoder = sdk.get_variable('decoderdir')
plugin = shared_module(id, 'plugin.c', decoder / 'blocks.c', decoder / 'experts.c',
  decoder / 'read.c', decoder / 'rope.c', name_prefix: '', c_args: '-I' + decoder,
  dependencies: [sdk, meson.get_compiler('c').find_library('m')],
  gnu_symbol_visibility: 'hidden')

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
