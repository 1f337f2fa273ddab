import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { describe, expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '..')

/**
 * Which parts each part may import. Types of a part above may be named where the part is handed functions
 * (`typesOf`): what flows in is then known, and nothing is called.
 */
const MAY_IMPORT: Readonly<
  Record<string, { readonly code: readonly string[]; readonly typesOf?: readonly string[] }>
> = {
  errors: { code: [] },
  'failure-limit': { code: [] },
  'system-refusal': { code: [] },
  'package-file': { code: [] },
  'node-http': { code: [] },
  // What an app runs: it knows the daemon by its API alone.
  client: { code: [], typesOf: ['openapi'] },
  // What a browser runs: likewise.
  console: { code: [], typesOf: ['openapi'] },
  provider: { code: ['errors'] },
  entitlements: { code: ['provider'] },
  // The other side of the wire: it knows the wire alone, and nothing of the daemon knows it.
  sandbox: { code: ['provider'] },
  'payments-api': { code: ['errors', 'provider'] },
  migrations: { code: [] },
  store: { code: ['errors', 'package-file', 'provider', 'entitlements', 'migrations'] },
  ingest: { code: ['errors', 'provider', 'entitlements', 'store'] },
  recompute: {
    code: ['errors', 'package-file', 'provider', 'entitlements', 'store', 'ingest'],
    typesOf: ['sync'],
  },
  history: { code: ['errors', 'provider', 'entitlements', 'store', 'ingest'] },
  people: { code: ['errors', 'provider', 'entitlements', 'store', 'ingest'] },
  backfill: {
    code: ['errors', 'provider', 'entitlements', 'store', 'ingest', 'payments-api', 'recompute'],
  },
  sync: { code: ['errors', 'failure-limit', 'provider', 'store', 'entitlements'], typesOf: ['recompute'] },
  // They ask the store themselves, instead of by a function for each question; what changes anything is handed in.
  handlers: {
    code: [
      'errors',
      'failure-limit',
      'node-http',
      'package-file',
      'provider',
      'entitlements',
      'store',
      'history',
    ],
    typesOf: ['backfill', 'doctor', 'ingest', 'operations', 'people', 'recompute', 'sync'],
  },
  operations: {
    code: ['errors', 'package-file', 'store', 'system-refusal'],
    typesOf: ['provider', 'ingest', 'sync'],
  },
  doctor: {
    code: [
      'errors',
      'package-file',
      'system-refusal',
      'config',
      'provider',
      'entitlements',
      'payments-api',
      'store',
      'operations',
      'people',
      'recompute',
      'backfill',
    ],
    typesOf: ['handlers'],
  },
  log: { code: ['errors'] },
  tracing: { code: ['handlers'], typesOf: ['ingest', 'sync'] },
  config: { code: ['errors', 'package-file', 'provider', 'entitlements', 'handlers'], typesOf: ['sync'] },
  daemon: {
    code: [
      'errors',
      'package-file',
      'doctor',
      'config',
      'handlers',
      'ingest',
      'history',
      'recompute',
      'backfill',
      'payments-api',
      'people',
      'operations',
      'sync',
      'store',
      'provider',
      'entitlements',
      'log',
    ],
    typesOf: ['tracing'],
  },
  index: { code: ['errors', 'package-file', 'config', 'daemon', 'handlers'] },
  cli: {
    code: [
      'errors',
      'node-http',
      'package-file',
      'system-refusal',
      'doctor',
      'config',
      'daemon',
      'handlers',
      'ingest',
      'operations',
      'history',
      'recompute',
      'people',
      'payments-api',
      'sandbox',
      'sync',
      'store',
      'provider',
      'entitlements',
      'log',
      'tracing',
    ],
  },
}

const PACKAGES: Readonly<Record<string, readonly RegExp[]>> = {
  errors: [],
  client: [],
  console: [/^preact(\/hooks)?$/, /^@preact\/signals$/, /^openapi-fetch$/, /^uplot$/],
  provider: [/^zod$/, /^node:crypto$/],
  entitlements: [],
  migrations: [/^kysely(\/migration)?$/, /^node:crypto$/],
}

