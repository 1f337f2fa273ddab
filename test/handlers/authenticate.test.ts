import request from 'supertest'
import { expect, it } from 'vitest'
import { apiKey, bearer, openFront } from './daemon-front.js'
import { exchange, head } from './raw-connection.js'

it.each([
  ['no header', {}],
  ['an empty one', { authorization: '' }],
  ['a scheme alone', { authorization: 'Bearer' }],
  ['another scheme', { authorization: 'Basic YXBwOg==' }],
  ['a wrong key', bearer('wrong')],
  ['the beginning of a key', bearer('ap')],
  ['a key and more', { authorization: 'Bearer app app' }],
  ['the hash of a key', bearer(apiKey('app').sha256)],
])('refuses %s in the same words, for a known and an unknown customer', async (_name, headers) => {
  const { url, questions } = await openFront()
  const known = await request(url).get('/entitlements/cus_gold').set(headers)
  const unknown = await request(url).get('/entitlements/cus_nobody').set(headers)
  expect(known.status).toBe(401)
  expect(known.headers['www-authenticate']).toBe('Bearer')
  expect(known.body.code).toBe('unauthorized')
  expect(unknown.text).toBe(known.text)
  expect(questions).toEqual([])
})

it('refuses everybody while no key is configured', async () => {
  const { url } = await openFront({ apiKeys: () => [] })
  expect((await request(url).get('/entitlements/cus_gold').set(bearer('app'))).status).toBe(401)
})

it('refuses a request that carries two keys', async () => {
  const { url } = await openFront()
  const once = head('GET /entitlements/cus_gold', { ...bearer('app'), connection: 'close' })
  const twice = once.replace('\r\n\r\n', '\r\nauthorization: Bearer app\r\n\r\n')
  expect(await exchange(url, twice)).toMatch(/^HTTP\/1\.1 401 /)
  expect(await exchange(url, once)).toMatch(/^HTTP\/1\.1 200 /)
})

it('takes the scheme in any letter case', async () => {
  const { url } = await openFront()
  const answer = await request(url).get('/entitlements/cus_gold').set({ authorization: 'bearer app' })
  expect(answer.status).toBe(200)
})

it('forbids what is outside the scopes of the key, even to an admin', async () => {
  const { url, questions } = await openFront({
    apiKeys: () => [apiKey('ops', { scopes: ['admin', 'metrics', 'write', 'events'] })],
  })
  const answer = await request(url).get('/entitlements/cus_gold').set(bearer('ops'))
  expect(answer.status).toBe(403)
  expect(answer.body.code).toBe('forbidden')
  expect(questions).toEqual([])
})

it('follows the keys as they change', async () => {
  let keys = [apiKey('app')]
  const { url } = await openFront({ apiKeys: () => keys })
  const status = async (key: string) => (await request(url).get('/entitlements/c').set(bearer(key))).status
  expect([await status('app'), await status('next')]).toEqual([200, 401])
  keys = [apiKey('next')]
  expect([await status('app'), await status('next')]).toEqual([401, 200])
})
