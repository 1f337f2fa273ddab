import fc from 'fast-check'
import { expect, it } from 'vitest'
import { bearer, FREE_PORT, openFront, signed } from './daemon-front.js'
import { exchange } from './raw-connection.js'

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'BREW']
const PREFIXES = [
  '/',
  '/webhooks/',
  '/webhooks/v3',
  '/entitlements/',
  '/entitlements/a/',
  '/metrics',
  '*',
  'http://x/',
]
const HEADERS = [
  'authorization',
  'content-encoding',
  'content-length',
  'expect',
  'if-none-match',
  'transfer-encoding',
  'upgrade',
  'x-forwarded-for',
  'x-webhook-event',
  'x-webhook-signature',
  'x-webhook-timestamp',
]

/** Printable ASCII and raw high bytes: what a request line and a header value can hold. */
const text = fc
  .array(fc.oneof(fc.integer({ min: 0x21, max: 0x7e }), fc.integer({ min: 0x80, max: 0xff })), {
    maxLength: 40,
  })
  .map((codes) => String.fromCharCode(...codes))
const oddText = fc.oneof(
  text,
  fc.constantFrom('%', '%00', '%E0%A4%A', '..%2f', '?at=', '?at=1&at=2', '?environment=x', '#', '__proto__'),
)
const target = fc
  .tuple(fc.constantFrom(...PREFIXES), fc.array(oddText, { maxLength: 3 }))
  .map(([prefix, rest]) => prefix + rest.join(''))
const header = fc.tuple(
  fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...HEADERS) },
    { weight: 1, arbitrary: fc.constant('x-other') },
  ),
  oddText,
)

it('no path and no header ever makes a listener fail inside', async () => {
  const main = await openFront()
  const own = await openFront({
    addresses: { ...FREE_PORT, trustProxy: 0, webhooks: FREE_PORT, metrics: FREE_PORT },
  })
  const usual = Object.entries({ ...bearer('app'), ...signed('{}') })
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(main.url, main.url, own.url, own.webhooksUrl, own.metricsUrl),
      fc.constantFrom(...METHODS),
      target,
      fc.array(header, { maxLength: 4 }),
      async (url, method, path, odd) => {
        const oddNames = new Set(odd.map(([name]) => name))
        const headers = [
          ['host', 'front'],
          ['connection', 'close'],
          ...usual.filter(([name]) => !oddNames.has(name ?? '')),
          ...odd,
        ]
        const lines = headers.map(([name, value]) => `${name}: ${value}`)
        const bytes = Buffer.from(
          `${[`${method} ${path} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n{}`,
          'latin1',
        )
        const answer = await exchange(url, bytes)
        expect(answer).toMatch(/^HTTP\/1\.1 [1234]\d\d /)
        expect(answer).not.toContain('HTTP/1.1 500')
      },
    ),
    { numRuns: 300 },
  )
  expect([...main.logged, ...own.logged].filter(({ level }) => level === 50)).toEqual([])
})
