import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { createCommands } from '../src/cli/program.js'
import { loadConfig } from '../src/config/load.js'
import { HOLD_REASON_TEXT } from '../src/entitlements/reasons.js'
import { ERROR_CODES, type ErrorCode, LatchkeyError } from '../src/errors.js'
import { problemOf } from '../src/handlers/problem.js'
import { ROUTES } from '../src/handlers/routes.js'
import { QUARANTINE_REASONS } from '../src/provider/event.js'
import { OPERATIONS } from '../src/sandbox/server.js'
import { writeConfig } from './config/config-file.js'
import {
  blocks,
  configIn,
  fencesOf,
  firstLine,
  NOT_RUN,
  PAGES,
  type Page,
  routeTable,
  textOf,
} from './process/readme.js'
import { ROOT } from './world.js'

/** What the pages say beside their examples. */
const prose = (page: Page): string => textOf(page).replaceAll(/^( *)```[\s\S]*?^\1```$/gm, '')
const ALL_PROSE = PAGES.map(prose).join('\n')

/** Everything in backticks, of some pages. */
const codeIn = (text: string): readonly string[] =>
  [...text.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code)

const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => readFileSync(join(ROOT, 'src', name), 'utf8'))
  .join('\n')

const sorted = (names: Iterable<string>): readonly string[] => [...new Set(names)].sort()

