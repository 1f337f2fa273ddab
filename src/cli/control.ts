import { setTimeout as wait } from 'node:timers/promises'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import type { Reloaded, StatusJson } from '../handlers/control.js'
import type { Api } from './api.js'
import { apiCommand, command } from './command.js'
import { detailText, linesText } from './text.js'

export const controlCommands = [
  command('init', {
    about: 'write a first config with a sandbox endpoint and an API key',
    examples: ['init', 'init --config /etc/latchkey/config.json'],
    async run(given) {
      const { init } = await import('./init.js')
      init(given)
    },
  }),
  command('serve', {
    about: 'run the daemon; see `latchkey stop` and `latchkey reload`',
    examples: ['serve', 'serve --config /etc/latchkey/config.json'],
    async run({ options, context }) {
      const { runDaemon } = await import('./run-daemon.js')
      await runDaemon(options, context)
    },
  }),
  apiCommand('status', {
    kind: 'asks the daemon',
    about: 'show the running daemon: uptime, addresses, waiting and current work',
    examples: ['status', 'status --json'],
    environment: null,
    async run({ api, show }) {
      const status = await api.get<StatusJson>('/status')
      show(status, (paint) => detailText(status, paint))
    },
  }),
  apiCommand('reload', {
    kind: 'changes',
    about: 'make the running daemon read its config file again, and show what changed',
    environment: null,
    async run({ api, show }) {
      const reloaded = await api.send<Reloaded>('POST', '/reload')
      show(reloaded, () => reloadedText(reloaded))
    },
  }),
  apiCommand('stop', {
    kind: 'changes',
    about: 'stop the running daemon, and wait until it has stopped',
    environment: null,
    async run({ api, show }) {
      const { pid, startedAt } = await api.get<StatusJson>('/status').catch(whenStopping)
      await api.send('POST', '/stop').catch(whenStopping)
      for (let left = GONE_WITHIN_MS / LOOK_AGAIN_MS; !(await hasGone(api, startedAt)); left -= 1) {
        if (left === 0)
          throw new LatchkeyError('daemon_failed', 'the daemon did not stop within 30 s: see its log')
        await wait(LOOK_AGAIN_MS)
      }
      show({ stopped: true, pid }, () => (pid === null ? 'stopped\n' : `stopped (process ${pid})\n`))
    },
  }),
]

function reloadedText({ changed, needsRestart, policyDiffers }: Reloaded): string {
  return linesText([
    changed.length > 0 && `in use now: ${changed.join(', ')}`,
    changed.length + needsRestart.length === 0 && 'nothing has changed',
    needsRestart.length > 0 && `needs a restart: ${needsRestart.join(', ')}`,
    policyDiffers && 'the configured policy is not in force: see `latchkey policy diff`',
  ])
}

/** A daemon stops within 10 s; longer means that something is wrong. */
const GONE_WITHIN_MS = 30_000
const LOOK_AGAIN_MS = 50

/** A daemon that is stopping already may break a connection off: all that is left is to wait for its end. */
function whenStopping(error: unknown): Pick<StatusJson, 'startedAt'> & { readonly pid: number | null } {
  if (isLatchkeyError(error, 'daemon_failed')) return { startedAt: '', pid: null }
  throw error
}

/** True even if a supervisor has started a new one since. @param startedAt empty: unknown */
async function hasGone(api: Api, startedAt: string): Promise<boolean> {
  try {
    const status = await api.get<StatusJson>('/status')
    return startedAt !== '' && status.startedAt !== startedAt
  } catch (error) {
    if (!isLatchkeyError(error, 'daemon_unreachable')) return false
    if (api.config === null) return true
    const { isStoreServed } = await import('../store/sqlite/file.js')
    return !isStoreServed(api.config.database.file)
  }
}
