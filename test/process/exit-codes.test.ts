import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { fromEnv } from '../config/config-file.js'
import {
  freePort,
  latchkey,
  type ProgramExit,
  type ProgramOptions,
  runProgram,
  temporaryFolder,
} from '../setup/program.js'
import { runHere } from './in-process.js'
import { CONFIG, configuredFolder } from './served.js'

const LEAKY = 'whsec_leaky_0123456789'

/** Three problems, next to a secret that is right. */
const WRONG_CONFIG = {
  ...CONFIG,
  endpoints: { live: { environment: 'live', secrets: [LEAKY, '', fromEnv('NOT_SET')] } },
  polices: {},
}
const PROBLEMS = ['endpoints.live.secrets[1]', 'endpoints.live.secrets[2]', 'polices']

const argsOf = (words: string): string[] => words.split(' ').filter((word) => word !== '')

/** What the built program did with these words in a folder, and how it ended. */
function run(words: string, options: ProgramOptions): Promise<ProgramExit> {
  return runProgram(latchkey(...argsOf(words)), options)
}

/** The same without a process of its own, for what differs in the words alone. */
function here(words: string, folder: string): Promise<ProgramExit> {
  return runHere(folder, argsOf(words))
}

/** The help of every command that does something, by its words, found as a person would find it. */
async function everyHelp(folder: string, group = ''): Promise<[words: string, help: ProgramExit][]> {
  const help = await here(`${group} --help`, folder)
  const [, list = ''] = help.stdout.split('Commands:\n')
  const names = [...list.matchAll(/^ {2}([a-z]+)/gm)].map(([, name = '']) => name)
  if (names.length === 0) return [[group, help]]
  const own = names.filter((name) => name !== 'help').map((name) => `${group} ${name}`.trim())
  return (await Promise.all(own.map((words) => everyHelp(folder, words)))).flat()
}

describe('every command', () => {
  it('has help that ends with an example, and exits 0', async () => {
    const folder = temporaryFolder()
    const helps = await everyHelp(folder)
    expect(helps.map(([words]) => words)).toEqual(
      expect.arrayContaining(['serve', 'trigger', 'check', 'keys create', 'keys list', 'config check']),
    )
    for (const [words, { code, stdout, stderr }] of helps) {
      expect({ words, code, stderr }).toEqual({ words, code: 0, stderr: '' })
      expect(stdout).toContain('--json')
      expect(stdout).toMatch(new RegExp(`\\n\\nExample:\\n( {2}\\$ latchkey ${words}.*\\n)+$`))
    }
    expect(readdirSync(folder)).toEqual([])
  })

  // That a secret is not there is a problem only of what needs all of them.
  const WITHOUT_THE_UNSET = PROBLEMS.filter((path) => path !== 'endpoints.live.secrets[2]')
  it.each([
    ['serve', (words: string, folder: string) => run(words, { folder }), PROBLEMS],
    ['trigger payment.authorized', here, WITHOUT_THE_UNSET],
    ['check cus_1', here, WITHOUT_THE_UNSET],
    ['config check', here, PROBLEMS],
  ])('%s exits 2 on a wrong config, with every problem and no secret', async (words, runIn, problems) => {
    const folder = configuredFolder(WRONG_CONFIG)
    const { code, stdout, stderr } = await runIn(words, folder)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    const [first, ...rest] = stderr.trimEnd().split('\n')
    expect(first).toBe(`error: the config file ${folder}/config.json has ${problems.length} problems`)
    expect(rest.map((line) => line.replace(/: .*/, '').trim()).sort()).toEqual(problems)
    expect(stderr).not.toContain(LEAKY)
    expect(readdirSync(folder)).toEqual(['config.json'])
  })

  it.each(['trigger payment.authorized', 'check cus_1'])(
    '%s exits 2 where there is no config, and makes none',
    async (words) => {
      const folder = temporaryFolder()
      expect(await here(words, folder)).toEqual({
        code: 2,
        stdout: '',
        stderr: `error: there is no config file ${folder}/config.json\n`,
      })
      expect(readdirSync(folder)).toEqual([])
    },
  )
})

describe('wrong use', () => {
  it.each([
    ['unlock', "unknown command 'unlock'"],
    ['serve --port 80', "unknown option '--port'"],
    ['check', "missing required argument 'customer'"],
    ['check cus_1 --at noon', 'an ISO 8601 time'],
    ['trigger payment.exploded --live', 'payment.exploded'],
    ['trigger payment.authorized --endpoint live', 'say --live too'],
    ['rebuild --verify --url http://127.0.0.1:1', '--url needs an API key'],
    ['keys create --name app --scope all --environment live', 'Allowed choices are'],
  ])('%j exits 2 and says in words what is wrong', async (words, message) => {
    const { code, stdout, stderr } = await here(words, configuredFolder())
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(message)
    expect(stderr).toMatch(/^error: /)
    expect(stderr).not.toMatch(/^ +at /m)
  })

  it.each(['', 'keys'])('%j exits 2 and shows how it is used', async (words) => {
    const { code, stdout, stderr } = await here(words, temporaryFolder())
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/^Usage: latchkey/)
  })
})

describe('with --json', () => {
  it('a wrong config is told as an object with every problem', async () => {
    const { code, stderr } = await here('config check --json', configuredFolder(WRONG_CONFIG))
    const { error } = JSON.parse(stderr)
    expect({ code, errorCode: error.code }).toEqual({ code: 2, errorCode: 'config_invalid' })
    expect(error.issues.map(({ path }: { path: string }) => path).sort()).toEqual(PROBLEMS)
  })

  it.each([
    ['check --json', 2, 'usage'],
    ['check cus_1 --config missing.json --json', 2, 'config_missing'],
    ['check cus_1 --json', 1, 'store_missing'],
  ])('%j exits with a code that scripts can tell', async (words, exitCode, errorCode) => {
    const { code, stdout, stderr } = await run(words, { folder: configuredFolder() })
    expect({ code, stdout }).toEqual({ code: exitCode, stdout: '' })
    expect(JSON.parse(stderr)).toEqual({
      error: { code: errorCode, message: expect.any(String), issues: [] },
    })
  })

  it('a trigger exits 1 where no daemon answers', async () => {
    const env = { LATCHKEY_PORT: String(await freePort()) }
    const { code, stdout, stderr } = await run('trigger payment.authorized --live --json', {
      folder: configuredFolder(),
      env,
    })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'daemon_unreachable' } })
  })
})
