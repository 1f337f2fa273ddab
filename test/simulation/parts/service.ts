/* The payments service of one environment, with the buyers and banks that act on it. */

import pLimit from 'p-limit'
import { type Sandbox, type SandboxOptions, startSandbox } from '../../../src/sandbox/sandbox.js'
import {
  actsOf,
  type Chance,
  createProducts,
  everyItem,
  type Ledger,
  type ProductName,
} from '../../sandbox/merchant-year.js'
import type { Answer, Json, Service } from '../../sandbox/service.js'
import { type Chance as Drawing, mixed } from '../machine/chance.js'
import { createProcess, runAs } from '../machine/processes.js'
import { wallTime } from '../machine/time.js'

export interface SimulatedService extends Pick<Service, 'call' | 'data'> {
  readonly sandbox: Sandbox
  readonly products: Readonly<Record<ProductName, string>>
  /** The names of all that can happen. */
  readonly acts: readonly string[]
  /** Has one of them happen, with what is drawn; false: there was nobody for it. */
  act(name: string, chance: Drawing): Promise<boolean>
  /** Sends again what nobody took. @returns how many */
  sendAgain(): Promise<number>
  payments(): Promise<readonly Json[]>
  /** The payments of which something happened lately. */
  paid(): readonly string[]
  /** The customers of whom something happened lately. */
  known(): readonly string[]
  /** Everyone who has bought anything. */
  buyers(): Promise<readonly string[]>
  /** Whose each address is, or was when this was asked before. */
  addresses(): Promise<ReadonlyMap<string, ReadonlySet<string>>>
  /** The customers whom the service has deleted. */
  readonly deleted: ReadonlySet<string>
}

/** What differs from world to world. */
export type ServiceOptions = Pick<SandboxOptions, 'from' | 'endpoints' | 'retryDelaysMs' | 'timeoutMs'>

const CUSTOMERS = 12
const sideBySide = pLimit(16)
/** Of each list, the newest ones: things happen to these. */
const REMEMBERED = 40

export async function startSimulatedService(
  name: string,
  seed: number,
  options: ServiceOptions,
  report: (error: unknown) => void,
): Promise<SimulatedService> {
  const owner = createProcess(name)
  const sandbox = await (runAs(owner, () =>
    startSandbox({
      seed: mixed(seed, 1) % 1_000_000,
      key: `sk_sandbox_${name}`,
      ...options,
      clock: wallTime,
      report,
    }),
  ) as Promise<Sandbox>)
  const service = clientOf(sandbox)
  const products = await createProducts(service)
  const ledger: Ledger = { subscriptions: [], payments: [], charges: new Set(), swappedAt: new Map() }
  // Time passes for the whole world at once, and not for one buyer.
  const unhurried: typeof service = {
    ...service,
    call: (words, body, headers) =>
      service.call(words === 'POST /sandbox/clock/advance' ? 'GET /sandbox/clock' : words, body, headers),
  }
  const year = { seed, customers: CUSTOMERS, months: 0, pace: 0, swapsPlans: true }
  const actsWith = (chance: Chance) => actsOf(unhurried, chance, products, ledger, year)
  const first = async (path: string): Promise<readonly Json[]> =>
    (await service.data(`GET ${path}?limit=${REMEMBERED}`)).items
  let lookedAt = Number.NEGATIVE_INFINITY
  const addresses = new Map<string, Set<string>>()
  async function noteAddresses(): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
    for (const { id, email } of await everyItem(service, '/v3/customers')) {
      addresses.set(email, (addresses.get(email) ?? new Set()).add(id))
    }
    return addresses
  }
  const deleted = new Set<string>()
  async function noteDeleted(): Promise<void> {
    const left = new Set((await everyItem(service, '/v3/customers')).map(({ id }) => id))
    for (const one of [...addresses.values()].flatMap((own) => [...own])) if (!left.has(one)) deleted.add(one)
  }

  return {
    ...service,
    sandbox,
    products,
    acts: Object.keys(actsWith({ is: () => false, below: () => 0, pick: () => undefined })),
    async act(wanted, chance) {
      if (Date.now() > lookedAt) {
        lookedAt = Date.now()
        ledger.subscriptions = await first('/v3/subscriptions')
        ledger.payments = await first('/v3/payments')
      }
      // The service forgets a customer there, and the daemon does not.
      if (wanted === 'customer deleted') await noteAddresses()
      const did = (await actsWith(chance)[wanted]?.()) ?? false
      if (wanted === 'customer deleted') await noteDeleted()
      return did
    },
    async sendAgain() {
      let count = 0
      for (const status of ['failed', 'dropped']) {
        const lost = await everyItem(service, '/sandbox/deliveries', `status=${status}&limit=100`)
        await sideBySide.map(lost, ({ id }) => service.data(`POST /sandbox/deliveries/${id}/send`))
        count += lost.length
      }
      return count
    },
    paid: () => ledger.payments.map(({ id }) => id).sort(),
    known: () => [...new Set(ledger.payments.flatMap(({ customerId }) => customerId ?? []))].sort(),
    payments: () => everyItem(service, '/v3/payments'),
    addresses: noteAddresses,
    deleted,
    async buyers() {
      const bought = await everyItem(service, '/v3/payments')
      return [...new Set(bought.flatMap(({ customerId }) => customerId ?? []))].sort()
    },
  }
}

function clientOf({ url, key }: Sandbox): Pick<Service, 'call' | 'data'> {
  async function call(words: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) {
    const [method = '', path = ''] = words.split(' ')
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { 'X-Service-Api-Key': key, 'Content-Type': 'application/json', ...headers },
      ...(body !== undefined && method !== 'GET' && { body: JSON.stringify(body) }),
    })
    return {
      status: answer.status,
      headers: answer.headers,
      body: (await answer.json()) as Json,
    } satisfies Answer
  }
  return {
    call,
    async data(words, body, headers) {
      const { status, body: answer } = await call(words, body, headers)
      if (!answer.success) throw new Error(`${words} was answered ${status} ${JSON.stringify(answer)}`)
      return answer.data
    },
  }
}
