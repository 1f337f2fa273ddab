import { setTimeout as wait } from 'node:timers/promises'
import { bytesText, counted, durationText } from '../doctor/finding.js'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import type { Reloaded, StatusJson } from '../handlers/control.js'
import type { Api } from './api.js'
import { apiCommand, command } from './command.js'
import { linesText, type Paint, table } from './text.js'

/** `latchkey serve`: runs the daemon until it is stopped. Creates a config if none is named and none exists. */
const serveCommand = command('serve', {
  about: 'run the daemon; see `latchkey stop` and `latchkey reload`',
  examples: ['serve', 'serve --config /etc/latchkey/config.json'],
  async run({ options, context }) {
    const { runDaemon } = await import('./run-daemon.js')
    await runDaemon(options, context)
  },
})

/** These three concern a running daemon: they never start one inside the command. */
const RUNNING = {
  environment: null,
  whereNone: { needsDaemon: 'no daemon runs: start one with `latchkey serve`' },
} as const

/** `latchkey status`: the status of the daemon: version, uptime and work in progress. */
const statusCommand = apiCommand('status', {
  about: 'show the running daemon: uptime, addresses, waiting and current work',
  examples: ['status', 'status --json'],
  ...RUNNING,
  async run({ api, context, show }) {
    const status = await api.get<StatusJson>('/status')
    show(status, (paint) => statusText(status, context.now(), paint))
  },
})

function statusText(status: StatusJson, now: number, paint: Paint): string {
  const { version, pid, startedAt, config, ready, notes, listeners, database, queue, endpoints, sync, job } =
    status
  const ago = (time: string) => durationText(Math.max(0, now - Date.parse(time)))
  const { api, socket } = listeners
  const others = (['webhooks', 'metrics'] as const).filter((name) => listeners[name] !== api)
  const rows = [
    ['latchkey', `${version}, process ${pid}, for ${ago(startedAt)} (since ${startedAt})`],
    ['ready', ready ? 'yes' : 'no'],
    ...notes.map((note) => ['note', note]),
    ['config', config],
    ['serves', [api, ...others.map((name) => `${name} ${listeners[name]}`)].join(', ')],
    ['socket', socket ?? 'none'],
    ['database', `${database.file}, ${bytesText(database.bytes)}`],
    ['queue', queue.deliveries === 0 ? 'empty' : `${queue.deliveries} to store, ${bytesText(queue.bytes)}`],
    ...endpoints.map(({ name, environment, lastEventAt }) => [
      `endpoint ${name}`,
      `${environment}, ${lastEventAt === null ? 'no event yet' : `last event ${ago(lastEventAt)} ago (${lastEventAt})`}`,
    ]),
    ['sync', sync === null ? 'off' : syncText(sync)],
    ['job', job === null ? 'none' : `${job.name}, ${job.done} of ${Math.max(job.done, job.total)} events`],
  ]
  return table(rows, paint)
}

function syncText({
  paused,
  due,
  parked,
  unconfirmed,
  messages,
  unreachable,
}: NonNullable<StatusJson['sync']>): string {
  const parts = [
    paused ? 'paused' : 'on',
    ...(due > 0 ? [`${due} under way`] : []),
    ...(parked > 0 ? [`${parked} parked`] : []),
    ...(unconfirmed > 0 ? [`${counted(unconfirmed, 'removal')} to confirm`] : []),
    ...(messages > 0 ? [`${counted(messages, 'webhook message')} to send`] : []),
    ...unreachable.map((name) => `${name} unreachable`),
  ]
  return parts.join(', ')
}

/** `latchkey reload`: makes the daemon read its config file again. */
const reloadCommand = apiCommand('reload', {
  about: 'make the running daemon read its config file again, and show what changed',
  examples: ['reload'],
  ...RUNNING,
  async run({ api, show }) {
    const reloaded = await api.send<Reloaded>('POST', '/reload')
    show(reloaded, () => reloadedText(reloaded))
  },
})

function reloadedText({ changed, needsRestart, policyDiffers }: Reloaded): string {
  return linesText([
    changed.length === 0 ? 'no change that a running daemon can apply' : `in use now: ${changed.join(', ')}`,
    ...(needsRestart.length === 0 ? [] : [`needs a restart: ${needsRestart.join(', ')}`]),
    ...(policyDiffers ? ['the configured policy is not in force: see `latchkey policy diff`'] : []),
  ])
}

/** A daemon stops within 10 s; longer means that something is wrong. */
const GONE_WITHIN_MS = 30_000
const LOOK_AGAIN_MS = 50

/** `latchkey stop`: returns once the daemon has stopped. */
const stopCommand = apiCommand('stop', {
  about: 'stop the running daemon, and wait until it has stopped',
  examples: ['stop'],
  ...RUNNING,
  async run({ api, show }) {
    const { pid, startedAt } = await api.get<StatusJson>('/status')
    await api.send('POST', '/stop')
    for (let left = GONE_WITHIN_MS / LOOK_AGAIN_MS; !(await hasGone(api, startedAt)); left -= 1) {
      if (left === 0)
        throw new LatchkeyError('daemon_failed', `process ${pid} has not stopped in 30 s: see its log`)
      await wait(LOOK_AGAIN_MS)
    }
    show({ stopped: true, pid }, () => `stopped (process ${pid})\n`)
  },
})

/** True even if a supervisor has started a new one since. */
async function hasGone(api: Api, startedAt: string): Promise<boolean> {
  try {
    return (await api.get<StatusJson>('/status')).startedAt !== startedAt
  } catch (error) {
    if (!isLatchkeyError(error, 'daemon_unreachable')) return false
    if (api.config === null) return true
    const { isStoreServed } = await import('../store/sqlite/file.js')
    return !isStoreServed(api.config.database.file)
  }
}

export const controlCommands = [serveCommand, statusCommand, reloadCommand, stopCommand]
