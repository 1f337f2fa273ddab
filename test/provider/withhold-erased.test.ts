import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { mentions } from '../../src/provider/mentions.js'
import { withholdErased } from '../../src/provider/withhold-erased.js'

const PEOPLE = {
  isErased: (id: string) => id === 'cus_1',
  knownBy: () => ['cus_1', 'ada@example.com'],
}

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
    ['somebody else', { data: { customer: 'cus_2', note: 'ada@example.com' } }],
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
    expect(leftOf({ data: { receipt: 'ada@example.com' } }, 'cus_2')).toBe('all')
  })

  it('nothing is left where it can not be read, and mentions them', () => {
    expect(leftOf('{"customer": "cus_1"')).toBe('nothing')
    expect(leftOf('{"customer": "cus_2", "customer": "cus_1"}')).toBe('nothing')
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
