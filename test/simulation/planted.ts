/*
 * Plants twelve bugs in a copy of the project, one by one, and says which seed finds each. By hand, since it takes a while:
 * node --import ./scripts/typescript.js test/simulation/planted.ts stream
 * The last word chooses those whose name holds it; without it, all are planted. PLANTED_SEEDS=40 gives up earlier.
 */

import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..', '..')
const COPIED = ['src', 'test', 'migrations', 'scripts', 'package.json', 'openapi.json', 'openapi.html']
const MOST_SEEDS = Number(process.env.PLANTED_SEEDS ?? 500)
const DAYS = '8'

interface Bug {
  readonly name: string
  readonly file: string
  /** What is right. It is there once. */
  readonly right: string
  readonly wrong: string
}

const BUGS: readonly Bug[] = [
  {
    name: 'commit: what comes about somebody who was erased is stored as it is',
    file: 'src/ingest/erased.ts',
    right: 'if (erased.size === 0 && acts.length === 0) return deliveries',
    wrong: 'if (acts.length === 0) return deliveries',
  },
  {
    name: 'settle: the end of access is stored, and not when it has to be looked at',
    file: 'src/ingest/settle.ts',
    right: 'return isChange(a, b) || a.since !== b.since || a.nextChangeAt !== b.nextChangeAt',
    wrong: 'return a.active !== b.active',
  },
  {
    name: 'settle: who is blocked is not looked at',
    file: 'src/ingest/settle.ts',
    right: "['manual.blocked', 'manual.unblocked', 'manual.erased']",
    wrong: "['manual.unblocked', 'manual.erased']",
  },
  {
    name: 'recompute: a policy is applied, and not put in force',
    file: 'src/recompute/apply.ts',
    right: 'if (!isDeepStrictEqual(inForce, policy)) await savePolicy(trx, policy)',
    wrong: '',
  },
  {
    name: 'sync: nobody remembers who gave a role',
    file: 'src/sync/membership.ts',
    right: "const begun = { ...membership, given: true, applied: 'unknown', appliedAt: null } as const",
    wrong: "const begun = { ...membership, applied: 'unknown', appliedAt: null } as const",
  },
  {
    name: 'sync: a call whose answer was lost counts as not made',
    file: 'src/sync/membership.ts',
    right: 'const base = step.undo === null || wasLetIn ? membership : { ...membership, ...step.undo }',
    wrong: "const base: Membership = { ...membership, applied: 'absent', given: false }",
  },
  {
    name: 'cache: a change drops no answer',
    file: 'src/client/cache.ts',
    right: '    kept.delete(customerId)\n    older.delete(customerId)\n  }\n\n  function keep(',
    wrong: '  }\n\n  function keep(',
  },
  {
    name: 'cache: an answer outlives its end',
    file: 'src/client/cache.ts',
    right: 'goodUntil: validUntil === null ? Infinity : sentAt + Date.parse(validUntil) - Date.parse(asOf),',
    wrong: 'goodUntil: validUntil === asOf ? sentAt : Infinity,',
  },
  {
    name: 'stream: clients at different places share a page',
    file: 'src/handlers/change-stream.ts',
    right: `\`\${environment} \${cursor}\`)`,
    wrong: 'environment)',
  },
  {
    name: 'stream: it goes on from now, wherever it was cut',
    file: 'src/handlers/change-stream.ts',
    right: 'after: lastEventId ?? cursor, mayRead',
    wrong: 'after: cursor ?? (lastEventId && null), mayRead',
  },
  {
    name: 'sync: removals over the bound are made at once',
    file: 'src/sync/bound.ts',
    right: 'return removals > atMost && removals > ((members + removed) * percent) / 100',
    wrong: 'return removals > 1_000 && removals > ((members + removed) * percent * atMost) / 100',
  },
  {
    name: 'sync: access in one environment opens the roles of the other',
    file: 'src/sync/desired.ts',
    right: 'for (const target of targets.filter((one) => one.environment === environment)) {',
    wrong: 'for (const target of targets) {',
  },
]

const folder = mkdtempSync(join(tmpdir(), 'latchkey-planted-'))
for (const name of COPIED) cpSync(join(ROOT, name), join(folder, name), { recursive: true })
symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
let missed = 0
for (const { name, file, right, wrong } of BUGS.filter((one) => one.name.includes(process.argv[2] ?? ''))) {
  const path = join(folder, file)
  const text = readFileSync(path, 'utf8')
  if (text.split(right).length !== 2) throw new Error(`${file} no longer has: ${right}`)
  writeFileSync(
    path,
    text.replace(right, () => wrong),
  )
  const found = firstFailure()
  writeFileSync(path, text)
  if (found === null) missed += 1
  process.stdout.write(`${name}\n  ${found ?? `not found in ${MOST_SEEDS} seeds`}\n`)
}
rmSync(folder, { recursive: true })
process.exitCode = missed === 0 ? 0 : 1

/** What the first seed that fails says. */
function firstFailure(): string | null {
  const { stdout } = spawnSync(
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      ...[
        '--import',
        join(folder, 'scripts', 'typescript.js'),
        join(folder, 'test', 'simulation', 'main.ts'),
      ],
      ...['--seeds', String(MOST_SEEDS), '--days', DAYS, '--until-failure'],
    ],
    { encoding: 'utf8', maxBuffer: 1e9 },
  )
  return /^seed \d+ failed: .*$/m.exec(stdout)?.[0] ?? null
}
