import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { WIRE_TYPES } from '../../src/provider/event-types.js'
import { fromEnv } from '../config/config-file.js'
import { CONFIG, configuredFolder, everyCommand, failureOf, ROOT, run, temporaryFolder } from '../world.js'

const helpOf = async (words: string) => {
  const { code, stdout, stderr } = await run('/nowhere', `${words} --help`)
  expect({ words, code, stderr }).toEqual({ words, code: 0, stderr: '' })
  return stdout
}

describe('help', () => {
  it('of every command ends with an example', async () => {
    const commands = everyCommand()
    expect(commands.length).toBeGreaterThan(30)
    for (const words of commands) {
      const help = await helpOf(words)
      expect(help).toContain('--json')
      expect(help).toMatch(new RegExp(`\\n\\nExample:\\n( {2}\\$ latchkey ${words}( .*)?\\n)+$`))
      if (/^(events|check|explain|grant|block|erase|replay)/.test(words))
        expect(help).toContain('--environment')
    }
  })

  it.each(['events', 'keys', 'endpoints', 'config', 'policy', 'sync'])(
    'of all that begins with %s has an example that works',
    async (group) => {
      const [, example = ''] = /\nExample:\n {2}\$ latchkey (.+)\n$/.exec(await helpOf(group)) ?? []
      expect(example).toMatch(new RegExp(`^${group} `))
      // It is one of those, with options that it has: nothing but the config is missing.
      expect((await failureOf('/nowhere', example)).error.code).toBe('config_missing')
    },
  )

  it('of trigger lists every type of both generations, in lines that fit a terminal', async () => {
    const help = await helpOf('trigger')
    for (const type of [...WIRE_TYPES.v3, ...WIRE_TYPES.v2]) {
      expect(help).toMatch(new RegExp(`[ ]${type.replaceAll('.', '\\.')}(,|\\n)`))
    }
    expect(help.split('\n').filter((line) => line.length > 80)).toEqual([])
  })

  it('of a command marks the options that it requires', async () => {
    for (const words of ['grant', 'block'])
      expect(await helpOf(words)).toMatch(
        /--reason <text> +the reason, stored with the change\s+\(required\)/,
      )
    expect(await helpOf('revoke')).not.toContain('(required)')
  })

  it('of a new key says when it expires unless told, that of a rotation too', async () => {
    expect(await helpOf('keys create')).toMatch(/\(default:\s+never\)/)
    expect(await helpOf('keys rotate')).toMatch(/\(default:\s+when\s+the\s+old\s+key\s+does\)/)
  })

  it('of rebuild says what it covers', async () => {
    expect(await helpOf('rebuild')).toMatch(/a rebuild\s+always covers both/)
  })

  it('is shown where no command is named', async () => {
    for (const words of ['', 'keys']) {
      const { code, stdout, stderr } = await run('/nowhere', words)
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toMatch(/^Usage: latchkey/)
    }
  })

  it('tells the version, which is that of the package', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    expect(await run('/nowhere', '--version')).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
  })
})

const NO_ID = 'an id'
const NO_TIME = 'an ISO 8601 time'
const BACKWARDS = '--from 2026-02-01 --to 2026-01-31'
const TRIGGER = 'trigger payment.authorized'

/** An empty word is written as `''`, a blank one as `' '`. */
const wordsIn = (line: string) =>
  [...line.matchAll(/'( ?)'|(\S+)/g)].map(([, blank, word]) => word ?? blank ?? '')

