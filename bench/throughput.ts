import { measureIngest } from './ingest.js'
import { ROUND_DEFAULTS, readOptions, roundOptions } from './options.js'
import { measureReads } from './reads.js'
import { measureHistories, measureRenewals } from './renewals.js'
import { machineNow, report } from './results.js'
import { createWorkFolder } from './work-folder.js'

/*
 * How fast Latchkey takes deliveries in and answers questions, beside servers that do less, in the same run.
 * On Linux: it tells what another process costs.
 *
 *   node --import ./scripts/typescript.js bench/throughput.ts [--rounds 3] [--requests 20000] [--warm-up 3000] [--connections 64] [--folder F]
 *                                 [--against F: where another version is built, for the renewals]
 */

const machine = machineNow()
const { folder, against, numbers } = readOptions(ROUND_DEFAULTS)
const options = roundOptions(numbers)
const work = createWorkFolder(folder)
report('throughput', machine, [
  await measureIngest(work, options),
  await measureRenewals(work, options, against),
  await measureHistories(work, options),
  await measureReads(work, options),
])
