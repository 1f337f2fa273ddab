import { Gauge, type Registry } from 'prom-client'

/** Tells in metrics when the newest backup was begun. Made by the first one: before that it would say 1970. */
export function createBackupGauge(registry: Registry): (at: number) => void {
  let gauge: Gauge | null = null
  return (at) => {
    gauge ??= new Gauge({
      name: 'latchkey_last_backup_timestamp_seconds',
      help: 'When the newest scheduled backup was begun, in seconds since 1970.',
      registers: [registry],
    })
    gauge.set(at / 1000)
  }
}
