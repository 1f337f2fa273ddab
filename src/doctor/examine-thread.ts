import { parentPort, workerData } from 'node:worker_threads'
import { findWarnings } from '../config/schema.js'
import { type Examined, examine } from './examine.js'
import type { Finding } from './finding.js'

/*
 * Looks at everything for a daemon that goes on taking deliveries: to read every page keeps a thread busy for long.
 */

const { config, thorough, now, daemon, sync } = workerData as Examined
const findings: Finding[] = []
const examination = { config, warnings: findWarnings(config), thorough, clock: () => now, daemon }
for await (const finding of examine({ ...examination, syncOf: async () => sync })) findings.push(finding)
parentPort?.postMessage(findings)
