import { parentPort, workerData } from 'node:worker_threads'
import { findWarnings } from '../config/schema.js'
import { unavailable } from '../store/engine.js'
import { type Examined, examine } from './examine.js'
import type { Finding } from './finding.js'

/*
 * Examines everything in a thread beside a running daemon: reading every page would block deliveries.
 */

const { config, thorough, now, daemon, sync } = workerData as Examined
const findings: Finding[] = []
const examination = { config, warnings: findWarnings(config), thorough, clock: () => now, daemon }
const syncOf = async () => {
  if (sync === null) throw unavailable('read', undefined)
  return sync
}
for await (const finding of examine({ ...examination, syncOf })) findings.push(finding)
parentPort?.postMessage(findings)