it.each([
  ['unlock', "unknown command 'unlock'\n"],
  ['help unlock', "unknown command 'unlock'\n"],
  ['unlock --help', "unknown command 'unlock'\n"],
  ['sync unlock -h', "unknown command 'unlock'\n"],
  ['sync help unlock', "unknown command 'unlock'\n"],
  ['serve --port 80', "unknown option '--port'\n"],
  ['config check --loud', "unknown option '--loud'\n"],
  ['doctor --deep', "unknown option '--deep'\n"],
  ['check', '--email, --ref, --payment, --subscription'],
  ['check cus_1 pro_1 --ref a', 'leave one out'],
  ['link cus_1 --ref a --community 1', 'leave one out'],
  ['check --ref a --email b', '--email and --ref'],
  ['events list --customer a --ref b', '--customer and --ref'],
  ['explain --payment pay_1', "missing required argument 'product'\n"],
  ['erase --payment pay_1', '--yes'],
  ['explain cus_1', "missing required argument 'product'\n"],
  ['events show', "missing required argument 'event'"],
  ["check ''", NO_ID],
  ["check cus_1 ''", NO_ID],
  ["check --email ''", "'--email <email>' argument '' is invalid. Expected an email address.\n"],
  ["explain '' pro_1", NO_ID],
  ["unblock ''", NO_ID],
  ["erase '' --yes", NO_ID],
  ["events export --customer ''", NO_ID],
  ["sync run --target ''", NO_ID],
  [`${TRIGGER} --customer ''`, NO_ID],
  [`${TRIGGER} --product ''`, NO_ID],
  [`${TRIGGER} --payment ''`, NO_ID],
  [`${TRIGGER} --subscription ''`, NO_ID],
  [`${TRIGGER} --rail cash`, 'Allowed choices are card, crypto.\n'],
  [`${TRIGGER} --count 0`, 'from 1 to 100000'],
  [`${TRIGGER} --url localhost`, 'an http address'],
  ['check cus_1 --at noon', NO_TIME],
  ['check cus_1 --at 2026-01-31T12:00', NO_TIME],
  ['check cus_1 --environment test', 'Allowed choices are live, sandbox.\n'],
  ['check cus_1 --url http://127.0.0.1:1', 'LATCHKEY_API_KEY'],
  ['rebuild --verify --url http://127.0.0.1:1', 'LATCHKEY_API_KEY'],
  ['events list --limit 0', 'from 1 to 1000.'],
  ['events list --limit 1001', 'from 1 to 1000.'],
  ['events list --before x', "'--before <place>' argument 'x'"],
  ['events list --disposition duplicate', 'Allowed choices are applied, ignored, held, quarantined.'],
  ['events list --from yesterday', NO_TIME],
  ['events body evt_1 --sha256 XYZ', 'SHA-256'],
  [`events list ${BACKWARDS}`, '--from is later than --to'],
  [`events export ${BACKWARDS}`, '--from is later than --to'],
  [`replay ${BACKWARDS}`, '--from is later than --to'],
  ['grant cus_1 pro_1', '--reason'],
  ["grant cus_1 pro_1 --reason ' '", "'--reason <text>' argument ' '"],
  ['grant cus_1 pro_1 --reason x --until yesterday', 'a duration, such as 30d'],
  ['block cus_1', '--reason'],
  ["block cus_1 --reason ' '", "'--reason <text>' argument ' '"],
  ['link cus_1', '--community'],
  ['link cus_1 --community ada', "'--community <id>' argument 'ada'"],
  ['link cus_1 --messenger -100', "'--messenger <id>' argument '-100'"],
  ['erase cus_1', '--yes'],
  ["erase cus_1 --yes --reason ' '", "'--reason <text>' argument ' '"],
  ['sync status --state odd', 'Allowed choices are settled, due, retrying, waiting, parked, unconfirmed.\n'],
  ['sync run --customer cus_1', '--retry'],
  ['sync replay', 'a message or --from <time>'],
  ['sync replay --webhook crm', '--from <time>'],
  ['sync replay msg_1_1 --from 2026-03-01', 'not both'],
  ['keys create --scope read --environment live', '--name'],
  ["keys create --name ' ' --scope read --environment live", 'name'],
  ['keys create --name app --environment live', '--scope'],
  ['keys create --name app --scope read', '--environment'],
  ['keys create --name app --scope all --environment live', 'Allowed choices are'],
  ['keys create --name app --scope read --environment live --expires 2020-01-01', 'a future time'],
  ['keys rotate app --grace soon', 'a duration such as 24h'],
  ['keys rotate other', 'the keys are app'],
  ['endpoints register --url https://a.example/webhooks/v3', 'add provider.live or provider.sandbox'],
  ['endpoints rotate other', 'configured: live'],
  ['endpoints rotate live', 'set endpoints.live.serviceId'],
  ['endpoints disable live', "in the service's dashboard"],
  ['endpoints update live', 'say what to change'],
  ['endpoints update live --events payment.failed --all-events', 'not both'],
  ['endpoints rotate live --overlap soon', 'a duration such as 24h'],
])('%s is wrong use, which exits 2, says so, and makes nothing', async (line, message) => {
  const folder = configuredFolder()
  const { code, stdout, stderr } = await run(folder, wordsIn(line))
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain(message)
  expect(stderr).toMatch(/^error: /)
  expect(stderr).not.toMatch(/^ +at /m)
  expect(readdirSync(folder)).toEqual(['config.json'])
})

describe('a config', () => {
  const leaky = 'whsec_leaky_0123456789'
  const live = { environment: 'live', secrets: [leaky, '', fromEnv('NOT_SET')] }
  const wrong = { ...CONFIG, endpoints: { live }, polices: {} }
  const places = ['endpoints.live.secrets[1]', 'endpoints.live.secrets[2]', 'polices']

  // That a secret is not there is a problem only of what needs all of them.
  it.each([
    [TRIGGER, places.toSpliced(1, 1)],
    ['check cus_1', places.toSpliced(1, 1)],
    ['config check', places],
  ])('that is wrong has %s exit 2, with every problem and no secret', async (words, problems) => {
    const folder = configuredFolder(wrong)
    const { code, stdout, stderr } = await run(folder, words)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    const [first, ...rest] = stderr.trimEnd().split('\n')
    expect(first).toBe(`error: the config file ${folder}/config.json has ${problems.length} problems`)
    expect(rest.map((line) => line.replace(/: .*/, '').trim()).sort()).toEqual(problems)
    expect(stderr).not.toContain(leaky)
    expect(await failureOf(folder, words)).toMatchObject({ code: 2, error: { code: 'config_invalid' } })
    expect(readdirSync(folder)).toEqual(['config.json'])
  })

  it.each([TRIGGER, 'check cus_1', 'config check', 'keys list'])(
    'that is missing has %s exit 2, and make none',
    async (words) => {
      const folder = temporaryFolder()
      const stderr = `error: there is no config file ${folder}/config.json\n`
      expect(await run(folder, words)).toEqual({ code: 2, stdout: '', stderr })
      expect(readdirSync(folder)).toEqual([])
    },
  )
})

it('wrong use is told in JSON if asked to', async () => {
  const { code, stderr } = await run('/nowhere', 'check --json')
  const error = {
    code: 'usage',
    message: expect.stringContaining("missing required argument 'customer'"),
    issues: [],
  }
  expect({ code, said: JSON.parse(stderr) }).toEqual({ code: 2, said: { error } })
})
