/* What the endpoint commands check before they ask the payments service. */

import { NAME } from '../../config/problems.js'
import type { Config } from '../../config/schema.js'
import { decidingTypes, isAddressOf, serviceApi, shownAddress, typesLacking } from '../../doctor/service.js'
import { isLatchkeyError, LatchkeyError } from '../../errors.js'
import type { PaymentsApi } from '../../payments-api/client.js'
import type { WebhookEndpoint } from '../../payments-api/wire.js'
import type { Endpoint } from '../../provider/endpoint.js'
import type { Environment } from '../../provider/event.js'
import type { CliContext } from '../context.js'

/** Such a command is one call, which a person can repeat. */
const RETRIES = 1
const TIMEOUT_MS = 15_000

export function paymentsApi(config: Config, environment: Environment, { now }: CliContext): PaymentsApi {
  const options = { clock: now, random: Math.random, retries: RETRIES, timeoutMs: TIMEOUT_MS }
  return serviceApi(config, environment, options)
}

/** The endpoint of this name, and its id at the service. Throws `usage` if it has none. */
export function registered({ endpoints }: Config, name: string): Endpoint & { readonly serviceId: string } {
  const endpoint = endpoints.find((one) => one.name === name)
  if (endpoint === undefined) {
    const names = endpoints.map((one) => one.name).join(', ') || 'none'
    throw new LatchkeyError('usage', `there is no endpoint ${JSON.stringify(name)}; configured: ${names}`)
  }
  const { serviceId } = endpoint
  if (serviceId !== undefined) return { ...endpoint, serviceId }
  const todo = `set endpoints.${name}.serviceId to its id there (whep_…)`
  const message = `the config does not say which endpoint of the payments service ${name} is: ${todo}`
  throw new LatchkeyError('usage', `${message}. One of v2 has no id: change it in the service's dashboard.`)
}

/** The environment for a new endpoint. Throws `usage` if the config leaves it open. */
export function environmentFor({ provider }: Config, named: Environment | undefined): Environment {
  if (named !== undefined) return named
  const configured = (['live', 'sandbox'] as const).filter((one) => provider[one] !== null)
  const [only, second] = configured
  if (only !== undefined && second === undefined) return only
  const message =
    only === undefined
      ? "the payments service's API is not configured: add provider.live or provider.sandbox to the config"
      : 'the config has the API for live and for sandbox: choose one with --environment'
  throw new LatchkeyError('usage', message)
}

/** The name at the end of the address; else a free one after the environment. */
export function nameFor({ endpoints }: Config, url: string, environment: Environment): string {
  const { pathname } = URL.canParse(url) ? new URL(url) : { pathname: '' }
  const [, last] = /\/webhooks\/([a-z0-9-]{1,64})\/?$/.exec(pathname) ?? []
  if (last !== undefined) return last
  const base = environment === 'live' ? 'v3' : 'sandbox'
  const isFree = (name: string) => endpoints.every((one) => one.name !== name)
  let name = base
  for (let number = 2; !isFree(name); number += 1) name = `${base}-${number}`
  return name
}

const IS_HERE = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/

/** The address as the service gets it. Throws `usage`, with the right one where it can be known. */
export function checkedUrl(text: string, name: string, environment: Environment): string {
  if (!NAME.test(name)) throw new LatchkeyError('usage', '--name must be 1 to 64 of a-z, 0-9 and "-"')
  if (!URL.canParse(text)) throw new LatchkeyError('usage', '--url must be an https address')
  const url = new URL(text)
  const { protocol, hostname, pathname, username, password, search, hash } = url
  const mayBePlain = protocol === 'http:' && environment === 'sandbox' && IS_HERE.test(hostname)
  if (protocol !== 'https:' && !mayBePlain) {
    const message =
      '--url must be an https address; only one of this machine may be http, and only in the sandbox'
    throw new LatchkeyError('usage', message)
  }
  if (username !== '' || password !== '' || search !== '' || hash !== '') {
    const message = '--url must not have a user name, a password, a query or a fragment'
    throw new LatchkeyError('usage', message)
  }
  if (isAddressOf(text, name)) return url.href
  const base = pathname.replace(/\/+$/, '').replace(/\/webhooks(\/[^/]*)?$/, '')
  const right = `${url.origin}${base}/webhooks/${name}`
  const message = `--url must end in /webhooks/${name}, where the daemon takes the deliveries of ${name}: ${right}`
  throw new LatchkeyError('usage', message)
}

/** Says on standard error which of the types that decide about access are left out. */
export function noteLacking(
  config: Config,
  name: string,
  enabledEvents: readonly string[],
  { err }: CliContext,
) {
  const lacking = typesLacking(decidingTypes(config), { enabledEvents })
  if (lacking.length === 0) return
  const todo = `\`latchkey endpoints update ${name} --all-events\``
  err(
    `note: ${name} is not sent ${lacking.join(', ')}, so access may be wrong, unless another endpoint is: ${todo}\n`,
  )
}

/** Says on standard error where what the service has made is not what was asked for. */
export async function noteOtherwise(
  api: PaymentsApi,
  name: string,
  asked: { readonly serviceId: string; readonly url: string; readonly enabledEvents: readonly string[] },
  { err }: CliContext,
): Promise<void> {
  const { serviceId, url, enabledEvents } = asked
  let made: WebhookEndpoint
  try {
    // The documents show no read of an endpoint: a change of nothing answers with its record.
    made = (await api.webhookEndpoints.update(serviceId, {})).record
  } catch (error) {
    if (!isLatchkeyError(error)) throw error
    err(
      `note: what the payments service has made of ${name} could not be compared with what was asked for: ${error.message} \`latchkey endpoints list\` compares it.\n`,
    )
    return
  }
  const typesOf = (events: readonly string[]) => [...new Set(events)].sort().join(' ')
  const [isElsewhere, isOfOthers] = [
    hrefOf(made.url) !== hrefOf(url),
    typesOf(made.enabledEvents) !== typesOf(enabledEvents),
  ]
  const differences = [
    isElsewhere && `its address is ${shownAddress(made.url)}`,
    isOfOthers && `it is sent ${typesOf(made.enabledEvents) || 'all events'}`,
    !made.isActive && 'it is inactive',
  ].filter((one) => one !== false)
  if (differences.length === 0) return
  const todo = [
    isElsewhere && ` --url ${url}`,
    isOfOthers && (enabledEvents.length === 0 ? ' --all-events' : ` --events ${enabledEvents.join(' ')}`),
    !made.isActive && ' --enable',
  ].filter((one) => one !== false)
  err(
    `note: the payments service has made ${name} (${serviceId}) otherwise than asked: ${differences.join(', ')}. Change it with \`latchkey endpoints update ${name}${todo.join('')}\`\n`,
  )
}

const hrefOf = (url: string): string => (URL.canParse(url) ? new URL(url).href : url)
