import { readdirSync, readFileSync } from 'node:fs'
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
  provider: { code: ['errors'] },
  entitlements: { code: [], typesOf: ['provider'] },
  migrations: { code: [] },
  store: { code: ['errors', 'provider', 'entitlements', 'migrations'] },
  ingest: { code: ['errors', 'provider', 'entitlements', 'store'] },
  sync: { code: ['errors', 'store', 'entitlements'], typesOf: ['provider'] },
  handlers: { code: ['errors', 'provider'], typesOf: ['entitlements', 'ingest', 'sync'] },
  jobs: { code: ['errors', 'ingest', 'sync'] },
  log: { code: [] },
  config: { code: ['errors', 'provider', 'entitlements', 'handlers'], typesOf: ['sync'] },
  daemon: {
    code: [
      'errors',
      'config',
      'handlers',
      'ingest',
      'jobs',
      'sync',
      'store',
      'provider',
      'entitlements',
      'log',
    ],
  },
  cli: {
    code: [
      'errors',
      'config',
      'daemon',
      'handlers',
      'ingest',
      'sync',
      'store',
      'provider',
      'entitlements',
      'log',
    ],
  },
}

const PACKAGES: Readonly<Record<string, readonly RegExp[]>> = {
  errors: [],
  provider: [/^zod$/, /^node:crypto$/],
  entitlements: [],
  migrations: [/^kysely$/],
}

interface Import {
  readonly from: string
  readonly to: string
  readonly isType: boolean
}

const files = ['src', 'migrations'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name)),
)
const sourceOf = new Map(files.map((file) => [file, readFileSync(join(ROOT, file), 'utf8')]))
const imports = files.flatMap(importsOf)

function importsOf(file: string): Import[] {
  const statements = (sourceOf.get(file) ?? '').matchAll(/^(import|export)\s([^'";]*?from\s+)?'([^']+)'/gm)
  return [...statements].map(([, , clause = '', specifier = '']) => ({
    from: file,
    to: specifier.startsWith('.')
      ? normalize(join(dirname(file), specifier)).replace(/\.js$/, '.ts')
      : specifier,
    isType: clause.trimStart().startsWith('type ') || onlyTypes(clause),
  }))
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
      ?.replace(/\.ts$/, '') ?? ''
  )
}

const isOwn = ({ to }: Import) => to.endsWith('.ts')

describe('the architecture', () => {
  it('has files to look at, and imports between them', () => {
    expect(files.length).toBeGreaterThan(50)
    expect(imports.filter(isOwn).length).toBeGreaterThan(100)
  })

  it('has an entry for every part', () => {
    expect([...new Set(files.map(partOf))].sort()).toEqual(Object.keys(MAY_IMPORT).sort())
  })

  it('lets every part import only what stands below it', () => {
    const wrong = imports.filter(isOwn).filter(({ from, to, isType }) => {
      const allowed = MAY_IMPORT[partOf(from)]
      const part = partOf(to)
      const known = part === partOf(from) || allowed?.code.includes(part)
      return !known && !(isType && allowed?.typesOf?.includes(part))
    })
    expect(wrong).toEqual([])
  })

  it('keeps the pure parts free of packages that do anything', () => {
    const wrong = imports
      .filter((one) => !isOwn(one))
      .filter(({ from, to }) => PACKAGES[partOf(from)]?.every((allowed) => !allowed.test(to)) ?? false)
    expect(wrong).toEqual([])
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

  it('imports nothing dynamically, which would be hidden from these tests', () => {
    expect(files.filter((file) => /\bimport\(|\brequire\(/.test(sourceOf.get(file) ?? ''))).toEqual([])
  })

  it('reads the clock and the environment only where the program is put together', () => {
    const readers = files.filter((file) =>
      /\bDate\.now\(|\bnew Date\(\)|\bprocess\.env\b/.test(sourceOf.get(file) ?? ''),
    )
    expect(readers.filter((file) => partOf(file) !== 'cli')).toEqual([])
  })
})
