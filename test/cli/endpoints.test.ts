import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { loadConfig } from '../../src/config/load.js'
import { startConfigured } from '../../src/daemon/configured.js'
import { endpoint } from '../config/config-file.js'
import { type Odd, oddService, ok, refusal } from '../payments-api/odd-service.js'
import { createPayment, delivered, KEY, type Service, startService } from '../sandbox/service.js'
import { answerOf, configuredFolder, failureOf, rewriteConfig, run } from '../world.js'
import {
  apiOf,
  endpointsIn,
  NOW,
  REGISTER,
  recordOf,
  registered,
  secretsIn,
  textIn,
  URL_HERE,
} from './registered.js'

const now = () => NOW

/** The endpoints that the service tells of a new customer. */
async function told(service: Service): Promise<readonly string[]> {
  await createPayment(service, { card: { tokenizedInstrument: 'tok_good' } })
  await delivered(service)
  const { items } = await service.data('GET /sandbox/deliveries?limit=100')
  return [...new Set<string>(items.map((one: { endpoint: string }) => one.endpoint))]
}

/** Stands between a command and the sandbox. `after` is called once the sandbox has done a POST. */
async function between(service: Service) {
  const on = { after: (_body: string): 'answer' | 'hang up' => 'answer' }
  const server = createServer(async (req, res) => {
    const parts: Buffer[] = []
    for await (const part of req) parts.push(part as Buffer)
    const headers = Object.fromEntries(
      ['x-service-api-key', 'content-type', 'idempotency-key'].flatMap((name) =>
        req.headers[name] === undefined ? [] : [[name, String(req.headers[name])]],
      ),
    )
    const answer = await fetch(`${service.url}${req.url}`, {
      method: req.method ?? 'GET',
      headers,
      ...(parts.length > 0 && { body: Buffer.concat(parts) }),
    })
    const body = await answer.text()
    if (req.method === 'POST' && answer.ok && on.after(body) === 'hang up') return void res.destroy()
    res.writeHead(answer.status, { 'content-type': 'application/json' }).end(body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return { on, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

describe('latchkey endpoints register', () => {
  it('registers the endpoint, keeps its secret in a file of its own, and adds both to the config', async () => {
    const service = await startService()
    const before = `{\r\n\t"log": { "level":  "warn" },\r\n\t"provider": ${JSON.stringify(apiOf(service.url).provider)}\r\n}\r\n`
    const folder = configuredFolder(before)
    const { code, stdout, stderr } = await run(folder, REGISTER)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(textIn(folder).startsWith(before.slice(0, -3).trimEnd())).toBe(true)
    expect(textIn(folder)).not.toMatch(/[^\r]\n/)

    const { serviceId, secrets, ...entry } = endpointsIn(folder).sandbox
    expect(entry).toEqual({ environment: 'sandbox' })
    const [, name = ''] = /^\$\{file:\.\/data\/(webhook-sandbox-[0-9a-f]{8}\.txt)\}$/.exec(secrets[0]) ?? []
    const file = join(folder, 'data', name)
    expect(readdirSync(join(folder, 'data'))).toEqual([name])
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const secret = readFileSync(file, 'utf8').trimEnd()
    expect(secret).toMatch(/^whsec_/)
    expect(stdout).toBe(
      `Registered the sandbox endpoint sandbox at the payments service as ${serviceId}: ${URL_HERE}\n` +
        `Its secret is in ${file}.\n` +
        `Added to ${folder}/config.json. No daemon is running here: this takes effect at the next start.\n`,
    )
    expect(secretsIn(folder)).toEqual([{ secret, notAfter: null }])
    expect(await recordOf(service, serviceId)).toMatchObject({
      url: URL_HERE,
      enabledEvents: [],
      isActive: true,
    })
  })

  it('registers for some types of events, and says which of those it leaves out decide about access', async () => {
    const service = await startService()
    const folder = configuredFolder(apiOf(service.url))
    const words = `${REGISTER} --json --events payment.succeeded payment.failed payment.failed`
    const { code, stdout, stderr } = await run(folder, words)
    expect(code).toBe(0)
    expect(stderr).toMatch(
      /^note: sandbox is not sent payment\.authorized, .*subscription\.expired, so access may be wrong, unless another endpoint is: `latchkey endpoints update sandbox --all-events`\n$/,
    )
    expect(stderr).not.toMatch(/payment\.(succeeded|failed)|payout|customer/)
    const { serviceId } = JSON.parse(stdout)
    expect((await recordOf(service, serviceId)).enabledEvents).toEqual([
      'payment.succeeded',
      'payment.failed',
    ])
  })

  it.each([
    ['http://hooks.example.com/webhooks/sandbox', 'must be an https address'],
    ['ftp://127.0.0.1/webhooks/sandbox', 'must be an https address'],
    ['hooks', 'must be an https address'],
    ['https://u:p@hooks.example.com/webhooks/sandbox', 'must not have a user name'],
    ['https://hooks.example.com/webhooks/sandbox?a=1', 'a query'],
    ['https://hooks.example.com', 'of sandbox-2: https://hooks.example.com/webhooks/sandbox-2'],
    ['https://hooks.example.com/in/webhooks', 'https://hooks.example.com/in/webhooks/sandbox-2'],
    ['https://hooks.example.com/webhooks/a --name b', 'of b: https://hooks.example.com/webhooks/b'],
    ['https://hooks.example.com/webhooks/A --name A', '--name must be 1 to 64'],
    ['https://hooks.example.com/webhooks/sandbox', 'an endpoint named sandbox is already configured'],
    ['https://hooks.example.com/webhooks/a --events payment.gone', 'Allowed choices are payment.authorized'],
    ['https://hooks.example.com/webhooks/a --environment live', 'provider.live'],
  ])('refuses --url %s before anything is asked: %s', async (words, message) => {
    const config = {
      endpoints: { sandbox: endpoint('sandbox', 'whsec_0123456789abcdef') },
      ...apiOf('http://127.0.0.1:1'),
    }
    const folder = configuredFolder(config)
    const failed = await failureOf(folder, `endpoints register --url ${words}`)
    expect(failed.code).toBe(2)
    expect(failed.error.message).toContain(message)
    expect(readdirSync(folder)).toEqual(['config.json'])
  })

  it('needs --environment where both are configured, and takes http in the sandbox alone', async () => {
    const { provider } = apiOf('http://127.0.0.1:1')
    const live = { baseUrl: 'http://127.0.0.1:1', apiKey: 'sk_live_0123456789' }
    const folder = configuredFolder({ provider: { ...provider, live } })
    expect(await failureOf(folder, REGISTER)).toMatchObject({
      code: 2,
      error: { message: expect.stringContaining('choose one with --environment') },
    })
    expect(await failureOf(folder, `${REGISTER} --environment live`)).toMatchObject({
      code: 2,
      error: { message: expect.stringContaining('only in the sandbox') },
    })
  })

  it('registers a live one with the live key, under the name at the end of its address', async () => {
    const address = 'https://hooks.example.com/in/webhooks/v3'
    const { url, asked } = await oddService([
      ok({ id: 'whep_1', secret: 'whsec_live_0123456789' }),
      ok({ id: 'whep_1', url: address, enabledEvents: [], isActive: true }),
    ])
    const live = { baseUrl: url, apiKey: 'sk_live_0123456789' }
    const folder = configuredFolder({ provider: { live } })
    expect(await answerOf(folder, `endpoints register --url ${address}`)).toMatchObject({ name: 'v3' })
    expect(asked.map(({ method, url: path, body }) => [method, path, JSON.parse(body)])).toEqual([
      ['POST', '/v3/webhook-endpoints', { url: address, enabledEvents: [] }],
      ['PATCH', '/v3/webhook-endpoints/whep_1', {}],
    ])
    expect(asked[0]?.headers).toMatchObject({
      'x-service-api-key': live.apiKey,
      'idempotency-key': expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
    expect(endpointsIn(folder).v3).toMatchObject({ environment: 'live', serviceId: 'whep_1' })
  })

  it.each<[string, Odd, string, string]>([
    [
      'elsewhere',
      ok({ id: 'whep_1', url: 'https://other.example.com/?key=1', enabledEvents: [], isActive: true }),
      'its address is https://other.example.com/.',
      '--url URL`',
    ],
    [
      'for other events, and inactive',
      ok({ id: 'whep_1', url: 'URL', enabledEvents: ['payment.failed'], isActive: false }),
      'it is sent payment.failed, it is inactive.',
      'v3 --all-events --enable`',
    ],
    [
      'so that nothing is known of it',
      refusal(404, 'NOT_FOUND'),
      'could not be compared with what was asked for',
      '`latchkey endpoints list` compares it',
    ],
  ])(
    'registers, and says what the service has made otherwise than asked: %s',
    async (_, made, what, todo) => {
      const address = 'https://hooks.example.com/webhooks/v3'
      const atAddress: Odd = (req, res) => {
        const end = res.end.bind(res)
        made(
          req,
          Object.assign(res, { end: (body: string) => end(body.replace('"URL"', JSON.stringify(address))) }),
        )
      }
      const { url } = await oddService([ok({ id: 'whep_1', secret: 'whsec_live_0123456789' }), atAddress])
      const live = { baseUrl: url, apiKey: 'sk_live_0123456789' }
      const folder = configuredFolder({ provider: { live } })
      const { code, stdout, stderr } = await run(folder, `endpoints register --url ${address}`)
      expect({ code, stdout }).toEqual({
        code: 0,
        stdout: expect.stringContaining('Registered the live endpoint v3'),
      })
      expect(stderr).toContain(what)
      expect(stderr).toContain(todo.replace('URL', address))
      expect(endpointsIn(folder).v3).toMatchObject({ environment: 'live', serviceId: 'whep_1' })
    },
  )

  it.each([
    ['a comment', '{ // mine\n'],
    ['a section given twice', '{ "log": {}, "log": {}, '],
  ])('asks nothing where the config has %s and so cannot be changed', async (_, beginning) => {
    const service = await startService()
    const text = `${beginning}${JSON.stringify(apiOf(service.url)).slice(1)}`
    const folder = configuredFolder(text)
    expect(await failureOf(folder, REGISTER)).toMatchObject({ code: 2, error: { code: 'config_invalid' } })
    expect(textIn(folder)).toBe(text)
    expect(await told(service)).toEqual([])
  })

  it('asks nothing where there is no room for the secret', async () => {
    const service = await startService()
    const folder = configuredFolder(apiOf(service.url))
    // A file in the place of the folder stops every user, root too.
    writeFileSync(join(folder, 'data'), '')
    const { code, error } = await failureOf(folder, REGISTER)
    expect([code, error.code]).toEqual([1, 'output_failed'])
    expect(error.message).toMatch(/data can't be written: .*make it writable and run the command again\./)
    expect(await told(service)).toEqual([])
  })

  it('leaves nothing behind where the service refuses the key, and names neither key nor secret', async () => {
    const service = await startService()
    const folder = configuredFolder(apiOf(service.url, 'sk_sandbox_wrong'))
    const { code, error } = await failureOf(folder, REGISTER)
    expect([code, error.code]).toEqual([1, 'payments_api_refused'])
    expect(error.message).toMatch(/401 UNAUTHORIZED.*Check provider\.sandbox\.apiKey/)
    expect(error.message).not.toContain('sk_sandbox_wrong')
    expect(readdirSync(join(folder, 'data'))).toEqual([])
    expect(endpointsIn(folder)).toBeUndefined()
  })

  it('gets the same endpoint with its secret when it is run again after the answer was lost', async () => {
    const service = await startService()
    const { on, url } = await between(service)
    const folder = configuredFolder(apiOf(url))
    on.after = () => 'hang up'
    const { code, error } = await failureOf(folder, REGISTER)
    expect([code, error.code]).toEqual([1, 'payments_api_unavailable'])
    expect(error.message).toContain('run the same command again within 24 hours')
    on.after = () => 'answer'
    const { serviceId } = await answerOf(folder, REGISTER)
    expect(await told(service)).toEqual([serviceId])
    expect(readdirSync(join(folder, 'data'))).toHaveLength(1)
  })

  it('says where the secret is if the config was made unfit meanwhile, and goes on from there', async () => {
    const service = await startService()
    const { on, url } = await between(service)
    const config = apiOf(url)
    const folder = configuredFolder(config)
    on.after = () => {
      rewriteConfig(folder, `// mine\n${JSON.stringify(config)}`)
      return 'answer'
    }
    const { code, error } = await failureOf(folder, REGISTER)
    expect([code, error.code]).toEqual([1, 'output_failed'])
    const [, id, file = ''] =
      /^The endpoint (\S+) is registered, and its secret is in (\S+), but .* run the same command again within 24 hours\.$/.exec(
        error.message,
      ) ?? []
    const secret = readFileSync(file, 'utf8')
    expect(error.message).not.toContain(secret.trim())
    on.after = () => 'answer'
    rewriteConfig(folder, config)
    expect(await answerOf(folder, REGISTER)).toMatchObject({ serviceId: id, secretFile: file })
    expect(readFileSync(file, 'utf8')).toBe(secret)
    expect(await told(service)).toEqual([id])
  })

  it('makes another one where it broke off longer ago than the service remembers, and says so', async () => {
    const service = await startService()
    const { on, url } = await between(service)
    const folder = configuredFolder(apiOf(url))
    on.after = () => 'hang up'
    await failureOf(folder, REGISTER, { now })
    on.after = () => 'answer'
    const { code, stderr } = await run(folder, REGISTER, { now: () => NOW + 86_400_000 })
    expect(code).toBe(0)
    expect(stderr).toMatch(/^note: an earlier attempt at 2026-03-01T12:00:00Z broke off.*dashboard\n$/)
    expect(await told(service)).toHaveLength(2)
  })
})

/** A daemon that reads its config again, on a free port. */
async function served(folder: string) {
  mkdirSync(join(folder, 'data'), { recursive: true })
  const env = { LATCHKEY_PORT: '0' }
  let log = ''
  const { daemon } = await startConfigured({
    load: () => loadConfig({ path: join(folder, 'config.json'), env }),
    logTo: {
      write(line) {
        log += line
      },
    },
    clock: Date.now,
    version: 'test',
  })
  onTestFinished(daemon.stop)
  return { url: daemon.url, log: () => log }
}

async function dispositionsAt(service: Service): Promise<readonly string[]> {
  const { items } = await service.data('GET /sandbox/deliveries?limit=100')
  return items.map(({ status }: { status: string }) => status)
}

describe('a running daemon', () => {
  it('takes deliveries of an endpoint as soon as it is registered, and across a rotation', async () => {
    const service = await startService({ from: Date.now() })
    const folder = configuredFolder(apiOf(service.url))
    const daemon = await served(folder)
    const shown: string[] = []
    const latchkey = async (words: string) => {
      const { code, stdout, stderr } = await run(folder, words)
      expect({ words, code, stderr }).toEqual({ words, code: 0, stderr: '' })
      shown.push(stdout)
      return stdout
    }
    const stdout = await latchkey(`endpoints register --url ${daemon.url}/webhooks/shop`)
    expect(stdout).toContain('The running daemon uses this now.')
    await told(service)
    const first = await dispositionsAt(service)
    expect(new Set(first)).toEqual(new Set(['delivered']))

    expect(await latchkey('endpoints rotate shop')).toMatch(
      /^Rotated the secret of shop \(whep_\S+\): the new one is in \S+\.\nOld secrets are valid until \S+\.\n.* The running daemon uses this now\.\n$/,
    )
    await told(service)
    const second = await dispositionsAt(service)
    expect(second.length).toBeGreaterThan(first.length)
    expect(new Set(second)).toEqual(new Set(['delivered']))

    expect(await latchkey('endpoints list')).toMatch(
      /^shop +sandbox +whep_\S+ +active +http:\S+\/webhooks\/shop +all events +last \S+\n$/,
    )
    expect(await latchkey('doctor')).toMatch(/^ok +service shop +active, .*, all events, version 3/m)
    const secrets = secretsIn(folder, 'shop') ?? []
    expect(secrets).toHaveLength(2)
    for (const secret of [...secrets.map((one) => one.secret), KEY]) {
      expect(shown.join('')).not.toContain(secret)
      expect(daemon.log()).not.toContain(secret)
    }
  })

  it('that was started with another file makes the command exit 1, with its own file changed', async () => {
    const service = await startService()
    const folder = configuredFolder(apiOf(service.url))
    await served(folder)
    const other = join(folder, 'other.json')
    writeFileSync(other, JSON.stringify(apiOf(service.url)))
    const { code, stdout, stderr } = await run(folder, `${REGISTER} --config ${other}`)
    expect(code).toBe(1)
    expect(stdout).toContain('The running daemon does not use this yet.')
    expect(stderr).toMatch(/its endpoints come from another file, .*config\.json/)
    expect(JSON.parse(readFileSync(other, 'utf8')).endpoints).toHaveProperty('sandbox')
  })
})

describe('latchkey endpoints rotate', () => {
  it('puts the new secret first and has the others end after the overlap, unless they ended before', async () => {
    const { folder, secretFile } = await registered()
    const [first] = secretsIn(folder) ?? []
    const rotate = (options: string, at: number) =>
      answerOf(folder, `endpoints rotate sandbox ${options}`, { now: () => at })
    const second = await rotate('', NOW)
    expect(second).toMatchObject({ oldIsValidUntil: '2026-03-02T12:00:00Z', inUse: false })
    expect(second.secretFile).not.toBe(secretFile)
    const third = await rotate('--overlap 48h', NOW)
    const texts = [third, second].map(({ secretFile: file }) => readFileSync(file, 'utf8').trimEnd())
    expect(secretsIn(folder)).toEqual([
      { secret: texts[0], notAfter: null },
      { secret: texts[1], notAfter: NOW + 2 * 86_400_000 },
      { secret: first?.secret, notAfter: NOW + 86_400_000 },
    ])
    expect(await rotate('--overlap none', NOW + 1000)).toMatchObject({ oldIsValidUntil: null })
    expect(
      secretsIn(folder)
        ?.slice(1)
        .map(({ notAfter }) => notAfter),
    ).toEqual([NOW + 1000, NOW + 1000, NOW + 1000])
  })

  it('gets the same secret when it is run again after the answer was lost, and another one after that', async () => {
    const { service, folder } = await registered()
    const { on, url } = await between(service)
    rewriteConfig(folder, { ...JSON.parse(textIn(folder)), ...apiOf(url) })
    const before = textIn(folder)
    const answered = new Set<string>()
    on.after = (body) => {
      answered.add(JSON.parse(body).data.secret)
      return 'hang up'
    }
    expect(await failureOf(folder, 'endpoints rotate sandbox')).toMatchObject({
      code: 1,
      error: { code: 'payments_api_unavailable' },
    })
    expect(textIn(folder)).toBe(before)
    on.after = () => 'answer'
    await answerOf(folder, 'endpoints rotate sandbox')
    const [{ secret } = { secret: '' }] = secretsIn(folder) ?? []
    expect([...answered]).toEqual([secret])
    expect(readdirSync(join(folder, 'data')).filter((name) => name.endsWith('.pending'))).toEqual([])
    await answerOf(folder, 'endpoints rotate sandbox')
    expect(secretsIn(folder)).toHaveLength(3)
    expect(secretsIn(folder)?.[1]?.secret).toBe(secret)
  })

  it('leaves the secret that the service has first, where two run at once', async () => {
    const { service, folder } = await registered()
    const { on, url } = await between(service)
    rewriteConfig(folder, { ...JSON.parse(textIn(folder)), ...apiOf(url) })
    const answered: string[] = []
    on.after = (body) => {
      answered.push(JSON.parse(body).data.secret)
      return 'answer'
    }
    const both = await Promise.all([1, 2].map(() => run(folder, 'endpoints rotate sandbox')))
    expect(both.map(({ code }) => code)).toContain(0)
    expect(secretsIn(folder)?.[0]?.secret).toBe(answered.at(-1))
  })

  it('begins another rotation where the last one was killed after it had changed the config', async () => {
    const { folder } = await registered()
    const { secretFile } = await answerOf(folder, 'endpoints rotate sandbox')
    const key = `${/-([0-9a-f]{8})\.txt$/.exec(secretFile)?.[1]}-0000-4000-8000-000000000000`
    const { serviceId } = endpointsIn(folder).sandbox
    const pending = { key, at: Date.now(), request: { rotate: serviceId } }
    writeFileSync(join(folder, 'data', 'webhook-sandbox.pending'), JSON.stringify(pending))
    const next = await answerOf(folder, 'endpoints rotate sandbox')
    expect(next.secretFile).not.toBe(secretFile)
    expect(existsSync(join(folder, 'data', 'webhook-sandbox.pending'))).toBe(false)
  })
})
