import type { Readable } from 'node:stream'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import { isJsonObject } from '../provider/json.js'
import { EVENT_HEADER } from '../provider/signature.js'
import { command, flag, parseId, type RegisterCommand, value } from './command.js'
import { loadNamedConfig } from './context.js'
import { createTally, pathTo, patiently } from './import.js'
import type { NumberedLine } from './import-input.js'
import { createProgress } from './progress.js'
import { jsonIn } from './text.js'
import { chooseEndpoint, currentSecret, parseUrl, sendDelivery, webhooksUrl } from './trigger.js'

/** Deliveries under way at a time: the daemon stores those that wait together in one transaction. */
const AT_ONCE = 16

/** From so many lines on, the time that they took is shown. */
const TIMED_FROM = 1_000

/** A body to sign, and the type that its header names. */
interface Sendable {
  readonly body: string | Buffer
  readonly event: string | null
}

/** `latchkey send`: signs bodies of one's own, or exported ones, and delivers them as the provider would. */
export function sendCommand(stdin: () => Readable): RegisterCommand {
  return command('send <file>', {
    about: 'sign the bodies in a file and send them to the running daemon',
    examples: ['send body.json', 'send events.jsonl --endpoint sandbox'],
    arguments: {
      file: 'one JSON body, or a body or a line of "events export" on each line; "-" reads standard input',
    },
    options: {
      endpoint: value('<name>', 'the endpoint to use (default: the first of the sandbox)', parseId),
      live: flag('use a live endpoint: changes live access'),
      url: value('<url>', 'where the daemon receives webhooks (default: from the config)', parseUrl),
    },
    async run({ options, args: [file = ''], context, show }) {
      const { openImportInput } = await import('./import-input.js')
      const { config } = await loadNamedConfig(options, context)
      const endpoint = chooseEndpoint(config, options)
      const input = openImportInput(pathTo(file, context), stdin)
      const url = options.url ?? (await webhooksUrl(config))
      const progress = createProgress(context)
      const tally = createTally()
      const startedAt = context.now()
      const rate = () => Math.round((tally.lines() * 1_000) / Math.max(1, context.now() - startedAt))

      const deliver = async ({ number, text }: BodyLine): Promise<() => void> => {
        const read = text === null ? 'is longer than a body may be' : sendableIn(text)
        if (read === UNSIGNED) return () => tally.add({ number }, { outcome: UNSIGNED })
        if (typeof read === 'string') return () => tally.add({ number }, invalid(read))
        const sentAt = context.now()
        const secret = currentSecret(endpoint, sentAt)
        try {
          const receipt = await patiently(() => sendDelivery(url, endpoint.name, secret, sentAt, read))
          return () => tally.add({ number }, { outcome: receipt.disposition })
        } catch (error) {
          if (!isLatchkeyError(error, 'body_too_large')) throw atLine(number, error)
          return () => tally.add({ number }, invalid(error.message))
        }
      }
      try {
        for await (const lines of groupsOf(await bodiesIn(file, input.bytes))) {
          const sent = await Promise.allSettled(lines.map(deliver))
          for (const one of sent) if (one.status === 'fulfilled') one.value()
          for (const one of sent) if (one.status === 'rejected') throw one.reason
          progress.show(input.share(), `${tally.lines()} sent, ${rate()} a second`)
        }
      } catch (error) {
        progress.clear()
        if (tally.lines() > 0) context.err(`stopped after ${tally.text()}`)
        throw error
      }
      progress.clear()
      const took = tally.lines() < TIMED_FROM ? '' : `${rate()} a second\n`
      show(tally.json(), () => `${tally.text()}${took}`)
      tally.assertNoneRefused()
    },
  })
}

const invalid = (detail: string) => ({ outcome: 'refused', reason: 'line_invalid', detail }) as const

/** The same failure, with the line at which it happened. */
function atLine(number: number, error: unknown): unknown {
  if (!isLatchkeyError(error)) return error
  const { code, message, issues, cause } = error
  return new LatchkeyError(code, `line ${number}: ${message}`, { issues, cause })
}

