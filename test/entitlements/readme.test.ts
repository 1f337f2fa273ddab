import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')
const FOLDER = join(ROOT, 'src/entitlements')
const README = readFileSync(join(FOLDER, 'README.md'), 'utf8')

it('names only files that exist, and functions that are in them', () => {
  const files = [...README.matchAll(/`([\w./-]+\.ts)`/g)].map(([, name = '']) => name)
  expect(files.length).toBeGreaterThan(30)
  const pathOf = (name: string) => join(name.startsWith('test/') ? ROOT : FOLDER, name)
  expect(files.filter((name) => !existsSync(pathOf(name)))).toEqual([])
  const named = [...README.matchAll(/((?:`\w+`, )*`\w+`)\s+in\s+`([\w./-]+\.ts)`/g)]
  expect(named.length).toBeGreaterThan(15)
  const missing = named.flatMap(([, names = '', file = '']) =>
    [...names.matchAll(/\w+/g)].filter(
      ([name]) => !new RegExp(`\\b${name}\\b`).test(readFileSync(pathOf(file), 'utf8')),
    ),
  )
  expect(missing.map(([name]) => name)).toEqual([])
})