describe('every page', () => {
  it('is known to these tests', () => {
    const found = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    const pages = found.filter((name) => name !== 'images' && !name.startsWith('images/'))
    expect(sorted(PAGES)).toEqual(sorted(['README.md', ...pages.map((name) => `docs/${name}`)]))
  })

  it('shows only pictures that are there, and each that is there, described and in the colors of its reader', () => {
    const shown = PAGES.flatMap((page) =>
      [...textOf(page).matchAll(/<(source media="[^"]*dark[^"]*" srcset|img src)="([^"]+)"(.*)>/g)].map(
        ([, kind = '', file = '', rest = '']) => {
          if (kind === 'img src') expect(rest).toMatch(/ alt="[^"]{20,}"/)
          return join(dirname(page), file)
        },
      ),
    )
    expect(sorted(shown)).toEqual(
      readdirSync(join(ROOT, 'docs', 'images'))
        .map((name) => `docs/images/${name}`)
        .sort(),
    )
    for (const file of shown.filter((name) => name.includes('light')))
      expect(shown).toContain(file.replace('light', 'dark'))
    for (const file of shown) expect(statSync(join(ROOT, file)).size).toBeLessThan(100_000)
  })

  it('has only examples that are run, compared or drawn, or listed with the reason why not', () => {
    const isChecked: Readonly<Record<string, (fence: ReturnType<typeof fencesOf>[number]) => boolean>> = {
      sh: () => true,
      json: () => true,
      // By test/process/readme.test.ts, test/embedding.test.ts, test/client/gates.test.ts and test/package.test.ts.
      js: ({ page }) => ['docs/webhooks.md', 'docs/embedding.md', 'docs/client.md'].includes(page),
      // By test/package.test.ts.
      ts: ({ page }) => page === 'docs/client.md',
      // By test/postgres/partitions.test.ts.
      sql: ({ page }) => page === 'docs/scaling.md',
      text: ({ outputOf }) => outputOf !== null,
    }
    const fences = PAGES.flatMap(fencesOf)
    const unchecked = fences.filter((fence) => isChecked[fence.language]?.(fence) !== true)
    const listed = Object.keys(NOT_RUN)
    expect(unchecked.map(({ text }) => firstLine(text)).filter((line) => !listed.includes(line))).toEqual([])
    const lines = fences.map(({ text }) => firstLine(text))
    expect(listed.filter((line) => !lines.includes(line))).toEqual([])
  })

  it.each(PAGES)('%s links only to pages and headings that are there', (page) => {
    const wrong = [...prose(page).matchAll(/\]\(([^)\s]+)\)/g)].filter(([, target = '']) => {
      if (/^\w+:/.test(target)) return false
      const [file = '', anchor] = target.split('#')
      const path = file === '' ? page : join(dirname(page), file)
      if (anchor === undefined) return !existsSync(join(ROOT, path))
      return !anchorsOf(path as Page).includes(anchor)
    })
    expect(wrong.map(([link]) => link)).toEqual([])
  })

  it('is linked from the README, and links back', () => {
    for (const page of PAGES.filter((one) => one !== 'README.md')) {
      expect(textOf('README.md')).toContain(`](${page})`)
      expect(textOf(page)).toContain('](../README.md)')
    }
  })

  it.each(PAGES)('%s names only files that are there', (page) => {
    const names = codeIn(prose(page)).filter(
      (code) =>
        /^(?:src|test|migrations|bench)(?:\/[\w./-]*)?$/.test(code) ||
        /^[\w./-]+\.(?:json|md|ts)$/.test(code),
    )
    const made = ['config.json', './config.json', 'bench/results/']
    expect(names.filter((name) => !made.includes(name) && !existsSync(join(ROOT, name)))).toEqual([])
  })

  it('names only scripts that the project has', () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const named = [...ALL_PROSE.matchAll(/`npm run ([\w:-]+)/g)].map(([, name = '']) => name)
    expect(named.length).toBeGreaterThan(5)
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(named))
  })

  it('shows only parts of a config that load', () => {
    const env = {
      DATABASE_URL: 'postgres://user:password@db/latchkey',
      LATCHKEY_LIVE_SECRET: 'whsec_0123456789abcdef',
      PAYMENTS_API_KEY: 'sk_live_0123456789abcdef',
      DISCORD_BOT_TOKEN: 'd',
      TELEGRAM_BOT_TOKEN: 't',
      LATCHKEY_WEBHOOK_SECRET: `whsec_${'A'.repeat(44)}`,
    }
    const readFile = (path: string) => {
      if (path.endsWith('/sandbox-key.txt')) return 'sk_sandbox_0123456789abcdef'
      return path.startsWith('/run/secrets/') ? `whsec_${path}` : readFileSync(path, 'utf8')
    }
    const parts = blocks('json').filter(({ outputOf }) => outputOf === null)
    expect(parts.length).toBeGreaterThan(3)
    for (const part of parts) {
      const path = writeConfig(JSON.stringify(configIn(part)))
      expect(loadConfig({ path, env, readFile }).config.path).toBe(path)
    }
  })
})

/** As GitHub makes them of headings. */
function anchorsOf(page: Page): readonly string[] {
  return [...prose(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

describe('the commands on the pages', () => {
  const program = new Command('latchkey')
  const context = { env: {}, folder: ROOT, now: () => 0, isTerminal: false, out: () => {}, err: () => {} }
  for (const register of createCommands({ openInput: () => Readable.from([]) })) register(program, context)

  /** The command that words begin with, and what else they say. */
  function find(words: readonly string[]): readonly [Command, string, readonly string[]] {
    let [command, name, rest] = [program, '', words]
    for (;;) {
      const next = command.commands.find((one) => one.name() === rest[0])
      if (next === undefined) return [command, name.trim(), rest]
      ;[command, name, rest] = [next, `${name} ${rest[0]}`, rest.slice(1)]
    }
  }

  it('are there, with their options', () => {
    const inExamples = blocks('sh').flatMap(({ text }) =>
      [...text.matchAll(/(?:^|[\s(])latchkey (.*)$/gm)].map(([, words = '']) => words.replace(/ [|>].*/, '')),
    )
    const inProse = codeIn(ALL_PROSE).flatMap((code) => /^(?:npx )?latchkey (.+)$/.exec(code)?.[1] ?? [])
    expect(inExamples.length + inProse.length).toBeGreaterThan(100)
    const wrong = [...inExamples, ...inProse].filter((line) => {
      const [command, name, rest] = find(line.split(' '))
      const options = rest.filter((word) => word.startsWith('--'))
      const known = ['--help', ...command.options.map(({ long }) => long ?? '')]
      // Of a group alone, only the sandbox's runs something.
      const isGroup = command.commands.length > 0 && name !== 'sandbox' && rest[0] !== '--help'
      return name === '' && line !== '--help' ? true : isGroup || options.some((one) => !known.includes(one))
    })
    expect(wrong).toEqual([])
  })

  it('are all in the table of commands', () => {
    const leaves = (command: Command, name: string): readonly string[] =>
      command.commands.length === 0
        ? [name]
        : command.commands.flatMap((one) => leaves(one, `${name} ${one.name()}`))
    const [, table = ''] = /^## Commands\n([\s\S]*?)^## /m.exec(prose('docs/operating.md')) ?? []
    const rows = codeIn(table).filter((code) => code.startsWith('latchkey ') && !code.includes('<'))
    expect(sorted(rows)).toEqual(
      sorted(leaves(program, 'latchkey').filter((name) => !name.endsWith(' help'))),
    )
  })
})

interface JsonSchema {
  readonly default?: unknown
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly additionalProperties?: JsonSchema | boolean
  readonly items?: JsonSchema
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
}

/** The name of each key that holds a value, as the pages write it, with its default. */
function keysOf(schema: JsonSchema, name: string): readonly (readonly [string, unknown])[] {
  const { properties = {}, additionalProperties, items, anyOf = [], oneOf = [] } = schema
  const inner = [
    ...Object.entries(properties).flatMap(([key, one]) => keysOf(one, name === '' ? key : `${name}.${key}`)),
    ...(typeof additionalProperties === 'object' ? keysOf(additionalProperties, `${name}.<>`) : []),
    ...(items === undefined ? [] : keysOf(items, `${name}[]`).filter(([key]) => key !== `${name}[]`)),
    ...[...anyOf, ...oneOf].flatMap((one) => keysOf(one, name).filter(([key]) => key !== name)),
  ]
  const isValue = inner.length === 0 || items !== undefined
  return [...(isValue ? [[name, schema.default] as const] : []), ...inner]
}

describe('docs/config.md', () => {
  const schema = JSON.parse(readFileSync(join(ROOT, 'config.schema.json'), 'utf8')) as JsonSchema
  const tables = textOf('docs/config.md').matchAll(/^\| Key \| Default \|.*\n.*\n((?:\|.*\n)+)/gm)
  const rows = new Map(
    [...tables].flatMap(([, lines = '']) =>
      [...lines.matchAll(/^\| `([^`]+)` \| ([^|]+) \|/gm)].map(
        ([, key = '', shown = '']) => [key.replaceAll(/<\w+>/g, '<>'), shown] as const,
      ),
    ),
  )

  it('has every key of the config', () => {
    const keys = sorted(keysOf(schema, '').map(([key]) => key))
    expect(keys).toEqual(expect.arrayContaining(['server.port', 'endpoints.<>.secrets[].notAfter']))
    expect(sorted(rows.keys())).toEqual(keys)
  })

  it('has the defaults of the schema', () => {
    const wrong = keysOf(schema, '').filter(([key, value]) => {
      if (value === undefined) return false
      return !rows.get(key)?.includes(`\`${typeof value === 'string' ? value : JSON.stringify(value)}\``)
    })
    expect(wrong).toEqual([])
  })
})

