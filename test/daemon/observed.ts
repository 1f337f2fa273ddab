import { ask, type RunningDaemon } from './running-daemon.js'

/** The value of one series, such as `latchkey_conflicts_total{endpoint="live"}`; null where there is none yet. */
export async function metric(daemon: RunningDaemon, series: string): Promise<number | null> {
  const answer = await ask(daemon, '/metrics')
  const line = (await answer.text()).split('\n').find((one) => one.startsWith(`${series} `))
  return line === undefined ? null : Number(line.slice(series.length))
}

/** What an operator is warned of or worse: pino's levels from 40 up. */
export function warnings(daemon: RunningDaemon): readonly Record<string, unknown>[] {
  return daemon.logged().filter(({ level }) => Number(level) >= 40)
}
