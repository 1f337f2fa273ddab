import { parentPort, workerData } from 'node:worker_threads'
import { findWarnings } from '../config/schema.js'
import { type Examined, examine } from './examine.js'
import type { Finding } from './finding.js'

/*
 * Examines everything in a thread beside a running daemon: reading every page would block deliveries.
 */

const { config, thorough, now, daemon, sync } = workerData as Examined
const findings: Finding[] = []
const examination = { config, warnings: findWarnings(config), thorough, clock: () => now, daemon }
for await (const finding of examine({ ...examination, syncOf: async () => sync })) findings.push(finding)
parentPort?.postMessage(findings)
