import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { cli } from './run-cli.js'

describe('the command line', () => {
  it.each([
    ['serve'],
    ['trigger'],
    ['check'],
    ['explain'],
    ['grant'],
    ['revoke'],
    ['block'],
    ['unblock'],
    ['link'],
    ['policy', 'show'],
    ['policy', 'diff'],
    ['policy', 'apply'],
    ['events', 'list'],
    ['events', 'show'],
    ['events', 'body'],
    ['events', 'export'],
    ['replay'],
    ['rebuild'],
    ['import'],
    ['keys', 'create'],
    ['keys', 'list'],
    ['sync', 'status'],
    ['sync', 'plan'],
    ['sync', 'run'],
    ['sync', 'check'],
    ['sync', 'pause'],
    ['sync', 'resume'],
    ['backup'],
    ['restore'],
    ['config', 'check'],
    ['doctor'],
  ])('has help with an example for %s %s', async (...command) => {
    const words = command.filter((word) => typeof word === 'string')
    const { exitCode, out } = await cli([...words, '--help'])
    expect(exitCode).toBe(0)
    expect(out).toMatch(new RegExp(`\\nExample:\\n(  \\$ latchkey ${words.join(' ')} ?.*\\n)+$`))
    expect(out).toContain('--json')
  })

  it.each([['events'], ['keys'], ['config'], ['policy'], ['sync']])(
    'has help with an example for all that begins with %s',
    async (group) => {
      const { exitCode, out } = await cli([group, '--help'])
      expect(exitCode).toBe(0)
      const [, example = ''] = /\nExample:\n {2}\$ latchkey (.+)\n$/.exec(out) ?? []
      expect(example).toMatch(new RegExp(`^${group} `))
      // It is one of those, with options that it has: nothing but the config is missing.
      expect((await cli([...example.split(' '), '--json'])).err).toContain('"code":"config_missing"')
    },
  )

  it.each([
    [[], 'Usage: latchkey'],
    [['keys'], 'Usage: latchkey keys'],
    [['unlock'], "error: unknown command 'unlock'\n"],
    [['config', 'check', '--loud'], "error: unknown option '--loud'\n"],
    [['check'], "error: missing required argument 'customer'\n"],
    [['trigger', 'payment.authorized', '--rail', 'cash'], 'Allowed choices are card, crypto.\n'],
    [['trigger', 'payment.authorized', '--count', '0'], 'It must be 1 to 100000.\n'],
    [['trigger', 'payment.authorized', '--url', 'localhost'], 'It must be an http address.\n'],
    [['check', ''], 'It is not an id'],
    [['check', 'cus_1', ''], 'It is not an id'],
    [['explain', '', 'pro_1'], 'It is not an id'],
    [['explain', 'cus_1', ''], 'It is not an id'],
    ...['customer', 'product', 'payment', 'subscription'].map((option): [string[], string] => [
      ['trigger', 'payment.authorized', `--${option}`, ''],
      'It is not an id',
    ]),
    [['check', 'cus_1', '--at', 'noon'], 'Expected an ISO 8601 time, such as 2026-01-31T00:00:00Z.\n'],
    [
      ['check', 'cus_1', '--at', '2026-01-31T12:00'],
      'Expected an ISO 8601 time, such as 2026-01-31T00:00:00Z.\n',
    ],
    [
      ['grant', 'cus_1', 'pro_1', '--reason', 'case 17', '--until', 'yesterday'],
      'Expected an ISO 8601 time, such as 2026-01-31T00:00:00Z, or a duration, such as 30d.\n',
    ],
    [
      ['sync', 'status', '--state', 'odd'],
      'Allowed choices are settled, due, retrying, waiting, parked, unconfirmed.\n',
    ],
    [['check', 'cus_1', '--url', 'http://127.0.0.1:1'], '--url needs an API key'],
    [['replay', '--from', '2026-02-01', '--to', '2026-01-31'], '--from is later than --to'],
    [['sync', 'run', '--target', ''], 'It is not an id'],
    [['link', 'cus_1', '--community', 'ada'], '--community is not the id of a Discord account'],
    [['link', 'cus_1', '--messenger', '-100'], '--messenger is not the id of a Telegram account'],
    [['block', 'cus_1', '--reason', ' '], '--reason is empty'],
    [['check', 'cus_1', '--environment', 'test'], 'Allowed choices are live, sandbox.\n'],
  ])('exits 2 for the wrong use %j', async (args, message) => {
    const { exitCode, out, err } = await cli(args)
    expect({ exitCode, out }).toEqual({ exitCode: 2, out: '' })
    expect(err).toContain(message)
  })

  it('tells its version, which is that of the package', async () => {
    const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'))
    expect(await cli(['--version'])).toEqual({ exitCode: 0, out: `${version}\n`, err: '' })
  })

  it('tells of wrong use in JSON if asked to', async () => {
    const { exitCode, err } = await cli(['check', '--json'])
    expect(exitCode).toBe(2)
    expect(JSON.parse(err)).toEqual({
      error: { code: 'usage', message: "missing required argument 'customer'", issues: [] },
    })
  })
})
