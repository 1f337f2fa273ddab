import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ROOT, runProgram, temporaryFolder } from '../world.js'

/** `SIMULATION_SEEDS=2000 SIMULATION_DAYS=60 npx vitest run test/simulation` plays more, and longer ones. */
const SEEDS = Number(process.env.SIMULATION_SEEDS ?? 100)
const DAYS = process.env.SIMULATION_DAYS ?? '1'

const simulate = (...args: readonly string[]) =>
  runProgram(
    [
      process.execPath,
      '--disable-warning=ExperimentalWarning',
      ...['--import', join(ROOT, 'scripts', 'typescript.js')],
      join(ROOT, 'test', 'simulation', 'main.ts'),
      ...args,
    ],
    { folder: temporaryFolder() },
  )

it(`keeps every promise in ${SEEDS} worlds of ${DAYS} days, each drawn from its seed`, {
  timeout: 3_600_000,
}, async () => {
  const { code, stdout, stderr } = await simulate(
    ...['--minutes', '60', '--jobs', '2', '--seeds', String(SEEDS), '--days', DAYS],
  )
  expect({ stdout, stderr }).toEqual({ stdout: `${SEEDS} seeds of ${DAYS} days, 0 failures\n`, stderr: '' })
  expect(code).toBe(0)
})

it('plays the same seed twice alike, whatever was played before', async () => {
  const [alone, after] = await Promise.all([
    simulate('--seed', '8', '--days', '3'),
    simulate('--seed', '7', '--seeds', '2', '--days', '3'),
  ])
  const hashOf = ({ stdout }: { readonly stdout: string }) =>
    /^seed 8: .* hash ([0-9a-f]{16})$/m.exec(stdout)?.[1]
  expect(hashOf(alone)).toMatch(/./)
  expect(hashOf(after)).toBe(hashOf(alone))
})

it('says what is wrong about its options, and plays nothing', async () => {
  const said: Readonly<Record<string, string>> = {
    '--sed 7': "there is no option '--sed' here",
    '--seed x': '--seed is a whole number from 1 on, not "x"',
    '--days -1': "Option '--days' argument is ambiguous",
    '--days 0': '--days is a number above 0, not "0"',
    '--days 1 --kinds act,sleep': '--kinds has "sleep", which is none of act, operate, ',
    '--days 1 --only 999': '--only asks for a step above ',
    '--minutes 1 --trace': "there is no option '--trace' here",
    '--postgres --seconds many': '--seconds is a number above 0, not "many"',
  }
  const exits = await Promise.all(Object.keys(said).map((args) => simulate(...args.split(' '))))
  expect(exits).toEqual(
    Object.values(said).map((text) =>
      expect.objectContaining({
        ...{ code: 2, stdout: '' },
        stderr: expect.toSatisfy(
          (stderr: string) =>
            stderr.startsWith(`error: ${text}`) && /^.+\nSee npm run simulate -- --help\n$/.test(stderr),
        ),
      }),
    ),
  )
})

it('tells of its options', async () => {
  const { code, stdout } = await simulate('--help')
  expect(code).toBe(0)
  for (const option of ['--seed', '--days', '--only', '--minutes', '--postgres'])
    expect(stdout).toContain(option)
})
