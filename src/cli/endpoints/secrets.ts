/* Registering an endpoint and rotating its secret: the service shows a secret once, and none must be lost. */

import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { isoTime } from '../../config/api-keys.js'
import { addEndpoint, addSecret } from '../../config/change-endpoints.js'
import { changeConfigFile } from '../../config/change-file.js'
import { readConfigText } from '../../config/load.js'
import { giveToOwnerOf, writePrivateFile } from '../../config/write-file.js'
import { isLatchkeyError, LatchkeyError } from '../../errors.js'
import type { StatusJson } from '../../handlers/control.js'
import { isPaymentsApiError } from '../../payments-api/failure.js'
import type { Environment } from '../../provider/event.js'
import { isSystemRefusal, refusalText } from '../../system-refusal.js'
import { changeConfig } from '../change-config.js'
import type { GivenCommand } from '../command.js'
import { configPathOf, loadNamedConfig, type SharedOptions } from '../context.js'
import { jsonIn, linesText } from '../text.js'
import {
  checkedUrl,
  environmentFor,
  nameFor,
  noteLacking,
  noteOtherwise,
  paymentsApi,
  registered,
} from './address.js'

type Given<Options> = GivenCommand<Record<never, never>, SharedOptions & Options>

interface RegisterOptions {
  readonly url: string
  readonly events: readonly string[] | undefined
  readonly name: string | undefined
  readonly environment: Environment | undefined
}

/**
 * Registers an endpoint: its secret goes to a file, and the config gains an entry that names it.
 * @throws {LatchkeyError} `usage`, `config_missing`, `config_invalid`, `output_failed`, `payments_api_…`
 */
export async function registerEndpoint(given: Given<RegisterOptions>): Promise<void> {
  const { options, context, show } = given
  const { config } = await loadNamedConfig(options, context)
  const environment = environmentFor(config, options.environment)
  const name = options.name ?? nameFor(config, options.url, environment)
  const url = checkedUrl(options.url, name, environment)
  const api = paymentsApi(config, environment, context)
  const enabledEvents = [...new Set(options.events ?? [])]

  const { answer, file, earlier, use, path } = await withSecret(given, {
    name,
    request: { register: environment, url, enabledEvents },
    call: async (idempotencyKey) =>
      (await api.webhookEndpoints.create({ url, enabledEvents }, { idempotencyKey })).record,
    done: ({ id }) => `The endpoint ${id} is registered`,
    change: (content, secret, answered) => {
      const serviceId = answered?.id ?? 'whep_not_known_yet'
      return addEndpoint(content, name, { environment, secrets: [secret], serviceId })
    },
  })
  const serviceId = answer.id
  show({ name, environment, serviceId, url, enabledEvents, secretFile: file, path, inUse: use.isNow }, () =>
    linesText([
      `Registered the ${environment} endpoint ${name} at the payments service as ${serviceId}: ${url}`,
      `Its secret is in ${file}.`,
      `Added to ${path}.${use.text}`,
    ]),
  )
  await noteOtherwise(api, name, { serviceId, url, enabledEvents }, context)
  if (earlier !== null)
    context.err(
      `note: an earlier attempt at ${isoTime(earlier.at)} broke off, and may have left another endpoint at the service; if deliveries to ${name} are refused, remove that one in the service's dashboard\n`,
    )
  noteLacking(config, name, enabledEvents, context)
  if (use.failure !== null) throw use.failure
}

const OVERLAP_MS = 86_400_000

/** Has the service make another secret. The config names it first, and the old ones end after the overlap. */
export async function rotateSecret(given: Given<{ readonly overlap: number | undefined }>): Promise<void> {
  const { options, context, show } = given
  const [name = ''] = given.args
  const { config } = await loadNamedConfig(options, context)
  const { environment, serviceId } = registered(config, name)
  const api = paymentsApi(config, environment, context)
  const endsAt = context.now() + (options.overlap ?? OVERLAP_MS)

  const { file, use, path } = await withSecret(given, {
    name,
    request: { rotate: serviceId },
    call: async (idempotencyKey) =>
      (await api.webhookEndpoints.rotateSecret(serviceId, { idempotencyKey })).record,
    done: () => `The secret of ${serviceId} is rotated`,
    change: (content, secret) => addSecret(content, name, secret, endsAt),
  })
  const oldIsValidUntil = endsAt > context.now() ? isoTime(endsAt) : null
  show({ name, serviceId, secretFile: file, oldIsValidUntil, path, inUse: use.isNow }, () =>
    linesText([
      `Rotated the secret of ${name} (${serviceId}): the new one is in ${file}.`,
      `Old secrets are ${oldIsValidUntil === null ? 'no longer valid' : `valid until ${oldIsValidUntil}`}.`,
      `Changed in ${path}.${use.text}`,
    ]),
  )
  if (use.failure !== null) throw use.failure
}

