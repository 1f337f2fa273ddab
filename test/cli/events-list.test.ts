import { describe, expect, it } from 'vitest'
import { cli } from './run-cli.js'
import { configWith, events, idsIn, linesOf } from './stored-events.js'

describe('latchkey events list', () => {
  it('shows the newest first, a line each, in columns', async () => {
    const { exitCode, out, err } = await events(await configWith(), 'list')
    expect({ exitCode, err }).toEqual({ exitCode: 0, err: '' })
    const [broken, ...others] = linesOf(out)
    expect(broken).toMatch(
      /^2026-01-01T01:00:03\.000Z {2}unreadable {12}quarantined \(not_utf8\) {3}- {6}sha256:[0-9a-f]{64}$/,
    )
    expect(others).toEqual([
      '2026-01-01T01:00:02.000Z  payment.authorized    held (customer_unknown)  -      evt_3',
      '2026-01-01T01:00:01.000Z  subscription.created  applied                  cus_1  evt_2',
      '2026-01-01T01:00:00.000Z  payment.authorized    applied                  cus_1  evt_1',
    ])
  })

  it.each<[string, readonly string[]]>([
    ['--disposition held --endpoint v3', ['evt_3']],
    ['--customer cus_1 --type payment.authorized', ['evt_1']],
    ['--from 2026-01-01T01:00:01Z --to 2026-01-01T01:00:03Z', ['evt_3', 'evt_2']],
  ])('takes %s', async (filter, ids) => {
    expect(idsIn((await events(await configWith(), 'list', ...filter.split(' '))).out)).toEqual(ids)
  })

  it('says how to go on where there is more than it shows, whenever that was received', async () => {
    const config = await configWith()
    const all = idsIn((await events(config, 'list')).out)
    const { out, err } = await events(config, 'list', '--limit', '3')
    expect(idsIn(out)).toEqual(all.slice(0, 3))
    const [, place = ''] = /^note: there are older ones: go on with --before (\d+)\n$/.exec(err) ?? []
    expect(idsIn((await events(config, 'list', '--before', place)).out)).toEqual(all.slice(3))
    expect((await events(config, 'list', '--before', 'x')).exitCode).toBe(2)
  })

  it('answers that there is none as an answer', async () => {
    const { exitCode, out } = await events(await configWith(), 'list', '--environment', 'sandbox')
    expect({ exitCode, out }).toEqual({ exitCode: 0, out: 'no such event is stored\n' })
  })

  it('refuses an endpoint that there is not, and through which nothing came', async () => {
    const config = await configWith()
    const { exitCode, out, err } = await events(config, 'list', '--endpoint', 'liv')
    expect({ exitCode, out }).toEqual({ exitCode: 2, out: '' })
    expect(err).toBe(
      'error: The parameter "endpoint" is none of live, manual, and nothing came through it.\n',
    )
    const manual = await events(config, 'list', '--endpoint', 'manual')
    expect(manual).toMatchObject({ exitCode: 0, out: 'no such event is stored\n' })
    // It is in the config no more.
    expect(idsIn((await events(config, 'list', '--endpoint', 'legacy')).out)).toHaveLength(1)
  })

  it('answers in the form of the API if asked for JSON', async () => {
    const { out, err } = await events(await configWith(), 'list', '--json', '--limit', '3')
    expect(err).toBe('')
    expect(JSON.parse(out)).toMatchObject({
      hasMore: true,
      items: [
        { disposition: 'quarantined', reason: 'not_utf8', endpoint: 'legacy' },
        { id: 'evt_3', receivedAt: '2026-01-01T01:00:02.000Z' },
        { id: 'evt_2', source: { kind: 'subscription', id: 'sub_1' } },
      ],
    })
  })
})

const BACKWARDS = ['--from', '2026-02-01', '--to', '2026-01-31']

describe('latchkey events', () => {
  it.each([['list'], ['show'], ['body'], ['export']])('%s has help with an example', async (command) => {
    const { exitCode, out } = await cli(['events', command, '--help'])
    expect(exitCode).toBe(0)
    expect(out).toMatch(new RegExp(`\\nExample:\\n(  \\$ latchkey events ${command} ?.*\\n)+$`))
    expect(out).toContain('--json')
    expect(out).toContain('--environment')
  })

  it.each([
    [['list', '--limit', '0'], 'It must be 1 to 1000.'],
    [['list', '--limit', '1001'], 'It must be 1 to 1000.'],
    [['list', '--disposition', 'duplicate'], 'Allowed choices are applied, ignored, held, quarantined.'],
    [['list', '--from', 'yesterday'], 'Expected an ISO 8601 time'],
    [['list', ...BACKWARDS], '--from is later than --to'],
    [['export', ...BACKWARDS], '--from is later than --to'],
    [['export', '--customer', ''], 'It is not an id'],
    [['show'], "missing required argument 'event'"],
    [['body', 'evt_1', '--sha256', 'XYZ'], 'It is not a SHA-256'],
  ])('exits 2 for the wrong use %j', async (args, message) => {
    const { exitCode, out, err } = await cli(['events', ...args])
    expect({ exitCode, out }).toEqual({ exitCode: 2, out: '' })
    expect(err).toContain(message)
  })
})
