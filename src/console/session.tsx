/* Who is signed in, what the key allows, and which environment is shown. */

import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Environment, Schemas, Scope } from './api.js'
import { addressOf, type Parameters, usePlace } from './router.js'

export type SignedIn = Schemas['ConsoleSession']

export const SessionContext = createContext<SignedIn | null>(null)

export interface Session extends SignedIn {
  /** The one that is shown: `?environment=` of the address, else `defaultEnvironment`. */
  readonly environment: Environment
  readonly defaultEnvironment: Environment
  /** Whether the key has the scope; `ofBoth`: and covers both environments. */
  readonly may: (scope: Scope, ofBoth?: 'ofBoth') => boolean
  readonly productName: (productId: string) => string
  /** The names of the products that give a role or a group; empty: none does. */
  readonly productsOf: (target: string) => string
  readonly targetName: (target: string) => string
  /** The address of a view in the environment that is shown. */
  readonly address: (path: string, parameters?: Parameters) => string
}

export function useSession(): Session {
  const session = useContext(SessionContext)
  const named = usePlace().parameters.get('environment')
  if (session === null) throw new Error('only a page that is shown to somebody signed in has a session')
  const { scopes, environments, endpoints, products } = session
  const inUse = endpoints.map((one) => one.environment)
  const [defaultEnvironment = 'live'] = [inUse, environments].flatMap((some) => [...some].sort())
  const environment = environments.find((one) => one === named) ?? defaultEnvironment
  const kept = environment === defaultEnvironment ? {} : { environment }
  const productName = (asked: string): string => products.find(({ id }) => id === asked)?.name ?? asked
  const productsOf = (asked: string): string =>
    products.flatMap(({ id, targets }) => (targets.includes(asked) ? productName(id) : [])).join(', ')
  return {
    ...session,
    environment,
    defaultEnvironment,
    may: (scope, ofBoth) => scopes.includes(scope) && (ofBoth === undefined || environments.length === 2),
    productName,
    productsOf,
    targetName: (target) => (productsOf(target) === '' ? target : `${productsOf(target)} (${target})`),
    address: (path, parameters = {}) => addressOf(path, { ...kept, ...parameters }),
  }
}
