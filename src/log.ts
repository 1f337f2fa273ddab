import { type DestinationStream, type Logger, pino } from 'pino'
import { isExplained } from './errors.js'

/** Fields that are removed if they are logged by mistake: keys, secrets, and personal data. */
const NEVER_LOGGED = [
  'secret',
  'secrets',
  'key',
  'apiKey',
  'botToken',
  'authorization',
  'signature',
  'body',
  'email',
]

/** One JSON object per line, on standard output by default. */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  const paths = NEVER_LOGGED.flatMap((name) => [name, `*.${name}`, `*.*.${name}`])
  const options = {
    level,
    base: { name: 'latchkey' },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (name: string) => ({ level: name }) },
    redact: { paths, censor: '[redacted]' },
    serializers: { err: errorFields },
  }
  return destination === undefined ? pino(options) : pino(options, destination)
}

/** For a terminal: coloured, one line each if that is enough, times in the local zone. */
export async function terminalLines(): Promise<DestinationStream> {
  const { default: pretty } = await import('pino-pretty')
  return pretty({ sync: true, ignore: 'name', translateTime: 'SYS:yyyy-mm-dd HH:MM:ss.l', singleLine: true })
}

/** Shows a stack only if the message does not say everything. */
function errorFields(error: Error): object {
  const { stack, message, ...fields } = pino.stdSerializers.err(error)
  // The causes follow, each after a colon.
  const sentence = { ...fields, message: message.replaceAll('.: ', ': ') }
  return isExplained(error) ? sentence : { ...sentence, stack }
}
