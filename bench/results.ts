import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, totalmem } from 'node:os'
import { join } from 'node:path'
import { PROJECT_FOLDER } from './project.js'

export interface Section {
  readonly title: string
  /** What was done, in a sentence or two. */
  readonly explanation: string
  readonly table: string
  /** Everything that was measured, for programs to read. */
  readonly data: unknown
}

const GIB = 1024 ** 3

/** The machine and how busy it is already: figures mean little without. */
export function machineNow(): string {
  const processors = cpus()
  const [busy = 0] = loadavg()
  const memory = `${Math.round(totalmem() / GIB)} GB`
  return `Node ${process.version}, ${processors.length} × ${processors[0]?.model.trim()}, ${memory}, load ${busy.toFixed(1)} at the start`
}

/** Prints the sections, and writes them as `bench/results/<name>.md` and `.json`. */
export function report(name: string, machine: string, sections: readonly Section[]): void {
  const folder = join(PROJECT_FOLDER, 'bench', 'results')
  mkdirSync(folder, { recursive: true })
  const measuredAt = new Date().toISOString()
  const text = [
    `${machine}. Measured ${measuredAt}.`,
    ...sections.map(({ title, explanation, table }) => `## ${title}\n\n${explanation}\n\n${table}`),
  ].join('\n\n')
  const data = Object.fromEntries(sections.map((section) => [section.title, section.data]))
  writeFileSync(join(folder, `${name}.md`), `# ${name}\n\n${text}\n`)
  writeFileSync(
    join(folder, `${name}.json`),
    `${JSON.stringify({ machine, measuredAt, ...data }, null, 2)}\n`,
  )
  console.log(text)
}
