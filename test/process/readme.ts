import { spawn } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { ROOT, SHARED_ENV, temporaryFolder } from '../world.js'

/** In the order in which they are read, and their examples are run. */
export const PAGES = [
  'README.md',
  'docs/config.md',
  'docs/api.md',
  'docs/client.md',
  'docs/policy.md',
  'docs/tunnels.md',
  'docs/deploy.md',
  'docs/embedding.md',
  'docs/upgrading.md',
  'docs/operating.md',
  'docs/console.md',
  'docs/backfill.md',
  'docs/sandbox.md',
  'docs/sandbox-reference.md',
  'docs/data-protection.md',
  'docs/roles-and-groups.md',
  'docs/webhooks.md',
  'docs/postgres.md',
  'docs/scaling.md',
  'docs/architecture.md',
] as const
export type Page = (typeof PAGES)[number]

const TEXTS = new Map(PAGES.map((page) => [page, readFileSync(join(ROOT, page), 'utf8')]))

export function textOf(page: Page): string {
  return TEXTS.get(page) ?? ''
}

/** A fenced block, without the indentation that a list gives it. */
export interface Fence {
  readonly page: Page
  readonly language: string
  readonly text: string
  /** The commands whose output it shows: those of the block right before it; null: it shows none. */
  readonly outputOf: string | null
}

export function fencesOf(page: Page): readonly Fence[] {
  const text = textOf(page)
  let before = { end: -1, language: '', text: '' }
  return [...text.matchAll(/^( *)```(\w*)\n([\s\S]*?)^\1```$/gm)].map((match) => {
    const [whole, indent = '', language = '', inner = ''] = match
    const own = inner.replaceAll(new RegExp(`^${indent}`, 'gm'), '').trimEnd()
    const isNext = before.language === 'sh' && text.slice(before.end, match.index).trim() === ''
    const outputOf = isNext && language !== 'sh' ? before.text : null
    before = { end: match.index + whole.length, language, text: own }
    return { page, language, text: own, outputOf }
  })
}

/** The fenced blocks of one language, in order, of one page or of all. */
export function blocks(language: string, pages: readonly Page[] = PAGES): readonly Fence[] {
  return pages.flatMap(fencesOf).filter((fence) => fence.language === language)
}

/** What no example test can run, or compare, by its first line, and why. */
export const NOT_RUN: Readonly<Record<string, string>> = {
  'npm ci && npm test': 'it is the test run itself, which .ci/run begins in these words',
  'curl -fsS -H "$AUTH" -X POST $URL/stop':
    'it would stop the daemon that the next examples ask; test/process/control.test.ts stops one',
  'curl -fsSN -H "$AUTH" "$URL/changes/stream?cursor=8d1f0c2a97b3.1"':
    'it never ends, and knows no such cursor; test/daemon/change-stream.test.ts reads streams',
  'npm ci --omit=dev': 'test/process/install.test.ts runs it',
  'npm pack --pack-destination /tmp': 'test/package.test.ts packs the package, and runs what comes next',
  'npm install /tmp/latchkey-1.1.0.tgz':
    'test/package.test.ts runs the same commands with the package as it is packed',
  'latchkey endpoints register --url https://hooks.example.com/webhooks/v3':
    'it asks the payments service; test/cli/endpoints.test.ts asks a sandbox',
  'cloudflared tunnel --url http://127.0.0.1:4681': 'it opens this machine to the internet',
  'ngrok http 4681': 'it opens this machine to the internet',
  'tailscale funnel 4681': 'it opens this machine to the internet',
  'ssh -R 4681:127.0.0.1:4681 you@a.server.of.yours': 'it opens this machine to the internet',
  'npm explore better-sqlite3 -- npx node-gyp rebuild --release --force_build=1':
    'it compiles SQLite for a minute, with a compiler that a machine need not have',
  "latchkey migrate --to '${env:DATABASE_URL}'":
    'it needs a PostgreSQL server; test/postgres/move.test.ts moves a store',
  'OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 OTEL_SERVICE_NAME=latchkey latchkey serve':
    'it would start a second daemon; test/process/traces.test.ts starts one beside a collector',
  'BACKFILL=$(curl -fsS -H "$AUTH" -H "Content-Type: application/json" "$URL/backfills?environment=live" \\':
    'it needs an account at the payments service; test/backfill/walk.test.ts runs backfills of a sandbox',
  'latchkey backfill --dry-run':
    'it needs an account at the payments service; test/process/backfill-year.test.ts runs it beside a sandbox',
  'createuser --pwprompt latchkey': 'it asks for a password, on the machine of a server',
  'echo "POSTGRES_PASSWORD=$(openssl rand -hex 24)" >> deploy/.env':
    'it starts containers, for which a machine need not have an engine',
  'sudo useradd --system --user-group --home-dir /var/lib/latchkey --shell /usr/sbin/nologin latchkey':
    'it changes the machine, as root',
  'sudo --user=latchkey latchkey doctor --config /var/lib/latchkey/config.json':
    'it needs the user that the example before makes; the next page runs latchkey doctor',
  'docker build --tag=latchkey .': 'it starts a container, for which a machine need not have an engine',
  'payments service          your app, operators, commands': 'a drawing',
}

