import { expect, it } from 'vitest'
import { ask, runDaemon, send } from './running-daemon.js'
import { storedEvents } from './stored.js'
import { CUSTOMER, PRODUCT, wireEvent } from './wire-events.js'

const MIB = 1024 * 1024
const EVENT = wireEvent('payment.authorized', { id: 'evt_large' })

/** As many as fit into the largest body that is taken, beside `rest`. */
function fill(unit: string, rest = ''): string {
  return unit.repeat(Math.floor((MIB - rest.length) / unit.length))
}

/** The event with one more member, as large as can be. */
function withMember(before: string, unit: string, after: string): string {
  const [start, end] = [`{${before}`, `${after},${EVENT.slice(1)}`]
  return start + fill(unit, start + end) + end
}

function nested(open: string, close: string, core: string): string {
  const depth = Math.floor((MIB - core.length) / (open.length + close.length))
  return open.repeat(depth) + core + close.repeat(depth)
}

const CREATED_AT = /"createdAt":"[^"]*"/

it.each<[name: string, body: string, disposition: string, reason: string | null]>([
  ['opening objects', fill('{"a":'), 'quarantined', 'nested_too_deep'],
  ['opening arrays', fill('['), 'quarantined', 'nested_too_deep'],
  ['objects within one another', nested('{"a":', '}', '0'), 'quarantined', 'nested_too_deep'],
  ['arrays within one another', nested('[', ']', ''), 'quarantined', 'nested_too_deep'],
  ['one key again and again', `{${fill('"a":1,', '{"a":1}')}"a":1}`, 'quarantined', 'duplicate_keys'],
  ['one empty key again and again', `{${fill('"":0,', '{"":0}')}"":0}`, 'quarantined', 'duplicate_keys'],
  ['an unfinished text of backslashes', `{"a":"${fill('\\', '{"a":"')}`, 'quarantined', 'not_json'],
  ['escaped backslashes', withMember('"a":"', '\\\\', '"'), 'applied', null],
  ['escaped quotes', withMember('"a":"', '\\"', '"'), 'applied', null],
  ['escaped brackets', withMember('"a":"', '\\u007b', '"'), 'applied', null],
  ['brackets and colons in a text', withMember('"a":"', '{[:', '"'), 'applied', null],
  ['empty objects', withMember('"a":[', '{},', '0]'), 'applied', null],
  ['digits', withMember('"a":', '9', ''), 'applied', null],
  ['blanks', withMember('', ' \n', '"a":0'), 'applied', null],
  ['an id', EVENT.replace('evt_large', fill('e', EVENT)), 'quarantined', 'id_invalid'],
  [
    'a time of zeros',
    EVENT.replace(CREATED_AT, `"createdAt":"${fill('0', EVENT)}"`),
    'quarantined',
    'created_at_invalid',
  ],
  ['a type of dots', EVENT.replace('payment.authorized', fill('a.', EVENT)), 'ignored', null],
  ['a customer', EVENT.replace(CUSTOMER, fill('c', EVENT)), 'quarantined', 'reference_id_invalid'],
])('1 MiB of %s is stored for what it is', async (_name, body, disposition, reason) => {
  const daemon = await runDaemon()
  const [large, good] = await Promise.all([
    send(daemon, body),
    send(daemon, wireEvent('payment.authorized', { payment: 'pay_good', customer: 'cus_good' })),
  ])
  expect([large.status, good.status]).toEqual([200, 200])
  expect(await large.json()).toMatchObject({ disposition })
  expect(await (await ask(daemon, `/entitlements/cus_good/${PRODUCT}`)).json()).toMatchObject({
    active: true,
  })

  const stored = (await storedEvents(daemon)).find(({ body: own }) => (own?.length ?? 0) > MIB / 2)
  expect(stored).toMatchObject({ disposition, reason })
  expect(stored?.body?.equals(Buffer.from(body))).toBe(true)
})
