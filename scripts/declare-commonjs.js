// Writes the types of what apps load a second time, for CommonJS: TypeScript reads .d.cts beside .cjs.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const TYPES = join(ROOT, 'types')
const CLIENT = join(TYPES, 'src', 'client')

const openapi = readFileSync(join(ROOT, 'openapi.d.ts'), 'utf8')
for (const extension of ['ts', 'cts']) writeFileSync(join(TYPES, `openapi.d.${extension}`), openapi)
for (const name of readdirSync(CLIENT).filter((one) => one.endsWith('.d.ts'))) {
  const text = readFileSync(join(CLIENT, name), 'utf8')
    .replaceAll(/(from '\.[^']*)\.js'/g, "$1.cjs'")
    // Its types are an ES module's alone.
    .replaceAll("from 'hono'", "from 'hono' with { 'resolution-mode': 'import' }")
  writeFileSync(join(CLIENT, name.replace(/ts$/, 'cts')), text)
}
