// Makes dist/ of the TypeScript sources by removing their types, which Node can do by itself: so a production
// install, which has no compiler, builds too. Lines and columns stay where they are. `npm run types` checks the types.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import module from 'node:module'
import { dirname, join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const SOURCES = ['src', 'migrations', 'bench']

if (module.stripTypeScriptTypes === undefined) {
  console.error(
    `Not built: Latchkey needs Node.js 22.13 or newer for that; this is ${process.version}. Install a newer one, then run npm ci again.`,
  )
  // An install that fails here would leave npx with a broken copy; the program itself refuses an older Node.js.
  process.exit(Number.parseInt(process.versions.node, 10) < 22 ? 0 : 1)
}

const built = new Set()
for (const source of SOURCES.flatMap((folder) => filesIn(ROOT, folder))) {
  if (source.endsWith('.ts')) build(source)
}
for (const old of filesIn(ROOT, 'dist')) {
  if (!built.has(old)) rmSync(join(ROOT, old))
}

function build(source) {
  const name = join('dist', source.replace(/\.ts$/, '.js'))
  const target = join(ROOT, name)
  const text = module.stripTypeScriptTypes(readFileSync(join(ROOT, source), 'utf8'))
  built.add(name)
  // A running daemon may be about to load it: what is the same is left alone.
  if (existsSync(target) && readFileSync(target, 'utf8') === text) return
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, text)
}

/** All files below a folder, relative to `root`. */
function filesIn(root, folder) {
  if (!existsSync(join(root, folder))) return []
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(folder, entry.parentPath.slice(join(root, folder).length + 1), entry.name))
}
