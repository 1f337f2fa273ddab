import { CommanderError } from 'commander'
import { type ErrorCode, failureText, type Issue, isLatchkeyError, issueLine } from '../errors.js'
import { isSystemRefusal, refusalText } from '../system-refusal.js'
import { jsonLine } from './command.js'
import type { CliContext } from './context.js'

const WORK_FAILED = 1
const WRONG_USE = 2

const SHOWN = ['commander.version', 'commander.help', 'commander.helpDisplayed']
const NONE: readonly Issue[] = []
const WRONG_USE_CODES: readonly ErrorCode[] = ['usage', 'config_invalid', 'config_missing']

/** Reports an error on standard error, and returns the exit code: 1 the work failed, 2 wrong use. */
export function reportFailure(error: unknown, { err }: CliContext, json: boolean): number {
  // Commander has already shown the version or the help.
  const isShown = error instanceof CommanderError && SHOWN.includes(error.code)
  if (isShown) return error.exitCode === 0 ? 0 : WRONG_USE
  const { exitCode, ...failure } = describeFailure(error)
  if (json) {
    err(jsonLine({ error: failure }))
  } else {
    const { message, issues } = failure
    const further = issues.filter((issue) => !message.includes(issue.message))
    err(`error: ${message}\n${further.map((issue) => `  ${issueLine(issue)}\n`).join('')}`)
  }
  return exitCode
}

function describeFailure(error: unknown) {
  if (isLatchkeyError(error)) {
    const { code, message, issues } = error
    return { exitCode: WRONG_USE_CODES.includes(code) ? WRONG_USE : WORK_FAILED, code, message, issues }
  }
  if (error instanceof CommanderError) {
    return {
      exitCode: WRONG_USE,
      code: 'usage',
      message: error.message.replace(/^error: /, ''),
      issues: NONE,
    }
  }
  return { exitCode: WORK_FAILED, code: 'unexpected', message: textOf(error), issues: NONE }
}

function textOf(error: unknown): string {
  if (!(error instanceof Error && 'code' in error)) return failureText(error)
  if (isSystemRefusal(error) && error.syscall === 'listen' && 'address' in error && 'port' in error)
    return listenText(error, String(error.address), Number(error.port))
  if (isSystemRefusal(error) && error.syscall === 'getaddrinfo' && 'hostname' in error)
    return `the host ${error.hostname} can't be found: ${ANOTHER_HOST}`
  // Not the system's text, which begins with codes and ends with the name of a call.
  if (isSystemRefusal(error) && error.path !== undefined) {
    return `${error.path} can't be used: ${refusalText(error)}${error.code === 'EROFS' ? `: ${A_WRITABLE_DISK}` : ''}`
  }
  return failureText(error)
}

const A_WRITABLE_DISK = 'make its folder writable, or set database.url to another one'
const ANOTHER_HOST = 'set another host in the config, or LATCHKEY_HOST'
const ANOTHER_PORT = 'set another port in the config, or LATCHKEY_PORT'

function listenText(error: NodeJS.ErrnoException, host: string, port: number): string {
  if (port < 0) return `the socket ${host} can't be made, ${refusalText(error)}: ${A_WRITABLE_DISK}`
  switch (error.code) {
    case 'EADDRINUSE':
      return `something else listens on ${host}:${port}: ${ANOTHER_PORT}`
    case 'EADDRNOTAVAIL':
      return `this machine has no address ${host} to listen on: ${ANOTHER_HOST}`
    case 'EACCES':
      return `this user may not listen on ${host}:${port}; ports under 1024 are often kept for root: ${ANOTHER_PORT}`
    default:
      return `can't listen on ${host}:${port}, ${refusalText(error)}: ${ANOTHER_HOST}`
  }
}
