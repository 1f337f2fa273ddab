import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createErasedPeople } from '../../src/provider/known-people.js'
import { mentions } from '../../src/provider/mentions.js'
import { withholdErased } from '../../src/provider/withhold-erased.js'

const PEOPLE = createErasedPeople({
  ids: new Set(['cus_1']),
  words: [
    { kind: 'contact', word: 'ada@example.com' },
    { kind: 'contact', word: '80351110224678912' },
    { kind: 'contact', word: '7766554433' },
    { kind: 'contact', word: '4915755512345' },
    { kind: 'name', word: 'ada lovelace' },
    { kind: 'name', word: 'grace' },
    { kind: 'name', word: 'countess_1' },
  ],
  fingerprints: [],
})

/** What is left of a body, as JSON; `all` where nothing has to be left out. */
function leftOf(body: unknown, customerId: string | null = null): unknown {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const withheld = withholdErased(Buffer.from(text), customerId, PEOPLE)
  if (withheld === null) return 'all'
  return withheld.body === null ? 'nothing' : JSON.parse(withheld.body.toString())
}

describe('of a body that names somebody erased', () => {
  it.each([
    ['by a field of their id', { data: { customerId: 'cus_1' } }],
    ['by one in snake case', { data: { customer_id: 'cus_1' } }],
    ['by an object', { data: { customer: { id: 'cus_1', email: 'x' } } }],
    ['by an id in the place of one', { data: { customer: 'cus_1' } }],
    ['deep within', { data: { list: [{ payment: { customer: 'cus_1' } }] } }],
    ['as a customer', { data: { object: 'customer', id: 'cus_1' } }],
    ['as what a customer event is about', { type: 'customer.updated', data: { id: 'cus_1' } }],
    ['written with escapes', '{"data":{"customer\\u0049d":"cus\\u005f1"}}'],
  ])('%s, and nobody else, nothing is left', (_how, body) => {
    expect(leftOf(body)).toBe('nothing')
  })

  it.each([
    ['nobody', { data: { customer: null } }],
    ['somebody else', { data: { customer: 'cus_2', note: 'bob@example.com' } }],
    ['somebody else, and them only by id', { data: { customer: 'cus_2', note: 'a friend of cus_1' } }],
    ['somebody whose id begins the same', { data: { customer: 'cus_12' } }],
    ['no customer, and holds no more than a like word', { data: { to: 'mada@example.com' } }],
    ['nobody, and can not be read', '{"to": "cus_12"'],
  ])('all is left where it names %s', (_whom, body) => {
    expect(leftOf(body)).toBe('all')
  })

  it('nothing is left where it names nobody and is theirs, or is known by what leads to them alone', () => {
    expect(leftOf({ data: { id: 'pay_1' } }, 'cus_1')).toBe('nothing')
    expect(leftOf({ data: { id: 'pay_1' } }, 'cus_2')).toBe('all')
    expect(leftOf({ data: { receipt: 'sent to ADA@example.com.' } })).toBe('nothing')
    expect(leftOf({ data: { receipt: 'sent to ada\u0040example.com' } })).toBe('nothing')
    expect(leftOf({ data: { receipt: 'ada@example.com', id: 'pay_1' } }, 'cus_2')).toEqual({
      data: { id: 'pay_1' },
    })
  })

  it.each([
    ['cut off', '{"customer": "cus_1"'],
    ['with a member twice', '{"customer": "cus_2", "customer": "cus_1"}'],
    ['with the escapes of JSON', '{"customer": "\\u0063us_1"'],
    ['after a line break that is written as an escape', '{"note": "of\\ncus_1"'],
    ['with the escapes of addresses', 'to=ada%40example.com&id=5'],
    ['with both', '{"to": "\\u0061da%40example.com"'],
    ['by an account joined to letters', '{"customer": "id7766554433x"'],
    ['by an account joined to a word', 'tg_7766554433=1'],
    ['by a phone number in groups', '{"call": "+49 157 555 12345"'],
    ['by a phone number with the escapes of addresses', 'tel=%2B49%20157%20555%2012345'],
    ['in UTF-16', Buffer.from('{"customer": "cus_1"', 'utf16le')],
    ['in UTF-16 of the other order', Buffer.from('{"customer": "cus_1"', 'utf16le').swap16()],
    [
      'in UTF-16, cut off within a character',
      Buffer.from('\ufeff"ada@example.com" ', 'utf16le').subarray(0, -1),
    ],
  ])('nothing is left where it can not be read, and mentions them %s', (_how, body) => {
    expect(withholdErased(Buffer.from(body), null, PEOPLE)).toEqual({ why: 'erased', body: null })
  })

  it.each([
    ['a longer id', '{"customer": "\\u0063us_12"'],
    ['a longer address', 'to=mada%40example.com'],
    ['a longer id in UTF-16', Buffer.from('{"customer": "cus_12"', 'utf16le')],
    ['what is no escape', '{"customer": "\\u006'],
    ['half a percent escape', 'cus%5'],
    ['a longer number', '{"customer": "id77665544330x"'],
    ['a longer phone number', '{"call": "+49 157 555 123456"'],
  ])('all is left where it can not be read, and holds %s', (_what, body) => {
    expect(withholdErased(Buffer.from(body), null, PEOPLE)).toBeNull()
  })

  it('reads a mebibyte that can not be read, whatever it is made of', () => {
    for (const piece of [
      '\\u0063',
      '%63',
      'a@',
      '@',
      'a@b.c ',
      '1234567 ',
      '1 2',
      '1.(',
      '\0a',
      'cus_1',
      '+1',
      '. ',
    ]) {
      const body = Buffer.from(piece.repeat(Math.ceil((1 << 20) / piece.length)))
      expect(withholdErased(body, null, PEOPLE)).toBeNull()
    }
  })

  it('what is about others stays to the letter, and what is about them keeps ids and amounts', () => {
    const other = { id: 'pay_2', customerId: 'cus_2', customerEmail: 'b@example.com', tags: ['x', { y: 1 }] }
    const body = {
      id: 'evt_1',
      type: 'PAYMENT_SETTLED',
      data: {
        note: 'of the batch',
        payments: [
          {
            id: 'pay_1',
            price_cents: 5,
            customer: { id: 'cus_1', name: 'Ada' },
            tags: ['ada', { nick: 'Ada', id: 'tag_1' }],
            billing: { city: 'London', currency: 'GBP' },
            gift: { customerId: 'cus_2', note: 'for b' },
          },
          other,
        ],
      },
    }
    expect(leftOf(body)).toEqual({
      ...body,
      data: {
        note: 'of the batch',
        payments: [
          {
            id: 'pay_1',
            price_cents: 5,
            customer: { id: 'cus_1' },
            tags: [{ id: 'tag_1' }],
            billing: { currency: 'GBP' },
            gift: { customerId: 'cus_2', note: 'for b' },
          },
          other,
        ],
      },
    })
  })

  const row = { id: 'pay_2', customerId: 'cus_2', customerEmail: 'b@example.com' }

  it.each([
    [
      'a row that names nobody, and shows their address',
      { customerEmail: 'ADA@example.com', city: 'London' },
      {},
    ],
    [
      'one that shows it within',
      { customer: { email: 'ada@example.com' }, city: 'London' },
      { customer: {} },
    ],
    ['their account as a number', { customerMessengerId: 80351110224678912n, city: 'London' }, {}],
    ['their name', { customerName: 'Ada Lovelace', city: 'London' }, { city: 'London' }],
  ])('of %s no more is left than of a row that names them', (_what, shown, left) => {
    const text = JSON.stringify(
      { data: [row, { id: 'pay_1', customerId: null, priceCents: 5, ...shown }] },
      (_, v) => (typeof v === 'bigint' ? String(v) : v),
    )
    expect(leftOf(text)).toEqual({ data: [row, { id: 'pay_1', customerId: null, priceCents: 5, ...left }] })
  })

  it('of what others tell, each text goes that tells of them, and nothing else', () => {
    const kept = {
      period: 'grace period',
      plan: 'Maximum',
      like: 'mada@example.com',
      id2: '180351110224678912',
      friend: 'cus_1',
    }
    const metadata = {
      ...kept,
      invitedBy: 'ada@example.com',
      successUrl: 'https://example.com/?from=ada%40example.com',
      dedication: 'For Ada Lovelace, with love',
      nick: 'Grace',
      account: '80351110224678912',
      list: ['x', 'to ada@example.com', { nick: 'countess_1' }],
      'ada@example.com': true,
      'of ada@example.com': { note: 'x' },
      customerEmail: 'ada@example.com',
    }
    const data = { id: 'pay_2', customer: { id: 'cus_2', name: 'Bob', email: 'b@example.com' } }
    expect(leftOf({ id: 'evt_1', data: { ...data, metadata } })).toEqual({
      id: 'evt_1',
      data: { ...data, metadata: { ...kept, list: ['x', {}] } },
    })
  })

  it('an account or a phone number goes whatever it is joined to, and a longer number stays', () => {
    const kept = { order: '17766554433', k_77665544330: 'x', tel: '+49 157 555 12345 6', date: '2026-11-21' }
    const metadata = {
      ...kept,
      user: 'user_80351110224678912',
      after: '80351110224678912_x',
      within: 'id7766554433x',
      tg_7766554433: 'x',
      rate: '1.7766554433',
      call: 'on +49 157 555-12345.',
      dialled: '004915755512345',
      written: 'tel_0049 157 55512345',
      'of +49 (157) 555 12345': { note: 'x' },
    }
    const data = { id: 'pay_2', customer: { id: 'cus_2' } }
    expect(leftOf({ data: { ...data, metadata } })).toEqual({ data: { ...data, metadata: kept } })
  })

  it('another customer keeps what they tell of themselves, wherever they tell it', () => {
    const body = {
      data: {
        customer: { id: 'cus_2', email: 'ada@example.com', name: 'Ada Lovelace' },
        subscription: { id: 'sub_1', customerCommunityId: '80351110224678912' },
        externalRef: 'ada@example.com',
        metadata: { login: 'Ada@example.com' },
      },
    }
    expect(leftOf(body)).toBe('all')
    expect(leftOf({ data: { payment: { customerEmail: 'ada@example.com' } } }, 'cus_2')).toBe('all')
  })

  it('the data of a customer event is about the customer, though it names another within', () => {
    const body = {
      type: 'customer.updated',
      data: { id: 'cus_1', email: 'x', by: { customerId: 'cus_2', note: 'y' } },
    }
    expect(leftOf(body)).toEqual({
      type: 'customer.updated',
      data: { id: 'cus_1', by: { customerId: 'cus_2', note: 'y' } },
    })
  })

  it('no word of theirs is left, whatever the body holds', () => {
    const secret = 'SECRET'
    const { value } = fc.letrec<{ value: unknown; object: object }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom('x', 1, null, true),
        fc.array(tie('value'), { maxLength: 3 }),
        tie('object'),
      ),
      object: fc.dictionary(fc.constantFrom('a', 'b', 'payments', 'metadata'), tie('value'), { maxKeys: 3 }),
    }))
    const theirs = value.map((inner) => ({
      customerId: 'cus_1',
      email: secret,
      more: { note: secret, inner },
    }))
    fc.assert(
      fc.property(value, theirs, value, (before, own, after) => {
        const body = { data: { before, list: [own, { customerId: 'cus_2', email: 'kept' }], after } }
        const left = JSON.stringify(leftOf(body))
        expect(left).not.toContain(secret)
        expect(left).toContain('"email":"kept"')
      }),
    )
  })
})

describe('a word in a text', () => {
  it.each([
    ['to: cus_1', true],
    ['"cus_1"', true],
    ['CUS_1', true],
    ['cus_10 cus_1', true],
    ['cus_10', false],
    ['acus_1', false],
    ['x.cus_1', false],
    ['cus_1-b', false],
  ])('%j: found %s', (text, isFound) => {
    expect(mentions(text, ['cus_1'])).toBe(isFound)
  })
})