/** Its text, or the exact bytes of a whole file. */
type BodyLine = Pick<NumberedLine, 'number'> & { readonly text: string | Buffer | null }

/**
 * One body if the whole input is one, on however many lines; else one for each line.
 * @throws {LatchkeyError} `input_failed` if it is neither
 */
async function bodiesIn(file: string, bytes: AsyncIterable<Buffer>) {
  const { MAX_LINE_BYTES, numberedLines } = await import('./import-input.js')
  const chunks: Buffer[] = []
  let size = 0
  const rest = bytes[Symbol.asyncIterator]()
  for (;;) {
    const next = await rest.next()
    if (next.done) {
      const whole = withoutFinalNewline(Buffer.concat(chunks))
      const text = whole.toString('utf8')
      if (isJsonObject(jsonIn(text))) return [{ number: 1, text: whole }]
      await assertLines(file, text)
      break
    }
    chunks.push(next.value)
    size += next.value.length
    if (size > MAX_LINE_BYTES) break
  }
  async function* all(): AsyncGenerator<Buffer> {
    yield* chunks
    yield* { [Symbol.asyncIterator]: () => rest }
  }
  return numberedLines(all())
}

/** Line by line, a faulty body on several lines would be as many faults, of which none is the fault. */
async function assertLines(file: string, text: string): Promise<void> {
  const [first, ...others] = text.split('\n').filter((line) => line.trim() !== '')
  if (first === undefined || jsonIn(first) !== undefined) return
  if (others.some((line) => isJsonObject(jsonIn(line)))) return
  const name = file === '-' ? 'standard input' : file
  const message = `${name} is neither one JSON body nor one JSON body on each line: not valid JSON${await placeOfFault(text)}`
  throw new LatchkeyError('input_failed', message)
}

/** Quotes nothing, since a body may hold personal data. */
async function placeOfFault(text: string): Promise<string> {
  const { visit } = await import('jsonc-parser')
  let place = ''
  const onError = (_code: number, _offset: number, _length: number, line: number, character: number) => {
    place ||= ` at line ${line + 1}, column ${character + 1}`
  }
  visit(text, { onError }, { disallowComments: true })
  return place
}

function withoutFinalNewline(bytes: Buffer): Buffer {
  const end = /\r?\n?$/.exec(bytes.subarray(-2).toString('latin1'))?.[0].length ?? 0
  return bytes.subarray(0, bytes.length - end)
}

async function* groupsOf(lines: AsyncIterable<BodyLine> | Iterable<BodyLine>): AsyncGenerator<BodyLine[]> {
  let group: BodyLine[] = []
  for await (const line of lines) {
    group.push(line)
    if (group.length < AT_ONCE) continue
    yield group
    group = []
  }
  if (group.length > 0) yield group
}

/** A line of an export that was never signed, or is no longer: only an import takes it. */
const UNSIGNED = 'left_out'

/** What to send for a line, or why it can't be sent. */
function sendableIn(given: string | Buffer): Sendable | string {
  const text = typeof given === 'string' ? given.replace(/\r$/, '') : given
  const json = jsonIn(text.toString())
  if (json === undefined) return 'is not JSON'
  if (!isJsonObject(json)) return 'is not a JSON object'
  if (typeof json.bodyBase64 !== 'string') return { body: text, event: typeOf(json) }
  if (['manual', 'reported', 'reading'].some((kind) => kind === json.kind)) return UNSIGNED
  const body = Buffer.from(json.bodyBase64, 'base64')
  const headers = isJsonObject(json.headers) ? json.headers : {}
  const named = asEvent(headers[EVENT_HEADER])
  return { body, event: named ?? typeOf(jsonIn(body.toString('utf8'))) }
}

function typeOf(body: unknown): string | null {
  return isJsonObject(body) ? asEvent(body.type) : null
}

/** As in a header, which may not hold every character. */
function asEvent(type: unknown): string | null {
  return typeof type === 'string' && /^[\w.]{1,100}$/.test(type) ? type : null
}