export const firstLine = (text: string): string => text.split('\n')[0] ?? ''

/** What output has to look like: `…` is anything within a line, and on a line of its own any lines. */
export function patternOf(shown: string): RegExp {
  const escaped = shown.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`^${escaped.replaceAll(/^…$/gm, '[\\s\\S]*?').replaceAll('…', '[^\\n]*')}$`)
}

/** The names in an object, and in the first item of a list: what a reader may rely on in an answer. */
export function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(shapeOf)
  if (typeof value !== 'object' || value === null) return '…'
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, shapeOf(inner)]))
}

/** A part of a config as a page shows it, with its braces. */
export function configIn({ text }: Fence): Readonly<Record<string, unknown>> {
  return JSON.parse(text.startsWith('{') ? text : `{${text}}`) as Readonly<Record<string, unknown>>
}

const CHECKED_OUT = [
  'package.json',
  'tsconfig.json',
  'scripts',
  'bench',
  'bin',
  'src',
  'migrations',
  'config.schema.json',
  'openapi.json',
  'openapi.html',
]

/** A checkout after `npm ci`: with its dependencies, and built. */
export function installedCheckout(): string {
  const folder = temporaryFolder()
  for (const name of [...CHECKED_OUT, 'dist']) {
    cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/** A terminal of a reader: variables that one example sets are there for the next. */
export interface Shell {
  /** Runs commands, and answers with their standard output; rejects if one of them fails. */
  run(script: string): Promise<string>
}

/** Jobs run one at a time: a request that comes while one ends is made once more. */
const CURL_CONFIG = 'retry = 5\nretry-all-errors\n'

function writeProgram(file: string, commands: string): void {
  writeFileSync(file, `#!/bin/sh\n${commands}\n`)
  chmodSync(file, 0o755)
}

/**
 * A POSIX shell in a folder, where `latchkey` is the built program.
 * @param withNpx whether `npx latchkey` finds it as npm would, which takes a second each time
 */
export function openShell(folder: string, env: Readonly<Record<string, string>>, withNpx = false): Shell {
  const home = temporaryFolder()
  const bin = join(home, 'bin')
  mkdirSync(bin)
  writeFileSync(join(home, '.curlrc'), CURL_CONFIG)
  const program = `'${process.execPath}' '${join(ROOT, 'bin', 'latchkey.js')}'`
  // Another sandbox may run on this machine.
  const onItsPort = 'test "$1" = sandbox && set -- "$@" --port "$SANDBOX_PORT"'
  writeProgram(join(bin, 'latchkey'), `${onItsPort}\nexec ${program} "$@"`)
  if (!withNpx) writeProgram(join(bin, 'npx'), `shift\n${onItsPort}\nexec ${program} "$@"`)
  const child = spawn('sh', [], {
    cwd: folder,
    env: { ...SHARED_ENV, ...env, HOME: home, PATH: `${bin}:${process.env.PATH}` },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let [stdout, stderr] = ['', '']
  let count = 0
  child.stdout.setEncoding('utf8')
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  return {
    run: (script) =>
      new Promise((resolve, reject) => {
        count += 1
        const file = join(home, `example-${count}.sh`)
        const end = `\n--end of example ${count}--\n`
        writeFileSync(file, `set -e\n${script}\n`)
        stdout = ''
        stderr = ''
        const failed = (code: number | null): void =>
          reject(new Error(`these commands failed with ${code}:\n${script}\n${stdout}${stderr}`))
        const look = (text: string): void => {
          stdout += text
          if (!stdout.endsWith(end)) return
          child.stdout.off('data', look)
          child.off('close', failed)
          resolve(stdout.slice(0, -end.length))
        }
        child.stdout.on('data', look)
        child.once('close', failed)
        // Nothing that an example runs may read the commands that come after it.
        child.stdin.write(`. '${file}' < /dev/null\nprintf '${end.replaceAll('\n', '\\n')}'\n`)
      }),
  }
}

/** A row of the table of every route. */
export interface RouteRow {
  readonly method: string
  readonly path: string
  /** A scope of a key, or how else it is proved. */
  readonly scope: string
  readonly needsBoth: boolean
}

const ROUTE_ROW = /^\| `([A-Z]+) (\/[^`]*)` \| `?(\w+)`?(, both)? \|/gm

export function routeTable(): readonly RouteRow[] {
  return [...textOf('docs/api.md').matchAll(ROUTE_ROW)].map(
    ([, method = '', path = '', scope = '', both]) => ({
      method,
      path,
      scope,
      needsBoth: both !== undefined,
    }),
  )
}
