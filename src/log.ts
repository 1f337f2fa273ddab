import { type DestinationStream, type Logger, pino } from 'pino'

/** Whatever is logged by mistake under these names is left out: keys, secrets, and what identifies a person. */
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

export function createLogger(level: string, destination?: DestinationStream): Logger {
  const paths = NEVER_LOGGED.flatMap((name) => [name, `*.${name}`, `*.*.${name}`])
  const options = { level, base: { name: 'latchkey' }, redact: { paths, censor: '[redacted]' } }
  return destination === undefined ? pino(options) : pino(options, destination)
}