interface SecretCall<Answer extends { readonly secret: string }> {
  /** Of the endpoint in the config. */
  readonly name: string
  /** What is asked for: the same again is the same call. */
  readonly request: object
  readonly call: (idempotencyKey: string) => Promise<Answer>
  /** What the service has done, for the message of a failure after it. */
  readonly done: (answer: Answer) => string
  /** @param answer null before there is one */
  readonly change: (content: unknown, secret: string, answer: Answer | null) => unknown
}

/**
 * Makes a call whose answer shows a secret once, and has the config name the file of the secret.
 *
 * Beforehand it checks that the config can be changed, and keeps the idempotency key in a file. Whatever breaks off
 * later, the same command makes the same call again, and the service answers with the same secret for a day.
 */
async function withSecret<Answer extends { readonly secret: string }>(
  given: Given<unknown>,
  { name, request, call, done, change }: SecretCall<Answer>,
) {
  const path = configPathOf(given.options, given.context)
  const folder = join(dirname(path), 'data')
  const kept = keptCall(folder, name, path, request, given.context.now())
  const fileName = secretFileName(name, kept.key)
  const reference = `\${file:./data/${fileName}}`
  const file = join(folder, fileName)
  try {
    const asMeant = (content: unknown) => ({ config: change(content, reference, null) })
    await changeConfigFile(path, given.context.env, asMeant, { onlyCheck: true })
  } catch (error) {
    throw unwritable(error, path)
  }
  try {
    kept.keep()
  } catch (error) {
    throw unwritable(error, folder)
  }

  const answer = await call(kept.key).catch((error: unknown) => {
    if (!isPaymentsApiError(error)) throw error
    const isRefused = error.code === 'payments_api_refused'
    // An earlier attempt may have been carried out.
    if (isRefused && !kept.isAgain) kept.forget()
    if (isRefused) throw error
    const todo = `It may have been done all the same: run the same command again ${IN_TIME}, which then goes on from there.`
    throw new LatchkeyError(error.code, `${error.message} ${todo}`, { cause: error, issues: error.issues })
  })
  let stored = 'its secret is not stored yet'
  try {
    writePrivateFile(file, `${answer.secret}\n`, { replace: true, ownerOf: path })
    stored = `its secret is in ${file}`
    const changed = await changeConfig(given, (content) => ({ config: change(content, reference, answer) }), {
      what: 'endpoints',
      byHand: 'make it writable',
      isTaken: async (api) => isSameFile((await api.get<StatusJson>('/status')).config, path),
    })
    kept.forget()
    return { ...changed, answer, file, earlier: kept.earlier }
  } catch (error) {
    if (!isLatchkeyError(error) && !isSystemRefusal(error)) throw error
    const why = isLatchkeyError(error) ? error.message : refusalText(error)
    const message = `${done(answer)}, and ${stored}, but ${path} does not name it: ${why.replace(/\.$/, '')}. Correct that and run the same command again ${IN_TIME}.`
    const issues = isLatchkeyError(error) ? error.issues : []
    throw new LatchkeyError('output_failed', message, { cause: error, issues })
  }
}

const IN_TIME = 'within 24 hours'

/** The service replays an answer for so long. */
const REPLAYED_MS = 86_400_000

const keptSchema = z.object({ key: z.uuid(), at: z.number(), request: z.unknown() })

/** The key of the call; that of an earlier one that asked for the same and broke off, while the service knows it. */
function keptCall(folder: string, name: string, configPath: string, request: object, now: number) {
  const file = join(folder, `webhook-${name}.pending`)
  const isThere = existsSync(file)
  const found = keptSchema.safeParse(isThere ? jsonIn(readFileSync(file, 'utf8')) : null)
  const isOpen = found.success && !readConfigText(configPath).includes(secretFileName(name, found.data.key))
  const known = isOpen ? found.data : null
  const isAgain = known !== null && now - known.at < REPLAYED_MS && isDeepStrictEqual(known.request, request)
  const call = isAgain ? known : { key: randomUUID(), at: now, request }
  return {
    key: call.key,
    isAgain,
    /** Another one that broke off. */
    earlier: isAgain ? null : known,
    keep(): void {
      if (isAgain) return
      if (mkdirSync(folder, { recursive: true, mode: 0o700 }) !== undefined) giveToOwnerOf(configPath, folder)
      // Of two commands at once, one makes the file, and the other is refused.
      writePrivateFile(file, `${JSON.stringify(call)}\n`, { replace: isThere, ownerOf: configPath })
    },
    forget: () => rmSync(file, { force: true }),
  }
}

/** Each secret has a file of its own: the old one stays where the config names it. */
function secretFileName(name: string, key: string): string {
  return `webhook-${name}-${key.slice(0, 8)}.txt`
}

/** Nothing was asked of the service yet. */
function unwritable(error: unknown, path: string): unknown {
  if (!isSystemRefusal(error)) return error
  const message = `${path} can't be written: ${refusalText(error)}; make it writable and run the command again. Nothing was changed.`
  return new LatchkeyError('output_failed', message, { cause: error })
}

/** A daemon may have been started with another config. */
function isSameFile(one: string, other: string): boolean {
  return existsSync(one) && realpathSync(one) === realpathSync(other)
}
