// Makes dist/ of the TypeScript sources, and leaves alone what is the same: a running daemon may be about to load it.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import module from 'node:module'
import { dirname, join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')

/** What is started or imported by its name; the rest of src/ goes into chunks. */
const ENTRIES = [
  'index',
  'sandbox/sandbox',
  'cli/main',
  'daemon/writer-thread',
  'doctor/examine-thread',
  'operations/backup-thread',
  'recompute/compare-thread',
  'store/sqlite/checkpoint-thread',
]

/** What apps load: as ES modules and as CommonJS, with no chunk of the daemon. */
const APP_ENTRIES = ['client/client', 'client/express', 'client/hono', 'client/testing', 'client/webhooks']

/** Of their hundreds of small files, loading took half of a start, in each thread anew, and 25 MB. */
const BUNDLED_PACKAGES = ['kysely', 'zod']

if (module.stripTypeScriptTypes === undefined) {
  console.error(
    `Not built: Latchkey needs Node.js 22.13 or newer for that; this is ${process.version}. Install a newer one, then run npm ci again.`,
  )
  // An install that fails here would leave npx with a broken copy; the program itself refuses an older Node.js.
  process.exit(Number.parseInt(process.versions.node, 10) < 22 ? 0 : 1)
}

// A production install lacks the bundler: the same program, file by file, starts more slowly. CommonJS is for apps, which
// install the package as it is packed. The console is built already: see build-console.js.
const bundler = await import('rolldown').catch(() => null)
const built = bundler === null ? withoutTypes() : await bundled(bundler)
for (const [name, text] of built) write(name, text)
for (const old of filesIn('dist')) {
  if (!built.has(old)) rmSync(join(ROOT, old))
}

/** The text of each file, by its name. */
async function bundled({ rolldown }) {
  const outputs = [
    ...(await bundlesOf(rolldown, ENTRIES, 'src/chunks', ['esm'])),
    ...(await bundlesOf(rolldown, APP_ENTRIES, 'src/client/chunks', ['esm', 'cjs'])),
  ]
  const licenses = BUNDLED_PACKAGES.map((name) => [
    join('dist', 'licenses', `${name}.txt`),
    readFileSync(join(ROOT, 'node_modules', name, 'LICENSE'), 'utf8'),
  ])
  return new Map([...outputs.map(({ fileName, code }) => [join('dist', fileName), code]), ...licenses])
}

async function bundlesOf(rolldown, entries, chunks, formats) {
  const bundle = await rolldown({
    cwd: ROOT,
    platform: 'node',
    input: Object.fromEntries(entries.map((name) => [`src/${name}`, `./src/${name}.ts`])),
    resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
    external: (id) => /^[@a-z]/.test(id) && !BUNDLED_PACKAGES.some((name) => `${id}/`.startsWith(`${name}/`)),
  })
  const outputs = []
  for (const format of formats) {
    const extension = format === 'esm' ? 'js' : 'cjs'
    const { output } = await bundle.generate({
      format,
      entryFileNames: `[name].${extension}`,
      chunkFileNames: `${chunks}/[name].${extension}`,
    })
    outputs.push(...output)
  }
  await bundle.close()
  return outputs
}

/** Removes the types, which Node can do by itself. Lines and columns stay where they are. */
function withoutTypes() {
  const sources = ['src', 'migrations']
    .flatMap(filesIn)
    .filter((name) => name.endsWith('.ts') && !name.startsWith(join('src', 'console')))
  return new Map(
    sources.map((name) => [
      join('dist', name.replace(/\.ts$/, '.js')),
      module.stripTypeScriptTypes(readFileSync(join(ROOT, name), 'utf8')),
    ]),
  )
}

function write(name, text) {
  const target = join(ROOT, name)
  if (existsSync(target) && readFileSync(target, 'utf8') === text) return
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, text)
}

/** All files below a folder of the project, relative to the project. */
function filesIn(folder) {
  if (!existsSync(join(ROOT, folder))) return []
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(folder, entry.parentPath.slice(join(ROOT, folder).length + 1), entry.name))
}
