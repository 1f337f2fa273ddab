import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { fromEnv } from '../config/config-file.js'
import {
  ask,
  built,
  CONFIG,
  configuredFolder,
  keyEntry,
  latchkey,
  rewriteConfig,
  run,
  runProgram,
  serve,
} from '../world.js'

/** And where it was looked for. */
const NO_DAEMON = expect.stringMatching(
  /^error: no daemon is running at \S+latchkey\.sock: .*`latchkey serve`.* --url .*\n$/,
)

describe.each(['status', 'reload', 'stop'])('latchkey %s', (command) => {
  it('says where no daemon runs, and starts none', async () => {
    const folder = configuredFolder()
    expect(await run(folder, [command])).toEqual({ code: 1, stdout: '', stderr: NO_DAEMON })
    expect(existsSync(join(folder, 'data'))).toBe(false)
  })
})

describe('beside a daemon', () => {
  it('latchkey status shows it', async () => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    const { code, stdout } = await run(folder, ['status'])
    expect(code).toBe(0)
    const rows = [
      'version             \\S+',
      `pid                 ${daemon.pid}`,
      'startedAt           \\S+Z',
      `config              ${folder}/config.json`,
      'ready               true',
      `listeners.api       ${daemon.url}`,
      `listeners.webhooks  ${daemon.url}`,
      `listeners.metrics   ${daemon.url}`,
      `listeners.socket    ${folder}/data/latchkey.sock`,
      `database.file       ${folder}/data/latchkey.db`,
      'database.bytes      \\d+',
      'queue.deliveries    0',
      'queue.bytes         0',
      'endpoints           name live, environment live',
    ]
    expect(stdout).toMatch(new RegExp(`^${rows.join('\n')}\n$`))
    const { stdout: json } = await run(folder, ['status', '--json'])
    expect(JSON.parse(json)).toMatchObject({ pid: daemon.pid, ready: true, endpoints: [{ name: 'live' }] })
  })

  it('latchkey reload takes the config over, and names what needs a restart', async () => {
    const folder = configuredFolder()
    await serve(folder)
    const keys = [...CONFIG.api.keys, keyEntry('second', 'lk_second')]
    rewriteConfig(folder, { ...CONFIG, api: { keys }, identity: { ref: 'metadata.user' } })
    const { code, stdout } = await built(folder, 'reload')
    expect([code, stdout]).toEqual([0, 'in use now: api.keys\nneeds a restart: identity.ref\n'])
    const { stdout: json } = await run(folder, ['reload', '--json'])
    expect(JSON.parse(json)).toEqual({ changed: [], needsRestart: ['identity.ref'], policyDiffers: false })
    expect((await run(folder, ['doctor'])).stdout).toMatch(
      /^warn {2}daemon .*need a restart: identity\.ref\.$/m,
    )
    rewriteConfig(folder, { ...CONFIG, policy: { failedRenewal: 'revoke' } })
    expect((await run(folder, ['reload'])).stdout).toContain('policy is not in force')
  })

  it('latchkey keys create, rotate and revoke change what it accepts, at once', async () => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    const said = async (words: string) => {
      const { stdout } = await run(folder, `keys ${words}`)
      return { stdout, key: /lk_[\w-]{43}/.exec(stdout)?.[0] ?? '' }
    }
    const status = async (key: string) => (await ask(daemon, '/entitlements/cus_1', key)).status
    const { key: first, stdout } = await said('create --name app2 --scope read --environment live')
    expect(stdout).toContain('The running daemon uses this now.')
    expect(await status(first)).toBe(200)
    const { key: second } = await said('rotate app2')
    expect([await status(first), await status(second)]).toEqual([200, 200])
    expect((await said('list')).stdout).toMatch(
      /^app2 +read .* used .*\napp2 \(old\) +read .* ends .* used /m,
    )
    await said('revoke app2')
    expect([await status(first), await status(second)]).toEqual([401, 401])
  })

  it('latchkey keys create, rotate and revoke fail where the daemon refuses the file, and say what to do', async () => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    for (const [words, shown] of [
      ['create --name app2 --scope read --environment live', /^API key "app2" \(shown only now\): lk_/],
      ['rotate app --grace none', /^New API key "app" \(shown only now\): lk_/],
      ['revoke app', /^Removed "app" from /],
    ] as const) {
      rewriteConfig(folder, CONFIG)
      expect((await run(folder, 'reload')).code).toBe(0)
      rewriteConfig(folder, { ...CONFIG, odd: 1 })
      const { code, stdout, stderr } = await run(folder, `keys ${words}`)
      expect({ words, code }).toEqual({ words, code: 1 })
      expect(stdout).toMatch(shown)
      expect(stdout).toContain('The running daemon does not use this yet.')
      expect(stderr).toMatch(
        /^error: \S+config\.json is changed, but the running daemon may still use the old keys: .* Correct that and run `latchkey reload`, or restart the daemon\.\n {2}odd: is not a known key\n$/,
      )
      // The key still works, which is why it is a failure.
      expect((await ask(daemon, '/entitlements/cus_1')).status).toBe(200)
      rewriteConfig(folder, {
        ...JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')),
        odd: undefined,
      })
      expect((await run(folder, 'reload')).code).toBe(0)
      if (words.startsWith('re')) expect((await ask(daemon, '/entitlements/cus_1')).status).toBe(401)
    }
  })

  it('latchkey keys revoke fails where the daemon reads another file, or does not answer', async () => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    const other = join(folder, 'other.json')
    writeFileSync(other, JSON.stringify(CONFIG))
    expect(await run(folder, `keys revoke app --config ${other}`)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`its keys come from another file, ${folder}/config.json`),
    })
    daemon.signal('SIGSTOP')
    const hanging = await run(folder, 'keys revoke app')
    daemon.signal('SIGCONT')
    expect(hanging).toMatchObject({ code: 1, stderr: expect.stringContaining('`latchkey reload`') })
    expect((await run(folder, 'reload')).code).toBe(0)
    expect((await ask(daemon, '/entitlements/cus_1')).status).toBe(401)
  })

  it('latchkey keys commands at the same time all take effect', async () => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    const names = Array.from({ length: 8 }, (_, index) => `one${index}`)
    const created = names.map((name) =>
      built(folder, `keys create --name ${name} --scope read --environment live`),
    )
    const done = await Promise.all([built(folder, 'keys revoke app'), ...created])
    expect(done.map(({ code, stderr }) => [code, stderr])).toEqual(done.map(() => [0, '']))
    const { api } = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'))
    expect(api.keys.map((key: { readonly name: string }) => key.name).sort()).toEqual(names)
    const keys = done.slice(1).map(({ stdout }) => /lk_[\w-]{43}/.exec(stdout)?.[0] ?? '')
    const statuses = keys.map(async (key) => (await ask(daemon, '/entitlements/cus_1', key)).status)
    expect(await Promise.all(statuses)).toEqual(names.map(() => 200))
    expect((await ask(daemon, '/entitlements/cus_1')).status).toBe(401)
  })

  it('latchkey reload names every problem of a file, and what runs is kept', async () => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    // Only the daemon's own variables count: here it is set, and there it is not.
    rewriteConfig(folder, {
      ...CONFIG,
      endpoints: { live: { environment: 'live', secrets: [fromEnv('ONLY_HERE')] } },
    })
    const { code, stdout, stderr } = await run(folder, ['reload'], {
      env: { ONLY_HERE: 'whsec_0123456789abcdef' },
    })
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(
      /^error: .*config\.json has a problem; the running config is kept\n {2}endpoints\.live\.secrets\[0\]: .*ONLY_HERE.*\n$/,
    )
    expect((await fetch(`${daemon.url}/readyz`)).status).toBe(200)
  })

  it('latchkey stop returns once it has gone, and the next command finds none', async () => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    const stopped = await runProgram(latchkey('stop'), { folder })
    expect(stopped).toEqual({ code: 0, stdout: `stopped (process ${daemon.pid})\n`, stderr: '' })
    expect(existsSync(join(folder, 'data', 'latchkey.sock'))).toBe(false)
    // Nothing keeps what needs the database for itself from beginning at once.
    expect((await run(folder, ['compact'])).code).toBe(0)
    expect((await daemon.exit).code).toBe(0)
    expect(await run(folder, ['stop'])).toMatchObject({ code: 1, stderr: NO_DAEMON })
  })

  it('is found by the default place of its socket where its config is no longer valid', async () => {
    const folder = configuredFolder()
    const daemon = await serve(folder)
    rewriteConfig(folder, { ...CONFIG, polices: {} })
    expect(await run(folder, ['status'])).toMatchObject({ code: 0, stdout: expect.stringContaining('ready') })
    expect(await run(folder, ['reload'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /a problem; the running config is kept\n {2}polices: is not a known key\n$/,
      ),
    })
    expect(await run(folder, ['doctor'])).toMatchObject({ code: 2 })
    expect(await run(folder, ['stop'])).toMatchObject({ code: 0 })
    expect((await daemon.exit).code).toBe(0)
    expect(await run(folder, ['stop'])).toMatchObject({ code: 2, stderr: expect.stringContaining('polices') })
  })

  it('latchkey stop says so, or waits too, where the daemon is stopping already', async () => {
    const folder = configuredFolder()
    const { url, exit } = await serve(folder)
    // Holds up the end.
    const held = connect(Number(new URL(url).port), '127.0.0.1')
    held.write('POST /webhooks/live HTTP/1.1\r\nHost: x\r\nX-Webhook-Event: x\r\nContent-Length: 9\r\n\r\n{')
    held.on('error', () => {})
    await once(held, 'connect')
    const [first, second] = await Promise.all([run(folder, ['stop']), run(folder, ['stop'])])
    for (const { code, stderr } of [first, second])
      expect([code, stderr]).toEqual(
        code === 0 ? [0, ''] : [1, expect.stringMatching(/it is starting or stopping|no daemon answers/)],
      )
    expect((await exit).code).toBe(0)
    held.destroy()
  })

  it('latchkey stop --url stops one elsewhere, with a key for it', async () => {
    const admin = { ...keyEntry('admin', 'lk_admin'), scopes: ['admin'], environments: ['live', 'sandbox'] }
    const folder = configuredFolder({ ...CONFIG, api: { keys: [admin] } })
    const daemon = await serve(folder)
    const { code } = await run(folder, ['stop', '--url', daemon.url], {
      env: { LATCHKEY_API_KEY: 'lk_admin' },
    })
    expect([code, (await daemon.exit).code]).toEqual([0, 0])
  })
})
