import { expect, it } from 'vitest'
import { configOf, type Market, openMarket, tell } from '../backfill/market.js'
import { KEY } from '../sandbox/service.js'
import { answerOf, configuredFolder, MAY_ALL, run, serveHere } from '../world.js'

/** A folder whose daemon heard what the market told. */
async function served(market: Market): Promise<string> {
  const folder = configuredFolder({ ...MAY_ALL, ...configOf(market) })
  const { url } = await serveHere(folder, { now: () => market.now })
  await tell({ webhooksUrl: url }, market.told, market.now)
  return folder
}

it('latchkey backfill shows what would be stored, stores it, and says how much it read where nothing is missing', async () => {
  const market = await openMarket()
  const folder = await served(market)
  const { id, customerId } = market.ids.canceled ?? {}
  const trial = await run(folder, 'backfill --dry-run')
  expect(trial).toMatchObject({ code: 0, stderr: '' })
  expect(trial.stdout).toContain('read 11 payments and 4 subscriptions; 7 already known\n')
  expect(trial.stdout).toContain('10 events would be stored: ')
  expect(trial.stdout).toContain('1 would gain access, 4 would lose it, 0 other changes\n')

  const byEmail = await answerOf(folder, 'backfill --email canceled@example.com')
  expect(byEmail).toMatchObject({ stored: { byType: { 'subscription.canceled': 1 } } })
  expect(market.relay.asked).toContain(`GET /v3/subscriptions/${id}`)
  const real = await run(folder, 'backfill')
  expect(real.stdout).toContain('9 events stored: ')
  expect(real.stdout).not.toContain(customerId)
  const again = await run(folder, 'backfill --payments')
  expect(again).toEqual({
    code: 0,
    stderr: '',
    stdout:
      'read 11 payments and 0 subscriptions; 11 already known\n0 events stored\nnobody’s access has changed\n',
  })
  const nobody = await run(folder, 'backfill --customer cus_nobody')
  expect(nobody.stdout).toContain('has nothing on record of cus_nobody: check the id and the environment\n')
})

it('latchkey backfill fails with the reason, and stops on Ctrl-C', async () => {
  const market = await openMarket()
  const folder = await served(market)
  market.relay.before = (_, res) => {
    const body = JSON.stringify({ success: false, error: 'UNAUTHORIZED', message: 'No.' })
    res.writeHead(401, { 'content-type': 'application/json' }).end(body)
    return true
  }
  const refused = await run(folder, 'backfill')
  expect(refused).toMatchObject({ code: 1, stdout: '' })
  expect(refused.stderr).toContain('Check provider.sandbox.apiKey')
  expect(refused.stderr).toContain('Run it again to go on where it was.')
  expect(refused.stderr).not.toContain(KEY)

  const asked = Promise.withResolvers<void>()
  market.relay.before = () => {
    asked.resolve()
    return new Promise(() => {})
  }
  const interrupted = run(folder, 'backfill --subscriptions')
  await asked.promise
  process.listeners('SIGINT').at(-1)?.('SIGINT')
  expect(await interrupted).toMatchObject({ code: 1, stderr: expect.stringContaining('It was stopped.') })
})
