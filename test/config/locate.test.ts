import { expect, it } from 'vitest'
import { locateConfig } from '../../src/config/locate.js'

const folder = '/srv/shop'

it.each([
  [
    '--config before all',
    { option: 'a.json', env: { LATCHKEY_CONFIG: '/b.json' } },
    '/srv/shop/a.json',
    true,
  ],
  ['LATCHKEY_CONFIG before the folder', { env: { LATCHKEY_CONFIG: '/b.json' } }, '/b.json', true],
  ['config.json in the folder, which nobody named', { env: {} }, '/srv/shop/config.json', false],
  ['an empty LATCHKEY_CONFIG as none', { env: { LATCHKEY_CONFIG: '' } }, '/srv/shop/config.json', false],
])('the config file is found by %s', (_, options, path, named) => {
  expect(locateConfig({ ...options, folder })).toEqual({ path, named })
})
