import { expect, it } from 'vitest'
import type { PerformAct } from '../../src/people/acts.js'
import { answerTo, apiKey, bearer, openFront } from './daemon-front.js'

/** A front that links whatever it is asked to, and what it was asked. */
async function linkingFront() {
  const linked: Parameters<PerformAct>[0]['act'][] = []
  const { url } = await openFront({
    apiKeys: () => [apiKey('support', { scopes: ['write'] })],
    performAct: async (request) => {
      linked.push(request.act)
      return { eventId: 'man_1', access: answerTo({ ...request, at: null }) }
    },
  })
  const put = async (body: object) => {
    const init = { method: 'PUT', headers: bearer('support'), body: JSON.stringify(body) }
    const answer = await fetch(`${url}/customers/cus_1/identities`, init)
    return { status: answer.status, told: (await answer.json()) as Record<string, unknown> }
  }
  return { linked, put }
}

it.each([
  { communityId: '80351110224678912' },
  { communityId: '1100000000001000001' },
  { communityId: '18446744073709551615' },
  { messengerId: '7' },
  { messengerId: '4503599627370495' },
  { communityId: '80351110224678912', messengerId: '991234567890' },
])('links %j', async (accounts) => {
  const { linked, put } = await linkingFront()
  expect((await put(accounts)).status).toBe(200)
  expect(linked).toMatchObject([{ accounts }])
})

it.each([
  ['communityId', 'ada#0001', 'is not the id of a Discord account: a whole number above 0'],
  ['communityId', '803511102246789120000', 'is not the id of a Discord account: a whole number above 0'],
  ['communityId', ' 80351110224678912', 'is not the id of a Discord account: a whole number above 0'],
  ['communityId', '80351110224678912\n', 'is not the id of a Discord account: a whole number above 0'],
  ['messengerId', '@ada', 'is not the id of a Telegram account: a whole number above 0'],
  ['messengerId', '-1001234567890', 'is not the id of a Telegram account: a whole number above 0'],
  ['messengerId', '12.5', 'is not the id of a Telegram account: a whole number above 0'],
  ['messengerId', '0', 'is not the id of a Telegram account: a whole number above 0'],
])('says what the %s of an account is, of %j', async (name, value, message) => {
  const { linked, put } = await linkingFront()
  expect(await put({ [name]: value })).toMatchObject({
    status: 400,
    told: { code: 'invalid_request', errors: [{ path: name, message }] },
  })
  expect(linked).toEqual([])
})
