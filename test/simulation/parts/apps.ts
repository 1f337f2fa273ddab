/* The merchant's apps, which ask who may use what by the client, and follow the changes. */

import { type Access, type Change, type Client, createClient } from '../../../src/client/client.js'
import { createProcess, KilledError, kill, runAs, type SimulatedProcess } from '../machine/processes.js'

export interface SimulatedApp {
  readonly name: string
  readonly apiKey: string
  /** Every change that its watch was handed, over all its lives. */
  readonly seen: Change[]
  /** Why its watch ended by itself. */
  readonly failures: unknown[]
  check: Client['check']
  list: Client['list']
  /** Ends, and begins again after so long. */
  restart(afterMs: number): void
  /** Goes on where it left off, unless it runs. */
  begin(): void
  end(): void
}

/** It has no customer of this name. */
const NOBODY = 'cus_nobody'

export async function startApp(
  name: string,
  url: string,
  apiKey: string,
  maxCustomers: number,
): Promise<SimulatedApp> {
  const seen: Change[] = []
  const failures: unknown[] = []
  let lives = 0
  const first = createProcess(name)
  let owner = first
  const options = {
    url,
    apiKey,
    environment: 'sandbox',
    maxCustomers,
    maxAge: 120_000,
    onUnknown: () => {},
  } as const
  /** Where it follows from, as long as it has seen no change. */
  const { cursor: beginning } = (await runAs(first, () => createMortal(first).list(NOBODY))) as Access
  kill(first)
  let isOver = false
  let client: Client
  begin()

  /** Whose streams end with its process. */
  function createMortal(own: SimulatedProcess): Client {
    const made = createClient(options)
    own.onDeath.add(made.close)
    return made
  }

  function begin(): void {
    if (isOver || !owner.isDead) return
    lives += 1
    const own = createProcess(`${name} ${lives}`)
    owner = own
    client = runAs(own, () => {
      const made = createMortal(own)
      const after = seen.at(-1)?.cursor ?? beginning
      const watching = made.watch((change) => void seen.push(change), after === null ? {} : { after })
      watching.catch((error: unknown) => {
        if (!own.isDead) failures.push(error)
      })
      return made
    }) as Client
  }

  /** Has the app ask: what its client begins for an answer ends with it, too. */
  async function ask<Answer>(question: () => Promise<Answer>): Promise<Answer> {
    const own = owner
    if (own.isDead) throw new KilledError(own.name)
    return new Promise((resolve, reject) => {
      const end = (): void => reject(new KilledError(own.name))
      own.onDeath.add(end)
      const asked = runAs(own, question) as Promise<Answer>
      asked.then(resolve, reject).finally(() => own.onDeath.delete(end))
    })
  }

  return {
    name,
    apiKey,
    seen,
    failures,
    check: (...asked) => ask(() => client.check(...asked)),
    list: (...asked) => ask(() => client.list(...asked)),
    restart(afterMs) {
      kill(owner)
      if (afterMs === 0) begin()
      else setTimeout(begin, afterMs)
    },
    begin,
    end() {
      isOver = true
      kill(owner)
    },
  }
}