interface Import {
  readonly from: string
  readonly to: string
  /** `compiled`: only types. `loaded`: wherever the file is. `run`: by a call, when something needs it. */
  readonly when: 'compiled' | 'loaded' | 'run'
}

const IMPORT_CALL = /\bimport\('([^']+)'\)/g

const files = ['src', 'migrations'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => join(folder, name)),
)
const sourceOf = new Map(files.map((file) => [file, readFileSync(join(ROOT, file), 'utf8')]))
const imports = files.flatMap(importsOf)

function importsOf(file: string): Import[] {
  const source = sourceOf.get(file) ?? ''
  const statements = source.matchAll(/^(import|export)\s([^'";]*?from\s+)?'([^']+)'/gm)
  const calls = source.matchAll(IMPORT_CALL)
  return [
    ...[...statements].map(([, , clause = '', specifier = '']) => ({
      from: file,
      to: fileNamed(specifier, file),
      when: clause.trimStart().startsWith('type ') || onlyTypes(clause) ? 'compiled' : 'loaded',
    })),
    ...[...calls].map(([, specifier = '']) => ({
      from: file,
      to: fileNamed(specifier, file),
      when: 'run',
    })),
  ] as Import[]
}

function fileNamed(specifier: string, from: string): string {
  if (!specifier.startsWith('.')) return specifier
  const path = normalize(join(dirname(from), specifier))
  const inTsx = path.replace(/\.js$/, '.tsx')
  return existsSync(join(ROOT, inTsx)) ? inTsx : path.replace(/\.js$/, '.ts')
}

function onlyTypes(clause: string): boolean {
  const names = /^\{([^}]*)\}/
    .exec(clause.trim())?.[1]
    ?.split(',')
    .filter((name) => name.trim() !== '')
  return names?.every((name) => name.trim().startsWith('type ')) ?? false
}

function partOf(file: string): string {
  return (
    relative('.', file)
      .replace(/^src\//, '')
      .split('/')[0]
      ?.replace(/\.tsx?$/, '') ?? ''
  )
}

/** All files that loading one loads. */
function loadedBy(file: string, loaded = new Set<string>()): readonly string[] {
  if (!loaded.has(file)) {
    loaded.add(file)
    for (const { from, to, when } of imports.filter(isOwn)) {
      if (from === file && when === 'loaded') loadedBy(to, loaded)
    }
  }
  return [...loaded]
}

const DIST = join(ROOT, 'dist', 'src')

/** The sources in the built files that these ones can load, at once or by a call. */
function builtInto(...entries: readonly string[]): readonly string[] {
  const seen = new Set<string>()
  const read = (file: string): readonly string[] => {
    if (seen.has(file)) return []
    seen.add(file)
    const text = readFileSync(file, 'utf8')
    const loads = text.matchAll(/\b(?:from |import |import\()"(\.[^"]+)"/g)
    const own = [...text.matchAll(/^\/\/(?:#region)? (src\/\S+\.ts)$/gm)].map(([, name = '']) => name)
    return [...own, ...[...loads].flatMap(([, name = '']) => read(join(dirname(file), name)))]
  }
  return entries.flatMap((entry) => read(join(DIST, entry)))
}

const ofSandbox = (sources: readonly string[]) => sources.filter((name) => partOf(name) === 'sandbox')

/** The packages that loading those files loads; what is Node's own is there anyway. */
function packagesOf(loaded: readonly string[]): readonly string[] {
  const found = imports.filter((one) => !isOwn(one) && one.when === 'loaded' && loaded.includes(one.from))
  return [...new Set(found.map(({ to }) => to))].filter((name) => !name.startsWith('node:')).sort()
}

const isOwn = ({ to }: Import) => /\.tsx?$/.test(to)

describe('the architecture', () => {
  it('has files to look at, and imports between them', () => {
    expect(files.length).toBeGreaterThan(50)
    expect(imports.filter(isOwn).length).toBeGreaterThan(100)
  })

  it('has an entry for every part', () => {
    expect([...new Set(files.map(partOf))].sort()).toEqual(Object.keys(MAY_IMPORT).sort())
  })

  it('lets every part import only what stands below it', () => {
    const wrong = imports.filter(isOwn).filter(({ from, to, when }) => {
      const allowed = MAY_IMPORT[partOf(from)]
      const part = partOf(to)
      const known = part === partOf(from) || allowed?.code.includes(part)
      return !known && !(when === 'compiled' && allowed?.typesOf?.includes(part))
    })
    expect(wrong).toEqual([])
  })

  it('keeps the pure parts free of packages that do anything', () => {
    const wrong = imports
      .filter((one) => !isOwn(one) && one.when !== 'compiled')
      .filter(({ from, to }) => PACKAGES[partOf(from)]?.every((allowed) => !allowed.test(to)) ?? false)
    expect(wrong).toEqual([])
  })

  it('decides what to report after a record without a store, a clock or a network', () => {
    const loaded = loadedBy('src/backfill/report.ts')
    expect(loaded.length).toBeGreaterThan(10)
    const others = loaded.filter((file) => !['backfill', 'provider', 'entitlements'].includes(partOf(file)))
    expect(others).toEqual([])
    expect(packagesOf(loaded)).toEqual([])
  })

  it('has no circles', () => {
    const next = new Map(
      files.map((file) => [
        file,
        imports.filter(isOwn).flatMap(({ from, to }) => (from === file ? [to] : [])),
      ]),
    )
    const circles: string[][] = []
    const done = new Set<string>()
    const visit = (file: string, path: readonly string[]): void => {
      if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file])
      if (done.has(file) || path.includes(file)) return
      for (const to of next.get(file) ?? []) visit(to, [...path, file])
      done.add(file)
    }
    for (const file of files) visit(file, [])
    expect(circles).toEqual([])
  })

  it('names the file in every import by a call, which would be hidden from these tests otherwise', () => {
    const hidden = files.filter((file) =>
      /\bimport\(|\brequire\(/.test((sourceOf.get(file) ?? '').replace(IMPORT_CALL, '')),
    )
    expect(hidden).toEqual([])
  })

  it('imports by a call only where commands begin, where platforms and the engine are chosen, and for a terminal', () => {
    const LAZY = [
      'src/daemon/open.ts',
      'src/doctor/stored.ts',
      'src/operations/assert-database.ts',
      'src/operations/cron.ts',
      'src/recompute/compare-thread.ts',
      'src/daemon/platforms.ts',
      'src/log.ts',
    ]
    const callers = imports.filter(({ when }) => when === 'run').map(({ from }) => from)
    const others = callers.filter((file) => !['cli', 'console'].includes(partOf(file)))
    expect(others.filter((file) => !LAZY.includes(file))).toEqual([])
  })

  it('loads for every command line only what says which commands there are', () => {
    const loaded = loadedBy('src/cli/main.ts')
    expect(loaded.length).toBeGreaterThan(30)
    expect(
      loaded.filter((file) => /^src\/(store|ingest|history|people|recompute|operations|daemon)\b/.test(file)),
    ).toEqual([])
    expect(packagesOf(loaded)).toEqual(['commander'])
  })

  it('loads a platform, PostgreSQL and schedules only where one is configured', () => {
    const packages = packagesOf(loadedBy('src/daemon.ts'))
    expect(packages).toContain('kysely')
    expect(packages.filter((name) => /discord|grammy|^pg$|node-cron/.test(name))).toEqual([])
  })

  it('builds the daemon and its threads without the sandbox, which only its own command loads', () => {
    expect(ofSandbox(builtInto('sandbox/sandbox.js')).length).toBeGreaterThan(20)
    expect(ofSandbox(builtInto('cli/main.js')).length).toBeGreaterThan(20)
    const threads = readdirSync(DIST, { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('-thread.js'),
    )
    expect(threads).toHaveLength(5)
    const served = builtInto('index.js', 'chunks/run-daemon.js', ...threads)
    expect(served).toContain('src/cli/run-daemon.ts')
    expect(served.length).toBeGreaterThan(100)
    expect(ofSandbox(served)).toEqual([])
  })

  it('reads the clock and the environment only where the program is put together', () => {
    const readers = files.filter((file) =>
      /\bDate\.now\(|\bnew Date\(\)|\bprocess\.env\b/.test(sourceOf.get(file) ?? ''),
    )
    const others = readers.filter((file) => partOf(file) !== 'cli')
    expect(others.sort()).toEqual(['src/console/now.ts', 'src/index.ts'])
  })
})
