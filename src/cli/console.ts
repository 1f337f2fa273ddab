import { isLatchkeyError, LatchkeyError } from '../errors.js'
import type { ConsoleLinkJson } from '../handlers/console.js'
import type { StatusJson } from '../handlers/control.js'
import { apiCommand, flag } from './command.js'
import type { CliContext } from './context.js'

export const consoleCommand = apiCommand('console', {
  kind: 'changes',
  about: "open the operator's console, signed in: by a link that works once, for a minute",
  examples: ['console', 'console --no-open'],
  environment: null,
  options: { noOpen: flag('only print the link') },
  async run({ api, options, context, show }) {
    const { path, expiresAt } = await api.send<ConsoleLinkJson>('POST', '/console/links').catch(whenOff)
    const base = options.url ?? reachable((await api.get<StatusJson>('/status')).listeners.api)
    const url = `${base.replace(/\/$/, '')}${path}`
    const isOpened = options.noOpen !== true && !options.json && (await openBrowser(url, context))
    show({ url, expiresAt }, () => (isOpened ? `opened in the browser: ${url}\n` : `${url}\n`))
  },
})

function whenOff(error: unknown): never {
  if (!isLatchkeyError(error, 'route_not_found')) throw error
  const message = 'the console is off: set "console" to true in the config, and restart the daemon'
  throw new LatchkeyError('daemon_failed', message, { cause: error })
}

/** The address of a listener as a browser on this machine reaches it. */
function reachable(url: string): string {
  return url.replace(/\/\/(0\.0\.0\.0|\[::\])(?=:)/, '//127.0.0.1')
}

/** Whether there is a browser to open, and it was started. */
async function openBrowser(url: string, { env, isTerminal }: CliContext): Promise<boolean> {
  const isMac = process.platform === 'darwin'
  if (!isTerminal || !(isMac || env.DISPLAY || env.WAYLAND_DISPLAY)) return false
  const { spawn } = await import('node:child_process')
  return new Promise((resolve) => {
    const child = spawn(isMac ? 'open' : 'xdg-open', [url], { stdio: 'ignore', detached: true, env })
    child.once('error', () => resolve(false))
    child.once('spawn', () => {
      child.unref()
      resolve(true)
    })
  })
}
