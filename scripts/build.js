// Makes dist/ of the TypeScript sources by removing their types, which Node can do by itself: so a production
// install, which has no compiler, builds too. Lines and columns stay where they are. `npm run types` checks the types.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import module from 'node:module'
import { dirname, join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const SOURCES = ['src', 'migrations', 'bench']

if (module.stripTypeScriptTypes === undefined) {
  console.error(
    `Latchkey needs Node.js 22.13 or newer to be built; this is ${process.version}. Install a newer one, then try again.`,
  )
  process.exit(1)
}
rmSync(join(ROOT, 'dist'), { recursive: true, force: true })
for (const folder of SOURCES) {
  for (const file of readdirSync(join(ROOT, folder), { recursive: true })) {
    if (file.endsWith('.ts')) build(join(folder, file))
  }
}

function build(source) {
  const target = join(ROOT, 'dist', source.replace(/\.ts$/, '.js'))
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, module.stripTypeScriptTypes(readFileSync(join(ROOT, source), 'utf8')))
}
