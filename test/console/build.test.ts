import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { builtConsole } from '../../scripts/console.js'
import { ROOT } from '../world.js'

const FOLDER = join(ROOT, 'console')

it('console/ is what src/console gives: `npm run console` writes it', async () => {
  const built = await builtConsole()
  const names = readdirSync(FOLDER, { recursive: true, withFileTypes: true }).flatMap((entry) =>
    entry.isFile() ? [join(entry.parentPath, entry.name).slice(FOLDER.length + 1)] : [],
  )
  expect(names.sort()).toEqual([...built.keys()].sort())
  for (const [name, content] of built) {
    expect([name, readFileSync(join(FOLDER, name), 'utf8') === content]).toEqual([name, true])
  }
})

it('has under 120 kB of script, compressed, with everything', () => {
  const scripts = readdirSync(join(FOLDER, 'assets')).filter((name) => name.endsWith('.js'))
  const sizes = scripts.map((name) => gzipSync(readFileSync(join(FOLDER, 'assets', name))).length)
  expect(sizes.reduce((sum, one) => sum + one, 0)).toBeLessThan(120_000)
})

it('has no script or style in its page, and names no other place', () => {
  const page = readFileSync(join(FOLDER, 'index.html'), 'utf8')
  expect(page).not.toMatch(/<script(?![^>]* src=)|<style|\son\w+=|style=|https?:/)
})