describe('docs/api.md', () => {
  const table = routeTable()

  it('has every route, with the scope that it asks for', () => {
    const routes = ROUTES.map(({ method, path, scope }) => `${method} ${path} ${scope ?? 'no key'}`)
    expect(routes.length).toBeGreaterThan(40)
    const named = table.map(({ method, path, scope }) => {
      return `${method} ${path} ${['none', 'signature'].includes(scope) ? 'no key' : scope}`
    })
    expect(sorted(named)).toEqual(sorted(routes))
  })

  const isOf = (pattern: string, path: string): boolean =>
    new RegExp(`^${pattern.replaceAll(/:\w+/g, '[^/]+')}$`).test(path)

  it('has every route that any page names', () => {
    const named = codeIn(ALL_PROSE).flatMap((code) => {
      const [, method, path] = /^(GET|POST|PUT|DELETE) (\/[^?\s]*)/.exec(code) ?? []
      return method === undefined || path === undefined ? [] : [{ method, path }]
    })
    expect(named.length).toBeGreaterThan(60)
    const isKnown = (one: (typeof named)[number]) =>
      [...table, ...OPERATIONS].some(({ method, path }) => method === one.method && isOf(path, one.path))
    expect(named.filter((one) => !isKnown(one))).toEqual([])
  })

  it('has, with the other pages, an example of every route but those that others call', () => {
    const calls = blocks('sh').flatMap(({ text }) =>
      text
        .replaceAll('\\\n', ' ')
        .split('\n')
        .flatMap((line) => /(?:\bcurl\b.*)$/.exec(line)?.[0] ?? [])
        .map((line) => ({
          method: / -X (\w+)/.exec(line)?.[1] ?? (/ (?:-d|--data-binary) /.test(line) ? 'POST' : 'GET'),
          path: /(?:\$URL|http:\/\/127\.0\.0\.1:4680)(\/[^\s"')?]*)/.exec(line)?.[1] ?? '',
        })),
    )
    const shown = table.filter(({ method, path }) =>
      calls.some((call) => call.method === method && isOf(path, call.path)),
    )
    const missing = table.filter((row) => !shown.includes(row)).map(({ method, path }) => `${method} ${path}`)
    expect(missing).toEqual([])
  })

  const ROWS = /^\| (?:(\d{3}) \| )?`(\w+)`(?: \| (\d{3}))? \| /gm
  const statuses = [...textOf('docs/api.md').matchAll(ROWS)].flatMap(([, before, code = '', after]) =>
    before === undefined && after === undefined ? [] : [[code, Number(before ?? after)] as const],
  )

  it('has the status of every code that the API answers', () => {
    const answered = ERROR_CODES.flatMap((code) => {
      const { status, expected } = problemOf(new LatchkeyError(code, ''), '')
      return expected ? [`${code} ${status}`] : []
    })
    expect(sorted(statuses.map(([code, status]) => `${code} ${status}`))).toEqual(
      sorted([...answered, 'internal_error 500']),
    )
  })

  it('leaves the codes that only commands give to docs/operating.md', () => {
    const told = new Set(codeIn(textOf('docs/operating.md')))
    const isOfApi = (code: ErrorCode) => statuses.some(([one]) => one === code)
    expect(ERROR_CODES.filter((code) => !isOfApi(code) && !told.has(code))).toEqual([])
  })
})

describe('docs/operating.md', () => {
  it('has every metric, and no other', () => {
    const names = [...sources.matchAll(/'(latchkey_[a-z_]+[a-z])'/g)].map(([, name = '']) => name)
    const told = [...ALL_PROSE.matchAll(/`(latchkey_[a-z_]+)/g)].map(([, name = '']) => name)
    expect(names.length).toBeGreaterThan(20)
    expect(sorted(told)).toEqual(sorted(names))
    expect(sorted(codeIn(textOf('docs/operating.md')).filter((code) => /^latchkey_/.test(code)))).toEqual(
      sorted(names),
    )
  })

  it('has every reason why an event waits or cannot be used', () => {
    const told = codeIn(textOf('docs/operating.md'))
    expect(told).toEqual(expect.arrayContaining([...Object.keys(HOLD_REASON_TEXT), ...QUARANTINE_REASONS]))
  })
})
