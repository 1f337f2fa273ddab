/* Who is signed in, what the key allows, and which environment is shown. */

import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Environment, Schemas, Scope } from './api.js'
import { addressOf, type Parameters, usePlace } from './router.js'

export type SignedIn = Schemas['ConsoleSession']

export const SessionContext = createContext<SignedIn | null>(null)

/** What a page may ask of its session. */
export interface Session extends SignedIn {
  /** The one that is shown: `?environment=` of the address, else `defaultEnvironment`. */
  readonly environment: Environment
  /** Live, if the key has it. */
  readonly defaultEnvironment: Environment
  /** Whether the key has the scope; `ofBoth`: and covers both environments. */
  readonly may: (scope: Scope, ofBoth?: 'ofBoth') => boolean
  /** How a product is called in the config; its id if it has no name. */
  readonly productName: (productId: string) => string
}

export function useSession(): Session {
  const session = useContext(SessionContext)
  const named = usePlace().parameters.get('environment')
  if (session === null) throw new Error('only a page that is shown to somebody signed in has a session')
  const { scopes, environments, products } = session
  const defaultEnvironment = environments.includes('live') ? 'live' : 'sandbox'
  return {
    ...session,
    environment: environments.find((one) => one === named) ?? defaultEnvironment,
    defaultEnvironment,
    may: (scope, ofBoth) => scopes.includes(scope) && (ofBoth === undefined || environments.length === 2),
    productName: (productId) => products.find(({ id }) => id === productId)?.name ?? productId,
  }
}

/** Makes addresses of views in the environment that is shown. */
export function useAddress(): (path: string, parameters?: Parameters) => string {
  const { environment, defaultEnvironment } = useSession()
  const named = environment === defaultEnvironment ? {} : { environment }
  return (path, parameters = {}) => addressOf(path, { ...named, ...parameters })
}
