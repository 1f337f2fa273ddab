/* Clients that public generators make of openapi.json compile, and read what a daemon answers. */

import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ROOT, runProgram } from '../world.js'
import { API_KEY, runDaemon, send } from './running-daemon.js'
import { wireEvent } from './wire-events.js'

const OLDER_COMPILER = join(ROOT, 'scripts', 'older-compiler.js')

const PROJECT = {
  compilerOptions: {
    target: 'ES2023',
    module: 'NodeNext',
    strict: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: true,
    types: ['node'],
    outDir: 'built',
  },
  files: ['app.ts'],
}

/** An app of a merchant, which would not compile if a name or a type were another. */
const APP = `import createClient from 'openapi-fetch'
import * as functions from './functions.js'
import type { components, paths } from './types.js'

const [baseUrl = '', key = ''] = process.argv.slice(2)
const headers = { Authorization: \`Bearer \${key}\` }
const client = createClient<paths>({ baseUrl, headers })
Object.assign(functions.defaults, { baseUrl, headers })

const path = { customerId: 'cus_1' }
const access = await client.GET('/entitlements/{customerId}', { params: { path, query: { environment: 'live' } } })
const entitlement: components['schemas']['Entitlement'] | undefined = access.data?.entitlements[0]
const until: string | null | undefined = entitlement?.until
const unknown = await client.GET('/events/{eventId}', { params: { path: { eventId: 'evt_none' } } })
const code: components['schemas']['Problem']['code'] | undefined = unknown.error?.code

const grant = await functions.grantProduct('cus_1', { productId: 'pro_extra', reason: 'a test' })
const checked = await functions.checkEntitlements({ checks: [{ customerId: 'cus_1', productId: 'pro_extra' }] })
const active: boolean | null = checked.status === 200 ? (checked.data.results[0]?.active ?? null) : null
const page = await functions.listChanges({ limit: 1 })
const change: functions.Change | undefined = page.status === 200 ? page.data.items[0] : undefined
const refused = await functions.grantProduct('cus_1', { productId: 'pro_extra', reason: '' })
const field = refused.status === 400 ? refused.data.errors?.[0]?.path : null

const seen = { product: entitlement?.productId, status: entitlement?.status, until, code, granted: grant.status, active, change: change?.after.status, field }
process.stdout.write(JSON.stringify(seen))
`

it('clients made by openapi-typescript and oazapfts compile, and read answers and problems', async () => {
  const daemon = await runDaemon()
  const { folder } = daemon
  await send(daemon, wireEvent('payment.authorized'))
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(PROJECT))
  writeFileSync(join(folder, 'app.ts'), APP)
  const run = async (...args: readonly string[]) => {
    const ended = await runProgram([process.execPath, ...args], { folder })
    expect(ended).toEqual({ code: 0, stdout: expect.anything(), stderr: expect.anything() })
    return ended.stdout
  }
  const [description, packages] = [join(ROOT, 'openapi.json'), join(ROOT, 'node_modules')]

  await Promise.all([
    run(
      ...['--import', OLDER_COMPILER, join(packages, 'openapi-typescript/bin/cli.js')],
      ...[description, '-o', 'types.ts'],
    ),
    run(join(packages, 'oazapfts/dist/cli.js'), description, 'functions.ts'),
  ])
  // What the client in this package takes its types from: `npm run schema` writes it.
  expect(readFileSync(join(ROOT, 'openapi.d.ts'), 'utf8')).toBe(
    readFileSync(join(folder, 'types.ts'), 'utf8'),
  )
  await run(join(packages, 'typescript/bin/tsc'), '-p', '.')

  expect(JSON.parse(await run('built/app.js', daemon.url, API_KEY))).toEqual({
    product: 'pro_gold',
    status: 'active',
    until: null,
    code: 'event_not_found',
    granted: 201,
    active: true,
    change: 'active',
    field: 'reason',
  })
})
