import { describe, expect, it } from 'vitest'
import { EXAMPLE_POLICY } from '../../src/config/policy.js'
import { configuredFolder, keyEntry, serveHere } from '../world.js'
import { compareYear } from './merchant-year.js'
import { day, START, startService } from './service.js'

const READER = 'lk_agreement'
const SECRETS = { v3: 'whsec_agreement_current', v2: 'whsec_agreement_legacy' }

interface Heard {
  readonly generations: readonly ('v3' | 'v2')[]
  readonly seed: number
  /** Of the daemon, and of the signatures. */
  readonly clock: string
  readonly aheadAtMost?: string
}

/** A daemon, and a sandbox that delivers to it. */
async function begin({ generations, seed, clock, aheadAtMost }: Heard) {
  const endpointOf = (secret: string) => ({
    environment: 'sandbox',
    secrets: [secret],
    ...(aheadAtMost && { aheadAtMost }),
  })
  const folder = configuredFolder({
    endpoints: { v3: endpointOf(SECRETS.v3), v2: endpointOf(SECRETS.v2) },
    api: { keys: [{ ...keyEntry('app', READER), environments: ['sandbox'] }] },
    policy: EXAMPLE_POLICY,
  })
  const now = (): number => Date.parse(clock)
  const daemon = await serveHere(folder, { now })
  const endpoints = generations.map((generation) => ({
    url: `${daemon.url}/webhooks/${generation}`,
    secret: SECRETS[generation],
    generation,
  }))
  return { daemon, service: await startService({ clock: now, seed, endpoints }) }
}

/** More by hand: `SEEDS=100 npx vitest run test/sandbox/agreement.test.ts`. */
const SEEDS = Array.from({ length: Number(process.env.SEEDS ?? 1) }, (_, n) => n + 1)

const YEAR = { customers: 10, months: 6, pace: 7 }

/** Ahead of the clock, both generations at once are heard by test/process/sandbox-year.test.ts. */
describe('access in the daemon is the truth of the sandbox at every month’s end', () => {
  it.each(
    SEEDS.flatMap((seed) => [
      { heard: 'v3', generations: ['v3'], swapsPlans: true, seed } as const,
      { heard: 'v2', generations: ['v2'], swapsPlans: false, seed } as const,
    ]),
  )(
    'and now, ahead of its clock, heard in $heard, with seed $seed',
    async ({ generations, swapsPlans, seed }) => {
      const { daemon, service } = await begin({ generations, seed, clock: START, aheadAtMost: '10y' })
      const options = { ...YEAR, seed, swapsPlans, isAhead: true }
      const { differing } = await compareYear(service, daemon, READER, options)
      expect({ seed, differing }).toEqual({ seed, differing: [] })
    },
  )

  it('of a year that is past', async () => {
    const seed = 101
    const { daemon, service } = await begin({ generations: ['v3', 'v2'], seed, clock: day(460) })
    const options = { ...YEAR, seed, swapsPlans: true, isAhead: false }
    const { differing } = await compareYear(service, daemon, READER, options)
    expect({ seed, differing }).toEqual({ seed, differing: [] })
  })
})
