import { resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import type { Config } from '../config/types.js'
import { BODY_REMOVAL_TEXT, type BodyRemoval, type EventBodyQuery } from '../entitlements/stored-event.js'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import {
  defaultEnvironment,
  environmentOption,
  jsonLine,
  loadNamedConfig,
  otherThan,
  parseId,
  type SharedOptions,
  withSharedOptions,
} from './command.js'
import { commandGroup } from './command-groups.js'
import type { CliContext } from './context.js'
import { noSuchEvent } from './events-show.js'
import type { Output } from './output-file.js'

interface EventsBodyOptions extends SharedOptions {
  readonly environment?: Environment
  readonly sha256?: string
  readonly output?: string
  readonly force?: true
}

/** `latchkey events body`: the bytes of one stored event exactly as they came, and as they were signed. */
export function eventsBodyCommand(program: Command, context: CliContext): void {
  const command = commandGroup(program, 'events').command('body')
  withSharedOptions(command, 'events body evt_1', 'events body evt_1 --output evt_1.body')
    .description('write the exact bytes of one stored event to standard output')
    .argument('<event>', 'the event id', parseId)
    .option('--sha256 <hex>', 'another body under this id (default: the one that stands)', parseSha256)
    .option('--output <file>', 'write them to a file that only its owner may read')
    .option('--force', 'replace that file')
    .addOption(environmentOption())
    .action((eventId: string, options: EventsBodyOptions) => writeBody(eventId, options, context))
}

async function writeBody(eventId: string, options: EventsBodyOptions, context: CliContext): Promise<void> {
  const { readEventBody } = await import('./read-events.js')
  const { config } = await loadNamedConfig(options, context)
  const environment = options.environment ?? defaultEnvironment(config.endpoints)
  const sha256 = options.sha256 ?? null
  const body = await readEventBody(config, { environment, eventId, sha256 })
  if (body === null) throw await nothingSuch(config, { environment, eventId, sha256 })
  const { bytes, removed, sha256: hash } = body
  if (bytes === null) throw bodyRemoved(eventId, removed)
  if (removed !== null) context.err(`${sentenceOf(eventId, removed)}\n`)
  if (options.output !== undefined) {
    const { openOutputFile } = await import('./output-file.js')
    const replace = options.force === true
    saveTo(openOutputFile(resolve(context.folder, options.output), { replace, config }), bytes)
  } else if (options.json) {
    context.out(jsonLine({ id: eventId, sha256: hash, bodyBase64: bytes.toString('base64') }))
  } else {
    context.out(bytes)
  }
}

/** There may be the event, and no such body of it. */
async function nothingSuch(
  config: Config,
  { environment, eventId, sha256 }: EventBodyQuery,
): Promise<LatchkeyError> {
  const { readEvent } = await import('./read-events.js')
  const isStored = sha256 !== null && (await readEvent(config, { environment, eventId })) !== null
  if (!isStored) {
    const elsewhere = await readEvent(config, { environment: otherThan(environment), eventId })
    return noSuchEvent(eventId, environment, elsewhere !== null)
  }
  return new LatchkeyError('event_not_found', `the event ${eventId} has no body with the SHA-256 ${sha256}`)
}

function bodyRemoved(eventId: string, removed: BodyRemoval | null): LatchkeyError {
  const why = removed === null ? `the body of ${eventId} is gone` : sentenceOf(eventId, removed)
  return new LatchkeyError('body_removed', why)
}

function sentenceOf(eventId: string, { why, at }: BodyRemoval): string {
  return `the body of ${eventId} ${BODY_REMOVAL_TEXT[why]}, at ${new Date(at).toISOString()}`
}

function saveTo(output: Output, bytes: Buffer): void {
  try {
    output.write(bytes)
    output.finish()
  } finally {
    output.discard()
  }
}

function parseSha256(text: string): string {
  if (/^[0-9a-f]{64}$/.test(text)) return text
  throw new InvalidArgumentError('It is not a SHA-256 in lower-case hex.')
}
